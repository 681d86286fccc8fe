"""The algorithms of Hao, Shen, Barnes and Wang (2010), word for word and slow.

Test oracles: plain enumeration of stumps and codes; programs.py solves the programs.
Classes are 0..C-1. The sample weights s sum to one, u_ik starts at s_i / K with K = L
(codeword margins) or K = C - 1 (pairwise margins, classes c != y_i in ascending order), and
a loss is log(sum_ik (s_i / K) exp(-z_ik)): zero where all coefficients are zero.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .programs import Array, dual_value, log_loss, primal_program, solve_master, weights

Ints = npt.NDArray[np.int_]

TIE = 1e-12  # edges this close, relative to sum|v|, are equal; so is eps to 1/2


# ---------------------------------------------------------------- stumps


@dataclass(frozen=True)
class Stump:
    """h(x) = sign if x_feature > threshold else -sign; missing values are on one side."""

    feature: int
    threshold: float
    sign: int
    missing_right: bool = False

    def predict(self, X: Array) -> Array:
        x = X[:, self.feature]
        right = (x > self.threshold) | (np.isnan(x) & self.missing_right)
        return np.where(right, 1.0, -1.0) * self.sign


def thresholds(x: Array) -> list[float]:
    """-inf (the constant hypothesis), then midpoints of consecutive distinct values."""
    out = [-math.inf]
    for a, b in itertools.pairwise(np.unique(x[~np.isnan(x)]).tolist()):
        middle = (a + b) / 2
        out.append(middle if middle < b else a)  # adjacent doubles: the midpoint may be b
    return out


def all_stumps(X: Array) -> list[Stump]:
    """Every stump of sign +1, in (feature, threshold) order, missing values on either side."""
    return [
        Stump(d, t, 1, right)
        for d, x in enumerate(X.T)
        for t in thresholds(x)
        for right in (False, True)[: 1 + np.isnan(x).any()]
    ]


def best_stump(X: Array, v: Array) -> tuple[Stump, float]:
    """The stump of largest abs(sum_i v_i h(x_i)), and that edge; ties go to the first."""
    stumps = all_stumps(X)
    sums = [math.fsum(v * h.predict(X)) for h in stumps]
    slack = TIE * math.fsum(np.abs(v))
    largest = max(abs(e) for e in sums)
    first = next(j for j, e in enumerate(sums) if abs(e) >= largest - slack)
    h, e = stumps[first], sums[first]
    return replace(h, sign=1 if e >= 0 else -1), abs(e)


def best_stump_and_code(X: Array, V: Array) -> tuple[float, Stump, Ints]:
    """The largest m . a(h), a_c(h) = sum_i h(x_i) V_ic, over all stumps and all 2^C codes.

    (h, m) and (-h, -m) are the same column, so the stump's sign is +1 here. Ties go to the
    first in (feature, threshold) order, then to +1 in the code, first classes first.
    """
    codes = list(itertools.product((1, -1), repeat=V.shape[1]))
    found: list[tuple[float, Stump, tuple[int, ...]]] = []
    for h in all_stumps(X):
        a = [math.fsum(h.predict(X) * V[:, c]) for c in range(V.shape[1])]
        found += [(math.fsum(np.multiply(m, a)), h, m) for m in codes]
    slack = TIE * math.fsum(np.abs(V).ravel())
    largest = max(edge for edge, _, _ in found)
    edge, h, m = next(f for f in found if f[0] >= largest - slack)
    return edge, h, np.array(m)


# ---------------------------------------------------------------- margins and initial weights


def normalised(y: Ints, s: Array | None) -> Array:
    """The sample weights, summing to one."""
    s = np.ones(len(y)) if s is None else np.asarray(s, dtype=float)
    return s / math.fsum(s)


def initial_u(s: Array, K: int) -> Array:
    """(N, K): u_ik = s_i / K."""
    return np.repeat(s[:, None] / K, K, axis=1)


def other_classes(y: Ints, C: int) -> Ints:
    """(N, C-1): the classes c != y_i, ascending."""
    return np.array([[c for c in range(C) if c != y_i] for y_i in y])


def outputs_of(X: Array, stumps: list[Stump]) -> Array:
    """(N, L): column l holds h_l(x_i)."""
    return np.column_stack([h.predict(X) for h in stumps])


def rho_mo(X: Array, y: Ints, M: Array, stumps: list[Stump]) -> Array:
    """(N, L): rho_il = M(y_i, l) h_l(x_i)."""
    return M[y] * outputs_of(X, stumps)


def rho_ecc(X: Array, y: Ints, m: Array, stump: Stump) -> Array:
    """(N, C-1): rho_ic = (m(y_i) - m(c)) h(x_i) for c != y_i."""
    return (m[y][:, None] - m[other_classes(y, len(m))]) * stump.predict(X)[:, None]


def rho_code(X: Array, y: Ints, M: Array, stumps: list[Stump]) -> Array:
    """(N, C-1): rho_ic = (M(y_i, :) - M(c, :)) . h(x_i) for c != y_i (Sec. III-D)."""
    H, others = outputs_of(X, stumps), other_classes(y, len(M))
    return np.array([[M[y[i]] @ H[i] - M[c] @ H[i] for c in others[i]] for i in range(len(y))])


def eps_floor(s: Array, K: int) -> float:
    """Half the weight of the lightest (row, k), 1 / (2 N K) for equal weights; at least 1e-10.

    Rows are taken to be distinct in (x, y): merge duplicates into weights first.
    """
    return max(min(w for w in s.tolist() if w > 0) / (2 * K), 1e-10)


# ---------------------------------------------------------------- Algorithms 1 and 2


@dataclass(frozen=True)
class StageWise:
    """A stage-wise run; omegas, stumps, losses and eps have one entry a round.

    losses[t] and u[t + 1] are taken after round t + 1; u[0] is the initial distribution.
    eps is the floored error, the one behind omega. A round has one stump (ECC) or L (MO).
    """

    omegas: Array
    stumps: list[Stump] | list[list[Stump]]
    losses: list[float]
    u: list[Array]
    eps: list[float]


def adaboost_mo(X: Array, y: Ints, M: Array, T: int, s: Array | None = None) -> StageWise:
    """Algorithm 1; stops before a round whose error is 1/2."""
    s, M = normalised(y, s), np.asarray(M, dtype=float)
    L = M.shape[1]
    u0 = initial_u(s, L)
    u, z = u0, np.zeros_like(u0)
    omegas, rounds, losses, us, errors = [], [], [], [u0], []
    for _ in range(T):
        u = u / u.sum()  # a)
        h = [best_stump(X, u[:, l] * M[y, l])[0] for l in range(L)]  # b)
        H = outputs_of(X, h)
        eps = math.fsum(u[M[y] != H])  # c)
        if eps >= 0.5 - TIE:
            break
        eps = max(eps, eps_floor(s, L))
        omega = 0.5 * math.log((1 - eps) / eps)  # d)
        u = u * np.exp(-omega * M[y] * H)  # e)
        z = z + omega * M[y] * H
        omegas.append(omega)
        rounds.append(h)
        losses.append(log_loss(u0, z))
        us.append(u / u.sum())
        errors.append(eps)
    return StageWise(np.array(omegas), rounds, losses, us, errors)


def adaboost_ecc(X: Array, y: Ints, codes: Array, T: int, s: Array | None = None) -> StageWise:
    """Algorithm 2, with the code columns codes[:, 0..T-1]. It never stops early."""
    s, codes = normalised(y, s), np.asarray(codes, dtype=float)
    C = codes.shape[0]
    others = other_classes(y, C)
    u0 = initial_u(s, C - 1)
    u, z = u0, np.zeros_like(u0)
    omegas, rounds, losses, us, errors = [], [], [], [u0], []
    for t in range(T):
        m = codes[:, t]  # a)
        u = u / u.sum()  # b)
        d = np.sum(u * (m[others] != m[y][:, None]), axis=1)  # c)
        if d.sum() == 0:
            raise ValueError(f"code column {t} separates no two classes")
        d = d / d.sum()  # d)
        h, _ = best_stump(X, d * m[y])  # e)
        eps = math.fsum(d[m[y] != h.predict(X)])  # f)
        eps = max(eps, eps_floor(s, C - 1))
        omega = 0.25 * math.log((1 - eps) / eps)  # g)
        rho = rho_ecc(X, y, m, h)
        u = u * np.exp(-omega * rho)  # h)
        z = z + omega * rho
        omegas.append(omega)
        rounds.append(h)
        losses.append(log_loss(u0, z))
        us.append(u / u.sum())
        errors.append(eps)
    return StageWise(np.array(omegas), rounds, losses, us, errors)


# ---------------------------------------------------------------- Algorithm 3


@dataclass(frozen=True)
class TotallyCorrective:
    """A run of Algorithm 3. All lists have one entry a round; u has the initial one too.

    omegas are the last coefficients, paths[t] those after round t + 1. edges[t] is the
    edge that was priced, r[t] and duals[t] those of the master that followed.
    """

    omegas: Array
    stumps: list[Stump] | list[list[Stump]]
    losses: list[float]
    u: list[Array]
    paths: list[Array]
    edges: list[float]
    r: list[float]
    duals: list[float]


def multiboost(
    X: Array,
    y: Ints,
    theta: float,
    T: int,
    s: Array | None = None,
    M: Array | None = None,
    codes: Array | None = None,
    pairwise: bool = False,
) -> TotallyCorrective:
    """Algorithm 3, sum w <= theta: MultiBoost.MO if M is given, MultiBoost.ECC if codes.

    M and pairwise: the mixture, L hypotheses a column with the margins of rho_code.
    """
    if (M is None) == (codes is None):
        raise ValueError("give either M or codes")
    code = np.asarray(M if codes is None else codes, dtype=float)
    codeword = codes is None and not pairwise
    u0 = initial_u(normalised(y, s), code.shape[1] if codeword else code.shape[0] - 1)
    u, r = u0, 0.0  # (1)
    columns: list[Array] = []
    rounds, losses, us, paths, edges, rs, duals = [], [], [u0], [], [], [], []
    for t in range(T):
        if codes is None and pairwise:  # (2), eq. (hin-cg2)
            others = other_classes(y, len(code))
            V = np.sum(u[:, :, None] * (code[y][:, None, :] - code[others]), axis=1)
            priced = [best_stump(X, v) for v in V.T]
            h = [stump for stump, _ in priced]
            edge = math.fsum(e for _, e in priced)
            rho = rho_code(X, y, code, h)
        elif codes is None:  # (2), eqs. (MO-CGsc) and (ECC-CG1), the factor 2 kept
            priced = [best_stump(X, u[:, l] * code[y, l]) for l in range(code.shape[1])]
            h = [stump for stump, _ in priced]
            edge = math.fsum(e for _, e in priced)
            rho = rho_mo(X, y, code, h)
        else:
            m = code[:, t]
            v = np.sum(u * (m[y][:, None] - m[other_classes(y, len(m))]), axis=1)
            h, edge = best_stump(X, v)
            rho = rho_ecc(X, y, m, h)
        if edge <= r + 1e-9:  # (3)
            break
        columns.append(rho.ravel())  # (4)
        master = solve_master(np.column_stack(columns), u0.ravel(), theta)  # (5)
        u, r = master.u.reshape(u0.shape), master.r
        rounds.append(h)
        losses.append(master.loss)
        us.append(u)
        paths.append(master.w)
        edges.append(edge)
        rs.append(r)
        duals.append(master.dual)
    omegas = paths[-1] if paths else np.zeros(0)
    return TotallyCorrective(omegas, rounds, losses, us, paths, edges, rs, duals)


# ---------------------------------------------------------------- the whole class


@dataclass(frozen=True)
class Optimum:
    """loss is attained (an upper bound), dual a lower bound on the optimal log-loss."""

    loss: float
    dual: float


def optimum_over(P: Array, u0: Array, theta: float, groups: list[slice]) -> Optimum:
    w = primal_program(P[u0 > 0], u0[u0 > 0], theta, groups)
    z = P @ w
    return Optimum(log_loss(u0, z), dual_value(P, u0, weights(u0, z), theta, groups))


def class_columns(
    X: Array, y: Ints, M: Array | None = None, kind: str = "codes"
) -> tuple[Array, list[slice]]:
    """Margins (N, K, columns) of the whole class, and the groups that have a theta each.

    Of "codes" every stump with every column of M, by default with all there are. Else columns
    are L-tuples, and conv(H x ... x H) is the product of the conv(H): one bit is alive at a
    time, and each bit has a budget theta of its own. Margins of the "codewords" have one bit.
    """
    signs = [g * h.predict(X) for h in all_stumps(X) for g in (1.0, -1.0)]
    H = np.unique(np.column_stack(signs), axis=1)  # the distinct sign patterns
    if M is None:
        M = np.array([*itertools.product((1.0, -1.0), repeat=int(y.max()) + 1)]).T
    M = np.asarray(M, dtype=float)
    own, L, n = M[y][:, None, :], M.shape[1], H.shape[1]
    alive = own * np.eye(L) if kind == "codewords" else own - M[other_classes(y, len(M))]
    P = np.einsum("ikl,ij->iklj", alive, H).reshape(len(y), -1, L * n)
    if kind == "codes":
        return np.unique(P, axis=2), [slice(None)]
    return P, [slice(l * n, (l + 1) * n) for l in range(L)]


def optimum_of_class(X: Array, y: Ints, s: Array | None, theta: float, *code: Any) -> Optimum:
    """The best log-loss of the whole class of `class_columns`."""
    P, groups = class_columns(X, y, *code)
    u0 = initial_u(normalised(y, s), P.shape[1]).ravel()
    return optimum_over(P.reshape(len(u0), -1), u0, theta, groups)


def optimum_over_tuples(X: Array, y: Ints, s: Array | None, theta: float, M: Array) -> Optimum:
    """Codeword margins: the same, with every L-tuple of stumps enumerated."""
    M = np.asarray(M, dtype=float)
    u0 = initial_u(normalised(y, s), M.shape[1]).ravel()
    signs = [g * h.predict(X) for h in all_stumps(X) for g in (1.0, -1.0)]
    H = np.unique(np.column_stack(signs), axis=1)
    tuples = itertools.product(range(H.shape[1]), repeat=M.shape[1])
    P = np.column_stack([(M[y] * H[:, list(j)]).ravel() for j in tuples])
    return optimum_over(P, u0, theta, [slice(None)])


# ---------------------------------------------------------------- prediction and margins


def scores_mo(X: Array, M: Array, stumps: list[list[Stump]], omegas: Array) -> Array:
    """(N, C): M(c, :) F(x), F_l(x) = sum_t omega_t h_l^t(x)."""
    F = np.zeros((len(X), np.shape(M)[1]))
    for omega, h in zip(omegas, stumps, strict=True):
        F += omega * outputs_of(X, h)
    return F @ np.asarray(M, dtype=float).T


def scores_ecc(X: Array, codes: Array, stumps: list[Stump], omegas: Array) -> Array:
    """(N, C): sum_t omega_t M(c, t) h^t(x)."""
    S = np.zeros((len(X), np.shape(codes)[0]))
    for t, (omega, h) in enumerate(zip(omegas, stumps, strict=True)):
        S += omega * np.outer(h.predict(X), np.asarray(codes, dtype=float)[:, t])
    return S


def predict_mo(X: Array, M: Array, stumps: list[list[Stump]], omegas: Array) -> Ints:
    """Eq. (MO-predict); the first class on ties."""
    return np.argmax(scores_mo(X, M, stumps, omegas), axis=1)


def predict_ecc(X: Array, codes: Array, stumps: list[Stump], omegas: Array) -> Ints:
    """Eq. (ECC-predict); the first class on ties."""
    return np.argmax(scores_ecc(X, codes, stumps, omegas), axis=1)


def margins_mo(X: Array, y: Ints, M: Array, stumps: list[list[Stump]], omegas: Array) -> Array:
    """Eq. (MO-marg): rho_i = min_l M(y_i, l) F_l(x_i) / sum omega."""
    M = np.asarray(M, dtype=float)
    z = sum(w * rho_mo(X, y, M, h) for w, h in zip(omegas, stumps, strict=True))
    return np.min(z, axis=1) / math.fsum(omegas)


def margins_ecc(X: Array, y: Ints, codes: Array, stumps: list[Stump], omegas: Array) -> Array:
    """Eq. (ECC-marg): rho_i = min_{c != y_i} sum_t omega_t rho_ic[h^t] / sum omega."""
    m = np.asarray(codes, dtype=float).T
    z = sum(w * rho_ecc(X, y, m[t], stumps[t]) for t, w in enumerate(omegas))
    return np.min(z, axis=1) / math.fsum(omegas)
