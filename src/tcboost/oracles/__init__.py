"""Weak learners as pricing oracles."""

from __future__ import annotations

from typing import Any

from ..rows.blocks import LocalRows
from .base import Column, Oracle, Prices
from .fitted import ClassifierOracle, Discriminant, LDAOracle
from .multiclass import MulticlassOracle
from .product import Product, ProductOracle
from .stump import Stump, StumpOracle

__all__ = [
    "Column",
    "Discriminant",
    "MulticlassOracle",
    "Oracle",
    "Prices",
    "Product",
    "Stump",
    "make_oracle",
]


def make_oracle(weak_learner: Any, rows: LocalRows, rng: Any) -> Oracle:
    """The oracle of the parameter `weak_learner`; a RandomState is for classifiers only."""
    if isinstance(weak_learner, str):
        if weak_learner == "product":
            return ProductOracle(rows)
        return StumpOracle(rows) if weak_learner == "stump" else LDAOracle(rows)
    return ClassifierOracle(rows, weak_learner, rng)
