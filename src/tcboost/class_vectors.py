"""The class vectors of all rules, at a penalty, solved feature by feature.

Over an intercept b and the class vectors v_t of all rules h_t of all features,

    minimise  sum_i s_i CE(F(x_i), y_i)
              + r sum_t |v_t| + ridge / 2 sum_t |v_t|^2 + rho / 2 |b|^2,   F = b + sum_t v_t h_t

A round finds the edges of all rules, which bound what any model could still gain, admits rules
that are worth their penalty, and corrects all vectors in use (``cpp/class_vectors.hpp``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._core import VectorProblem
from .rows.in_threads import checkpoint

Vector = NDArray[np.float64]
Rules = NDArray[np.int64]

_SWEEPS = 3  # of a round
# Of one that admits more rules than one for so many in use: they will have to move on anyway.
_GROWING, _SWEEPS_GROWING = 4, 1
_ROUNDS = 1000
# Rounds whose sweeps an extrapolation is made of, and the numbers that it may keep for that;
# more only where they are an eighth of the probabilities.
_PATHS, _NUMBERS = 11, 1 << 16
# The curvature of a sweep, times s p (1 - p): 2 is above the true one where the step begins,
# less is sooner there. It grows where the objective has risen.
_CURVATURE, _SAFE_CURVATURE, _MOST_CURVATURE = 1.5, 2.0, 20.0
# Of the way from the penalty to the longest edge: what one must reach to be admitted now.
_LEVEL = 0.25
_FEWEST = 16  # rules admitted at once: so many, or as many as are in use
_SWAPS = 10  # where no more rules are allowed, one of so many may be exchanged in a round
# A round that gains less of the tolerance is idle, and so many one after the other are the end.
_SLOW, _SLOW_WHEN_CROWDED, _IDLE, _IDLE_WHEN_CROWDED = 1e-5, 0.3, 4, 2


class Penalty(NamedTuple):
    """r for each unit of length, a ridge for each square, rho of the intercept's square."""

    l1: float
    ridge: float
    intercept: float

    @classmethod
    def of_alpha(cls, alpha: float, l1_ratio: float, n: float) -> Penalty:
        """alpha is in rows, of which there are n."""
        # What is beyond makes no other model, but squares that are no numbers.
        per_row = min(max(alpha / n, 1e-100), 1e100)
        l1 = max(per_row * l1_ratio, 1e-200)
        return cls(l1, per_row * (1.0 - l1_ratio), 1e-3 * per_row)


class Model(NamedTuple):
    """The intercept, the rules in use, ascending, and their class vectors."""

    b: Vector
    used: Rules
    v: Vector

    @classmethod
    def empty(cls, n_classes: int) -> Model:
        """Nothing, whose probabilities are all alike."""
        return cls(np.zeros(n_classes), np.zeros(0, dtype=np.int64), np.zeros((0, n_classes)))


@dataclass(frozen=True)
class Solution:
    """A model, and what is proved of it.

    `status` is "optimal" (the gap is at most what was asked for), "max_rules" (used up),
    "max_iter" (of rounds) or "stalled" (no progress).
    """

    model: Model
    loss: float
    objective: float
    gap: float
    status: str
    error: float
    lengths: Vector  # of the edges of all rules
    penalty: Penalty
    history: list[dict[str, float]] = field(default_factory=list)


def lengths(v: Vector) -> Vector:
    """Of class vectors."""
    return np.sqrt((v * v).sum(axis=-1))


class State:
    """A model with its probabilities, and their edges and measures once they were asked for."""

    def __init__(self, problem: VectorProblem, n: int, model: Model, penalty: Penalty) -> None:
        self.problem, self.penalty = problem, penalty
        self.p: Vector = np.empty((n, problem.stride))
        self._used, self._paths = model.used, list[Vector]()  # of sweeps of these rules
        self.set(model)

    def set(self, model: Model) -> None:
        """Take this model, and make its probabilities anew."""
        self.model, self.fresh = model, True
        self.problem.probabilities(self.p, *model)
        self._measure()

    def _measure(self) -> None:
        measures = self.problem.measures(self.p, *self.model, self.penalty)
        self.loss, self.objective, self.error, self.least, self.spread = measures

    def sweep(self, curvature: float, n_sweeps: int) -> Vector:
        """Correct all vectors; b and v before and after each sweep."""
        settings = self.penalty, curvature, n_sweeps
        path = self.problem.sweeps(self.p, *self.model, *settings, checkpoint)
        self.model, self.fresh = Model(path[-1, 0], self.model.used, path[-1, 1:]), False
        self._measure()
        return path

    def extrapolate(self, path: Vector) -> None:
        """Anderson's method on sweeps of these rules: taken if the objective is lower."""
        past = self._paths if np.array_equal(self.model.used, self._used) else []
        many = max(1, min(_PATHS, max(_NUMBERS, self.p.size // 8) // path.size))
        self._used, self._paths = self.model.used, [path, *past][:many]
        x = [one.reshape(len(one), -1) for one in self._paths]
        U = np.concatenate([one[1:] - one[:-1] for one in x])
        gram = U @ U.T
        gram.flat[:: len(gram) + 1] += 1e-10 * gram.trace() + 1e-300
        weight = np.linalg.solve(gram, np.ones(len(gram)))
        total = weight.sum()
        if not math.isfinite(total) or total == 0.0:
            return
        weight = (weight / total).reshape(len(x), -1)
        z = sum(w @ one[1:] for w, one in zip(weight, x, strict=True)).reshape(path.shape[1:])
        model, objective = self.model, self.objective
        self.set(Model(z[0], model.used, z[1:]))
        if not self.objective < objective:
            self.set(model)

    def edges(self) -> tuple[Vector, float, float]:
        """The lengths of all edges; the gap over all rules, and over those in use."""
        return self.problem.edges(self.p, *self.model, self.penalty, self.objective)


def solve(
    problem: VectorProblem,
    n: int,
    start: Model,
    penalty: Penalty,
    max_rules: int,
    *,
    tol: float = math.inf,
    share: float = math.inf,
    watch: Callable[[Solution], bool] | None = None,
) -> Solution:
    """To a gap of `tol`, or of this share of the objective where that is less.

    With no more than `max_rules`, as near to it as exchanging rules leads. `watch` sees what a
    fit that is stopped after this round would return, and says whether to stop.
    """
    state = State(problem, n, start, penalty)

    def found(status: str) -> Solution:
        figures = state.loss, state.objective, gap, status, state.error
        return Solution(_without_zeros(state.model), *figures, sizes, penalty, history)

    # From where it is worse than nothing the way is long.
    if len(start.used) and not state.objective < math.log(len(start.b)):
        state.set(Model.empty(len(start.b)))
    best, least, history = state.model, math.inf, list[dict[str, float]]()
    curvature, idle, swaps = _CURVATURE, 0, max(1, max_rules // _SWAPS)
    crowded = swapped = False
    status = "max_iter"
    for _ in range(_ROUNDS):
        target = min(tol, share * state.objective)
        if not state.objective <= least + 1e-12 * (1.0 + abs(least)):
            state.set(best)
            if swapped:
                swaps //= 4
            elif curvature < _MOST_CURVATURE:
                curvature = max(_SAFE_CURVATURE, 1.5 * curvature)
            else:
                idle = _IDLE
        slow = _SLOW_WHEN_CROWDED if crowded else _SLOW
        idle = 0 if state.objective < least - slow * target else idle + 1
        best, least = state.model, state.objective
        sizes, gap, own_gap = state.edges()
        if gap <= target and not state.fresh:
            state.set(state.model)
            sizes, gap, own_gap = state.edges()
        history.append(_figures(state, gap))
        stop = watch is not None and watch(found("stopped early"))
        if gap <= target:
            status = "optimal"
            break
        model = _without_zeros(state.model)
        new = problem.worthwhile(sizes, model.used, penalty.l1, _LEVEL)
        new = new[: max(_FEWEST, len(model.used))]
        room = max_rules - len(model.used)
        crowded = len(new) > room
        swapped = crowded and swaps > 0 and own_gap <= target
        if swapped:
            # Of a rule with as many rows on either side, by a quadratic model.
            gains = (sizes[new] - penalty.l1) / (state.spread + penalty.ridge + 1e-300)
            model, new = _exchange(model, new, gains, room, swaps)
            swapped = len(new) > room
        new = new[: max_rules - len(model.used)]
        if stop:
            status = "stopped early"
        elif idle >= (_IDLE_WHEN_CROWDED if crowded else _IDLE) or (
            room == 0 and not swapped and own_gap <= target
        ):
            status = "max_rules" if crowded else "stalled"
        else:
            model = _with_rules(model, new)
            if swapped:
                state.set(model)
            else:
                state.model = model
            if _GROWING * len(new) > len(model.used):
                state.sweep(curvature, _SWEEPS_GROWING)
            else:
                state.extrapolate(state.sweep(curvature, _SWEEPS))
            continue
        break
    if not state.fresh:
        state.set(best)
        sizes, gap, _ = state.edges()
    return found(status)


def _figures(state: State, gap: float) -> dict[str, float]:
    """Of a round."""
    size = max(float(lengths(state.model.v).sum()), 1e-300)
    return {
        "objective": state.objective,
        "gap": gap,
        "train_error": state.error,
        "n_rules": len(state.model.used),
        "min_margin": state.least / size,
    }


def _without_zeros(model: Model) -> Model:
    kept = model.v.any(axis=1)
    return model if kept.all() else Model(model.b, model.used[kept], model.v[kept])


def _with_rules(model: Model, new: Rules) -> Model:
    """With more rules, whose vectors are zero."""
    if len(new) == 0:
        return model
    used = np.concatenate([model.used, new])
    v = np.concatenate([model.v, np.zeros((len(new), model.v.shape[1]))])
    order = np.argsort(used)
    return Model(model.b, used[order], v[order])


def _exchange(
    model: Model, new: Rules, gains: Vector, room: int, most: int
) -> tuple[Model, Rules]:
    """Give up the rules of the shortest vectors, where new ones will have longer ones."""
    weakest = np.lexsort((model.used, lengths(model.v)))[: min(most, len(new) - room)]
    pays = gains[room : room + len(weakest)] > lengths(model.v[weakest])
    count = len(pays) if pays.all() else int(pays.argmin())
    kept = np.delete(np.arange(len(model.used)), weakest[:count])
    return Model(model.b, model.used[kept], model.v[kept]), new[: room + count]
