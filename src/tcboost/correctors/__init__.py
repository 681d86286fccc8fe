"""How the coefficients change when a column is added: one of them, or all."""

from .ball import BallCorrective
from .base import Corrector, lengths
from .master import MasterSolution, solve_master
from .stagewise import StageWise
from .totally_corrective import TotallyCorrective

__all__ = [
    "BallCorrective",
    "Corrector",
    "MasterSolution",
    "StageWise",
    "TotallyCorrective",
    "lengths",
    "solve_master",
]
