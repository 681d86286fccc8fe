"""How the coefficients change when a column is added: one of them, or all."""

from .base import SMALL, Corrector
from .linear_program import LinearProgram
from .looked_up import LookedUp
from .master import MasterSolution, solve_master
from .products import Products
from .stagewise import StageWise
from .totally_corrective import TotallyCorrective

__all__ = [
    "SMALL",
    "Corrector",
    "LinearProgram",
    "LookedUp",
    "MasterSolution",
    "Products",
    "StageWise",
    "TotallyCorrective",
    "solve_master",
]
