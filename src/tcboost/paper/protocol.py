"""The experiments of Sec. IV: what is fitted on which rows, and what is noted of it.

A cell is one algorithm with one weak learner on one split of one data set; it has a row of
results for each number of rounds. A row depends on nothing but its cell: neither on the other
cells nor on the order or the number of processes they are run in.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from .. import (
    AdaBoostECC,
    AdaBoostMO,
    MultiBoostECC,
    MultiBoostHinge,
    MultiBoostMO,
)
from . import datasets

Array = NDArray[Any]
Row = dict[str, Any]

ROUNDS = (50, 100, 500)
REPETITIONS = 20
_SMALL = ("svmguide2", "svmguide4", "wine", "iris", "glass")  # theta is the stage-wise sum
CROSS_VALIDATED = ("thyroid", "dna", "vehicle")
# Rows to train on: the published number (Table I), or a share of all.
SETS: Mapping[str, int | float] = dict.fromkeys((*_SMALL, *CROSS_VALIDATED), 0.7) | {
    "svmguide4": 300,
    "thyroid": 3772,
    "dna": 2000,
}
# A run of classes depends on their order: opel, saab, bus, van in LIBSVM's file of the set.
_ORDER = {"vehicle": (2, 0, 1, 3)}


@dataclass(frozen=True)
class Algorithm:
    """How an algorithm is made; `budget` says whether the protocol has to choose its theta."""

    make: Callable[..., Any]
    learners: tuple[str, ...] = ("stump",)
    budget: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)


_RUNS = {"coding": "runs"}  # what the published errors tell of the codes: docs/differences.md
PAPER: Mapping[str, Algorithm] = {
    "AdaBoost.MO": Algorithm(AdaBoostMO),
    "MultiBoost.MO": Algorithm(MultiBoostMO, budget=True),
    "AdaBoost.ECC": Algorithm(AdaBoostECC, ("stump", "lda"), parameters=_RUNS),
    "MultiBoost.ECC": Algorithm(MultiBoostECC, ("stump", "lda"), budget=True, parameters=_RUNS),
}
ALGORITHMS: Mapping[str, Algorithm] = {
    **PAPER,  # and beyond it:
    "MultiBoost.MO, logistic loss": Algorithm(MultiBoostMO, parameters={"loss": "logistic"}),
    "MultiBoost.Hinge": Algorithm(MultiBoostHinge),
    "AdaBoost.ECC, all codes": Algorithm(AdaBoostECC),
    "MultiBoost.ECC, all codes": Algorithm(MultiBoostECC),
    "MultiBoost.ECC, learned codes": Algorithm(MultiBoostECC, parameters={"coding": "learned"}),
}
NOTES = [  # the columns of a row, after the number of rounds
    *("train_error", "test_error", "theta", "n_active", "gap", "n_iter", "min_margin"),
    *("zero_from", "r", "excess", "seconds"),
]


@dataclass(frozen=True)
class Cell:
    """One algorithm on one split; the repetition is the seed of the split and of the codes."""

    learner: str
    dataset: str
    algorithm: str
    repetition: int


def cells(sets: Sequence[str], repetitions: Sequence[int]) -> list[Cell]:
    """All cells, a repetition after the other, so that a part of a run is a smaller run."""
    return [
        Cell(learner, dataset, name, repetition)
        for repetition in repetitions
        for dataset in sets
        for name, algorithm in ALGORITHMS.items()
        for learner in algorithm.learners
    ]


_load = cache(datasets.load)


def split(name: str, repetition: int, data_dir: str | None = None) -> list[Array]:
    """X, X_test, y, y_test of a repetition: all rows merged and split anew, class by class."""
    X, y = _load(name, data_dir)
    if name in _ORDER:
        y = np.array(_ORDER[name])[y]
    return train_test_split(X, y, train_size=SETS[name], stratify=y, random_state=repetition)


def run(
    cell: Cell, rounds: Sequence[int] = ROUNDS, data_dir: str | None = None
) -> tuple[Cell, list[Row], dict[str, Any]]:
    """Fit a cell: its rows and, of the first repetition, what the figures show."""
    X, X_test, y, y_test = split(cell.dataset, cell.repetition, data_dir)
    rows: list[Row] = []
    history: dict[str, Any] = {}
    # The order of a sum must not depend on the number of threads.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap tells as much
        start = time.perf_counter()
        for T, model in _models(cell, X, y, rounds):
            train, test = (
                np.mean(model.predict(A) != b) for A, b in ((X, y), (X_test, y_test))
            )
            row = {"rounds": T, "train_error": train, "test_error": test, **_notes(model)}
            rows.append(row | {"seconds": round(time.perf_counter() - start, 3)})
            if cell.repetition == 0 and max(rounds) == T:
                names = ("train_error", "min_margin", "n_active", "gap")
                history |= {name: model.history_[name] for name in names}
            if cell.repetition == 0 and min(rounds) == T:
                products = zip_longest(*model.history_["inner_products"], fillvalue=np.nan)
                history["inner_products"] = np.array(list(products)).T
            start = time.perf_counter()
    return cell, rows, history


def _models(cell: Cell, X: Array, y: Array, rounds: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """A model for each number of rounds, the largest first: it may hold the others.

    Those of a stage-wise fit do; theta depends on T.
    """
    theta = None
    if ALGORITHMS[cell.algorithm].budget:
        theta = "cv" if cell.dataset in CROSS_VALIDATED else "stagewise"
    first, *others = sorted(rounds, reverse=True)
    model = make(cell, first, theta).fit(X, y)
    yield first, model
    for T in others:
        stages = cell.algorithm.startswith("AdaBoost")
        yield T, stage(model, T) if stages else make(cell, T, theta).fit(X, y)


def make(cell: Cell, max_iter: int, theta: float | str | None = None) -> Any:
    """The estimator of a cell; with None its theta is left as it is."""
    algorithm = ALGORITHMS[cell.algorithm]
    chosen = {} if theta is None else {"theta": theta}
    common = {"weak_learner": cell.learner, "random_state": cell.repetition, "n_jobs": 1}
    return algorithm.make(max_iter=max_iter, **common, **algorithm.parameters, **chosen)


def stage(model: Any, T: int) -> Any:
    """A stage-wise model as it was after T rounds, if it had as many."""
    if model.n_iter_ <= T:
        return model
    early = copy(model)
    early.n_iter_, early.estimators_ = T, model.estimators_[:T]
    early.estimator_weights_ = model.history_["weights"][T - 1]
    early.theta_ = float(early.estimator_weights_.sum())
    early.history_ = {name: values[:T] for name, values in model.history_.items()}
    return early


def _notes(model: Any) -> Row:
    """What the tables and the claims need to know of a model.

    `zero_from` is the first round without a training error. `excess` is how far the inner
    products are from the optimum of the dual (31), at the most in any round: there every
    hypothesis with a coefficient is at the bound, and ``sum_j w_j (r - u . rho_j)`` is zero.
    """
    history, w = model.history_, model.estimator_weights_
    zero = np.flatnonzero(history["train_error"] == 0)
    rounds = zip(history["weights"], history["inner_products"], strict=True)
    return {
        "theta": model.theta_,
        "n_active": np.count_nonzero(w),
        "n_iter": model.n_iter_,
        "zero_from": zero[0] + 1 if len(zero) else None,
        "excess": max(u @ (g.max() - g) for u, g in rounds),
        **{name: history[name][-1] for name in ("gap", "min_margin", "r")},
    }
