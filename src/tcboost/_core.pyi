import numpy as np
from numpy.typing import NDArray

def prefix_sums(
    bins: NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32],
    V: NDArray[np.int64],
    offset: NDArray[np.int64],
    n_threads: int,
) -> NDArray[np.int64]:
    """Sums of V over the rows, by feature and cumulated over its bins."""
