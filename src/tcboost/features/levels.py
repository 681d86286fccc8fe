"""Levels without an order: each is a cell, and a rule is one of them against the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .base import Cells, Rule, Vector


@dataclass(frozen=True)
class Levels:
    """Rule k is "level k"; missing values are the last level where there are any."""

    values: Vector  # ascending, NaN at the end
    ordered: bool = False
    missing: bool = False  # no cell is set apart

    @property
    def n_cells(self) -> int:
        """Levels."""
        return len(self.values)

    @property
    def n_rules(self) -> int:
        """One a level, if there is more than one."""
        return self.n_cells if self.n_cells > 1 else 0

    @property
    def representatives(self) -> Vector:
        """The only value of each cell."""
        return self.values

    def cells(self, values: Vector) -> Cells:
        """The level of each value."""
        return np.searchsorted(self.values, values).astype(np.uint16)

    def rules(self, place: int, numbers: NDArray[np.int64], mass: Vector) -> list[Rule]:
        """One level each."""
        return [Rule(place, level=level) for level in self.values[numbers].tolist()]

    def number(self, rule: Rule) -> int:
        """That of the same level."""
        if rule.level is None or not self.n_rules:
            return -1
        k = int(np.searchsorted(self.values, rule.level))
        same = np.array_equal(self.values[k : k + 1], [rule.level], equal_nan=True)
        return k if same else -1
