"""tcboost: totally corrective multiclass boosting with a proof of optimality on every fit."""

from ._version import __version__ as __version__
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
