"""A stump model as one step function of each feature."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core import stump_scores, stump_tables
from ..features import Rule
from ..oracles import Stump
from ..oracles.stump import CONSTANT

Vector = NDArray[np.float64]


class StumpTables(NamedTuple):
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
    # No sum is beyond 2**61.
    most = float(np.abs(decode(vectors)).max(axis=1).sum())
    bits = min(60 - int(np.frexp(most)[1]), 1000)
    v = np.ascontiguousarray(decode(np.rint(np.ldexp(vectors, bits)).astype(np.int64)))
    stump = [h.feature for h in stumps], [h.threshold for h in stumps], [h.sign for h in stumps]
    sides = [h.missing_right for h in stumps]
    feature, start, cuts, table = stump_tables(*stump, sides, v)
    table = table.reshape(len(cuts) + 2 * len(feature), -1)
    return StumpTables(feature, start, cuts, table, math.ldexp(1.0, -bits), v.shape[1])


def compile_rules(rules: Sequence[Rule], b: Vector, v: Vector) -> StumpTables:
    """The tables of ``b + sum_t h_t(x) v_t``.

    "x == level" is the difference of two cuts around it, less a constant.
    """
    stumps, vectors = [CONSTANT], [b.astype(np.float64)]
    for rule, vector in zip(rules, v, strict=True):
        j, level = rule.feature, rule.level
        if rule.threshold is not None:
            stumps.append(Stump(j, rule.threshold, 1, rule.missing_right))
            vectors.append(vector)
        elif level != level:
            stumps.append(Stump(j, -math.inf, -1, False))
            vectors.append(vector)
        else:
            assert level is not None
            stumps.append(Stump(j, math.nextafter(level, -math.inf), 1, False))
            stumps.append(Stump(j, level, -1, False))
            vectors += [vector, vector]
            vectors[0] = vectors[0] - vector
    return compile_stumps(stumps, np.array(vectors), lambda values: values)
