"""What a column of the table is: its cells, and the rules that tell cells apart."""

from .base import Feature, Rule
from .levels import Levels
from .ordered import Ordered
from .table import CellTable, cell_table

__all__ = ["CellTable", "Feature", "Levels", "Ordered", "Rule", "cell_table"]
