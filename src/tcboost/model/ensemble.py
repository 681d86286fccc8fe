"""The fitted additive model: columns, coefficients, and how scores follow from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kept import kept_property
from ..margins import Margin
from ..oracles import Column, Stump
from .tables import StumpTables, compile_stumps

Vector = NDArray[np.float64]


_CELLS = 1 << 24  # of the tables: codes of many bits would need too many


@dataclass(frozen=True)
class Ensemble:
    """``F(x) = sum_j w_j o_j(x)`` over the columns j, and the class scores of F."""

    columns: list[Column]
    w: Vector
    margin: Margin

    def scores(self, X: Vector, n_threads: int = 1) -> Vector:
        """Class scores (rows, classes), equations (1) and (2) of the paper."""
        if self._score_tables is not None:
            return self._score_tables.outputs(X, n_threads)
        return self.margin.scores(self.outputs(X))

    def best(self, X: Vector, n_threads: int = 1) -> NDArray[np.int64]:
        """The class of the largest score, the first on a tie."""
        if self._score_tables is not None:
            return self._score_tables.best(X, n_threads)
        return self.scores(X).argmax(axis=1)

    def outputs(self, X: Vector) -> Vector:
        """``F(x)`` for each row."""
        if self._output_tables is not None:
            return self._output_tables.outputs(X, 1)
        F = np.zeros((len(X), self.margin.n_outputs))
        for column, w in zip(*self._active, strict=True):
            F += w * column.outputs(X)
        return F

    @property
    def _active(self) -> tuple[list[Column], Vector]:
        """Columns with weight, and their coefficients."""
        used = self.w != 0
        return list(compress(self.columns, used)), self.w[used]

    @kept_property
    def _score_tables(self) -> StumpTables | None:
        return self._compiled(self.margin.scores)

    @kept_property
    def _output_tables(self) -> StumpTables | None:
        return self._compiled(lambda outputs: outputs)

    def _compiled(self, decode: Callable[[NDArray[Any]], NDArray[Any]]) -> StumpTables | None:
        """A linear function of F as tables, if F is made of stumps and they fit."""
        (columns, w), width = self._active, self.margin.n_outputs
        stumps = [h for c in columns for h in c.hypotheses if isinstance(h, Stump)]
        if not 0 < len(stumps) * width <= _CELLS or len(stumps) < sum(
            len(c.hypotheses) for c in columns
        ):
            return None
        if columns[0].code is not None:
            vectors = w[:, None] * np.array([c.code for c in columns])
        else:  # a stump for each bit
            vectors = np.kron(w[:, None], np.eye(width)).astype(float)
        return compile_stumps(stumps, vectors, decode)

    def __getstate__(self) -> dict[str, Any]:
        """Without the tables: they are made again where they are needed."""
        return {name: vars(self)[name] for name in ("columns", "w", "margin")}
