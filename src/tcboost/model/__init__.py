"""The fitted model: scores, and its file."""

from .ensemble import Ensemble
from .file import load, save

__all__ = ["Ensemble", "load", "save"]
