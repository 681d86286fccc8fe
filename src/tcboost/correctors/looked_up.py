"""Dual weights of a stage-wise run on many rows whose margins are looked up, not kept."""

from __future__ import annotations

import math
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..losses import DualWeights
from ..margins import TIE, Codeword
from ..oracles import Column
from ..oracles.stump import StumpOracle
from ..rows.blocks import Block, LocalRows
from .base import Vector, exponent

# Codeword margins from which on they are looked up, 128 MB of them, if there are so many rows
# for a cell of the table. With 63 bits covertype takes 129 MB above its input instead of 508
# (benchmarks/memory.py), and two thirds of the time in two threads; with 100 groups of features
# instead of 11 it would take 1.2 times as long.
MANY, ROWS_PER_CELL = 1 << 24, 16
_FINE = 1 << 50  # integers that add up to less are too coarse


class LookedUp:
    """Codeword margins z of stumps, which add up to one table a group of features.

    A row of z is a sum of table rows, however many rounds there were, and so are its weights,
    which only the sums that price all stumps ever see (``cpp/looked_up.hpp``).
    """

    def __init__(self, rows: LocalRows, oracle: StumpOracle, margin: Codeword) -> None:
        self._rows, self._oracle, self._M = rows, oracle, margin.M
        self._table, self._used = oracle.table_of([], np.empty((0, margin.width)))
        self._weight = rows.weight / margin.width
        # Bounds: of the least z, and of the sum of weight exp(least - z).
        self._least, self._sum = 0.0, 1.0
        self._theta = 0.0  # what coefficients sum to
        self.error: float  # the weight of the misclassified rows

    def move(self, coefficient: float, column: Column) -> bool:
        """Add the stumps of all bits."""
        table, used = self._oracle.table_of([column], coefficient * np.eye(self._M.shape[1]))
        self._table += table
        self._used = np.union1d(self._used, used)
        self._least -= coefficient
        self._theta += coefficient
        return True

    def weigh(self) -> tuple[NDArray[np.int64], DualWeights]:
        """`Block.prefix_sums` of the dual weights, and what is to be said of them.

        If the bounds were so far off that digits are lost, it is done again with better ones.
        """
        rows, M, total = self._rows, self._M, 0
        by_table = partial(Block.look_up_and_sum, table=self._table, used=self._used, M=M)
        looked_up = partial(by_table, tie=TIE * self._theta)
        while total < _FINE:
            top, bits = -self._least, 60 - exponent(self._sum)
            parts: Any = rows.map(partial(looked_up, top=top, bits=bits), self._weight, rows.y)
            tables, totals, least, errors = zip(*parts, strict=True)
            total, self._least = sum(totals), min(least)
            # Every weight was rounded by one half at the most.
            rounded = math.ldexp(total + len(rows) * M.shape[1] / 2, -bits)
            self._sum = rounded * math.exp(top + self._least)
        loss = top + math.log(math.ldexp(total, -bits))
        # The weights had been divided by the margins of a row.
        self.error = sum(errors) * M.shape[1]
        return reduce(add, tables), DualWeights(None, total, loss, least=self._least)

    def margins(self) -> Vector:
        """The margins z."""
        rows, M, z = self._rows, self._M, np.zeros((len(self._rows), self._M.shape[1]))
        for block in rows.blocks:
            for g in self._used.tolist():
                places = rows.groups.first[g] + block.cells[:, g].astype(np.intp)
                z[block.rows] += self._table[places, : M.shape[1]]
        return M[rows.y] * z
