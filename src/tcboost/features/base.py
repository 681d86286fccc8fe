"""Contract of a feature, and what a rule of it is for a person, a file and a prediction."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Cells = NDArray[np.uint16]


class Rule(NamedTuple):
    """A question about one feature: +1 where the answer is yes, else -1.

    "x > threshold" if there is a `threshold`; missing values are a yes with `missing_right`.
    A threshold of infinity asks whether the value is missing. Else "x == level"; a level of NaN
    is that of missing values, and a value that is none of the levels is a no.
    """

    feature: int
    threshold: float | None = None
    missing_right: bool = False
    level: Any = None
    shown: str | None = None  # the threshold as people write it

    def describe(self, name: str) -> str:
        """The question, for a person."""
        if self.threshold is None:
            level = self.level
            shown = level if isinstance(level, str) else repr(level).removesuffix(".0")
            return f"{name} is {'missing' if level != level else shown}"
        if self.threshold == np.inf:
            return f"{name} is missing"
        missing = " or missing" if self.missing_right else ""
        return f"{name} > {self.shown or format(self.threshold, 'g')}{missing}"


class Feature(Protocol):
    """One column of the table. Cells are small integers; a rule is +1 on some of them.

    `ordered` features have the rules of ``Kind::ordered`` in cpp/cells.hpp, others
    those of ``Kind::levels``, numbered as there.
    """

    @property
    def ordered(self) -> bool:
        """Whether cells have an order, and rules are cuts."""

    @property
    def missing(self) -> bool:
        """Whether a cell is set apart for missing values."""

    @property
    def n_cells(self) -> int:
        """How many cells there are."""

    @property
    def n_rules(self) -> int:
        """How many rules there are."""

    @property
    def representatives(self) -> Vector:
        """A value of each cell."""

    def cells(self, values: Vector) -> Cells:
        """The cell of each value, of those the feature was made from."""

    def rules(self, place: int, numbers: NDArray[np.int64], mass: Vector) -> list[Rule]:
        """Rules by their numbers, of the feature at this place."""

    def number(self, rule: Rule) -> int:
        """The number of the rule nearest to this one; -1 if there is none."""
