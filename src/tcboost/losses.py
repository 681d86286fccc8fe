"""The loss: its value and the dual weights that it puts on the margins."""

from __future__ import annotations

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
    bits = _BITS - int(np.frexp(e.sum())[1])
    u = np.rint(np.ldexp(e, bits)).astype(np.int64)
    total = int(u.sum())
    return DualWeights(u, total, top + np.log(total) - bits * np.log(2.0))
