"""The quadratic program of a Newton step, over the budget simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Vector = NDArray[np.float64]


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
