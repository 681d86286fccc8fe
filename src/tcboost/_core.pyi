import numpy as np
from numpy.typing import NDArray

def prefix_sums(
    cells: NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32],
    u: NDArray[np.int64],
    y: NDArray[np.int64] | None,
    first: NDArray[np.int64],
    group: NDArray[np.int64],
    place: NDArray[np.int32],
    offset: NDArray[np.int64],
    n_threads: int,
) -> NDArray[np.int64]:
    """Sums of V over the rows, by feature and cumulated over its bins."""

def descend(
    H: NDArray[np.int8],
    codes: NDArray[np.int8] | None,
    start: NDArray[np.int64],
    weight: NDArray[np.float64],
    W: NDArray[np.float64],
    F: NDArray[np.float64],
    theta: float,
    price: float,
    ridge: float,
    free_ridge: float,
    tol: float,
    max_sweeps: int,
    exponential: bool,
) -> float:
    """Improve the coefficients W and the scores F in place; returns the restricted gap."""

def stump_scores(
    X: NDArray[np.float64],
    feature: NDArray[np.int64],
    start: NDArray[np.int64],
    cuts: NDArray[np.float64],
    table: NDArray[np.int64],
    unit: float,
    width: int,
    n_threads: int,
) -> NDArray[np.float64]:
    """Scores of the rows of X, from one table a feature."""
