"""Contracts of the weak learners: hypotheses, and oracles that price them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..rows.blocks import LocalRows

Vector = NDArray[np.float64]


class Hypothesis(Protocol):
    """A weak hypothesis."""

    def predict(self, X: Vector) -> NDArray[np.int8]:
        """-1 or +1 for each row; a multiclass one gives each row an output for every class."""


class Column(NamedTuple):
    """A column of the problem: a vector function of x made of hypotheses.

    Without a code it holds one hypothesis for each bit of a fixed coding matrix, its output
    being their predictions, or one multiclass hypothesis; with a code column m it holds one
    hypothesis h and puts out ``m h(x)``.
    """

    hypotheses: tuple[Hypothesis, ...]
    code: NDArray[np.int8] | None = None

    @property
    def candidates(self) -> tuple[array[int], array[int]]:
        """Of stumps: their places in the table of the search, and their signs.

        With a code there is a sign for each class, that of its output.
        """
        stumps: Any = self.hypotheses
        code = None if self.code is None else self.code.tolist()
        signs = [h.sign * m for h in stumps for m in code or (1,)]
        return array("q", [h.candidate for h in stumps]), array("q", signs)

    def outputs(self, X: Vector) -> NDArray[np.int8]:
        """The outputs on new rows."""
        return self.coded(self.predictions(X))

    def predictions(self, X: Vector) -> NDArray[np.int8]:
        """Those of the hypotheses on new rows, side by side."""
        return np.column_stack([h.predict(X) for h in self.hypotheses])

    def coded(self, predictions: NDArray[np.int8]) -> NDArray[np.int8]:
        """The outputs that predictions make."""
        if self.code is None:
            return predictions
        return (self.code[:, None] * predictions[:, 0]).T  # long rows: 2 us instead of 37 (dna)


class Prices:
    """What an oracle knows about all its hypotheses under one V; an exact one all of this."""

    def best(self, W: NDArray[Any] | None) -> Sequence[tuple[Hypothesis, float]]:
        """For each column v of ``V @ W`` (or of V): the h of largest ``v . h``, and that."""
        raise NotImplementedError

    def ranked(self, n: int) -> Sequence[Sequence[tuple[Hypothesis, float]]]:
        """The best n for each column of V, each on another feature, the best ones first."""
        raise NotImplementedError

    def edges(self, columns: list[Column]) -> NDArray[np.int64]:
        """What each hypothesis of columns chosen before adds to their edges."""
        raise NotImplementedError

    def edge(self, column: Column) -> int:
        """The edge of one column."""
        return sum(self.edges([column])[0].tolist())

    def learned(self) -> tuple[Hypothesis, NDArray[np.int8], float]:
        """The best h and code in {-1, +1}^C together, and their edge."""
        raise NotImplementedError

    def largest(self) -> float:
        """That edge alone."""
        raise NotImplementedError

    def best_of_features(self, measure: Callable[[Vector], Vector], n: int) -> Vector:
        """Largest measures of ``V^T h`` (hypotheses, measures) by feature."""
        raise NotImplementedError

    def weights_of(self, column: Column, total: int) -> tuple[int, int, int, float]:
        """Dual weights on the negative, positive and zero margins of a column, and their size.

        Of pairwise and codeword margins, the sum of all dual weights being `total`.
        """
        raise NotImplementedError

    @property
    def constant(self) -> Vector:
        """``V^T h`` of the constant hypothesis."""
        raise NotImplementedError


class Oracle(Protocol):
    """A weak learner. If it is `exact`, no hypothesis of its class prices above `best`."""

    exact: bool
    hypothesis_class: str

    def price(self, rows: LocalRows, V: NDArray[np.int64]) -> Prices:
        """Price the hypotheses under the signed weights V (rows, outputs)."""

    def predictions(self, columns: Sequence[Column]) -> list[NDArray[np.int8]]:
        """Predictions of columns on the rows that they were found on."""
