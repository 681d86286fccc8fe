"""The budget theta: the stage-wise sum, cross validation along a path, or a price instead."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from .boosting import Run, Task
from .correctors import Budget, lengths
from .losses import SMOOTH, SmoothLoss
from .model.ensemble import Ensemble
from .oracles import Column
from .rows.blocks import LocalRows
from .rows.in_threads import in_threads

Vector = NDArray[np.float64]
Validate = Callable[[float], tuple[Vector, float]]

_PATIENCE = 2  # budgets without a better validation loss before the path ends

# The first and the lowest level of a price to try; the rows to validate them on, and the gap
# that is good enough for that, as a share of the loss.
_FIRST, _LAST = 4.0, 2.0**-10
_CLEARLY = 0.01  # a lower level, or another style, must be better by that
_FURTHER, _HOPELESS = 2.0, 1.1  # the first level of another style; how much worse ends it
_FEW, _REPEATED = 50, 5  # fewer different rows, each as often or more: no level is tried
_ENOUGH_ROWS = 1000
_DRAFT = 0.3
_PATH_DRAFT = 1e-3  # the same for a path of budgets, whose tolerance is loose already
# Scores from which on folds at once, a thread each, take less time: a default fit 0.9 of it on
# wine and 0.6 on digits and dna. Two threads for one fold after the other gain a tenth there.
_WORTH_THREADS = 500


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


class Style(NamedTuple):
    """What a model with a price is like: the price and the ridge of level one, in rows."""

    name: str
    price: float
    ridge: float
    max_bins: int | None  # None: as many as the rows have

    def budget(self, level: float, n_rows: float) -> Budget:
        """A hypothesis stays out while its edge is worth less than so many rows."""
        price, ridge = level * self.price / n_rows, level * self.ridge / n_rows
        return Budget(price=price, ridge=ridge, intercept=_INTERCEPT * ridge)


# A few steps, anywhere; or many small ones, which makes curves of them.
STYLES = STEPS, CURVES = Style("steps", 3.0, 3.0, None), Style("curves", 0.3, 30.0, 32)
_INTERCEPT = 1e-3  # its share of the ridge


class Choice(NamedTuple):
    """The budgets tried, what validation said of them, and the one taken.

    With a price instead of a budget: the `levels` of the price tried, in which `styles`, each
    with the budget that was used at it, and the `first` level of the style taken.
    """

    thetas: Vector
    validation_loss: Vector
    validation_error: Vector
    n_active: Vector
    scales: Vector
    best: int
    levels: Vector = np.empty(0)
    styles: tuple[Style, ...] = ()
    first: float = np.nan

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
                run.set_budget(run.corrector.budget._replace(theta=theta))
            run.boost(max_iter, draft=_PATH_DRAFT)
            scores[fold == k] = scores_of(run, rows.X[fold == k])

        in_threads(of_fold, at_once, range(n_folds))
        return scores, float(np.mean([np.count_nonzero(lengths(r.w)) for r in runs]))

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


def choose_level(
    rows: LocalRows,
    n_classes: int,
    start: Callable[[LocalRows, Style], Run],
    budget: Callable[[Style, float, float], Budget],
    max_iter: int,
    styles: tuple[Style, ...] = STYLES,
    verbose: int = 0,
    n_folds: int = 5,
    n_threads: int = 1,
) -> Choice:
    """Cross-validate the level of the price: down while the loss falls, or else up.

    A further style starts near the best level of the one before, is given up where it starts
    much worse, and must be clearly better. Of large data a part of the folds is enough. The
    validation loss is that of `choose_theta`.
    """
    n_different = len(np.unique(rows.group))
    if n_different < _FEW and rows.size >= _REPEATED * n_different:
        # Few different rows, each many times: left out, they could not be foreseen, and kept,
        # they are known well enough.
        one, unknown = np.ones(1), np.full(1, np.nan)
        return Choice(unknown, unknown, unknown, unknown, one, 0, one, styles[:1], 1.0)
    fold = content_folds(rows, n_folds)
    n_tried = min(n_folds, -(-_ENOUGH_ROWS * n_folds // len(rows)))
    tried = [k for k in range(n_tried) if 0 < np.count_nonzero(fold == k) < len(rows)]
    at_once = min(n_threads, len(tried)) if len(rows) * n_classes >= _WORTH_THREADS else 1
    parts = in_threads(lambda k: rows.subset(fold != k, at_once), at_once, tried)
    chosen = np.concatenate([np.flatnonzero(fold == k) for k in tried])
    y, weight = rows.y[chosen], rows.weight[chosen] / rows.weight[chosen].sum()
    others = [rows.X[fold == k] for k in tried]
    table: dict[tuple[int, float], tuple[float, ...]] = {}

    def start_fold(part: LocalRows, style: Style) -> Run:
        return start(part.coarser(style.max_bins), style)

    def validate(level: float) -> float:
        def of_fold(run: Run, X: Vector) -> Vector:
            draft(run, budget(style, level, run.task.rows.size), max_iter)
            return scores_of(run, X)

        F = np.concatenate(in_threads(of_fold, at_once, runs, others))
        scale, loss = best_scale(F, y, weight)
        error = float(weight @ (F.argmax(axis=1) != y))
        theta = sum(run.corrector.theta for run in runs) / len(runs)
        active = sum(np.count_nonzero(lengths(run.w)) for run in runs) / len(runs)
        table[s, level] = theta, loss, error, active, scale
        if verbose:
            name = f"{style.name}, level {level:.3g}"
            print(f"{name}  validation loss {loss:.4f}  error {error:.4f}")
        return loss

    first = begun = _FIRST
    winner, least = (0, first), np.inf
    for s, style in enumerate(styles):
        runs = in_threads(start_fold, at_once, parts, [style] * len(parts))
        level, loss = _best_level(validate, first, _HOPELESS * least)
        if loss < (1.0 - _CLEARLY) * least:
            winner, least, begun = (s, level), loss, first
        first = _FURTHER * level
    keys = sorted(table)
    thetas, losses, errors, actives, scales = np.array([table[key] for key in keys]).T
    levels, used = np.array([level for _, level in keys]), tuple(styles[s] for s, _ in keys)
    best = keys.index(winner)
    return Choice(thetas, losses, errors, actives, scales, best, levels, used, begun)


def _best_level(
    validate: Callable[[float], float], first: float, limit: float
) -> tuple[float, float]:
    """Half the level while that is clearly better, or else twice while it is no worse."""
    best, least = first, validate(first)
    if least > limit:
        return best, least
    tried = {first}
    for step, share in ((0.5, 1.0 - _CLEARLY), (2.0, 1.0)):
        while (level := best * step) not in tried and _LAST <= level <= 1.0 / _LAST:
            tried.add(level)
            loss = validate(level)
            if loss > share * least:
                break
            best, least = level, loss
    return best, least


def approach(
    run: Run, choice: Choice, budget: Callable[[float, float], Budget], max_iter: int
) -> Run:
    """Lower the price to the level that was chosen, as `choose_level` did.

    What is worth a high price comes first: a run that had the low one from the start would
    spend its first columns on less, and there may be no room for many.
    """
    level, higher = float(choice.levels[choice.best]), choice.first
    while higher > level:
        draft(run, budget(higher, run.task.rows.size), max_iter)
        higher *= 0.5
    run.set_budget(budget(level, run.task.rows.size))
    return run


def draft(run: Run, budget: Budget, max_iter: int) -> None:
    """Go on with a run at another price, without much ado."""
    run.set_budget(budget)
    run.boost(max_iter, draft=_DRAFT)


def solve_at(
    run: Run, theta: float, max_iter: int, start: Callable[[LocalRows, float], Run]
) -> Run:
    """Go on with a run at another budget.

    Columns of smaller budgets count among the `max_iter` that are allowed. Where that leaves
    too few for the new budget, it is solved from the start, as it would be on its own.
    """
    if theta != run.corrector.theta:
        run.set_budget(run.corrector.budget._replace(theta=theta))
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
