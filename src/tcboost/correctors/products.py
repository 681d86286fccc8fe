"""Dual weights of a stage-wise run on many rows, kept as products instead of as margins."""

from __future__ import annotations

import math
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..losses import DualWeights
from ..margins import Pairwise, other_classes
from ..oracles import Column
from ..oracles.stump import CONSTANT, StumpOracle
from ..rows.blocks import Block, LocalRows
from .base import Vector, exponent

# Margins from which on they pay: with fewer a round is short, and the rounding of margins that
# are added up does not grow with the rounds.
WORTH = 1 << 20
# No weight of a row may be so many times another. The integers are as fine as the heaviest row
# would need with the largest product, which a light one may have: its weights would be lost.
EVEN = 1 << 10
_FAR = 600.0  # no margin may be larger: its exponential would leave the range of a float


class Products:
    """``E = exp(-z)`` of pairwise margins z, multiplied round by round (equation (15)).

    A round multiplies a weight by one of three numbers, so that it takes no exponentials. That
    is put off until the weights are asked for: then it is one pass, with the sums that price
    all stumps (``cpp/products.hpp``). Rounding adds up to a unit in the last place a round.
    Three classes or more.
    """

    def __init__(self, rows: LocalRows, oracle: StumpOracle, margin: Pairwise) -> None:
        n, y, n_classes = len(rows), rows.y, margin.n_outputs
        width = -(-n_classes // 4) * 4
        # From the start of a cache line on, and in whole lines where a row is as long.
        room = np.zeros(n * width + 8)
        start = -room.ctypes.data % 64 // 8
        self.E: Vector = room[start : start + n * width].reshape(n, width)
        self.E[:, :n_classes] = 1.0
        self.E[np.arange(n), y] = 0.0  # a class has no margin to itself
        self._rows, self._oracle, self._margin = rows, oracle, margin
        self._weight = rows.weight / margin.width
        self._heaviest = float(self._weight.max())
        # What E is to be multiplied by: a coefficient, and the column that it is of.
        self._nothing = 0.0, Column((CONSTANT,), np.ones(n_classes, dtype=np.int8))
        self._step = self._nothing
        self._used, self._most, self._sum = 0.0, 1.0, 1.0  # |z|, E and sums at the most
        self.error: float  # the weight of the misclassified rows

    def move(self, coefficient: float, column: Column) -> bool:
        """Add a hypothesis with a code, the next time; False if that might lead too far."""
        farther = 2.0 * coefficient
        if self._used + farther > _FAR:
            return False
        self._used += farther
        self._most *= math.exp(farther)
        self._sum *= math.exp(farther)
        self._step = coefficient, column
        return True

    def weigh(self) -> tuple[NDArray[np.int64], DualWeights]:
        """`Block.prefix_sums` of the dual weights, and what is to be said of them."""
        rows, (coefficient, column) = self._rows, self._step
        largest = self._most * self._heaviest
        bits = min(60 - exponent(self._sum), 51 - exponent(largest))
        (stump,), code = column.hypotheses, np.ascontiguousarray(column.code)
        step = coefficient, code, self._oracle.signed(stump)
        kernel = partial(Block.multiply_and_sum, step=step, bits=bits)
        parts: Any = rows.map(kernel, self.E, self._weight, rows.y)
        self._step = self._nothing
        tables, totals, most, errors = zip(*parts, strict=True)
        total, self._most = sum(totals), max(most)
        self._sum = math.ldexp(total, -bits)
        least = -math.log(self._most)
        # The weights had been divided by the margins of a row.
        self.error = sum(errors) * self._margin.width
        return reduce(add, tables), DualWeights(None, total, math.log(self._sum), least=least)

    def margins(self) -> Vector:
        """The margins z."""
        rows, margin, (coefficient, column) = self._rows, self._margin, self._step
        E = np.take_along_axis(self.E, other_classes(margin.n_outputs)[rows.y], axis=1)
        (signs,) = self._oracle.predictions([column])
        rho = margin.apply(column.coded(signs), rows.y, rows.n_threads)
        return coefficient * rho - np.log(E)
