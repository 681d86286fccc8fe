"""Weak learners as pricing oracles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..rows.blocks import LocalRows
from .base import Column, Hypothesis, Oracle, Prices
from .fitted import ClassifierOracle, Discriminant, LDAOracle
from .product import Product, ProductOracle
from .stump import Stump, StumpOracle

__all__ = [
    "WEAK_LEARNERS",
    "Column",
    "Discriminant",
    "Hypothesis",
    "Oracle",
    "Prices",
    "Product",
    "Stump",
    "make_oracle",
]

WEAK_LEARNERS: dict[str, Callable[[LocalRows], Oracle]] = {
    "stump": StumpOracle,
    "product": ProductOracle,
    "lda": LDAOracle,
}


def make_oracle(weak_learner: Any, rows: LocalRows, rng: np.random.RandomState) -> Oracle:
    """The oracle of the parameter `weak_learner`."""
    if isinstance(weak_learner, str):
        return WEAK_LEARNERS[weak_learner](rows)
    return ClassifierOracle(rows, weak_learner, rng)
