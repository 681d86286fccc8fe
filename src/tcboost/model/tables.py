"""A stump model as one step function of each feature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core import stump_scores
from ..oracles import Stump

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class StumpTables:
    """``F(x) = sum_d table_d[place of x_d among the cuts of feature d]``.

    For each feature in use the table has a row for missing values, one for values up to the
    first cut, and one for those above each cut (``cpp/tables.hpp``). They
    are integers, multiples of `unit`, so that no order of a sum decides a tie.
    """

    feature: NDArray[np.int64]
    start: NDArray[np.int64]
    cuts: Vector
    table: NDArray[np.int64]
    unit: float
    width: int

    def outputs(self, X: Vector, n_threads: int) -> Vector:
        """``F(x)`` for each row."""
        return self._look_up(X, False, n_threads)

    def best(self, X: Vector, n_threads: int) -> NDArray[np.int64]:
        """Which output is the largest, the first on a tie."""
        return self._look_up(X, True, n_threads)

    def _look_up(self, X: Vector, best: bool, n_threads: int) -> NDArray[Any]:
        arrays = self.feature, self.start, self.cuts, self.table
        return stump_scores(X, *arrays, self.unit, self.width, best, n_threads)


def compile_stumps(
    stumps: Sequence[Stump], vectors: Vector, decode: Callable[[NDArray[Any]], NDArray[Any]]
) -> StumpTables:
    """The tables of ``decode(sum_j h_j(x) vectors[j])``, decode being linear, in integers."""
    feature = np.array([h.feature for h in stumps], dtype=np.int64)
    threshold = np.array([h.threshold for h in stumps], dtype=float)
    side = np.array([1 if h.missing_right else -1 for h in stumps])
    # No sum is beyond 2**61.
    most = float(np.abs(decode(vectors)).max(axis=1).sum())
    bits = min(60 - int(np.frexp(most)[1]), 1000)
    v = decode(np.rint(np.ldexp(vectors, bits)).astype(np.int64))
    v = np.array([h.sign for h in stumps])[:, None] * v
    order = np.lexsort((threshold, feature))
    feature, threshold, v, side = feature[order], threshold[order], v[order], side[order]
    # Where the stumps of a feature start, and those of a cut.
    other = feature[1:] != feature[:-1]
    own = np.flatnonzero(np.append(True, other))
    first = np.flatnonzero(np.append(True, other | (threshold[1:] != threshold[:-1])))
    start = np.searchsorted(first, np.append(own, len(v)))
    which = np.repeat(np.arange(len(own)), np.diff(start))  # feature of each cut
    total = np.add.reduceat(v, own)
    below = np.cumsum(np.add.reduceat(v, first), axis=0)  # stumps that x is right of,
    below -= (np.cumsum(total, axis=0) - total)[which]  # without those of the features before
    width = v.shape[1]
    table = np.zeros((len(first) + 2 * len(own), width + -width % 4), dtype=np.int64)
    missing = start[:-1] + 2 * np.arange(len(own))
    table[missing, :width] = np.add.reduceat(side[:, None] * v, own)
    table[missing + 1, :width] = -total
    table[np.arange(len(first)) + 2 * which + 2, :width] = 2 * below - total[which]
    unit = float(np.ldexp(1.0, -bits))
    return StumpTables(feature[own], start, threshold[first], table, unit, width)
