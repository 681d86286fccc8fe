"""Contract of a corrector: it owns the coefficients and the margins that follow from them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..losses import DualWeights

Vector = NDArray[np.float64]


class Corrector(Protocol):
    """Coefficients w of the columns so far, and the margins ``z = P w`` (rows, width)."""

    w: Vector
    z: Vector

    @property
    def budget(self) -> float:
        """The theta that the certificate is for."""

    def floor(self, r: float) -> float:
        """The edge that a new column must exceed; r bounds those of the present ones."""

    def done(self, gap: float) -> bool:
        """Whether a certificate with this gap ends the run."""

    def update(self, rho: NDArray[Any], dual: DualWeights) -> bool:
        """Take in a column with margins rho; False if nothing can be gained from it."""
