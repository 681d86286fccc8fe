"""tcboost: totally corrective multiclass boosting with a proof of optimality on every fit."""

from typing import TYPE_CHECKING

from .classifier import TCBoostClassifier
from .correctors import solve_master
from .model import load, save
from .named import AdaBoostECC, AdaBoostMO, MultiBoostECC, MultiBoostHinge, MultiBoostMO
from .path import plot_theta_path, theta_path
from .relatives import AdaBoostSAMME, MultiBoostSAMME
from .thin import thin

__all__ = [
    "AdaBoostECC",
    "AdaBoostMO",
    "AdaBoostSAMME",
    "MultiBoostECC",
    "MultiBoostHinge",
    "MultiBoostMO",
    "MultiBoostSAMME",
    "TCBoostClassifier",
    "load",
    "plot_theta_path",
    "save",
    "solve_master",
    "theta_path",
    "thin",
]


if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> str:
        """The version as installed: to look it up takes 2 ms, and few ask."""
        if name == "__version__":
            from importlib.metadata import version

            return version("tcboost")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
