"""A draft in one call, against the rounds that it stands for."""

from functools import partial

import numpy as np
import pytest

from tcboost import TCBoostClassifier, _core
from tcboost.boosting import Run
from tcboost.columns import LearnedCode, VectorCode
from tcboost.correctors import BallCorrective, Budget, ball
from tcboost.losses import LOSSES
from tcboost.margins import Pairwise
from tcboost.oracles.stump import StumpOracle
from tcboost.rows.blocks import LocalRows
from test_boosting import task_for


def rows_of(kind, n_threads=1):
    rng = np.random.default_rng(5)
    n, n_classes = {"groups": (400, 3), "bins": (700, 3)}.get(kind, (90, 3))
    n_classes = {"two": 2, "nine": 9}.get(kind, n_classes)
    X, y = rng.normal(size=(n, 4)), rng.integers(n_classes, size=n)
    X[:, 0] += y
    X[:, 1] -= y == 1
    weight = rng.integers(1, 5, size=n) if kind == "weights" else np.ones(n)
    if kind == "missing":
        X[rng.random(X.shape) < 0.2] = np.nan
    elif kind == "groups":  # two features and more share their cells
        X = np.clip(X.round(), -2, 2)
    elif kind == "noise":
        y = rng.permutation(y)
    elif kind == "constant":
        X[:, 2:] = 1.0
    return LocalRows(X, y, weight.astype(float), None, n_threads)


def run_of(rows, budget, tol, chooser=VectorCode, loss="multinomial"):
    margin = Pairwise(int(rows.y.max()) + 1)
    task, coded = task_for(rows, chooser, margin, loss), chooser is not VectorCode
    scored = margin, rows.y, rows.weight, LOSSES[loss], coded, budget, tol, rows.n_threads
    return Run(task, BallCorrective(*scored, oracle=task.oracle))


def counted(monkeypatch):
    """How often a draft was made in one call."""
    calls = []

    def once(*arguments, **named):
        calls.append(1)
        return _core.draft_vectors(*arguments, **named)

    monkeypatch.setattr(ball, "draft_vectors", once)
    return calls


KINDS = ["plain", "two", "nine", "missing", "weights", "groups", "bins", "noise", "constant"]
COSTS = {
    "steps": partial(Budget, ridge=0.01, intercept=1e-4),
    "curves": partial(Budget, ridge=0.3, intercept=3e-4),
    "no ridge": partial(Budget, intercept=1e-3),
    "no intercept": partial(Budget, ridge=0.01),
}


@pytest.mark.parametrize("room", [3, 25, 200])
@pytest.mark.parametrize("costs", sorted(COSTS))
@pytest.mark.parametrize("kind", KINDS)
def test_one_call_does_what_the_rounds_do(kind, costs, room, monkeypatch):
    calls = counted(monkeypatch)
    rows = rows_of(kind, n_threads=2 if kind == "bins" else 1)
    prices = 0.1, 0.03, 0.01, 0.3, 0.003
    at_once, in_rounds = (run_of(rows, COSTS[costs](price=1.0), 1e-3) for _ in range(2))
    for k, price in enumerate(prices):
        few = 1 << 13 if k != 3 else 0  # what a call leaves behind, rounds go on with
        for run, limit in ((at_once, few), (in_rounds, 0)):
            monkeypatch.setattr(ball, "_FEW", limit)
            run.set_budget(COSTS[costs](price=price))
            run.boost(room, draft=0.3)
        one, other = at_once.corrector, in_rounds.corrector
        assert at_once.columns == in_rounds.columns == one._columns == other._columns
        for name in ("w", "_F", "z"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
        np.testing.assert_array_equal(one._H.matrix, other._H.matrix)
        assert (one.gap, one.theta, one.known) == (other.gap, other.theta, other.known)
    assert at_once.over
    assert len(calls) == len(prices) - 1
    assert 1 <= len(at_once.columns) <= room
    for run in (at_once, in_rounds):
        run.set_budget(COSTS[costs](price=0.01))
        run.boost(room)
    assert at_once.certificate == in_rounds.certificate


def test_no_max_iter_is_too_large():
    X, y = np.arange(40.0)[:, None], np.arange(40) // 20
    small, large = (TCBoostClassifier(max_iter=k).fit(X, y) for k in (450, 10**20))
    assert large.certificate_ == small.certificate_


OTHERS = ["codes", "log-loss", "many rows", "a sample", "a budget", "both", "a pause"]


@pytest.mark.parametrize("what", OTHERS)
def test_other_drafts_are_made_in_rounds(what, monkeypatch):
    calls = counted(monkeypatch)
    rows, options = rows_of("groups"), {}
    budget = Budget(price=0.05, intercept=0.0 if what == "codes" else 1e-3)
    if what == "codes":
        options = {"chooser": LearnedCode}
    elif what == "log-loss":
        options = {"loss": "exponential"}
    elif what == "many rows":
        monkeypatch.setattr(ball, "_FEW", 3 * len(rows) - 1)
    elif what == "a sample":
        monkeypatch.setattr(ball, "_MANY", 64)
        monkeypatch.setattr(ball, "_SAMPLE", 64)
    elif what in ("a budget", "both"):
        budget = budget._replace(theta=5.0, price=budget.price if what == "both" else 0.0)
    run = run_of(rows, budget, 1e-3, **options).boost(40, pause=what == "a pause", draft=0.3)
    assert run.columns
    assert not calls


WRONG = {
    "rows": {"y": np.zeros(3, dtype=np.int64)},
    "other classes": {"y": np.full(90, 3)},
    "differ in their rows": {"place": np.zeros(3, dtype=np.int64)},
    "no such place": {"place": np.full(90, 90)},
    "candidate": {"taken": [10_000]},
    "columns x classes": {"W": np.zeros((1, 3))},
    "price": {"rule": (0.0, 0.1, 0.1, 1e-3, 0.3, 0.3, 2, 6, 9, 3)},
    "a tolerance": {"rule": (0.1, 0.1, 0.1, 0.0, 0.3, 0.3, 2, 6, 9, 3)},
    "ridges": {"rule": (0.1, -0.1, 0.1, 1e-3, 0.3, 0.3, 2, 6, 9, 3)},
    "sweeps": {"rule": (0.1, 0.1, 0.1, 1e-3, 0.3, 0.3, -1, 6, 9, 3)},
    "start must": {"start": np.array([0, 60, 30, 90])},
}
OTHER_STUMPS = {
    "differ in their sizes": {4: np.zeros(2, dtype=np.int64)},
    "row of sums": {6: (0, 10_000)},
    "such row of": {6: (0, 2**64 - 2**40)},
    "feature": {2: np.arange(5)},
    "ascend": {7: np.array([0, 2])},
}


@pytest.mark.parametrize("message", [*WRONG, *OTHER_STUMPS])
def test_what_does_not_fit_is_refused(message):
    rows = rows_of("plain")
    stumps, order = list(StumpOracle(rows).arrays), np.argsort(rows.y, kind="stable")
    arguments = {
        "y": rows.y,
        "weight": rows.weight,
        "place": np.argsort(order),
        "start": np.searchsorted(rows.y[order], np.arange(4)).astype(np.int64),
        "sorted_weight": rows.weight[order],
        "F": np.zeros((3, 90)),
        "taken": [],
        "H": np.zeros((90, 0), dtype=np.int8, order="F"),
        "W": np.zeros((0, 3)),
        "told": (0.0, 0.0, 0.0, 0.0),
        "rule": (0.1, 0.1, 0.1, 1e-3, 0.3, 0.3, 2, 6, 9, 3),
        "n_threads": 1,
    }
    assert _core.draft_vectors(tuple(stumps), **arguments)[0]
    arguments.update(WRONG.get(message, {}))
    for place, other in OTHER_STUMPS.get(message, {}).items():
        stumps[place] = other
    with pytest.raises(ValueError, match=message):
        _core.draft_vectors(tuple(stumps), **arguments)
