"""The convex programs behind the reference algorithms, by a conic solver.

P holds one column rho_j per hypothesis, its rows are the pairs (i, k); u0 is the initial
distribution. A solver's status is never trusted: every point is made feasible and valued.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, rel_entr, softmax

Array = npt.NDArray[np.float64]


def log_loss(u0: Array, z: Array) -> float:
    """log sum_ik u0_ik exp(-z_ik)."""
    return float(logsumexp(-z, b=u0))


def weights(u0: Array, z: Array) -> Array:
    """The KKT condition, eq. (MO-KKT), normalised: u proportional to u0 exp(-z)."""
    with np.errstate(divide="ignore"):
        return softmax(np.log(u0) - z)


@dataclass(frozen=True)
class Master:
    """min log sum_n u0_n exp(-(P w)_n), w >= 0, sum w <= theta; u, r from w by the KKT.

    dual is a lower bound on the optimum: the better of the solver's dual point and u.
    """

    w: Array
    u: Array
    r: float
    loss: float
    dual: float


def restricted_gap(P: Array, u0: Array, w: Array, theta: float) -> float:
    """Log-loss minus dual value at u(w): sum_j w_j (r - g_j) + r (theta - sum w)."""
    g = P.T @ weights(u0, P @ w)
    r = max(0.0, g.max())
    return float(w @ (r - g) + r * (theta - w.sum()))


def feasible(w: Array, theta: float) -> Array:
    """Rounding of the solver taken away: w >= 0, sum w <= theta."""
    w = np.maximum(w, 0.0)
    return w * min(1.0, theta / w.sum()) if w.sum() > 0 else w


def polish(P: Array, u0: Array, w: Array, theta: float) -> Array:
    """Newton's method on the KKT system of guessed supports; keeps the smallest gap."""
    best = feasible(w, theta)
    for cut, tight in itertools.product((1e-3, 1e-5, 1e-7), (True, False)):
        A = np.flatnonzero(best > cut * best.max())
        trial = np.where(best > cut * best.max(), best, 0.0)
        for _ in range(8):
            u = weights(u0, P @ trial)
            PA = P[:, A]
            g = PA.T @ u
            hessian = (PA.T * u) @ PA - np.outer(g, g)
            one = np.full((len(A), 1), float(tight))
            kkt = np.block([[hessian, one], [one.T, np.zeros((1, 1))]])
            rhs = np.append(g, (theta - trial.sum()) * tight)  # H dw + r 1 = g
            trial[A] += np.linalg.lstsq(kkt, rhs)[0][:-1]
            if not np.all(np.abs(trial) <= 2 * theta):  # a wrong guess
                break
            candidate = feasible(trial, theta)
            if restricted_gap(P, u0, candidate, theta) < restricted_gap(P, u0, best, theta):
                best = candidate
    return best


def solve(problem: cp.Problem) -> bool:
    """Clarabel, as tight as it can go; callers certify the point, whatever the status."""
    for tol in (1e-12, 1e-10, 1e-8):
        settings = {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}
        with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
            warnings.simplefilter("ignore")  # "may be inaccurate"
            problem.solve(solver=cp.CLARABEL, **settings)
            return True
    return False


def dual_program(P: Array, u0: Array, theta: float) -> tuple[Array, Array] | None:
    """Eq. (TC-dual): min r theta + KL(u || u0), rho_j . u <= r. Returns u and w, or None."""
    q, r = cp.Variable(len(u0)), cp.Variable(nonneg=True)  # u = u0 q
    edges = (P * u0[:, None]).T @ q <= r
    problem = cp.Problem(cp.Minimize(r * theta - u0 @ cp.entr(q)), [edges, u0 @ q == 1])
    if not solve(problem):
        return None
    u = u0 * np.maximum(q.value, 0.0)
    return u / u.sum(), np.ravel(edges.dual_value)  # the multipliers are w


def primal_program(P: Array, u0: Array, theta: float, groups: list[slice]) -> Array:
    """min log sum u0 exp(-P w), w >= 0, each group of w summing to at most theta."""
    w = cp.Variable(P.shape[1], nonneg=True)
    objective = cp.log_sum_exp(np.log(u0) - P @ w)
    if not solve(cp.Problem(cp.Minimize(objective), [cp.sum(w[k]) <= theta for k in groups])):
        raise RuntimeError("the reference solver failed")
    return np.concatenate([feasible(w.value[k], theta) for k in groups])


def dual_value(P: Array, u0: Array, u: Array, theta: float, groups: list[slice]) -> float:
    """-theta r - KL(u || u0), r = max(0, max_j rho_j . u), for each group: a lower bound."""
    r = math.fsum(max(0.0, (P[:, k].T @ u).max()) for k in groups)
    return -theta * r - math.fsum(rel_entr(u, u0))


def solve_master(P: Array, u0: Array, theta: float) -> Master:
    """Lines (5) and (7) of Algorithm 3; the primal program where the dual one fails."""
    keep, everything = u0 > 0, [slice(None)]
    found = dual_program(P[keep], u0[keep], theta)
    if found is None:
        w = polish(P, u0, primal_program(P[keep], u0[keep], theta, everything), theta)
        dual = -math.inf
    else:
        w = polish(P, u0, found[1], theta)
        dual = dual_value(P[keep], u0[keep], found[0], theta, everything)
    u = weights(u0, P @ w)
    dual = max(dual, dual_value(P, u0, u, theta, everything))
    loss = log_loss(u0, P @ w)
    if loss - dual > 1e-9 * (1 + theta):
        raise RuntimeError(f"the reference master has a gap of {loss - dual:.1e}")
    return Master(w, u, max(0.0, (P.T @ u).max()), loss, dual)
