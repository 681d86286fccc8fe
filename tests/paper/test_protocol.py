import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

from tcboost import AdaBoostECC, AdaBoostMO, MultiBoostECC
from tcboost.paper import protocol
from tcboost.paper.protocol import (
    ALGORITHMS,
    Cell,
    cells,
    make,
    run,
    split,
    stage,
)
from tcboost.theta import PAPER_SEARCH

ROUNDS = (4, 9)


@pytest.fixture(autouse=True)
def _bundled(monkeypatch):
    monkeypatch.delenv("TCBOOST_DATA", raising=False)


@pytest.fixture
def few_budgets(monkeypatch):
    """Two of the budgets, and iris among the sets that are cross-validated."""
    monkeypatch.setattr(protocol, "CROSS_VALIDATED", ("iris",))
    search = PAPER_SEARCH._replace(grid=(0.5, 40.0))
    monkeypatch.setattr("tcboost.estimator.PAPER_SEARCH", search)


def test_the_cells_are_those_of_the_tables():
    """288 published cells: two splits, three numbers of rounds, and these."""
    paper = [c for c in cells(list(protocol.SETS), [0]) if c.algorithm in protocol.PAPER]
    assert len(paper) * 2 * len(protocol.ROUNDS) == 288
    assert len(cells(list(protocol.SETS), range(20))) == 20 * (48 + 40)
    assert PAPER_SEARCH.grid == (
        2,
        5,
        8,
        10,
        12,
        15,
        20,
        30,
        40,
        45,
        60,
        80,
        100,
        120,
        150,
        200,
    )


def test_splits_have_the_published_sizes(data_dir):
    sizes = {"svmguide2": 273, "svmguide4": 300, "wine": 124, "iris": 105, "glass": 149}
    sizes |= {"thyroid": 3772, "dna": 2000, "vehicle": 592}
    for name, n in sizes.items():
        X, X_test, y, y_test = split(name, 3, str(data_dir))
        assert len(X) == len(y) == n
        assert len(X) + len(X_test) == sum(protocol.datasets.DATASETS[name].files.values())
        shares = np.bincount(y) / len(y) - np.bincount(y_test) / len(y_test)
        assert np.abs(shares).max() < 0.02


@pytest.mark.parametrize("learner", ["stump", "lda"])
@pytest.mark.parametrize("estimator", [AdaBoostMO, AdaBoostECC])
def test_a_stage_is_the_fit_of_fewer_rounds(estimator, learner):
    X, X_test, y, _ = split("wine", 1)
    long = estimator(max_iter=12, weak_learner=learner, random_state=3).fit(X, y)
    for T in (1, 5, 11, 12):
        short, early = clone(long).set_params(max_iter=T).fit(X, y), stage(long, T)
        scores = early.decision_function(X_test)
        np.testing.assert_array_equal(scores, short.decision_function(X_test))
        assert early.n_iter_ == short.n_iter_
        assert early.theta_ == pytest.approx(short.theta_, rel=1e-12)
        assert early.history_["gap"][-1] == pytest.approx(short.certificate_.gap)
    assert stage(long, 99) is long
    assert long.n_iter_ == len(long.history_["gap"])  # untouched


def test_a_row_says_what_a_plain_fit_says():
    cell = Cell("stump", "iris", "MultiBoost.ECC", 2)
    rows = {row["rounds"]: row for row in run(cell, ROUNDS)[1]}
    X, y = load_iris(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=0.7, stratify=y, random_state=2)
    for T in ROUNDS:
        ecc = {"coding": "runs", "max_iter": T, "random_state": 2}
        stagewise = AdaBoostECC(**ecc).fit(X, y)
        model = MultiBoostECC(theta=stagewise.theta_, **ecc).fit(X, y)
        row, w = rows[T], model.estimator_weights_
        assert row["theta"] == pytest.approx(stagewise.theta_, rel=1e-12)
        assert row["train_error"] == pytest.approx(1 - model.score(X, y))
        assert row["test_error"] == pytest.approx(1 - model.score(X_test, y_test))
        assert row["n_active"] == (w > 0).sum()
        assert row["min_margin"] == pytest.approx(model.margins(X, y).min(), abs=1e-9)
        assert row["gap"] == pytest.approx(model.certificate_.gap)
        g = model.history_["inner_products"][-1]
        assert row["r"] == g.max()
        assert row["excess"] >= w @ (g.max() - g) >= 0


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_its_rows(name):
    for learner in ALGORITHMS[name].learners:
        _, rows, history = run(Cell(learner, "iris", name, 0), ROUNDS)
        assert [row["rounds"] for row in rows] == [9, 4]
        assert all(set(row) == {"rounds", *protocol.NOTES} for row in rows)
        assert len(history["train_error"]) <= 9
        assert history["inner_products"].shape[0] <= 4
        assert not run(Cell(learner, "iris", name, 1), ROUNDS)[2]


def test_zero_from_is_the_first_round_without_an_error():
    (row,) = run(Cell("stump", "wine", "AdaBoost.MO", 0), [30])[1]
    X, _, y, _ = split("wine", 0)
    errors = [np.mean(p != y) for p in AdaBoostMO(max_iter=30).fit(X, y).staged_predict(X)]
    assert row["zero_from"] == 1 + errors.index(0)
    (row,) = run(Cell("stump", "wine", "AdaBoost.MO", 0), [2])[1]
    assert row["zero_from"] is None


@pytest.mark.parametrize(
    ("name", "learner"), [("ECC", "stump"), ("ECC", "lda"), ("MO", "stump")]
)
def test_theta_is_cross_validated_for_each_number_of_rounds(few_budgets, name, learner):
    """As `theta="cv"` does it, and the row is that of a fit at this theta."""
    cell = Cell(learner, "iris", f"MultiBoost.{name}", 1)
    X, _, y, _ = split("iris", 1)
    expected = {T: make(cell, T, "cv").fit(X, y).theta_ for T in ROUNDS}
    rows = {row["rounds"]: row for row in run(cell, ROUNDS)[1]}
    for T, theta in expected.items():
        model = make(cell, T, theta).fit(X, y)
        assert rows[T]["theta"] == theta
        assert rows[T]["train_error"] == pytest.approx(1 - model.score(X, y))


def test_a_cell_is_the_same_with_any_number_of_threads(monkeypatch):
    def numbers(cell):
        return [[v for k, v in r.items() if k != "seconds"] for r in run(cell, ROUNDS)[1]]

    cell = Cell("lda", "wine", "MultiBoost.ECC", 0)
    with protocol.threadpool_limits(4):
        assert numbers(cell) == numbers(cell)
