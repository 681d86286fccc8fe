"""Step functions of single features, as the kernel looks them up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core import table_scores

Vector = NDArray[np.float64]


class StumpTables(NamedTuple):
    """``F(x) = base + sum_d table_d[place of x_d among the cuts of feature d]``.

    For each feature in use the table has a row for missing values, one for values up to the
    first cut, and one for those above each cut (``cpp/tables.hpp``). All entries are multiples
    of a power of two that no sum of theirs exceeds 2^53 times, so that no order of a sum
    decides a tie. Rows are padded with zeros; `width` entries are of outputs.
    """

    feature: NDArray[np.int64]
    start: NDArray[np.int64]
    cuts: Vector
    table: Vector
    base: Vector
    width: int

    def outputs(self, X: Vector, n_threads: int) -> Vector:
        """``F(x)`` for each row."""
        return self._look_up(X, False, n_threads)

    def best(self, X: Vector, n_threads: int) -> NDArray[np.int64]:
        """Which output is the largest, the first on a tie."""
        return self._look_up(X, True, n_threads)

    def _look_up(self, X: Vector, best: bool, n_threads: int) -> NDArray[Any]:
        return table_scores(X, *self[:5], self.width, best, n_threads)


def pad(rows: Vector) -> Vector:
    """Zeros up to a multiple of four columns."""
    width = rows.shape[-1]
    padded = np.zeros((*rows.shape[:-1], width + -width % 4))
    padded[..., :width] = rows
    return padded
