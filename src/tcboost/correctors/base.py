"""Contract of a corrector: it owns the coefficients and the margins that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..losses import DualWeights
from ..oracles import Column, Prices

Vector = NDArray[np.float64]

# A master of so few columns takes next to nothing to be solved in full. Else rows of no weight
# might choose a feature where a constant is all it takes.
SMALL = 32


# Those of new columns on all rows.
Columns = Sequence[Column]
Predictions = Callable[[], list[NDArray[np.int8]]]


class Corrector(Protocol):
    """Coefficients w of the columns so far, and the margins z (rows, width)."""

    w: Vector
    room: int  # for more columns: the loop tells
    tol: float  # the gap to reach, as it was asked for

    @property
    def lead(self) -> int:
        """With room for fewer columns than these, a round depends on how many they are."""

    @property
    def z(self) -> Vector:
        """Margins under w."""

    @property
    def dual(self) -> DualWeights | None:
        """The multipliers of the margins, where the loss has no gradient to tell them."""

    @property
    def theta(self) -> float:
        """The budget that the certificate is for."""

    @property
    def slack(self) -> float:
        """A difference of edges that does not count."""

    def batch(self) -> int:
        """The number of columns to add at once, at the most."""

    def floor(self, r: float) -> float:
        """The edge that a new column must exceed; r bounds those of the present ones."""

    def done(self, gap: float) -> bool:
        """Whether a certificate with this gap ends the run."""

    def update(
        self, columns: Columns, predictions: Predictions, dual: DualWeights, prices: Prices
    ) -> bool:
        """Take in columns with their predictions; False if nothing can be gained from them.

        Dual weights and prices are those by which they were chosen. Predictions are made when
        they are asked for.
        """

    def polish(self, gap: float = 0.0) -> bool:
        """Make good what rounds left loose, down to a share of a gap; False if that was all.

        Else there may be more to do once prices are known.
        """


def exponent(x: float) -> int:
    """Of the power of two that is just above x."""
    return math.frexp(x * (1.0 + 1e-6))[1]  # a hair for the rounding


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
        """Add a column; the first one decides on the type."""
        if self._n == 0:
            self._data = self._data.astype(column.dtype, copy=False)
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
