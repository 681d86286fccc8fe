"""Dual weights of a stage-wise run on many rows, kept as products instead of as margins."""

from __future__ import annotations

import math
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..losses import DualWeights
from ..margins import other_classes
from ..oracles import Column
from ..oracles.stump import CONSTANT, StumpOracle
from ..rows.blocks import Block, LocalRows
from .base import Seen, Vector, exponent

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

    def __init__(self, rows: LocalRows, oracle: StumpOracle, n_classes: int) -> None:
        n, y = len(rows), rows.y
        width = -(-n_classes // 4) * 4
        # From the start of a cache line on, and in whole lines where a row is as long.
        room = np.zeros(n * width + 8)
        start = -room.ctypes.data % 64 // 8
        self.E: Vector = room[start : start + n * width].reshape(n, width)
        self.E[:, :n_classes] = 1.0
        self.E[np.arange(n), y] = 0.0  # a class has no margin to itself
        self._rows, self._oracle = rows, oracle
        self._weight = rows.weight / (n_classes - 1)
        self._heaviest = float(self._weight.max())
        self._factors = np.ones((2 * n_classes, width))
        self._signs = oracle.cell_signs(CONSTANT)  # rows look theirs up
        self._used, self._most, self._sum = 0.0, 1.0, 1.0  # |z|, E and sums at the most
        self.seen: Seen

    def move(self, coefficient: float, column: Column) -> bool:
        """Add a hypothesis with a code, the next time; False if that might lead too far."""
        step, code = 2.0 * coefficient, column.code
        assert code is not None
        if self._used + step > _FAR:
            return False
        self._used += step
        self._most, self._sum = self._most * math.exp(step), self._sum * math.exp(step)
        apart: Vector = np.repeat(code[:, None].astype(float) - code, 2, axis=0)
        apart[::2] *= -1.0  # where the hypothesis says -1
        self._factors[:, : len(code)] = np.exp(-coefficient * apart)
        (stump,) = column.hypotheses
        self._signs = self._oracle.cell_signs(stump)
        return True

    def weigh(self) -> tuple[NDArray[np.int64], DualWeights]:
        """`Block.prefix_sums` of the dual weights, and what is to be said of them."""
        rows = self._rows
        largest = self._most * self._heaviest
        bits = min(60 - exponent(self._sum), 51 - exponent(largest))
        kernel = partial(
            Block.multiply_and_sum, factors=self._factors, signs=self._signs, bits=bits
        )
        parts: Any = rows.map(kernel, self.E, self._weight, rows.y)
        tables, found = zip(*parts, strict=True)
        totals, most, errors = zip(*found, strict=True)
        self._factors[:] = 1.0
        total, self._most = sum(totals), max(most)
        self._sum = math.ldexp(total, -bits)
        least = -math.log(self._most)
        # The weights had been divided by the margins of a row.
        self.seen = Seen(least, sum(errors) * (self._factors.shape[0] // 2 - 1))
        return reduce(add, tables), DualWeights(None, total, math.log(self._sum), least=least)

    def margins(self) -> Vector:
        """The margins z."""
        y, (group, signs) = self._rows.y, self._signs
        cells = np.concatenate([b.cells[:, group] for b in self._rows.blocks])
        E = self.E * self._factors[2 * y + (signs[cells] > 0)]
        others = other_classes(len(self._factors) // 2)
        return -np.log(np.take_along_axis(E, others[y], axis=1))
