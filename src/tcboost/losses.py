"""The loss: its value and the dual weights that it puts on the margins."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_BITS = 60  # the dual weights sum to at most 2**60: no sum of them can overflow 64 bits


@dataclass(frozen=True)
class DualWeights:
    """A distribution over the margins in integers: (i, k) has the weight ``u[i, k] / total``.

    Integer sums are exact, so prices do not depend on the order of the rows. Any distribution
    gives a valid dual bound, this rounded one too.
    """

    u: NDArray[np.int64]
    total: int
    log_loss: float


def exponential(z: Vector, log_s: Vector) -> DualWeights:
    """``log sum s exp(-z)`` and its dual weights, proportional to ``s exp(-z)``.

    The logarithm of the losses (3) and (18) of the paper; the weights are its equation (15),
    normalised as in (30).
    """
    x = log_s - z
    top = float(x.max())
    e = np.exp(x - top)
    # Twice in integers, so that not even the number of bits depends on the order of a sum.
    coarse = _BITS - e.size.bit_length()
    bits = coarse + _BITS - (int(_integers(e, coarse).sum()) + e.size).bit_length()
    u = _integers(e, bits)
    total = int(u.sum())
    return DualWeights(u, total, top + math.log(math.ldexp(total, -bits)))


def _integers(e: Vector, bits: int) -> NDArray[np.int64]:
    return np.rint(np.ldexp(e, bits)).astype(np.int64)
