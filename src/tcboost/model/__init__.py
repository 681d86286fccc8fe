"""The fitted model as data, and its file."""

from .additive import AdditiveModel, Levels, Ordered, Term
from .claim import Claim, RowWeights
from .file import load, save

__all__ = ["AdditiveModel", "Claim", "Levels", "Ordered", "RowWeights", "Term", "load", "save"]
