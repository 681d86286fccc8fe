"""How the coefficients change when a column is added: one of them, or all."""

from .ball import BallCorrective
from .base import SMALL, Budget, Corrector, lengths
from .linear_program import LinearProgram
from .looked_up import LookedUp
from .master import MasterSolution, solve_master
from .products import Products
from .stagewise import StageWise
from .totally_corrective import TotallyCorrective

__all__ = [
    "SMALL",
    "BallCorrective",
    "Budget",
    "Corrector",
    "LinearProgram",
    "LookedUp",
    "MasterSolution",
    "Products",
    "StageWise",
    "TotallyCorrective",
    "lengths",
    "solve_master",
]
