"""Contract of a corrector: it owns the coefficients and the margins that follow from them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..losses import DualWeights
from ..oracles import Column

Vector = NDArray[np.float64]


class Corrector(Protocol):
    """Coefficients w of the columns so far, and the margins z (rows, width).

    A coefficient is a number, or a class vector: one row of a matrix.
    """

    w: Vector

    @property
    def z(self) -> Vector:
        """Margins under w."""

    @property
    def solved(self) -> bool:
        """Whether the last restricted master met its tolerance."""

    @property
    def budget(self) -> float:
        """The theta that the certificate is for."""

    def floor(self, r: float) -> float:
        """The edge that a new column must exceed; r bounds those of the present ones."""

    def done(self, gap: float) -> bool:
        """Whether a certificate with this gap ends the run."""

    def update(self, column: Column, outputs: NDArray[np.int8], dual: DualWeights) -> bool:
        """Take in a column with its outputs; False if nothing can be gained from it."""

    def polish(self) -> bool:
        """Make good what rounds left loose; False if there is nothing."""
