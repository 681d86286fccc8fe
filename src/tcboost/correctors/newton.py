"""Newton steps on the coefficients of the hypotheses in use, within their budget.

Where no coefficient changes from or to zero the master is a smooth problem, with one equality
where the budget is spent: minimise ``loss(F) + ridge / 2 |W|^2 + lambda size(W)``. Its Newton
equation is solved by conjugate gradients, with Cholesky factors of parts of the Hessian in
front: of its blocks on the diagonal, one a class, and of all lengths together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from ..losses import ScoreLoss
from .base import Budget, Vector, lengths
from .chains import Chains

_MAX_CG, _CG_TOL = 60, 0.1
_MAX_HALVINGS = 20
_STIFF = 1e-3  # of what lengths bend, to keep short vectors from stretching without end
_FAR = 1e100  # no coefficient is as large
_MORE = 1e-6, 1e-4, 1e-2, 1.0  # of the mean diagonal, until rounding does no harm
# Of the parts of the Hessian: the heaviest rows stand for all, if more are there. With ten
# times as many a step takes a fifth longer (pendigits), as it does with a tenth of them, which
# takes more conjugate gradients.
_FLOPS = 1e8


class Step(NamedTuple):
    """Better coefficients, and the scores (rows, classes) that they make."""

    w: Vector
    F: Vector


def newton_step(
    H: NDArray[np.int8],
    codes: NDArray[np.int8] | None,
    w: Vector,
    loss: ScoreLoss,
    y: NDArray[np.intp],
    weight: Vector,
    budget: Budget,
    linear: Vector | None = None,
    keys: NDArray[np.int64] | None = None,
    n_threads: int = 1,
) -> Step | None:
    """One step, or None if it does not lower the loss.

    Coefficients are class vectors, or multiples of `codes`. The loss is less ``<linear, w>``.
    The `keys` tell which hypotheses form chains, for `Chains`.
    """
    used = lengths(w) > 0
    if not used.any():
        return None
    Hu, v, size = H[:, used], w[used], lengths(w)[used]
    m = None if codes is None else codes[used].astype(float)
    signs = Chains(Hu, None if keys is None else keys[used], n_threads)

    def scores(v: Vector) -> Vector:
        return signs.scores(v if m is None else v[:, None] * m)

    def pull(A: Vector) -> Vector:
        A = signs.pull(A)
        return A if m is None else (m * A).sum(axis=1)

    extra = np.zeros_like(v) if linear is None else linear[used]
    theta, price, ridge = budget.theta, budget.price, budget.ridges(w)[used]
    paid = (budget.sizes(w) > 0)[used]

    def total(v: Vector) -> float:
        return float(lengths(v) @ paid)

    def value(v: Vector, bare: float) -> float:
        costs = float((ridge * v * v).sum()) / 2.0 + price * total(v)
        return bare + costs - float((extra * v).sum())

    F = scores(v)
    bare, residuals = loss.on_scores(F, y, weight)
    g = pull(residuals) + extra - ridge * v
    multiplier = price
    if total(v) > theta * (1 - 1e-9):
        multiplier = max(price, float((v * g).sum()) / theta)
    normal = v * (paid / size)[:, None] if m is None else np.ones_like(v)
    bent = multiplier * paid / size  # of the lengths
    hessian = loss.hessian(F, y, weight)
    along, bends = (normal, bent) if m is None else (m, None)
    parts = _by_parts(Hu, along, hessian.diagonal, ridge.ravel(), bends)

    def curvature(D: Vector) -> Vector:
        out = pull(hessian.times(scores(D))) + ridge * D
        if m is None:
            out += bent[:, None] * (D - normal * (normal * D).sum(axis=1, keepdims=True))
        return out

    spent = multiplier > price
    with np.errstate(over="ignore", invalid="ignore"):
        divide = _along(normal, parts) if spent else parts
        step = _conjugate_gradients(curvature, divide, g - multiplier * normal)
    # Where the loss has next to no curvature a step may lead out of all bounds.
    far = float(np.abs(step).max(initial=0.0))
    if not 0 < far < np.inf:
        return None
    step *= min(1.0, 2.0 * min(theta, _FAR) / far)
    present = value(v, bare)
    for k in range(_MAX_HALVINGS):
        new = v + 0.5**k * step
        crossed = (new * v).sum(axis=1) <= 0 if m is None else new <= 0
        new[crossed & paid] = 0.0
        if total(new) > theta or (spent and total(new) > 0):
            new *= theta / total(new)
        F = scores(new)
        if value(new, loss.on_scores(F, y, weight)[0]) < present:
            better = np.zeros_like(w)
            better[used] = new
            return Step(better, F)
    return None


def _by_parts(
    H: NDArray[np.int8], along: Vector, diagonal: Vector, ridge: Vector, bent: Vector | None
) -> Callable[[Vector], Vector]:
    """Division by parts of the Hessian: multiples of the vectors `along`, and single classes.

    The latter only for vectors that may turn. There the lengths bend by `bent`, so much where
    a vector is short that next to nothing would be left of what changes its length: without a
    part of their own 273 vectors on pendigits took 60 steps of conjugate gradients, with it 4.
    """
    n, t = H.shape
    H = np.ascontiguousarray(H)
    few = min(n, max(t, int(_FLOPS / (t * t * diagonal.shape[1]))))
    grams: list[Any] = []
    for d in diagonal.T:
        # Well fitted rows weigh next to nothing, and every k-th row would be mostly these: 440
        # vectors on pendigits took three to five times as many steps.
        heavy = np.argpartition(d, n - few)[n - few :]
        half = H.take(heavy, axis=0) * np.sqrt(d[heavy], dtype=np.float32)[:, None]
        share = float(d[heavy].sum()) / max(float(d.sum()), 1e-300)
        grams.append((half.T @ half).astype(float) / max(share, 1e-300))
    pairs = zip(along.T, grams, strict=True)
    stiff = 0.0 if bent is None else _STIFF * bent
    multiples = _cholesky(sum(np.outer(c, c) * G for c, G in pairs), ridge + stiff)
    classes = [] if bent is None else [_cholesky(G, ridge + bent) for G in grams]

    def divide(R: Vector) -> Vector:
        if bent is None:
            return dpotrs(multiples, R)[0]
        D = np.column_stack([dpotrs(f, r)[0] for f, r in zip(classes, R.T, strict=True)])
        D -= D.mean(axis=1, keepdims=True)  # a shift of all classes changes nothing
        return D + along * dpotrs(multiples, (along * R).sum(axis=1))[0][:, None]

    return divide


def _cholesky(G: Vector, ridge: Vector) -> Vector:
    """Of G with a ridge; G is of single precision."""
    diagonal, mean = G.diagonal() + ridge + 1e-300, np.trace(G) / len(G)
    for more in _MORE:
        np.fill_diagonal(G, diagonal + more * mean)
        factor, failed = dpotrf(G, clean=False)
        if not failed:
            return factor
    raise np.linalg.LinAlgError("the Hessian is not positive definite")


def _along(normal: Vector, divide: Callable[[Vector], Vector]) -> Callable[[Vector], Vector]:
    """The same without the part that leaves the surface: conjugate gradients stay on it."""
    out = divide(normal)
    through = float((normal * out).sum()) or np.inf

    def projected(R: Vector) -> Vector:
        D = divide(R)
        for _ in range(2):  # once more for the rounding of the first
            D = D - float((normal * D).sum()) / through * out
        return D

    return projected


def _conjugate_gradients(
    times: Callable[[Vector], Vector], divide: Callable[[Vector], Vector], b: Vector
) -> Vector:
    """Solve ``times(x) = b``, loosely."""
    x, r = np.zeros_like(b), b
    z = p = divide(r)
    rz = first = float((r * z).sum())
    for _ in range(_MAX_CG):
        Kp = times(p)
        along = float((p * Kp).sum())
        if not (rz > 0 and along > 0):  # what is left of b is rounding
            break
        x = x + rz / along * p
        r = r - rz / along * Kp
        z = divide(r)
        rz, last = float((r * z).sum()), rz
        if rz <= _CG_TOL**2 * first:
            break
        p = z + rz / last * p
    return x
