"""How alpha and l1_ratio are chosen: by rows held out, of models that are solved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from .class_vectors import Model, Penalty, Solution, solve
from .features import CellTable
from .folds import Mask
from .progress import OutOfTimeError, Progress
from .rows.in_threads import in_threads
from .training import TrainingRows

STEPS, CURVES = 0.5, 0.01  # values of l1_ratio: few steps, or many small ones
SMOOTH_BELOW, CURVE_BINS, STEP_BINS = 0.1, 32, 1023
_FIRST = 1.0 / 16.0  # of the alpha at which the first rule enters
_FACTOR = 3.0  # between values of alpha that are tried
_MOST = 12  # values below or above the first one
_FALLS = 0.999  # a loss that falls by less has come to its end
# The alpha of curves that compares to one of steps; how much worse it may be at first, and how
# much better curves must be in the end.
_CURVES_PER_STEPS, _HOPELESS, _CLEARLY = 10.0, 1.2, 0.99
# Models that are compared are solved to a gap of this share of their objective, and the last
# one to ten times `tol`, or to `tol` where it is less.
_OF_THE_TIME = 0.5  # where it is limited, for all that is compared
_COMPARED, _LAST = 0.03, 10.0


def bins_for(l1_ratio: float, max_bins: int | str) -> int:
    """Bins of a numeric feature."""
    if isinstance(max_bins, str):
        return CURVE_BINS if l1_ratio < SMOOTH_BELOW else STEP_BINS
    return max_bins


class Tried(NamedTuple):
    """A setting, its loss and error on the rows held out, and the mean number of rules."""

    alpha: float
    l1_ratio: float
    log_loss: float
    error: float
    n_rules: float


class Part:
    """Rows to fit to and rows held out; models of one l1_ratio go on from each other."""

    def __init__(
        self, rows: TrainingRows, table: CellTable, split: tuple[Mask, Mask], n_threads: int
    ) -> None:
        fit, held = (rows.merged(one) for one in split)
        y, C = rows.y, rows.n_classes
        self.n_classes = C
        self.total, self.held_total = float(fit.sum()), float(held.sum())
        there = np.flatnonzero(fit > 0)
        self.n = len(there)
        self.problem = table.problem(y, fit, C, n_threads, there)
        there = np.flatnonzero(held > 0)
        self.y, self.weight = y[there], held[there] / held[there].sum()
        self.models: dict[float, Model] = {}  # the last one of each l1_ratio
        self.held = table.problem(y, held, C, n_threads, there, by_row=True)

    def validate(
        self,
        alpha: float,
        l1_ratio: float,
        max_rules: int,
        smooth: float,
        watch: Callable[[Solution], bool] | None,
    ) -> tuple[float, float, int]:
        """Loss and error of the rows held out, and the number of rules."""
        penalty = Penalty.of_alpha(alpha, l1_ratio, self.total)
        start = self.models.get(l1_ratio, Model.empty(self.n_classes))
        goal = {"share": _COMPARED}
        found = solve(self.problem, self.n, start, penalty, max_rules, **goal, watch=watch)
        self.models[l1_ratio] = b, used, _ = found.model
        p = np.empty((len(self.y), self.held.stride))
        self.held.probabilities(p, *found.model)
        p = p[:, : len(b)]
        loss = -(self.weight * np.log(p[np.arange(len(p)), self.y])).sum()
        # Labels that are not quite sure: where all rows are right no model can be too sure.
        uniform = -(self.weight * np.log(p).mean(axis=1)).sum()
        error = self.weight[p.argmax(axis=1) != self.y].sum()
        return (
            float((1.0 - smooth) * loss + smooth * uniform),
            float(error),
            len(used),
        )


@dataclass
class Search:
    """Settings tried on the same splits."""

    rows: TrainingRows
    splits: list[tuple[Mask, Mask]]
    max_rules: int
    progress: Progress

    def __post_init__(self) -> None:
        self._smooth = 1.0 / (1.0 + float(self.rows.units.sum()))
        self._at_once = min(self.rows.n_threads, len(self.splits))
        self.tried: list[Tried] = []
        self._all_parts: dict[float, list[Part]] = {}  # of each l1_ratio
        self._cells: Callable[[], CellTable | None] = lambda: None  # of the last one

    def begin(self, l1_ratio: float, table: Callable[[float], CellTable]) -> None:
        """Try settings of this l1_ratio from now on."""
        self._l1_ratio = l1_ratio
        if l1_ratio not in self._all_parts:
            n_threads, cells = max(1, self.rows.n_threads // self._at_once), table(l1_ratio)

            def part(split: tuple[Mask, Mask]) -> Part:
                return Part(self.rows, cells, split, n_threads)

            if cells is not self._cells():
                self._parts = in_threads(part, self._at_once, self.splits)
            self._all_parts[l1_ratio], self._cells = self._parts, ref(cells)  # not held
        self._parts = self._all_parts[l1_ratio]

    def loss(self, alpha: float) -> float:
        """Of the rows held out, at this alpha."""

        setting = f"alpha {alpha:.4g}, l1_ratio {self._l1_ratio:g}"

        def watch(found: Solution) -> bool:
            if self.progress.is_over(_OF_THE_TIME):
                raise OutOfTimeError
            self.progress.now(setting, found)
            return False

        def one(part: Part) -> tuple[float, float, int]:
            about = alpha, self._l1_ratio, self.max_rules, self._smooth
            return part.validate(*about, watch if self.progress.watched else None)

        found = np.array(in_threads(one, self._at_once, self._parts))
        weight = np.array([part.held_total for part in self._parts])
        loss, error, n_rules = (weight[:, None] * found).sum(axis=0) / weight.sum()
        self.tried.append(
            Tried(alpha, self._l1_ratio, float(loss), float(error), float(n_rules))
        )
        self.progress.tell(
            f"{setting}: log loss {loss:.4f}, error {error:.4f} of rows held out, "
            f"{n_rules:.0f} rules, {self.progress.seconds:.0f} s"
        )
        return float(loss)

    def best_alpha(self, first: float, worst: float = math.inf) -> float:
        """Down from the first while the loss falls, else up; then between those tried.

        Or the first, where it is hopeless.
        """
        losses = {0: self.loss(first)}
        if losses[0] > worst:
            return first
        for direction in (-1, 1):
            k = 0
            while abs(k) < _MOST and losses[k] <= min(losses.values()):
                k += direction
                losses[k] = self.loss(first * _FACTOR**k)
                if self.tried[-1].n_rules == 0 and direction < 0:  # still only the intercept
                    losses[k] = min(losses.values())
                elif losses[k] > _FALLS * losses[k - direction]:
                    break
        best = min(losses, key=losses.__getitem__)
        shift = 0.0
        if best - 1 in losses and best + 1 in losses:
            low, middle, high = (losses[best + k] for k in (-1, 0, 1))
            bend = low - 2.0 * middle + high
            shift = 0.5 * (low - high) / bend if bend > 0 else 0.0
        return first * _FACTOR ** (best + shift)

    def results(self, chosen: Tried) -> dict[str, NDArray[Any]]:
        """A column each for alpha, l1_ratio, log loss, error and rules; which was chosen."""
        values = np.array(self.tried, dtype=np.float64).reshape(-1, len(Tried._fields))
        columns: dict[str, NDArray[Any]] = dict(zip(Tried._fields, values.T, strict=True))
        return columns | {"chosen": np.array([one == chosen for one in self.tried], dtype=bool)}


def choose(
    search: Search,
    alpha: float | str,
    l1_ratio: float | str,
    table: Callable[[float], CellTable],
) -> Tried:
    """The setting of least loss on the rows held out: curves only if they are clearly better.

    Of alpha and l1_ratio the one that is a number stays. Where time runs out it is the best one
    that was solved, or where there is none the first.
    """
    try:
        return _best(search, alpha, l1_ratio, table)
    except OutOfTimeError:
        if search.tried:
            return min(search.tried, key=lambda one: one.log_loss)
        ratio = STEPS if isinstance(l1_ratio, str) else float(l1_ratio)
        if isinstance(alpha, str):
            alpha = _FIRST * first_alpha(search.rows, table(ratio), ratio)
        return Tried(float(alpha), ratio, math.nan, math.nan, math.nan)


def _best(
    search: Search,
    alpha: float | str,
    l1_ratio: float | str,
    table: Callable[[float], CellTable],
) -> Tried:
    best, at = math.inf, (math.nan, math.nan)
    for ratio in (STEPS, CURVES) if isinstance(l1_ratio, str) else (float(l1_ratio),):
        search.begin(ratio, table)
        if not isinstance(alpha, str):
            found = float(alpha)
            search.loss(found)
        elif math.isinf(best):
            found = search.best_alpha(_FIRST * first_alpha(search.rows, table(ratio), ratio))
        else:
            found = search.best_alpha(_CURVES_PER_STEPS * at[0], _HOPELESS * best)
        least = min(one.log_loss for one in search.tried if one.l1_ratio == ratio)
        if least < _CLEARLY * best:
            best, at = least, (found, ratio)
    if all(one[:2] != at for one in search.tried):
        search.begin(at[1], table)
        search.loss(at[0])
    return next(one for one in search.tried if one[:2] == at)


def first_alpha(rows: TrainingRows, table: CellTable, l1_ratio: float) -> float:
    """At which the first rule enters beside the intercept; where none ever does, all rows."""
    weight = rows.merged()
    problem = table.problem(rows.y, weight, rows.n_classes, rows.n_threads)
    share = np.bincount(rows.y, weight, rows.n_classes) / weight.sum()
    p = np.zeros((len(weight), problem.stride))
    p[:, : rows.n_classes] = share
    sizes = problem.edges(p, *Model.empty(rows.n_classes), Penalty(1.0, 0.0, 1.0), 0.0)[0]
    longest = float(sizes.max(initial=0.0))
    # Where next to nothing of the penalty removes rules, the rest keeps them small.
    return (longest if longest > 1e-12 else 1.0) * rows.total / max(l1_ratio, CURVES)


def fit_at(
    rows: TrainingRows,
    table: CellTable,
    alpha: float,
    l1_ratio: float,
    max_rules: int,
    tol: float,
    start: Model | None,
    watch: Callable[[Solution], bool] | None = None,
) -> Solution:
    """The model of all rows."""
    weight = rows.merged()
    problem = table.problem(rows.y, weight, rows.n_classes, rows.n_threads)
    start = Model.empty(rows.n_classes) if start is None else start
    penalty = Penalty.of_alpha(alpha, l1_ratio, rows.total)
    goal = {"tol": tol, "share": _LAST * tol}
    return solve(problem, len(weight), start, penalty, max_rules, **goal, watch=watch)
