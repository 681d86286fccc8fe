"""The losses: value, and the dual weights that they put on the margins.

A new loss is one class here, one entry in `LOSSES`, and the shared tests apply to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from .margins import Margin

Vector = NDArray[np.float64]

_BITS = 60  # dual weights sum to at most 2**60: no sum of them can overflow 64 bits


@dataclass(frozen=True)
class DualWeights:
    """Minus the gradient of the loss in integers: margin (i, k) has ``u[i, k] / scale``.

    Integer sums are exact, so prices do not depend on the order of the rows. A dual bound
    holds at any u, at this rounded one too.
    """

    u: NDArray[np.int64]
    scale: int
    loss: float


@dataclass(frozen=True)
class Hessian:
    """A second derivative by class scores: its diagonal, and its product with a matrix."""

    diagonal: Vector
    times: Callable[[Vector], Vector]


class Loss(Protocol):
    """Contract of a convex, decreasing loss of the margins z (rows, width)."""

    name: str

    def spread(self, margin: Margin) -> float:
        """By how much V, the adjoint of u, can differ from that of the best u.

        The dual objective is strongly concave in u, so that with a gap the sum of ``|V - V*|``
        is at most ``spread sqrt(2 gap)``.
        """

    def dual_weights(self, z: Vector, weight: Vector) -> DualWeights:
        """Value and minus the gradient; `weight` sums to one over the rows."""

    def on_scores(self, F: Vector, y: NDArray[np.intp], weight: Vector) -> tuple[float, Vector]:
        """For pairwise margins of the class scores F: value and minus the gradient by F."""

    def hessian(self, F: Vector, y: NDArray[np.intp], weight: Vector) -> Hessian:
        """The second derivative by F."""


class Exponential:
    """``log mean exp(-z)``: the logarithm of the losses (3) and (18) of the paper.

    Its weights are equation (15), normalised as in (30).
    """

    name = "log-loss"

    def spread(self, margin: Margin) -> float:
        """Pinsker: ``|u - u*| <= sqrt(2 KL)``, and every u appears in V so many times."""
        return margin.spread

    def dual_weights(self, z: Vector, weight: Vector) -> DualWeights:
        """Weights proportional to ``weight exp(-z)``, summing to one."""
        return softmax_weights(np.log(weight / z.shape[1])[:, None] - z)

    def on_scores(self, F: Vector, y: NDArray[np.intp], weight: Vector) -> tuple[float, Vector]:
        """Value and minus the gradient by F."""
        rows = np.arange(len(y))
        x = F - F[rows, y][:, None] + np.log(weight / (F.shape[1] - 1))[:, None]
        x[rows, y] = -np.inf
        top = float(x.max())
        e = np.exp(x - top)
        total = float(e.sum())
        V = e * (-1.0 / total)
        V[rows, y] = -V.sum(axis=1)
        return top + math.log(total), V

    def hessian(self, F: Vector, y: NDArray[np.intp], weight: Vector) -> Hessian:
        """Of ``log sum exp``: that of the sum less the square of the gradient."""
        rows, V = np.arange(len(y)), self.on_scores(F, y, weight)[1]

        def times(B: Vector) -> Vector:
            out = V * (B[rows, y][:, None] - B)
            out[rows, y] = 0.0
            out[rows, y] = -out.sum(axis=1)
            return out - float((V * B).sum()) * V

        return Hessian(np.abs(V), times)


class Multinomial:
    """Cross-entropy, ``mean log(1 + sum_k exp(-z_k))`` of pairwise margins z."""

    name = "cross-entropy"

    def spread(self, margin: Margin) -> float:
        """Pinsker in every row, whose part of V is its weight times ``onehot(y) - p``."""
        return 1.0

    def dual_weights(self, z: Vector, weight: Vector) -> DualWeights:
        """Weights ``weight p_c`` of the wrong classes c."""
        top = np.maximum(0.0, -z.min(axis=1))
        e = np.exp(-z - top[:, None])
        total = np.exp(-top) + e.sum(axis=1)
        p = e * (weight / total)[:, None]
        bits = _bits(p)
        loss = math.fsum(weight * (top + np.log(total)))
        # Rounded down: the weights of a row must not sum to more than the row's own.
        return DualWeights(np.floor(np.ldexp(p, bits)).astype(np.int64), 2**bits, loss)

    def on_scores(self, F: Vector, y: NDArray[np.intp], weight: Vector) -> tuple[float, Vector]:
        """Value and minus the gradient by F, ``weight (onehot(y) - p)``."""
        rows = np.arange(len(y))
        top = F.max(axis=1)
        e = np.exp(F - top[:, None])
        total = e.sum(axis=1)
        V = e * (-weight / total)[:, None]
        V[rows, y] += weight
        return float(weight @ (top + np.log(total) - F[rows, y])), V

    def hessian(self, F: Vector, y: NDArray[np.intp], weight: Vector) -> Hessian:
        """``weight (diag(p) - p p^T)`` in every row."""
        p = softmax(F, axis=1)
        scaled = weight[:, None] * p

        def times(B: Vector) -> Vector:
            return scaled * (B - (p * B).sum(axis=1, keepdims=True))

        return Hessian(scaled * (1.0 - p), times)


LOSSES: dict[str, Loss] = {"exponential": Exponential(), "multinomial": Multinomial()}


def softmax_weights(x: Vector) -> DualWeights:
    """``log sum exp x`` and its gradient; here the integers sum to the scale exactly."""
    top = float(x.max())
    e = np.exp(x - top)
    bits = _bits(e)
    u = _integers(e, bits)
    total = int(u.sum())
    return DualWeights(u, total, top + math.log(math.ldexp(total, -bits)))


def _bits(e: Vector) -> int:
    """How far to shift numbers in [0, 1] so that their integers sum to at most 2**60.

    Counted in integers, so that it does not depend on the order of a sum.
    """
    coarse = _BITS - e.size.bit_length()
    return coarse + _BITS - (int(_integers(e, coarse).sum()) + e.size).bit_length()


def _integers(e: Vector, bits: int) -> NDArray[np.int64]:
    return np.rint(np.ldexp(e, bits)).astype(np.int64)
