"""The fitted model as data."""

from .additive import AdditiveModel, Levels, Ordered, Term
from .claim import Claim, RowWeights

__all__ = ["AdditiveModel", "Claim", "Levels", "Ordered", "RowWeights", "Term"]
