"""All rows as cells of features, which is all that the solver knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._core import VectorProblem, chosen_values
from .._kept import kept_property
from ..rows.binning import cut_feature
from ..rows.in_threads import in_threads
from .base import Cells, Feature, Rule, Vector
from .levels import Levels
from .ordered import Ordered

_AT_ONCE = 8  # columns that are gathered together: in a row they are a line of the cache
# Where so few rows are not in the most common cell, a pass visits only them; of features with
# one cut fewer, since a pass handles several of those together.
_RARE, _RARE_OF_ONE = 0.25, 0.08


@dataclass(frozen=True)
class CellTable:
    """Cells of every feature and row, and the weights of the cells."""

    features: tuple[Feature, ...]
    cells: tuple[Cells, ...]
    masses: tuple[Vector, ...]  # weights of the cells
    max_bins: int
    exact: bool  # whether every value of a numeric column has a cell of its own

    @kept_property
    def first(self) -> NDArray[np.int64]:
        """The first rule of each feature, and the number of all."""
        return np.cumsum([0, *(f.n_rules for f in self.features)])

    @kept_property
    def common(self) -> list[tuple[int, bool]]:
        """Of each feature the most common cell, and whether it has nearly all rows."""
        found = []
        for feature, cells in zip(self.features, self.cells, strict=True):
            counts = np.bincount(cells)
            limit = _RARE_OF_ONE if feature.n_rules == 1 else _RARE
            main = int(counts.argmax())
            found.append((main, len(cells) - int(counts[main]) < limit * len(cells)))
        return found

    def problem(
        self,
        y: NDArray[np.int32],
        weight: Vector,
        n_classes: int,
        n_threads: int,
        rows: NDArray[np.intp] | None = None,
        by_row: bool = False,
    ) -> VectorProblem:
        """What a model is fitted to, or measured on: all rows, or some.

        By row, each feature has a cell for every row, and else some only for their rare cells.
        """
        if rows is not None:
            y, weight = y[rows], weight[rows]
        weight = weight / weight.sum()
        columns = []
        for feature, cells, (main, few) in zip(
            self.features, self.cells, self.common, strict=True
        ):
            chosen, where = cells if rows is None else cells[rows], None
            if few and not by_row:
                where = np.flatnonzero(chosen != main).astype(np.uint32)
                chosen = chosen[where]
            columns.append(
                (feature.ordered, feature.n_cells, feature.missing, chosen, where, main)
            )
        return VectorProblem(columns, y, weight, n_classes, n_threads)

    def rules(self, used: NDArray[np.int64]) -> list[Rule]:
        """The rules of these numbers, which ascend."""
        found, first = list[Rule](), self.first
        of_feature = np.split(used, np.searchsorted(used, first[1:-1]))
        for j, (feature, numbers) in enumerate(zip(self.features, of_feature, strict=True)):
            found += feature.rules(j, numbers - first[j], self.masses[j])
        return found

    def is_cut_into(self, bins: int) -> bool:
        """Whether another table of the same rows in so many bins would be this one."""
        most = max((f.n_cells - 1 for f in self.features if f.ordered), default=0)
        return self.max_bins == bins or (self.exact and most <= bins < self.max_bins)

    def numbers(self, rules: Sequence[Rule]) -> NDArray[np.int64]:
        """The numbers of rules as they were found on maybe other rows, the nearest there are.

        -1 where a feature has none that compares.
        """
        first = self.first
        found = [self.features[rule.feature].number(rule) for rule in rules]
        start = first[[rule.feature for rule in rules]] if rules else first[:0]
        number = np.array(found, dtype=np.int64)
        return np.where(number >= 0, start + number, -1)

    def largest(self, lengths: Vector) -> Vector:
        """For each feature the largest number of its rules, if it has any."""
        return np.array([x.max(initial=-np.inf) for x in np.split(lengths, self.first[1:-1])])

    def describe(self) -> str:
        """What the rules ask, for a person."""
        bins = max((f.n_cells - 1 for f in self.features if f.ordered), default=0)
        kinds = [f"cuts between at most {bins} bins"] * (bins > 0)
        kinds += ["levels"] * any(not f.ordered for f in self.features)
        return " and ".join(kinds)


def cell_table(
    X: Vector,
    chosen: NDArray[np.intp],
    weight: Vector,
    max_bins: int,
    categorical: NDArray[np.bool_],
    n_threads: int,
) -> CellTable:
    """The cells of the chosen rows of X, numeric columns in at most so many bins."""

    def make(j: int, values: Vector) -> tuple[Feature, Cells, Vector, bool]:
        feature: Feature
        if categorical[j]:
            feature, exact = Levels(np.unique(values) + 0.0), True  # one kind of zero
            cells = feature.cells(values)
        else:
            cuts, exact, bins = cut_feature(values, weight, max_bins)
            none = bins == 0
            feature = Ordered(cuts, bool(none.any() and not none.all()))
            cells = bins.astype(np.uint16, copy=False)
        mass = np.bincount(cells, weight, feature.n_cells).astype(float)
        return feature, cells, mass, exact

    n_features = X.shape[1]
    buffer = np.empty((min(n_features, _AT_ONCE), len(chosen)))
    made: list[tuple[Feature, Cells, Vector, bool]] = []
    for j in range(0, n_features, _AT_ONCE):
        values = buffer[: n_features - j]
        chosen_values(X, chosen, j, values, n_threads)
        made += in_threads(make, n_threads, range(j, j + len(values)), values)
    features, cells, masses, exact = zip(*made, strict=True)
    return CellTable(features, cells, masses, max_bins, all(exact))
