"""The losses: value, and the dual weights that they put on the margins.

A new loss is one class here, one entry in `LOSSES`, and the shared tests apply to it: see
``docs/add_a_loss.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ._core import dual_integers
from .margins import Margin

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]

_BITS = 60  # dual weights sum to at most 2**60: no sum of them can overflow 64 bits


class DualWeights(NamedTuple):
    """Minus the gradient of the loss in integers: margin (i, k) has ``u[i, k] / scale``.

    Integer sums are exact, so prices do not depend on the order of the rows. A dual bound
    holds at any u, at this rounded one too. `offset` is what ``loss(z') + <u, z'>`` is at the
    least, for any z'; where u is the gradient at z and None is given, its value at z.
    """

    u: NDArray[np.int64] | None  # not held where prices were all that was asked of them
    scale: int
    loss: float
    offset: float | None = None
    least: float | None = None  # of the margins, where it was met on the way


# Makes integers of the exponential loss's weights at margins z with row weights: u, and what
# `dual_integers` tells of them.
Weigh = Callable[[Vector, Vector], tuple[Integers | None, tuple[float, int, int, float]]]


def weigh(
    z: Vector, weight: Vector, n_threads: int = 1
) -> tuple[Integers | None, tuple[float, int, int, float]]:
    """The weights as they are."""
    u = np.empty(z.shape, dtype=np.int64)
    return u, dual_integers(np.ascontiguousarray(z), weight, u, n_threads)


class Expansion(NamedTuple):
    """A loss at some margins: value, minus the gradient, and h of the second derivative."""

    loss: float
    u: Vector
    h: Vector


class Loss(Protocol):
    """Contract of a convex, decreasing loss of the margins z (rows, width)."""

    name: str
    infimum: float  # no margins have a lower value

    @property
    def log_odds(self) -> float | None:
        """Of a margin of one, where the expected loss is least; None if they do not exist."""

    def spread(self, margin: Margin) -> float:
        """By how much V, the adjoint of u, can differ from that of the best u.

        The dual objective is strongly concave in u, so that with a gap the sum of ``|V - V*|``
        is at most ``spread sqrt(2 gap)``.
        """

    def dual_weights(self, z: Vector, weight: Vector, weigh: Weigh = weigh) -> DualWeights:
        """Value and minus the gradient; `weight` sums to one over the rows.

        The exponential loss leaves the integers to `weigh`.
        """


@runtime_checkable
class SmoothLoss(Loss, Protocol):
    """Contract of a loss that Newton's method on the margins can minimise.

    Its second derivative is ``diag(h)``, or ``diag(h) - u u^T`` if it is `centred`.
    """

    centred: bool

    def on_margins(self, s: Vector) -> Callable[[Vector], Expansion]:
        """The loss of margins z that weigh s, both flat, as a function of z."""


class Exponential:
    """``log mean exp(-z)``: the logarithm of the losses (3) and (18) of the paper.

    Its weights are equation (15), normalised as in (30).
    """

    name, infimum, log_odds, centred = "logarithm of the exponential loss", -math.inf, 2.0, True

    def spread(self, margin: Margin) -> float:
        """Pinsker: ``|u - u*| <= sqrt(2 KL)``, and every u appears in V so many times."""
        return margin.spread

    def dual_weights(self, z: Vector, weight: Vector, weigh: Weigh = weigh) -> DualWeights:
        """Weights proportional to ``weight exp(-z)``, summing to one."""
        u, (top, bits, total, least) = weigh(z, weight)
        # Here the integers sum to the scale.
        return DualWeights(u, total, top + math.log(math.ldexp(total, -bits)), least=least)

    def on_margins(self, s: Vector) -> Callable[[Vector], Expansion]:
        """``log sum s exp(-z)``; its second derivative is the covariance under u."""
        with np.errstate(divide="ignore"):
            log_s = np.log(s)

        def expand(z: Vector) -> Expansion:
            x = log_s - z
            top = x.max()
            e = np.exp(x - top)
            e[e < 1e-100] = 0.0  # below all rounding, and denormal numbers are slow
            total = e.sum()
            u = e / total
            return Expansion(float(top + np.log(total)), u, u)

        return expand


class Elementwise:
    """``mean phi(z)`` of a convex, decreasing function of one margin; u does not sum to one."""

    infimum, centred = 0.0, False
    bend: float  # the largest second derivative of phi

    def phi(self, z: Vector) -> tuple[Vector, Vector, Vector]:
        """Values, minus the slopes, and second derivatives."""
        raise NotImplementedError

    def spread(self, margin: Margin) -> float:
        """The dual bends by at least ``1 / (bend s)`` in u; then Cauchy and Schwarz."""
        return margin.spread * math.sqrt(self.bend)

    def dual_weights(self, z: Vector, weight: Vector, weigh: Weigh = weigh) -> DualWeights:
        """Minus the slopes, times the weights."""
        s = (weight / z.shape[1])[:, None]
        value, slope, _ = self.phi(z)
        return _rounded_down(s * slope, math.fsum((s * value).ravel()))

    def on_margins(self, s: Vector) -> Callable[[Vector], Expansion]:
        """``sum s phi(z)``."""

        def expand(z: Vector) -> Expansion:
            value, slope, h = self.phi(z)
            return Expansion(float(s @ value), s * slope, s * h)

        return expand


class Logistic(Elementwise):
    """``mean log(1 + exp(-z))``."""

    name, log_odds, bend = "logistic loss", 1.0, 0.25

    def phi(self, z: Vector) -> tuple[Vector, Vector, Vector]:
        """Values, minus the slopes, and second derivatives."""
        p = expit(-z)
        return np.logaddexp(0.0, -z), p, p * expit(z)


class SquaredHinge(Elementwise):
    """``mean max(0, 1 - z)^2 / 2``."""

    name, log_odds, bend = "squared hinge", None, 1.0

    def phi(self, z: Vector) -> tuple[Vector, Vector, Vector]:
        """Values, minus the slopes, and second derivatives."""
        short = np.maximum(0.0, 1.0 - z)
        return short * short / 2.0, short, (z < 1.0).astype(float)


class Hinge:
    """``mean max(0, 1 - min_k z_k)`` of pairwise margins z, equations (24) to (26).

    The slack is one of a row, not of a margin, so that in the dual (Theorem 3) the weights of a
    row are nonnegative and sum to at most its own. There is no gradient where margins tie.
    """

    name, infimum, log_odds = "hinge", 0.0, None

    def spread(self, margin: Margin) -> float:
        """The dual is linear in u: a small gap says nothing about u."""
        return math.inf

    def dual_weights(self, z: Vector, weight: Vector, weigh: Weigh = weigh) -> DualWeights:
        """A row short of 1 gives its weight to its least margins, in equal parts."""
        least = z.min(axis=1, keepdims=True)
        ties = (z == least) & (least < 1.0)
        return self.shared_out(ties / np.maximum(1, ties.sum(axis=1, keepdims=True)), z, weight)

    def shared_out(self, v: Vector, z: Vector, weight: Vector) -> DualWeights:
        """The loss at z with the dual weights ``weight v``; v is nonnegative.

        Rows of v that sum to more than one are scaled down: u is feasible, whatever v was.
        """
        share = (1.0 - 2.0**-50) * weight / np.maximum(1.0, v.sum(axis=1))
        loss = math.fsum(weight * np.maximum(0.0, 1.0 - z.min(axis=1)))
        dual = _rounded_down(v * share[:, None], loss)
        assert dual.u is not None
        return dual._replace(offset=int(dual.u.sum()) / dual.scale)


LOSSES: dict[str, Loss] = {
    "exponential": Exponential(),
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
    "hinge": Hinge(),
}
# Those for any margins, which the smooth master solves.
SMOOTH = {name: loss for name, loss in LOSSES.items() if isinstance(loss, SmoothLoss)}


def _rounded_down(p: Vector, loss: float) -> DualWeights:
    """The weights p in integers, none of them larger than it was."""
    over = max(0, int(np.frexp(p.max())[1]))  # beyond one
    bits = _bits(np.ldexp(p, -over)) - over
    return DualWeights(np.floor(np.ldexp(p, bits)).astype(np.int64), 2**bits, loss)


def _bits(e: Vector) -> int:
    """How far to shift numbers in [0, 1] so that their integers sum to at most 2**60.

    Counted in integers, so that it does not depend on the order of a sum.
    """
    coarse = _BITS - e.size.bit_length()
    total = int(np.rint(e * 2.0**coarse).astype(np.int64).sum())
    return coarse + _BITS - (total + e.size).bit_length()
