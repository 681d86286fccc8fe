"""The smooth restricted master: all coefficients re-solved at once.

Minimise ``log sum_i s_i exp(-(P w)_i)`` over ``w >= 0``, ``sum w <= theta``: the logarithm of
problems (4) and (19) of the paper, whose Lagrange dual (Theorems 1 and 2, equation (30)) is

    maximise  -r theta - KL(u, s)   subject to  P^T u <= r,  r >= 0,  u in the simplex.

Newton's method in the native core, ``cpp/master.hpp``. Any other smooth loss of the margins
(`losses.SmoothLoss`) is solved in the same way, by calls back to Python.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core import Master8, Master16, MasterFloat, MasterTabled
from ..losses import SMOOTH, Exponential, SmoothLoss
from ..rows.blocks import effective_n_jobs
from ..validation import plain

Vector = NDArray[np.float64]

_MAX_ITER = 500


class MasterSolution(NamedTuple):
    """A solved restricted master, with the proof of how well it is solved.

    Attributes
    ----------
    w : ndarray of shape (n_columns,)
        The coefficients, ``w >= 0`` and ``sum w <= theta``.
    u : ndarray of shape (n_rows,)
        The dual weights, proportional to ``s * exp(-rho @ w)`` and summing to 1; of other
        losses, minus the gradient by the margins.
    r : float
        ``max(0, max_j rho_j . u)``, the bound on all inner products (Fig. 1 of the paper).
    log_loss : float
        ``log sum_i s_i exp(-(rho @ w)_i)``, or the value of another loss.
    gap : float
        The duality gap ``theta r - w . g``: `log_loss` is at most this far from the optimum.
    n_iter : int
        Newton steps taken.
    status : {"optimal", "precision", "max_iter"}
        "optimal" if the gap met the tolerance; "precision" if floating point allowed no more.
    """

    w: Vector
    u: Vector
    r: float
    log_loss: float
    gap: float
    n_iter: int
    status: str

    @property
    def dual(self) -> float:
        """The dual value, a lower bound on the optimal value."""
        return self.log_loss - self.gap


def solve_master(
    rho: ArrayLike,
    theta: float,
    w0: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    loss: str = "exponential",
) -> MasterSolution:
    """Minimise ``log sum_i s_i exp(-(rho @ w)_i)`` over ``w >= 0``, ``sum w <= theta``.

    Parameters
    ----------
    rho : array-like of shape (n_rows, n_columns)
        Margins of each column (weak hypothesis) on each row.
    theta : float
        The budget, positive.
    w0 : array-like of shape (n_columns,), optional
        Where to start; clipped and scaled to be feasible.
    sample_weight : array-like of shape (n_rows,), optional
        The weights s, nonnegative and not all zero. One each by default.
    tol : float, default=1e-6
        The duality gap to reach. Above ``theta = 1000`` it is at least ``1e-9 * theta``, all
        that double precision allows.
    loss : {"exponential", "logistic", "squared_hinge"}, default="exponential"
        The loss of the margins z: ``log sum s exp(-z)``, ``sum s log(1 + exp(-z))`` or
        ``sum s max(0, 1 - z)^2 / 2``.

    Returns
    -------
    MasterSolution
        Always with its true gap; `status` says whether the tolerance was met. It is solved in
        as many threads as there are cores, which changes no bit of it.

    Examples
    --------
    >>> import numpy as np
    >>> from tcboost import solve_master
    >>> rho = np.array([[1, -1], [1, 1], [-1, 1]])
    >>> solution = solve_master(rho, theta=2.0)
    >>> solution.status, solution.w.round(3).tolist()
    ('optimal', [1.0, 1.0])
    """
    P = _real_array("rho", rho)
    if P.ndim != 2 or 0 in P.shape:
        raise ValueError(f"rho must be a matrix with rows and columns, got shape {P.shape}")
    theta, tol = _positive("theta", theta), _positive("tol", tol)
    if loss not in SMOOTH:
        raise ValueError(f"loss must be one of {sorted(SMOOTH)}, got {loss!r}")
    n_rows, n_columns = P.shape
    s = np.ones(n_rows)
    if sample_weight is not None:
        s = _real_array("sample_weight", sample_weight).astype(float)
        if s.shape != (n_rows,) or (s < 0).any() or not s.any():
            raise ValueError(
                f"sample_weight must hold {n_rows} nonnegative numbers, not all zero"
            )
    w = np.zeros(n_columns)
    if w0 is not None:
        w = np.maximum(_real_array("w0", w0).astype(float), 0.0)
        if w.shape != (n_columns,):
            raise ValueError(f"w0 must hold {n_columns} numbers, got shape {w.shape}")
    return solve_cold(P, s, SMOOTH[loss], theta, w, tol)


class Master:
    """A restricted master that grows by columns, for any number of solves.

    The native core keeps its model of the loss from one to the next (``cpp/master.hpp``), in
    which all but the exponential loss are called back. A weight s is that of `width` margins.
    One that does not grow is solved once, and not from a solution of fewer columns.
    """

    def __init__(
        self,
        s: Vector,
        loss: SmoothLoss,
        n_threads: int = 1,
        width: int = 1,
        growing: bool = True,
    ) -> None:
        self._arguments = s, width, _on_margins(loss), loss.centred, growing
        self._native: Any = None
        self._n_threads = n_threads  # changes no bit

    def add(self, columns: NDArray[Any], *table: NDArray[np.int8]) -> None:
        """More columns, a matrix by columns; the first decide on the type.

        With a table it is the cells of one column, of which row i has ``table[cells[i]]``.
        """
        if self._native is None:
            kinds = {"int8": Master8, "int16": Master16, "uint8": MasterTabled}
            self._native = kinds.get(columns.dtype.name, MasterFloat)(*self._arguments)
        self._native.add(columns, *table)

    def split(self, parent: NDArray[np.uint32], s: Vector) -> None:
        """Go on with rows that are parts of those there were, row i of ``parent[i]``."""
        if self._native is None:
            self._arguments = s, *self._arguments[1:]
        else:
            self._native.split(parent, s)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget the other columns."""
        if self._native is not None:
            self._native.keep(kept)

    def solve(self, theta: float, w: Vector, tol: float) -> tuple[MasterSolution, Vector]:
        """The solution from `w`, and its margins ``P w``."""
        found = self._native.solve(theta, w, tol, _MAX_ITER, self._n_threads)
        return _solution(*found)


def solve_cold(
    P: NDArray[Any], s: Vector, loss: SmoothLoss, theta: float, w: Vector, tol: float
) -> MasterSolution:
    """The master of a whole matrix of columns, for any smooth loss, from `w`."""
    if theta > 1000:  # double precision does not resolve the gap any further
        tol = max(tol, 1e-9 * theta)
    P, seen = _smallest(P), dict[bytes, int]()
    first = [seen.setdefault(column.tobytes(), j) for j, column in enumerate(P.T)]
    kept = np.unique(first)  # of equal columns the first gets the coefficient
    master = Master(s, loss, effective_n_jobs(None), growing=False)
    master.add(np.asfortranarray(P[:, kept]))
    sums: Any = np.bincount(first, w)
    solution, _ = master.solve(theta, sums[kept], tol)
    w = np.zeros(len(first))
    w[kept] = solution.w
    return solution._replace(w=w)


def _on_margins(loss: SmoothLoss) -> Callable[[Vector], Any] | None:
    """What the native core calls back; it knows the exponential loss itself."""
    return None if type(loss) is Exponential else loss.on_margins


def _solution(
    w: Vector, z: Vector, u: Vector, r: float, loss: float, gap: float, n_iter: int, met: bool
) -> tuple[MasterSolution, Vector]:
    status = "optimal" if met else "max_iter" if n_iter >= _MAX_ITER else "precision"
    return MasterSolution(w, u, r, loss, gap, n_iter, status), z


def _smallest(P: NDArray[Any]) -> NDArray[Any]:
    """By columns, in the smallest type of the native core that holds the numbers."""
    largest = 1 if P.dtype == np.int8 else max(abs(float(P.min())), abs(float(P.max())))
    kind = np.int8 if largest < 128 else np.int16 if largest < 32768 else np.float64
    small = np.asfortranarray(P, dtype=kind)
    if P.dtype.kind == "f" and not np.array_equal(small, P):
        small = np.asfortranarray(P, dtype=np.float64)
    return small


def _real_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """The values as an array, refused unless they are finite real numbers."""
    try:
        array = np.asarray(values)
    except ValueError as error:  # ragged
        raise ValueError(f"{name} is not an array: {error}") from None
    if array.dtype.kind not in "iufb":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} contains {'NaN' if np.isnan(array).any() else 'infinity'}")
    return array


def _positive(name: str, number: object) -> float:
    if not (isinstance(number, Real) and 0 < float(number) < np.inf):
        raise ValueError(f"{name} must be a positive finite number, got {plain(number)!r}")
    return float(number)
