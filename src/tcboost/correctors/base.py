"""Contract of a corrector: it owns the coefficients and the margins that follow from them."""

from __future__ import annotations

from typing import Any, Protocol

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


def lengths(w: Vector) -> Vector:
    """Numbers as they are, class vectors by their length."""
    return w if w.ndim == 1 else np.sqrt((w * w).sum(axis=1))


class ColumnStore:
    """A matrix that grows by columns."""

    def __init__(self, n_rows: int, dtype: type) -> None:
        self._data: NDArray[Any] = np.empty((n_rows, 16), dtype=dtype, order="F")
        self._n = 0

    @property
    def matrix(self) -> NDArray[Any]:
        """The columns so far."""
        return self._data[:, : self._n]

    def append(self, column: NDArray[Any]) -> None:
        """Add a column."""
        if self._n == self._data.shape[1]:
            grown = np.empty((len(self._data), 2 * self._n), self._data.dtype, order="F")
            grown[:, : self._n] = self._data
            self._data = grown
        self._data[:, self._n] = column
        self._n += 1

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget the other columns."""
        chosen = self.matrix[:, kept]
        self._n = chosen.shape[1]
        self._data[:, : self._n] = chosen
