"""The budget theta of the totally corrective algorithms."""

from __future__ import annotations

from .boosting import Task, boost
from .correctors import StageWise


def stagewise_theta(task: Task, max_iter: int) -> float:
    """The sum of the coefficients of the stage-wise algorithm on the same data (Sec. IV)."""
    corrector = StageWise(task.rows.weight, task.margin.width)
    return float(boost(task, corrector, max_iter).w.sum())
