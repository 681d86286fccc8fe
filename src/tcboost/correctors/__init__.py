"""How the coefficients change when a column is added: one of them, or all."""

from .base import Corrector
from .master import MasterSolution, solve_master
from .stagewise import StageWise
from .totally_corrective import TotallyCorrective

__all__ = ["Corrector", "MasterSolution", "StageWise", "TotallyCorrective", "solve_master"]
