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
from scipy.optimize import linprog
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


# ---------------------------------------------------------------- other losses


def smooth_program(
    P: Array, s: Array, theta: float, loss: str, groups: list[slice] | None = None
) -> tuple[float, float, Array]:
    """min sum_n s_n phi((P w)_n), w >= 0, groups within theta; and its dual by its own program.

    Conjugates: max -theta r + sum entropies of the logistic loss, or sum u - u^2 / (2 s).
    """
    w, u = cp.Variable(P.shape[1], nonneg=True), cp.Variable(len(s), nonneg=True)
    groups = groups or [slice(None)]
    r = cp.Variable(len(groups), nonneg=True)
    if loss == "logistic":
        value = s @ cp.logistic(-(P @ w))
        conjugate = cp.sum(cp.entr(u) + cp.entr(s - u)) + float(s @ np.log(s))
    else:
        value = s @ cp.square(cp.pos(1 - P @ w)) / 2
        conjugate = cp.sum(u) - cp.sum(cp.multiply(cp.square(u), 1 / s)) / 2
    primal = cp.Problem(cp.Minimize(value), [cp.sum(w[k]) <= theta for k in groups])
    edges = [P[:, k].T @ u <= r[i] for i, k in enumerate(groups)]
    dual = cp.Problem(cp.Maximize(conjugate - theta * cp.sum(r)), edges)
    if not (solve(primal) and solve(dual)):
        raise RuntimeError("the reference solver failed")
    return float(primal.value), float(dual.value), w.value


def hinge_primal(P: Array, s: Array, theta: float, groups: list[slice]) -> float:
    """Eq. (hin-prim): min sum_i s_i xi_i, 1 - (P w)_ic <= xi_i, xi >= 0, groups within theta.

    P is (N, C-1, columns).
    """
    N, K, t = P.shape
    xi = np.repeat(np.eye(N), K, axis=0)
    A = [np.hstack([-P.reshape(N * K, t), -xi])]
    for k in groups:
        within = np.zeros((1, t + N))
        within[0, :t][k] = 1.0
        A.append(within)
    b = np.concatenate([-np.ones(N * K), np.full(len(groups), theta)])
    found = linprog(np.concatenate([np.zeros(t), s]), np.vstack(A), b)
    assert found.status == 0
    return float(found.fun)


def hinge_theorem_3(P: Array, theta: float) -> float:
    """The dual as printed, all N (C) weights of equal rows: min r theta + sum_i u_{i,y_i}."""
    N, K, t = P.shape
    c = np.concatenate([np.zeros(N * K), np.ones(N), [theta]])
    A = np.hstack([P.reshape(N * K, t).T, np.zeros((t, N)), -np.ones((t, 1))])
    sums = np.hstack([np.repeat(np.eye(N), K, axis=1), np.eye(N), np.zeros((N, 1))])
    found = linprog(c, A, np.zeros(t), sums, np.ones(N))
    assert found.status == 0
    return float(found.fun)


def lpboost(H: Array, y: Array, D: float) -> tuple[float, float]:
    """LPBoost: max rho - D sum xi, y_i (H a)_i + xi_i >= rho, sum a = 1. (rho, sum xi)."""
    N, t = H.shape
    c = np.concatenate([np.zeros(t), np.full(N, D), [-1.0]])
    A = np.hstack([-y[:, None] * H, -np.eye(N), np.ones((N, 1))])
    one = np.concatenate([np.ones(t), np.zeros(N + 1)])[None, :]
    bounds = [(0, None)] * (t + N) + [(None, None)]
    found = linprog(c, A, np.zeros(N), one, [1.0], bounds)
    assert found.status == 0
    return float(found.x[-1]), float(found.x[t:-1].sum())
