from array import array
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", np.int8, np.float64)
# first, group, place, offset: see `Groups` of cpp/histogram.hpp.
GroupArrays = tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int64],
]

def hash_rows(X: NDArray[np.float64], n_threads: int) -> NDArray[np.uint64]:
    """Two hashes of each row; all kinds of NaN are one, and so are the zeros."""

def chosen_values(
    X: NDArray[np.float64],
    rows: NDArray[np.int64],
    first: int,
    out: NDArray[np.float64],
    n_threads: int,
) -> None:
    """The features of rows from `first` on, into out; with one NaN and one zero."""

def bins_of(cuts: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[Any]:
    """1 + the number of cuts below each value, 0 for NaN, in the smallest type."""

def join_cells(
    cells: NDArray[np.uint8] | NDArray[np.int32],
    n_cells: int,
    bins: NDArray[np.uint8] | NDArray[np.uint16],
    n_bins: int,
    most: int,
    n_threads: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64]] | None:
    """Numbers of the pairs that occur, for each row, and the pairs as cell n_bins + bin."""

def prefix_sums(
    cells: NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32],
    u: NDArray[np.int64],
    y: NDArray[np.int64] | None,
    M: NDArray[np.int8] | None,
    groups: GroupArrays,
    n_threads: int,
) -> NDArray[np.int64]:
    """Sums of V over the rows, by feature and cumulated over its bins, and by class."""

def weigh_and_sum(
    z: NDArray[np.float64],
    weight: NDArray[np.float64],
    cells: NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32],
    y: NDArray[np.int64],
    M: NDArray[np.int8] | None,
    groups: GroupArrays,
    n_threads: int,
) -> tuple[NDArray[np.int64], tuple[float, int, int, float]]:
    """`prefix_sums` of the dual weights at margins z, and what `dual_integers` tells."""

def look_up_and_sum(
    cells: NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32],
    used: NDArray[np.int64],
    table: NDArray[np.float64],
    y: NDArray[np.int64],
    M: NDArray[np.int8],
    weight: NDArray[np.float64],
    top: float,
    bits: int,
    tie: float,
    groups: GroupArrays,
    n_threads: int,
) -> tuple[NDArray[np.int64], int, float, float]:
    """`prefix_sums` of weights at codeword margins of sums of table rows; what was met."""

def multiply_and_sum(
    E: NDArray[np.float64],
    coefficient: float,
    code: NDArray[np.int8],
    stump: tuple[int, int, bool, int],
    weight: NDArray[np.float64],
    bits: int,
    cells: NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32],
    y: NDArray[np.int64],
    groups: GroupArrays,
    n_threads: int,
) -> tuple[NDArray[np.int64], int, float, float]:
    """Multiply E, then `prefix_sums` of it; its sum, the largest, weight of wrong rows."""

def table_scores(
    X: NDArray[np.float64],
    feature: NDArray[np.int64],
    start: NDArray[np.int64],
    cuts: NDArray[np.float64],
    table: NDArray[np.float64],
    base: NDArray[np.float64],
    width: int,
    best: bool,
    n_threads: int,
) -> NDArray[Any]:
    """Scores of the rows of X, or the best of them, from one table a feature."""

def dual_integers(
    z: NDArray[np.float64],
    weight: NDArray[np.float64],
    u: NDArray[np.int64],
    n_threads: int,
) -> tuple[float, int, int, float]:
    """Dual weights in integers, into u; the top, the bits, the sum of u, the least z."""

def pairwise_margins(
    outputs: NDArray[Number], y: NDArray[np.intp], n_threads: int
) -> NDArray[Number]:
    """Margins of outputs."""

def pairwise_wrong(
    z: NDArray[np.float64], y: NDArray[np.intp], n_threads: int
) -> NDArray[np.bool_]:
    """Which rows are misclassified."""

def stump_signs(
    cells: NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32],
    group: NDArray[np.int64],
    place: NDArray[np.int32],
    start: NDArray[np.int64],
    candidates: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]],
    stumps: list[tuple[int, int]],
) -> NDArray[np.int8]:
    """What stumps say of each row, side by side."""

def stump_edges(
    sums: NDArray[np.int64],
    left: NDArray[np.int64],
    missing: NDArray[np.int64],
    total: tuple[int, int],
) -> NDArray[np.int64]:
    """Edges of stumps with the sign +1, from `prefix_sums`."""

def column_edges(
    A: NDArray[np.int64],
    places: NDArray[np.int64] | array[int],
    signs: NDArray[np.int64] | array[int],
) -> NDArray[np.int64]:
    """What each stump of columns, or with a code each column, adds to an edge."""

def largest(A: NDArray[np.int64], codes: NDArray[np.int8] | None) -> list[tuple[int, int]]:
    """The row of A of the largest edge for each code, or for the best of all, and its edge."""

def largest_of_parts(
    A: NDArray[np.int64], starts: NDArray[np.int64], limit: int
) -> list[list[tuple[int, int]]]:
    """For each column the rows of A of the largest edges, one a part, up to a limit."""

class _Master:
    """A restricted master; see cpp/master.hpp."""

    def __init__(
        self,
        s: NDArray[np.float64],
        width: int,
        on_margins: Callable[[NDArray[np.float64]], Any] | None,
        centred: bool,
        growing: bool,
    ) -> None: ...
    def split(self, parent: NDArray[np.uint32], s: NDArray[np.float64]) -> None:
        """Go on with rows that are parts of those there were."""

    def keep(self, kept: NDArray[np.bool_]) -> None: ...
    def solve(
        self, theta: float, w: NDArray[np.float64], tol: float, max_iter: int, n_threads: int
    ) -> tuple[Any, ...]:
        """w, z, u, r, loss, gap, n_iter, optimal."""

class MasterTabled(_Master):
    def add(self, cells: NDArray[np.uint8], table: NDArray[np.int8]) -> None: ...

class Master8(_Master):
    def add(self, columns: NDArray[Any]) -> None: ...

class Master16(Master8): ...
class MasterFloat(Master8): ...

def minimise_along(
    s: NDArray[np.float64],
    on_margins: Callable[[NDArray[np.float64]], Any] | None,
    centred: bool,
    z: NDArray[np.float64],
    zd: NDArray[np.float64],
    t_max: float,
) -> float:
    """The t in (0, t_max] of least loss at z + t zd."""

def solve_simplex_qp(
    H: NDArray[np.float64],
    g: NDArray[np.float64],
    theta: float,
    w: NDArray[np.float64],
) -> NDArray[np.float64] | None:
    """The step of a Newton model; None if H is not positive definite."""

# Whether it is ordered, its cells, whether some values are missing, the cells of rows, which
# rows these are (all, if none are named), and the cell of the others.
FeatureArrays = tuple[bool, int, bool, NDArray[np.uint16], NDArray[np.uint32] | None, int]

class VectorProblem:
    """Rows to fit class vectors to; see cpp/class_vectors.hpp."""

    def __init__(
        self,
        features: Sequence[FeatureArrays],
        y: NDArray[np.int32],
        weight: NDArray[np.float64],
        n_classes: int,
        n_threads: int,
    ) -> None: ...
    @property
    def stride(self) -> int:
        """Entries of a row of probabilities."""

    def edges(
        self,
        p: NDArray[np.float64],
        b: NDArray[np.float64],
        used: NDArray[np.int64],
        v: NDArray[np.float64],
        penalty: tuple[float, float, float],
        objective: float,
    ) -> tuple[NDArray[np.float64], float, float]:
        """The lengths of all edges; the gap over all rules, and over those in use."""

    def worthwhile(
        self,
        lengths: NDArray[np.float64],
        used: NDArray[np.int64],
        least: float,
        share: float,
    ) -> NDArray[np.int64]:
        """Rules to admit, the longest edge first."""

    def sweeps(
        self,
        p: NDArray[np.float64],
        b: NDArray[np.float64],
        used: NDArray[np.int64],
        v: NDArray[np.float64],
        penalty: tuple[float, float, float],
        curvature: float,
        n_sweeps: int,
        checkpoint: Callable[[], None] | None = None,
    ) -> NDArray[np.float64]:
        """Change p in place; b and the vectors before and after each sweep, b first."""

    def probabilities(
        self,
        p: NDArray[np.float64],
        b: NDArray[np.float64],
        used: NDArray[np.int64],
        v: NDArray[np.float64],
    ) -> None:
        """Those of a model, into p."""

    def measures(
        self,
        p: NDArray[np.float64],
        b: NDArray[np.float64],
        used: NDArray[np.int64],
        v: NDArray[np.float64],
        penalty: tuple[float, float, float],
    ) -> tuple[float, float, float, float, float]:
        """The cross-entropy, the objective, the weight of wrong rows, the least margin, the
        mean spread."""
