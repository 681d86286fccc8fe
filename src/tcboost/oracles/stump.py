"""Decision stumps, searched exactly."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core import (
    column_edges,
    largest,
    largest_of_parts,
    stump_edges,
    stump_signs,
)
from ..rows.binning import MISSING
from ..rows.blocks import Block, LocalRows
from .base import Column, Prices, Vector


@dataclass(frozen=True)
class Stump:
    """``sign`` where ``x[feature] > threshold``, else ``-sign``; missing values on one side.

    The threshold ``-inf`` makes a constant hypothesis.
    """

    feature: int
    threshold: float
    sign: int
    missing_right: bool
    # Its row in the table of the search that found it.
    candidate: int = field(default=-1, compare=False)

    def predict(self, X: Vector) -> NDArray[np.int8]:
        """-1 or +1 for each row."""
        x = X[:, self.feature]
        right = (x > self.threshold) | (np.isnan(x) & self.missing_right)
        return np.where(right, self.sign, -self.sign).astype(np.int8)


CONSTANT = Stump(0, -np.inf, 1, True, 0)


class StumpOracle:
    """All stumps on the bins of the rows, the constant one among them."""

    exact = True

    def __init__(self, rows: LocalRows) -> None:
        self._rows, n_bins = rows, rows.binning.n_bins
        offset, n_cuts = rows.groups.offset[:-1], n_bins - 2
        mass = np.maximum(1, np.rint(np.ldexp(rows.weight, 40))).astype(np.int64)
        masses, total = rows.sum(Block.prefix_sums, mass[:, None])[:, 0], mass.sum()
        # A candidate is a feature, the last bin on its left and the side of the missing values.
        # Their order decides ties: the constant first, then by feature, cut and side. Last of
        # a feature with missing values: every value on the left, the missing ones on the right.
        # Where all values are missing there is no cut: that would be the constant again.
        missing = masses[offset + MISSING]
        both = (missing > 0) & (missing < total)
        counts = np.where(both, 2 * n_cuts + 1, n_cuts)
        d = np.repeat(np.arange(len(counts)), counts)
        k = np.arange(len(d)) - np.repeat(np.cumsum(counts) - counts, counts)
        cut = np.where(both[d], k // 2, k) + 1
        # Where there are none, a missing value in new data goes to the larger side.
        larger = 2 * masses[offset[d] + cut] < total
        right = np.where(both[d], (k % 2 == 1) | (cut > n_cuts[d]), larger)
        self._feature, self._cut = (np.concatenate([[0], part]) for part in (d, cut))
        self._missing_right = np.concatenate([[True], right])
        self._binning = rows.binning
        # Where the candidates of a feature start, after the constant, and where the last end.
        self.starts = np.cumsum([0, 1, *counts[counts > 0]])
        # Rows of prefix sums: of the values on the left, and of missing ones if they are there.
        self._left = offset[self._feature] + self._cut
        self._left[0] = -1  # the constant has all rows on its right
        on_left = (missing > 0)[self._feature] & ~self._missing_right
        self._missing = np.where(on_left, offset[self._feature] + MISSING, -1)
        self._list, self._n_known = list[Column](), 0  # see `table`
        self._table = array("q"), array("q")
        bins = "exact ranks" if rows.binning.exact else f"{n_bins.max() - 1} bins"
        self.hypothesis_class = f"stumps on {bins}"

    def feature(self, candidates: NDArray[np.intp]) -> NDArray[np.intp]:
        """The features that candidates are about."""
        return self._feature[candidates]

    def table(self, columns: list[Column]) -> tuple[array[int], array[int]]:
        """The candidates of columns, and their signs, times the codes if there are codes.

        A run asks for its own list again, longer, in every round: what is known of that list
        is kept. With `largest` that took a stage-wise round on iris from 404 to 261
        microseconds (T = 500).
        """
        if columns is not self._list or len(columns) < self._n_known:
            self._list, self._n_known = columns, 0
            self._table = array("q"), array("q")
        for column in columns[self._n_known :]:
            for kept, new in zip(self._table, column.candidates, strict=True):
                kept.extend(new)
        self._n_known = len(columns)
        return self._table

    def price(
        self,
        rows: LocalRows,
        V: NDArray[np.int64],
        *y: NDArray[np.intp],
        M: NDArray[np.int8] | None = None,
    ) -> StumpPrices:
        """Edges of every stump, from one pass over the rows.

        With classes y, and maybe a code M, it is dual weights, and V their adjoint.
        """
        return self.prices(rows.sum(partial(Block.prefix_sums, M=M), V, *y))

    def weigh_and_price(
        self, rows: LocalRows, z: Vector, M: NDArray[np.int8] | None
    ) -> tuple[StumpPrices, tuple[float, int, int, float]]:
        """The same under the dual weights at the margins z of rows in one block."""
        (block,) = rows.blocks
        sums, found = block.weigh_and_sum(z, rows.weight, rows.y, M)
        return self.prices(sums), found

    def prices(self, sums: NDArray[np.int64]) -> StumpPrices:
        """From sums over the rows, of which two make the total: all values, and none."""
        offset = self._rows.groups.offset
        every = offset.item(1) - 1, offset.item(0) + MISSING
        return StumpPrices(self, stump_edges(sums, self._left, self._missing, every), sums)

    def predictions(self, columns: Sequence[Column]) -> list[NDArray[np.int8]]:
        """From the cells of the rows, as `Stump.predict` has them."""
        groups, pairs = self._rows.groups, _signed([h for c in columns for h in c.hypotheses])
        candidates = self._feature, self._cut, self._missing_right
        rule = groups.group, groups.place, groups.start, candidates, pairs
        parts = [stump_signs(b.cells, *rule) for b in self._rows.blocks]
        H = parts[0] if len(parts) == 1 else np.vstack(parts)
        if len(columns) == 1:
            return [H]
        ends = [0, *accumulate(len(c.hypotheses) for c in columns)]
        return [H[:, i:j] for i, j in pairwise(ends)]

    def signed(self, stump: Any) -> tuple[int, int, bool, int]:
        """For a kernel: its feature, last bin on the left, side of missing values, and sign."""
        j = stump.candidate
        candidate = self._feature.item(j), self._cut.item(j), self._missing_right.item(j)
        return *candidate, stump.sign

    def table_of(
        self, columns: Sequence[Column], v: Vector
    ) -> tuple[Vector, NDArray[np.int64]]:
        """The scores ``sum_j h_j v_j`` of each cell, by group, and the groups that have any.

        The stumps of a feature add up to one step function of it, and those of a group to one
        table: a row costs a look-up a group, however many columns there are.
        """
        groups, width = self._rows.groups, v.shape[1]
        pairs = _signed([h for c in columns for h in c.hypotheses])
        candidate, sign = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        v, feature, first = sign[:, None] * v, self._feature[candidate], groups.first
        of_missing = np.where(self._missing_right[candidate], 1.0, -1.0)[:, None] * v
        table = np.zeros((first[-1], width + -width % 4))
        features = np.unique(feature)
        for d in features.tolist():
            mine, g = feature == d, groups.group[d]
            steps = np.zeros((groups.offset[d + 1] - groups.offset[d] + 1, width))
            np.add.at(steps, self._cut[candidate[mine]] + 1, 2.0 * v[mine])
            curve = np.cumsum(steps, axis=0) - v[mine].sum(axis=0)
            curve[MISSING] = of_missing[mine].sum(axis=0)
            table[first[g] : first[g + 1], :width] += curve[groups.bins(d)]
        return table, np.unique(groups.group[features])

    def stump(self, candidate: int, sign: int) -> Stump:
        """The candidate as a hypothesis on raw values."""
        d, b = self._feature.item(candidate), self._cut.item(candidate)
        cuts = self._binning.cuts[d]
        if candidate == 0:
            threshold = -np.inf
        else:
            threshold = cuts.item(b - 1) if b <= len(cuts) else np.inf
        return Stump(d, threshold, sign, self._missing_right.item(candidate), candidate)


class StumpPrices(Prices):
    """``edges[j, k]``: the sum of ``V[:, k] h_j`` for candidate j with the sign +1, exact."""

    def __init__(
        self, oracle: StumpOracle, A: NDArray[np.int64], sums: NDArray[np.int64]
    ) -> None:
        self._oracle, self._A, self._sums = oracle, A, sums

    def best(self, W: NDArray[Any] | None) -> list[tuple[Stump, float]]:
        """The best stump for each column; the first candidate on a tie."""
        if W is None:
            return self.ranked(1)[0]
        return [self._signed(*one) for one in largest(self._A, np.ascontiguousarray(W))]

    def ranked(self, n: int) -> list[list[tuple[Stump, float]]]:
        """The best stumps for each column, those of its second-best feature, and so on."""
        found = largest_of_parts(self._A, self._oracle.starts, n)
        return [[self._signed(*one) for one in of_columns] for of_columns in found]

    def _signed(self, candidate: int, edge: int) -> tuple[Stump, float]:
        """A candidate with the sign of its edge."""
        return self._oracle.stump(candidate, 1 if edge >= 0 else -1), float(abs(edge))

    def learned(self) -> tuple[Stump, NDArray[np.int8], float]:
        """The best stump and code together.

        For one h the best m in {-1, +1}^C is ``sign a(h)`` with the edge ``sum_c |a_c(h)|``, so
        a maximum over stumps of that sum is the maximum over all stumps and all codes.
        """
        ((j, edge),) = largest(self._A, None)
        code = np.where(self._A[j] >= 0, 1, -1).astype(np.int8)
        return self._oracle.stump(j, 1), code, float(edge)

    def largest(self) -> float:
        """The edge of both: no stump with any code has a larger one."""
        ((_, edge),) = largest(self._A, None)
        return float(edge)

    def best_of_features(self, measure: Callable[[Vector], Vector], n: int) -> Vector:
        """Largest measures of each of n features; a feature without a cut has no stump."""
        values = measure(self._A.astype(float))
        best = np.full((n, values.shape[1]), -np.inf)
        starts = self._oracle.starts[1:-1]  # without the constant
        if len(starts):
            best[self._oracle.feature(starts)] = np.maximum.reduceat(values, starts)
        return best

    def weights_of(self, column: Column, total: int) -> tuple[int, int, int, float]:
        """Dual weights on the negative, positive and zero margins of a column, and their size.

        Right less wrong ones are the edge. All margins of a codeword are -1 or +1; of a code m,
        those between classes on the same side are 0 and the others -2 or +2: with the sums S
        of V by class, twice the weights on these are ``m S m``.
        """
        edge, size, unequal = self.edge(column), 1, total
        if column.code is not None:
            m, size = column.code.astype(np.int64), 2
            S = self._sums[-len(m) :]  # they come last
            unequal = int(m @ S @ m) // 2
        right = (unequal + edge // size) // 2
        return unequal - right, right, total - unequal, float(size)

    @property
    def constant(self) -> Vector:
        """Of the constant hypothesis."""
        return self._A[0].astype(float)

    def edges(self, columns: list[Column]) -> NDArray[np.int64]:
        """Edges of earlier columns, looked up in the table."""
        return column_edges(self._A, *self._oracle.table(columns))

    def edge(self, column: Column) -> int:
        """Of one column, exact; the list that `table` has stays."""
        return sum(column_edges(self._A, *column.candidates).ravel().tolist())


def _signed(stumps: Sequence[Any]) -> list[tuple[int, int]]:
    """Their places in the table of the search, and their signs."""
    return [(h.candidate, h.sign) for h in stumps]
