"""Numbers: cells are the intervals between cuts, and a rule is one of the cuts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._core import bins_of
from .base import Cells, Rule, Vector


@dataclass(frozen=True)
class Ordered:
    """Cell 0 holds missing values, cell k + 1 those with k cuts below them.

    Rule k is "above cut k". Where some values are missing, rules 2 k and 2 k + 1 are that, with
    missing values on the left and on the right, and the last rule is "missing".
    """

    cuts: Vector
    missing: bool  # whether some values are, and others are not
    ordered: bool = True

    @property
    def n_cells(self) -> int:
        """Intervals, and the cell of missing values."""
        return len(self.cuts) + 2

    @property
    def n_rules(self) -> int:
        """Cuts, with missing values on either side, or missing ones alone."""
        return 2 * len(self.cuts) + 1 if self.missing else len(self.cuts)

    @property
    def representatives(self) -> Vector:
        """The largest value of each cell."""
        return np.concatenate([[np.nan], self.cuts, [np.inf]])

    def cells(self, values: Vector) -> Cells:
        """The cell of each value."""
        return bins_of(self.cuts, np.ascontiguousarray(values)).astype(np.uint16, copy=False)

    def rules(self, place: int, numbers: NDArray[np.int64], mass: Vector) -> list[Rule]:
        """Where no value is missing in training, missing ones go with the larger side."""
        if self.missing:
            right = (numbers % 2 == 1) | (numbers == 2 * len(self.cuts))
            cuts = numbers // 2
        else:
            right, cuts = 2.0 * np.cumsum(mass[1:])[numbers] < mass.sum(), numbers
        thresholds = np.append(self.cuts, np.inf)[cuts].tolist()
        sides = right.tolist()
        return [Rule(place, t, side) for t, side in zip(thresholds, sides, strict=True)]

    def number(self, rule: Rule) -> int:
        """That of the nearest cut."""
        if rule.threshold is None or not self.n_rules:
            return -1
        if rule.threshold == np.inf:
            return self.n_rules - 1 if self.missing else -1
        if len(self.cuts) == 0:
            return -1
        with np.errstate(over="ignore"):
            cut = int(np.abs(self.cuts - rule.threshold).argmin())
        return 2 * cut + rule.missing_right if self.missing else cut
