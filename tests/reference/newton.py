"""Twin of ``cpp/master.hpp`` and ``cpp/simplex_qp.hpp``: the same method in NumPy.

Without equal rows and columns taken together, with every Hessian in float64, exact line
searches, and a fresh factor for every system.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from tcboost.correctors.master import MasterSolution
from tcboost.losses import Expansion, SmoothLoss

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


def solve_simplex_qp(H: Vector, g: Vector, theta: float, w: Vector) -> Vector:
    """Minimise ``d.H.d / 2 - g.d`` over ``w + d >= 0``, ``sum(w + d) <= theta``; return d.

    A primal active-set method from the feasible point `w`. The budget's slack
    ``theta - sum v`` is one more variable without a cost: while it is free, the multiplier of
    the budget is zero. All systems are solved for increments, so that what is lost to an
    ill-conditioned H is relative to the step and not to w.
    """
    q = len(g)
    v, d, residual = w.copy(), np.zeros(q), g.copy()  # residual = g - H d
    free = v > 0
    slack_free = bool(v.sum() < theta * (1 - 1e-14))
    slack = theta - float(v.sum()) if slack_free else 0.0
    tolerance = 1e-13 * max(float(np.abs(g).max(initial=0.0)), 1e-300)
    for _ in range(20 * q + 20):
        F = np.flatnonzero(free)
        x, multiplier = _free_step(H, residual, F, slack_free)
        step, blocking = 1.0, -1
        negative = np.flatnonzero(v[F] + x < 0)
        if len(negative):
            ratios = v[F[negative]] / -x[negative]
            k = int(np.argmin(ratios))
            step, blocking = float(ratios[k]), int(F[negative[k]])
        change = float(x.sum()) if slack_free else 0.0
        if slack_free and slack < step * change:
            step, blocking = slack / change, q
        x *= step
        d[F] += x
        v[F] += x
        slack -= step * change
        residual -= H[:, F] @ x
        if blocking == q:
            slack, slack_free = 0.0, False
        elif blocking >= 0:
            d[blocking] = -w[blocking]
            v[blocking], free[blocking] = 0.0, False
        else:
            violation = np.where(free, -np.inf, residual - multiplier)
            worst = int(np.argmax(violation))
            if not slack_free and -multiplier > max(violation[worst], tolerance):
                slack_free = True
            elif violation[worst] > tolerance:
                free[worst] = True
            else:
                break
    return d


def _free_step(
    H: Vector, residual: Vector, F: NDArray[np.intp], slack_free: bool
) -> tuple[Vector, float]:
    """Step to the minimiser over the free variables, with the budget's multiplier."""
    if not len(F):
        return np.zeros(0), 0.0
    factor = cho_factor(H[np.ix_(F, F)], lower=True, check_finite=False)
    if slack_free:
        return cho_solve(factor, residual[F], check_finite=False), 0.0
    # The mean is taken out first: at an optimum all residuals of the support are equal.
    mean = float(residual[F].mean())
    x, ones = cho_solve(
        factor, np.column_stack([residual[F] - mean, np.ones(len(F))]), check_finite=False
    ).T
    total = float(ones.sum())
    shift = float(x.sum()) / total
    x -= shift * ones
    # Once more: what cancelled must not be left in the sum, nor spread over stiff variables.
    return x - (float(x.sum()) / total) * ones, mean + shift
