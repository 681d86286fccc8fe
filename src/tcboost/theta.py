"""The budget theta: the stage-wise sum, or cross validation along a path."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from .boosting import Run, Task
from .ensemble import Ensemble
from .losses import SMOOTH, SmoothLoss
from .oracles import Column
from .rows.blocks import LocalRows
from .rows.in_threads import in_threads

Vector = NDArray[np.float64]
Validate = Callable[[float], tuple[Vector, float]]

_PATIENCE = 2  # budgets without a better validation loss before the path ends


def stagewise(task: Task, max_iter: int) -> tuple[list[Column], list[float]]:
    """Columns of the stage-wise algorithm on the same data; after each the coefficients' sum.

    The last sum is the budget of Sec. IV. A loss without such an algorithm, the hinge, takes
    that of the exponential loss of the same margins.
    """
    loss = task.loss if isinstance(task.loss, SmoothLoss) else SMOOTH["exponential"]
    task = task._replace(loss=loss)
    run = Run(task, task.stage_wise()).boost(max_iter)
    return run.columns, [*np.cumsum(run.w)[:-1].tolist(), float(run.w.sum())]


class Search(NamedTuple):
    """Which budgets to try, on a path: each goes on where the one before ended.

    `by_error` takes the lowest validation error, as the paper did, the smallest budget on a
    tie, instead of the validation loss.
    """

    grid: tuple[float, ...] = tuple(np.exp2(np.arange(11)).tolist())
    stop_early: bool = True
    by_error: bool = False


PAPER_SEARCH = Search(  # Sec. IV
    (2, 5, 8, 10, 12, 15, 20, 30, 40, 45, 60, 80, 100, 120, 150, 200),
    stop_early=False,
    by_error=True,
)


class Choice(NamedTuple):
    """The budgets tried, what validation said of them, and the one taken."""

    thetas: Vector
    validation_loss: Vector
    validation_error: Vector
    n_active: Vector
    scales: Vector
    best: int

    @property
    def theta(self) -> float:
        """The chosen budget."""
        return float(self.thetas[self.best])

    @property
    def scale(self) -> float:
        """The best common factor of its out-of-fold scores."""
        return float(self.scales[self.best])


def choose_theta(
    rows: LocalRows,
    n_classes: int,
    start: Callable[[LocalRows, float], Run],
    max_iter: int,
    search: Search,
    verbose: int = 0,
    n_folds: int = 5,
    n_threads: int = 1,
) -> Choice:
    """Cross-validate the budget, in ascending order.

    In a fold all budgets share their columns, and so their code draws; those of smaller ones
    count among the `max_iter`. The validation loss is the cross-entropy of out-of-fold scores,
    after the best common scaling of all of them: a budget is not to blame for being too sure
    of itself, as that can be mended.
    """
    # Of few rows a fold may have none; that one is left out.
    fold = np.unique(content_folds(rows, n_folds), return_inverse=True)[1]
    n_folds = int(fold.max()) + 1
    at_once = min(n_threads, n_folds)
    scores = np.zeros((len(rows), n_classes))

    def start_fold(k: int) -> Run:
        return start(rows.subset(fold != k, at_once), search.grid[0])

    runs = in_threads(start_fold, at_once, range(n_folds))

    def validate(theta: float) -> tuple[Vector, float]:
        def of_fold(k: int) -> None:
            run = runs[k]
            if theta != run.corrector.theta:
                run.set_budget(theta)
            run.boost(max_iter)
            scores[fold == k] = scores_of(run, rows.X[fold == k])

        in_threads(of_fold, at_once, range(n_folds))
        return scores, float(np.mean([np.count_nonzero(r.w) for r in runs]))

    return walk(rows, validate, search, verbose)


def walk(rows: LocalRows, validate: Validate, search: Search, verbose: int = 0) -> Choice:
    """Try the budgets; `validate` has out-of-fold scores and the number of active columns."""
    table: list[tuple[float, float, float, float, float]] = []
    for theta in search.grid:
        scores, active = validate(theta)
        scale, loss = best_scale(scores, rows.y, rows.weight)
        wrong = scores.argmax(axis=1) != rows.y
        table.append((theta, loss, float(rows.weight @ wrong), active, scale))
        if verbose:
            print(f"theta {theta:g}  validation loss {loss:.4f}  error {table[-1][2]:.4f}")
        losses = [row[1] for row in table]
        if search.stop_early and len(table) - 1 - int(np.argmin(losses)) >= _PATIENCE:
            break
    thetas, losses_, errors, actives, scales = np.array(table).T
    # Ties are ties, whatever the order of a sum.
    best = int(np.argmin(errors.round(12) if search.by_error else losses_))
    return Choice(thetas, losses_, errors, actives, scales, best)


def solve_at(
    run: Run, theta: float, max_iter: int, start: Callable[[LocalRows, float], Run]
) -> Run:
    """Go on with a run at another budget.

    Columns of smaller budgets count among the `max_iter` that are allowed. Where that leaves
    too few for the new budget, it is solved from the start, as it would be on its own.
    """
    if theta != run.corrector.theta:
        run.set_budget(theta)
        n_old = len(run.columns)
        run.boost(max_iter)
        short = len(run.columns) >= max_iter and not run.corrector.done(run.certificate.gap)
        if not (short and n_old):
            return run
        run = start(run.task.rows, theta)
    return run.boost(max_iter)


def content_folds(rows: LocalRows, n_folds: int) -> NDArray[np.intp]:
    """A fold for each row, stratified by class; the same for rows with the same features.

    `LocalRows` are ordered by a hash of their content, so that neither their order in the data
    nor repeating all of them changes anything.
    """
    fold = np.empty(len(rows), dtype=np.intp)
    for c in np.unique(rows.y):
        members = np.flatnonzero(rows.y == c)
        fold[members] = (np.arange(len(members)) + c) % n_folds
    together = fold[rows.group]
    return fold if (together == together[0]).all() else together


def scores_of(run: Run, X: Vector) -> Vector:
    """Class scores of the present coefficients."""
    return Ensemble(run.columns, run.w, run.task.margin).scores(X)


def best_scale(F: Vector, y: NDArray[np.intp], weight: Vector) -> tuple[float, float]:
    """The factor a that makes ``softmax(a F)`` fit best, and its smoothed cross-entropy.

    As in Platt's scaling the labels are smoothed, by the weight of one row more that is of all
    classes alike: where no row is on the wrong side the best factor would be infinite.
    """
    smooth = 1.0 / (1.0 / float(weight @ weight) + 1.0)
    own, top = F[np.arange(len(y)), y], F.max(axis=1)
    below = np.ascontiguousarray(F.T - top)  # a class a row: they are added up faster
    slope = float(weight @ (top - own)) + smooth * float(weight @ (own - F.mean(axis=1)))

    def rise(log_a: float) -> float:  # of a convex function
        e = np.exp(math.exp(log_a) * below)
        return float(weight @ ((e * below).sum(axis=0) / e.sum(axis=0))) + slope

    low, high = -6.0, 3.0
    if rise(low) > 0:
        a = math.exp(low)
    elif rise(high) <= 0:
        a = math.exp(high)
    else:
        a = math.exp(brentq(rise, low, high, xtol=1e-6))
    return a, float(weight @ np.log(np.exp(a * below).sum(axis=0))) + a * slope
