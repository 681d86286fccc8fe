"""Rounds as a user sees them: more of them later, fewer by early stopping, and callbacks."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import tcboost
from tcboost import (
    AdaBoostECC,
    AdaBoostMO,
    MultiBoostECC,
    MultiBoostHinge,
    MultiBoostMO,
)
from tcboost.rows.blocks import LocalRows
from test_sklearn import IRIS, PAPER, STAGE_WISE, WINE, small

# ---------------------------------------------------------------- more rounds later


def assert_same_fit(a, b, X):
    assert_array_equal(a.estimator_weights_, b.estimator_weights_)
    assert_array_equal(a.decision_function(X), b.decision_function(X))
    assert a.certificate_ == b.certificate_
    for name in set(a.history_) - {"inner_products", "weights"}:
        assert_array_equal(a.history_[name], b.history_[name])
    for name in ("inner_products", "weights"):
        for left, right in zip(a.history_[name], b.history_[name], strict=True):
            assert_array_equal(left, right)


WARM = [small(cls, warm_start=True) for cls in PAPER]
WARM += [
    small(MultiBoostHinge, warm_start=True, theta=0.2),
    small(MultiBoostECC, warm_start=True, coding="ecoc"),
    small(MultiBoostECC, warm_start=True, coding="learned"),
    small(AdaBoostECC, warm_start=True, coding="ecoc"),
    small(AdaBoostMO, warm_start=True, loss="logistic"),
    small(MultiBoostECC, warm_start=True, loss="logistic"),
]
WARM += [
    small(cls, warm_start=True, weak_learner=learner)
    for cls in PAPER
    for learner in ("product", "lda", DecisionTreeClassifier(max_depth=2, max_features=1))
]


@pytest.mark.parametrize("model", WARM, ids=str)
def test_going_on_is_as_one_fit(model):
    X, y = WINE
    model = clone(model).set_params(max_iter=3).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    model.set_params(max_iter=3).fit(X, y)
    model.set_params(max_iter=8, n_jobs=1).fit(X[::-1], y[::-1])
    model.set_params(max_iter=14).fit(X, y)
    again.set_params(max_iter=14).fit(X, y)
    alone = clone(model).set_params(warm_start=False).fit(X, y)
    assert alone.n_iter_ > 3
    assert_same_fit(model, alone, X)
    if isinstance(model, (*STAGE_WISE, MultiBoostHinge)):
        assert_same_fit(again, alone, X)
    else:  # its master begins without a model of the loss, and ends elsewhere within the gap
        assert again.theta_ == alone.theta_
        found, expected = again.certificate_, alone.certificate_
        assert found.primal == pytest.approx(expected.primal, abs=model.tol)
        assert found.dual <= expected.primal
    assert not hasattr(alone, "_run")


@pytest.mark.parametrize("theta", [4.0, 30.0])
@pytest.mark.parametrize("steps", [(20, 50, 90), (60, 61, 90), (89, 90), (45, 46, 47, 48)])
def test_going_on_with_a_paced_run_is_as_one_fit(steps, theta):
    """How the budget grows depends on the rounds to come; two columns a round may not fit."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    model = MultiBoostMO("ovr", theta, round_tol=0.03, warm_start=True)
    for max_iter in steps:
        model.set_params(max_iter=max_iter).fit(X, y)
    alone = clone(model).set_params(warm_start=False).fit(X, y)
    assert alone.n_iter_ == steps[-1]
    assert_same_fit(model, alone, X)


def test_fewer_rounds_than_there_were_are_refused():
    for theta in (1.0, 20.0):
        model = MultiBoostMO(theta=theta, max_iter=40, warm_start=True).fit(*WINE)
        with pytest.raises(ValueError, match="less than the"):
            model.set_params(max_iter=model.n_iter_ - 1).fit(*WINE)


def test_a_run_that_has_ended_stays_as_it_is():
    model = MultiBoostMO(theta=1.0, max_iter=40, tol=1e-3, warm_start=True).fit(*IRIS)
    alone = clone(model).set_params(max_iter=400, warm_start=False).fit(*IRIS)
    assert model.n_iter_ < 40
    assert_same_fit(model.set_params(max_iter=400).fit(*IRIS), alone, IRIS[0])


def test_what_changed_is_named():
    X, y = IRIS
    model = small(MultiBoostECC, warm_start=True).fit(X, y)
    for parameters, match in (
        ({"theta": 6.0}, "theta changed"),
        ({"tol": 1e-3, "max_bins": 7}, "max_bins, tol.* changed"),
        ({"max_iter": 3}, "max_iter=3 is less than the"),
    ):
        before = {name: model.get_params()[name] for name in parameters}
        with pytest.raises(ValueError, match=match):
            model.set_params(**parameters).fit(X, y)
        model.set_params(**before)
    for data in ((X + 1, y), (X, (y + 1) % 3), (X, y, np.arange(1, 151))):
        with pytest.raises(ValueError, match="X, y or sample_weight changed"):
            model.fit(*data)
    model.fit(np.tile(X, (2, 1)), np.tile(y, 2))  # which is the same problem


@pytest.mark.parametrize("cls", [MultiBoostMO, MultiBoostECC, MultiBoostHinge])
@pytest.mark.parametrize("theta", ["stagewise", "cv"])
def test_a_theta_that_was_chosen_stays(cls, theta):
    model = cls(theta=theta, max_iter=5, random_state=0, warm_start=True).fit(*WINE)
    chosen = model.theta_
    tried = getattr(model, "theta_choice_", None)
    model = pickle.loads(pickle.dumps(model)).set_params(max_iter=12).fit(*WINE)
    alone = cls(theta=chosen, max_iter=12, random_state=0).fit(*WINE)
    assert alone.n_iter_ > 5 or alone.certificate_.status == "optimal"
    assert model.theta_ == alone.theta_
    assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, abs=1e-4)
    assert repr(getattr(model, "theta_choice_", None)) == repr(tried)


def test_a_budget_that_grows_goes_on():
    model = MultiBoostMO(theta="growing", max_iter=5, tol=1e-6, warm_start=True).fit(*WINE)
    loss, scale = model.certificate_.primal, model.probability_scale_
    model.set_params(max_iter=15).fit(*WINE)
    assert model.n_iter_ > 5
    assert model.certificate_.primal < loss
    assert model.probability_scale_ == scale


def test_a_model_file_does_not_carry_the_run(tmp_path):
    model = small(MultiBoostECC, warm_start=True).fit(*IRIS)
    tcboost.save(model, tmp_path / "model.json")
    again = tcboost.load(tmp_path / "model.json")
    assert again.warm_start
    assert not hasattr(again, "_run")
    assert_same_fit(again.set_params(random_state=0).fit(*IRIS), model, IRIS[0])


# ---------------------------------------------------------------- early stopping


def noisy(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 5)) + 0.7 * rng.normal(size=(3, 5))[y], y


@pytest.mark.parametrize("cls", PAPER)
def test_early_stopping_keeps_the_best_round(cls):
    X, y = noisy()
    theta = {} if cls in STAGE_WISE else {"theta": 60.0}
    model = small(cls, max_iter=200, early_stopping=True, n_iter_no_change=5, **theta).fit(X, y)
    validation = model.history_["validation_loss"]
    t = int(validation.argmin()) + 1
    assert model.n_iter_ == len(model.estimators_) == t < 200
    assert len(validation) == len(model.history_["loss"]) == t + 5
    assert len(list(model.staged_predict(X))) == t
    assert_array_equal(list(model.staged_decision_function(X))[-1], model.decision_function(X))
    assert model.certificate_.primal == model.history_["loss"][t - 1]
    # The same rows without those held out: the stage is the true one, the bound holds.
    rows = LocalRows(X, y, np.ones(len(y)), "auto", 1)
    train, held = rows.hold_out(0.1)
    alone = small(cls, max_iter=200, tol=1e-4, **theta) if theta else small(cls, max_iter=t)
    alone.fit(train.X, train.y, train.weight)
    if not theta:
        assert_array_equal(alone.decision_function(X), model.decision_function(X))
        assert model.theta_ == alone.theta_
    assert model.certificate_.dual <= alone.certificate_.primal + 1e-9
    # The loss of the rows held out, from their margins alone.
    z = model.margins(held.X, held.y) * model.estimator_weights_.sum()
    loss = np.log(np.exp(-z).mean(axis=1) @ held.weight)
    assert loss == pytest.approx(validation.min(), rel=1e-9)


def test_rows_are_held_out_by_content():
    X, y = noisy(100)
    rows = LocalRows(X, y, np.ones(100), "auto", 1)
    train, held = rows.hold_out(0.2)
    again = LocalRows(np.tile(X[::-1], (2, 1)), np.tile(y[::-1], 2), np.ones(200), "auto", 1)
    assert_array_equal(again.hold_out(0.2)[1].X, held.X)
    assert np.bincount(held.y).tolist() == [6, 6, 6]
    assert len(train) + len(held) == 100
    with pytest.raises(ValueError, match=r"validation_fraction=0.01 is less than one row"):
        small(AdaBoostMO, early_stopping=True, validation_fraction=0.01).fit(X, y)


@pytest.mark.parametrize("cls", PAPER)
def test_early_stopping_goes_on_warm(cls, tmp_path):
    X, y = noisy()
    model = small(cls, max_iter=3, early_stopping=True, n_iter_no_change=2, warm_start=True)
    model.fit(X, y).set_params(max_iter=60).fit(X, y)
    alone = clone(model).set_params(warm_start=False).fit(X, y)
    assert_same_fit(model, alone, X)
    assert_same_fit(model.set_params(max_iter=70).fit(X, y), alone, X)
    tcboost.save(alone, tmp_path / "model.json")
    again = tcboost.load(tmp_path / "model.json")
    assert_array_equal(again.decision_function(X), alone.decision_function(X))
    assert_array_equal(again.history_["validation_loss"], alone.history_["validation_loss"])


# ---------------------------------------------------------------- callbacks


class Watcher:
    """Scores the model after each round, and stops after `last` of them."""

    def __init__(self, last=None):
        self.last, self.scores, self.ended, self.open = last, [], [], 0

    def setup(self, estimator, context):
        self.open += 1

    def teardown(self, estimator, context):
        self.open -= 1

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.ended.append(context.task_name)
        if context.task_name == "round":
            self.scores.append(fitted_estimator.decision_function(X))
            return len(self.scores) == self.last
        assert_array_equal(fitted_estimator.predict(X), estimator.predict(X))
        return False


@pytest.mark.parametrize("cls", PAPER)
def test_callbacks_see_every_round(cls):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    watcher = Watcher()
    model = small(cls, max_iter=6).set_callbacks(watcher).fit(*WINE)
    assert watcher.ended == ["round"] * 6 + ["fit"]
    assert watcher.open == 0
    stages = list(model.staged_decision_function(WINE[0]))
    assert_array_equal(watcher.scores[:-1], stages[:-1])
    stopped = small(cls, max_iter=6).set_callbacks(Watcher(last=4)).fit(*WINE)
    alone = small(cls, max_iter=4).fit(*WINE)
    assert_array_equal(stopped.decision_function(WINE[0]), alone.decision_function(WINE[0]))
    with pytest.raises(ValueError, match="one class"):
        model.fit(WINE[0], np.zeros(178))
    assert watcher.open == 0


@pytest.mark.parametrize("cls", PAPER)
def test_the_progress_bar(cls, capsys):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")
    small(cls).set_callbacks(callback.ProgressBar()).fit(*WINE)
    out = capsys.readouterr().out
    assert f"{cls.__name__} - fit" in out
    assert "100%" in out
    pipeline = make_pipeline(StandardScaler(), small(cls))
    pipeline.set_callbacks(callback.ProgressBar()).fit(*WINE)
    assert cls.__name__ in capsys.readouterr().out
