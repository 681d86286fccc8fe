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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split
from threadpoolctl import threadpool_limits

from .. import AdaBoostECC, AdaBoostMO, MultiBoostECC, MultiBoostMO, TCBoostClassifier
from ..theta import PAPER_SEARCH
from . import datasets

Features = NDArray[np.float64]
Labels = NDArray[Any]
Row = dict[str, Any]

ROUNDS = (50, 100, 500)
REPETITIONS = 20
SETS: Mapping[str, int | float] = {  # Table I: rows or share of the rows to train on
    "svmguide2": 0.7,
    "svmguide4": 300,
    "wine": 0.7,
    "iris": 0.7,
    "glass": 0.7,
    "thyroid": 3772,
    "dna": 2000,
    "vehicle": 0.7,
}
CROSS_VALIDATED = ("thyroid", "dna", "vehicle")  # elsewhere theta is the stage-wise sum
N_FOLDS = 5


@dataclass(frozen=True)
class Algorithm:
    """How an algorithm is made; `budget` says whether the protocol has to choose its theta."""

    make: Callable[..., Any]
    learners: tuple[str, ...] = ("stump",)
    budget: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)


PAPER: Mapping[str, Algorithm] = {
    "AdaBoost.MO": Algorithm(AdaBoostMO),
    "MultiBoost.MO": Algorithm(MultiBoostMO, budget=True),
    "AdaBoost.ECC": Algorithm(AdaBoostECC, ("stump", "lda")),
    "MultiBoost.ECC": Algorithm(MultiBoostECC, ("stump", "lda"), budget=True),
}
# Beyond the paper: theta is the stage-wise sum on all sets, or what the class itself chooses.
BEYOND: Mapping[str, Algorithm] = {
    "MultiBoost.ECC, learned codes": Algorithm(
        MultiBoostECC, parameters={"coding": "learned", "theta": "stagewise"}
    ),
    "TCBoost, class vectors": Algorithm(TCBoostClassifier),
}
ALGORITHMS = {**PAPER, **BEYOND}
STAGE_WISE = ("AdaBoost.MO", "AdaBoost.ECC")


@dataclass(frozen=True, order=True)
class Cell:
    """One algorithm on one split; the repetition is the seed of the split and of the codes."""

    dataset: str
    repetition: int
    algorithm: str
    learner: str


def cells(sets: Sequence[str], repetitions: Sequence[int]) -> list[Cell]:
    """All cells, a repetition after the other, so that a part of a run is a smaller run."""
    return [
        Cell(dataset, repetition, name, learner)
        for repetition in repetitions
        for dataset in sets
        for name, algorithm in ALGORITHMS.items()
        for learner in algorithm.learners
    ]


@cache
def _load(name: str, data_dir: str | None) -> tuple[Features, Labels]:
    return datasets.load(name, data_dir)


def split(
    name: str, repetition: int, data_dir: str | None = None
) -> tuple[Features, Features, Labels, Labels]:
    """X, X_test, y, y_test of a repetition: all rows merged and split anew, class by class."""
    X, y = _load(name, data_dir)
    parts = train_test_split(X, y, train_size=SETS[name], stratify=y, random_state=repetition)
    return parts[0], parts[1], parts[2], parts[3]


@dataclass(frozen=True)
class Outcome:
    """What came of a cell: its rows, and of the first repetition what the figures show."""

    cell: Cell
    rows: list[Row]
    history: dict[str, Any]


def run(cell: Cell, rounds: Sequence[int] = ROUNDS, data_dir: str | None = None) -> Outcome:
    """Fit a cell and score it."""
    X, X_test, y, y_test = split(cell.dataset, cell.repetition, data_dir)
    rows: list[Row] = []
    history: dict[str, Any] = {}
    # The order of a sum must not depend on the number of threads.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap tells as much
        start = time.perf_counter()
        for T, model in _models(cell, X, y, rounds):
            errors = {
                "train_error": float(np.mean(model.predict(X) != y)),
                "test_error": float(np.mean(model.predict(X_test) != y_test)),
            }
            row = {"rounds": T, **errors, **_notes(model)}
            row["seconds"] = time.perf_counter() - start
            rows.append(row)
            if cell.repetition == 0 and max(rounds) == T:
                names = ("train_error", "min_margin", "n_active", "gap")
                history |= {name: model.history_[name] for name in names}
            if cell.repetition == 0 and min(rounds) == T:
                history["inner_products"] = _table(model.history_["inner_products"])
            start = time.perf_counter()
    return Outcome(cell, rows, history)


def _models(
    cell: Cell, X: Features, y: Labels, rounds: Sequence[int]
) -> Iterator[tuple[int, Any]]:
    """A model for each number of rounds, the largest first: it may hold the others.

    The stages of a stage-wise fit do, and those of a totally corrective one of the same theta.
    """
    algorithm = ALGORITHMS[cell.algorithm]
    thetas: Mapping[int, Any]
    if algorithm.budget and cell.dataset in CROSS_VALIDATED:
        thetas = choose_thetas(cell, X, y, rounds)
    else:
        thetas = dict.fromkeys(rounds, "stagewise" if algorithm.budget else None)
    stages = cell.algorithm in STAGE_WISE
    fitted: dict[Any, Any] = {}
    for T in sorted(rounds, reverse=True):
        theta = thetas[T]
        key = theta if stages or isinstance(theta, float) else T
        if key not in fitted:
            fitted[key] = make(cell, T, theta).fit(X, y)
        yield T, stage(fitted[key], T)


def make(cell: Cell, max_iter: int, theta: float | str | None = None) -> Any:
    """The estimator of a cell; with None its theta is left as it is."""
    algorithm = ALGORITHMS[cell.algorithm]
    parameters = {**algorithm.parameters, "weak_learner": cell.learner, "max_iter": max_iter}
    if theta is not None:
        parameters["theta"] = theta
    return algorithm.make(random_state=cell.repetition, n_jobs=1, **parameters)


def stage(model: Any, T: int) -> Any:
    """The model as it was after T rounds, if it had as many."""
    if model.n_iter_ <= T:
        return model
    early = copy(model)
    early.n_iter_, early.estimators_ = T, model.estimators_[:T]
    w = early.estimator_weights_ = model.history_["weights"][T - 1]
    if not hasattr(model, "theta"):  # stage-wise
        early.theta_ = float(w.sum())
    early.history_ = {name: values[:T] for name, values in model.history_.items()}
    return early


def choose_thetas(
    cell: Cell, X: Features, y: Labels, rounds: Sequence[int]
) -> dict[int, float]:
    """For each number of rounds the theta of least error in five folds, the smallest on a tie.

    A fit at fixed theta serves all numbers by its stages. Its seed is that of the cell, so that
    all candidates have the same codes.
    """
    wrong = np.zeros((len(rounds), len(PAPER_SEARCH.grid)))
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=cell.repetition)
    for fit_on, hold_out in folds.split(X, y):
        for k, theta in enumerate(PAPER_SEARCH.grid):
            model = make(cell, max(rounds), float(theta)).fit(X[fit_on], y[fit_on])
            for t, T in enumerate(rounds):
                predicted = stage(model, T).predict(X[hold_out])
                wrong[t, k] += np.count_nonzero(predicted != y[hold_out])
    best = wrong.argmin(axis=1)
    return {T: float(PAPER_SEARCH.grid[k]) for T, k in zip(rounds, best, strict=True)}


def _notes(model: Any) -> Row:
    """What the tables and the claims need to know of a model."""
    history, T = model.history_, model.n_iter_
    zero = np.flatnonzero(history["train_error"] == 0)
    w = model.estimator_weights_
    return {
        "theta": model.theta_,
        "n_active": int(np.count_nonzero(w.reshape(T, -1).any(axis=1))),
        "gap": float(history["gap"][-1]),
        "n_iter": T,
        "min_margin": float(history["min_margin"][-1]),
        "zero_from": int(zero[0]) + 1 if len(zero) else None,  # the first round without error
        "r": float(history["r"][-1]),
        "excess": _excess(history),
    }


def _excess(history: Mapping[str, Any]) -> float | None:
    """How far the inner products are from the dual's optimum, at the most in any round.

    At the optimum of (31) every hypothesis that has a coefficient is at the bound r, so that
    ``sum_j w_j (r - u . rho_j)`` is zero.
    """
    pairs = list(zip(history["weights"], history["inner_products"], strict=True))
    if pairs[0][0].ndim > 1:  # class vectors: their inner products are no numbers
        return None
    return max(float(w @ (g.max() - g)) for w, g in pairs)


def _table(ragged: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One row a round, NaN where there was no such column yet."""
    table = np.full((len(ragged), len(ragged[-1])), np.nan)
    for t, values in enumerate(ragged):
        table[t, : len(values)] = values
    return table
