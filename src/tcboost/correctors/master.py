"""The smooth restricted master: all coefficients re-solved at once.

Minimise ``log sum_i s_i exp(-(P w)_i)`` over ``w >= 0``, ``sum w <= theta``: the logarithm of
problems (4) and (19) of the paper, whose Lagrange dual (Theorems 1 and 2, equation (30)) is

    maximise  -r theta - KL(u, s)   subject to  P^T u <= r,  r >= 0,  u in the simplex.

Newton's method on a working set of columns; each step is a quadratic program over the
budget simplex (`correctors.simplex_qp`) followed by a line search. A large budget is reached
through a sequence of smaller ones, because u then concentrates on few rows only gradually.

Any other smooth loss of the margins (`losses.SmoothLoss`) is solved in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..losses import SMOOTH, Expansion, SmoothLoss
from .simplex_qp import solve_simplex_qp

Vector = NDArray[np.float64]

_BLOCK = 4096  # rows turned to float64 at a time
_FIRST_GAP = 50.0  # the gap from which Newton's method may start at once
_BUDGET_FACTOR = 4.0  # from one budget to the next
_LOOSE = 0.2  # the gap to which a budget on the way is solved
_SLOPE = 0.3  # a full step is taken if it leaves at most this share of the slope
# Changes of the loss below this share of it are not looked at; a mean shows smaller ones.
_ROUNDING, _MEAN_ROUNDING = 1e-11, 1e-16
_MAX_ITER = 500
_STALLED = 12  # Newton steps without a better gap before precision is declared exhausted


@dataclass(frozen=True)
class MasterSolution:
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
        """The dual value, a lower bound on the optimal log-loss."""
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
        Always with its true gap; `status` says whether the tolerance was met.

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
    return Master(P, s, SMOOTH[loss]).solve(theta, w, tol)


class Master:
    """The restricted master of one margin matrix; `solve` may be called for many budgets."""

    def __init__(self, P: NDArray[Any], s: Vector, loss: SmoothLoss) -> None:
        self.P, self._centred = P, loss.centred
        self._expand = loss.on_margins(s)
        self._rounding = _ROUNDING if loss.centred else _MEAN_ROUNDING

    def solve(self, theta: float, w: Vector, tol: float) -> MasterSolution:
        """Solve for one budget from `w`, through smaller budgets if `w` is far from optimal.

        The next budget starts from a Newton step, which follows the path of optima while it
        is curved, or from the same w scaled up: the path of a separable problem becomes a ray.
        """
        tol = max(tol, 1e-9 * theta) if theta > 1000 else tol
        budget, w = self._first_budget(theta, w)
        rival, n_iter = None, 0
        while budget < theta:
            loose = self._newton(budget, w, rival, max(tol, _LOOSE), n_iter)
            larger = min(theta, _BUDGET_FACTOR * budget)
            w, rival, n_iter = loose.w, (larger / budget) * loose.w, loose.n_iter
            budget = larger
        return self._newton(theta, w, rival, tol, n_iter)

    def _first_budget(self, theta: float, w: Vector) -> tuple[float, Vector]:
        """The largest budget at which w has a moderate gap; w is scaled back to have one."""
        total = float(w.sum())
        if total > theta:
            w, total = w * (theta / total), theta
        state = self._state(w, total)
        if state.gap > _FIRST_GAP:
            scale = _FIRST_GAP / state.gap
            return scale * total, scale * w
        room = _FIRST_GAP - state.gap
        return (total + room / state.r if state.r * (theta - total) > room else theta), w

    def _newton(
        self, theta: float, w: Vector, rival: Vector | None, tol: float, n_iter: int
    ) -> MasterSolution:
        """Newton's method from `w`, or from `rival` if `w` is worse even after a step."""
        state = best = self._state(w, theta)
        stalled, ridge = 0, 1e-11
        while best.gap > tol and n_iter < _MAX_ITER and stalled < _STALLED:
            n_iter += 1
            cols = self._working_set(state)
            H = self._hessian(cols, state)
            # A proximal ridge for flat directions (duplicated columns); it moves no optimum.
            # Relative to each column, since their scales may differ.
            scale = max(1e-6 * float(H.diagonal().max()), float(np.abs(state.g).max()) / theta)
            H[np.diag_indices_from(H)] += ridge * np.maximum(H.diagonal(), scale)
            d = np.zeros_like(w)
            try:
                d[cols] = solve_simplex_qp(H, state.g[cols], theta, state.w[cols])
            except np.linalg.LinAlgError:  # indefinite by rounding
                ridge *= 100.0
                continue
            w, step = self._line_search(state, d, theta)
            if step > 1.25:  # the ridge, not the curvature, held the step back
                ridge = max(ridge / 10.0, 1e-15)
            elif step < 1e-9:  # rounding has made it a direction of ascent
                ridge *= 100.0
            new = self._state(w, theta)
            if rival is not None:
                new = min(new, self._state(rival, theta), key=lambda state: state.log_loss)
                rival = None
            rounding = self._rounding * max(1.0, abs(new.log_loss))
            progress = new.gap < 0.9 * best.gap or state.log_loss - new.log_loss > rounding
            stalled = 0 if progress else stalled + 1
            state = new
            if new.gap < best.gap:
                best = new
        if best.gap <= tol:
            status = "optimal"
        else:
            status = "max_iter" if n_iter >= _MAX_ITER else "precision"
        return MasterSolution(best.w, best.u, best.r, best.log_loss, best.gap, n_iter, status)

    def _state(self, w: Vector, theta: float) -> _State:
        z = self.margins(w)
        at = self._expand(z)
        g = self._adjoint(at.u)
        r = max(0.0, float(g.max()))
        # Nonnegative terms only, so that the gap is not lost to cancellation.
        gap = float(w @ (r - g)) + r * max(0.0, theta - float(w.sum()))
        return _State(w, z, at.u, at.h, g, r, at.loss, gap)

    def margins(self, w: Vector) -> Vector:
        """``P w``."""
        cols = np.flatnonzero(w)
        z = np.zeros(self.P.shape[0])
        for rows in _blocks(len(z)):
            z[rows] = self.P[rows][:, cols].astype(float) @ w[cols]
        return z

    def _adjoint(self, u: Vector) -> Vector:
        g = np.zeros(self.P.shape[1])
        for rows in _blocks(len(u)):
            g += u[rows] @ self.P[rows].astype(float)
        return g

    def _working_set(self, state: _State) -> NDArray[np.intp]:
        """Support and best violators; the others keep their zero in this step."""
        support = state.w > 0
        n_new = max(20, int(support.sum()) // 4)
        violation = np.where(support, -np.inf, state.g)
        order = np.argsort(-violation, kind="stable")[:n_new]
        floor = state.g[support].min() if support.any() else 0.0
        keep = support.copy()
        keep[order[violation[order] > min(floor, state.r)]] = True
        return np.flatnonzero(keep)

    def _hessian(self, cols: NDArray[np.intp], state: _State) -> Vector:
        """Of the exponential loss: covariance of the columns, centred before it is formed."""
        centre = self._centred * state.g[cols]
        seen = np.flatnonzero(state.h > 1e-20)  # the rest is lost in rounding
        H = np.zeros((len(cols), len(cols)))
        for rows in _blocks(len(seen)):
            A = self.P.T[cols][:, seen[rows]] - centre[:, None]
            A *= np.sqrt(state.h[seen[rows]])
            H += A @ A.T  # symmetric, which takes half the time
        return H

    def _line_search(self, state: _State, d: Vector, theta: float) -> tuple[Vector, float]:
        """The full step if it removes most of the slope, else the exact minimiser along `d`.

        Near the optimum the exact one would trade stiff directions for flat ones and zigzag.
        """
        w = state.w
        negative = d < 0
        t_max = float(np.min(-w[negative] / d[negative])) if negative.any() else np.inf
        if d.sum() > 0:
            t_max = min(t_max, max(0.0, theta - w.sum()) / d.sum())
        t_max = min(max(t_max, 1.0), 1e3)
        zd = self.margins(d)
        rounding = self._rounding * max(1.0, abs(state.log_loss))
        enough = max(_SLOPE * float(state.u @ zd), rounding)
        t = minimise_along(self._expand, self._centred, state.z, zd, t_max, enough)
        new = np.maximum(w + t * d, 0.0)
        total = new.sum()
        return (new * (theta / total) if total > theta else new), t


@dataclass(frozen=True)
class _State:
    """Everything that follows from w."""

    w: Vector
    z: Vector
    u: Vector
    h: Vector
    g: Vector
    r: float
    log_loss: float
    gap: float


def minimise_along(
    expand: Callable[[Vector], Expansion],
    centred: bool,
    z: Vector,
    zd: Vector,
    t_max: float,
    enough: float = 0.0,
) -> float:
    """The t in (0, t_max] of least loss at ``z + t zd``; 1 if `enough` slope is gone there.

    By Newton's method on the slope, kept inside a bracket.
    """
    low, high, t = 0.0, t_max, min(1.0, t_max)
    for _ in range(100):
        at = expand(z + t * zd)
        descent = float(at.u @ zd)
        done = (t == 1.0 and abs(descent) <= enough) or (t == t_max and descent >= 0)
        if done or descent == 0.0:
            break
        low, high = (t, high) if descent >= 0 else (low, t)
        curvature = float(at.h @ (zd - centred * descent) ** 2)
        newton = t + descent / curvature if curvature > 0 else np.copysign(np.inf, descent)
        if abs(newton - t) <= 1e-10 * t or high - low <= 1e-13 * high:
            break
        if newton >= high and high == t_max:
            t = t_max
        else:
            t = newton if low < newton < high else (low + high) / 2
    return t


def _blocks(n: int) -> list[slice]:
    return [slice(i, min(i + _BLOCK, n)) for i in range(0, n, _BLOCK)]


def _real_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """The values as an array, refused unless they are finite real numbers."""
    try:
        array = np.asarray(values)
    except ValueError as error:  # ragged
        raise ValueError(f"{name} is not an array: {error}") from None
    if array.dtype.kind not in "iufb":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return array


def _positive(name: str, number: object) -> float:
    if not (isinstance(number, Real) and 0 < float(number) < np.inf):
        raise ValueError(f"{name} must be a positive finite number, got {number!r}")
    return float(number)
