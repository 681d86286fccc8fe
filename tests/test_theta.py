"""The budget by cross validation, and the scale of the probabilities."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeClassifier

from tcboost import MultiBoostECC, MultiBoostHinge, MultiBoostMO
from tcboost.boosting import Run
from tcboost.rows.blocks import LocalRows
from tcboost.theta import best_scale, content_folds


def rows_of(X, y):
    return LocalRows(X, y, np.ones(len(y)), "auto", 1)


def test_folds_depend_on_content_only():
    X, y = load_iris(return_X_y=True)
    rows = rows_of(X, y)
    fold = content_folds(rows, 5)
    order = np.random.default_rng(0).permutation(150)
    again = rows_of(np.tile(X[order], (2, 1)), np.tile(y[order], 2))
    assert_array_equal(content_folds(again, 5), fold)
    for c in range(3):  # stratified
        counts = np.bincount(fold[rows.y == c], minlength=5)
        assert counts.max() - counts.min() <= 1
    part = rows.subset(fold != 0)
    assert len(part) == np.count_nonzero(fold != 0)
    assert part.weight.sum() == pytest.approx(1.0)


def test_few_rows_leave_folds_without_any():
    X, y = np.array([[0.0], [1.0]] * 6), np.arange(12) % 2
    stump = DecisionTreeClassifier(max_depth=1)
    model = MultiBoostMO(theta="cv", max_iter=3, weak_learner=stump).fit(X, y)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("factor", [0.1, 1.0, 7.0])
def test_the_best_scale_undoes_a_wrong_one(factor):
    rng = np.random.default_rng(0)
    F = rng.normal(size=(4000, 3)) * 2
    y = np.array([rng.choice(3, p=p) for p in softmax(F, axis=1)])
    scale, loss = best_scale(F * factor, y, np.full(4000, 1 / 4000))
    assert scale * factor == pytest.approx(1.0, rel=0.1)
    assert loss == pytest.approx(log_loss(y, softmax(scale * factor * F, axis=1)), abs=3e-3)


@pytest.mark.parametrize("factor", [1e-3, 0.3, 1.0, 40.0, -1.0])
def test_the_best_scale_is_that_of_a_search(factor):
    rng = np.random.default_rng(2)
    y, weight = rng.integers(4, size=90), rng.uniform(0.5, 2.0, 90)
    F = factor * (rng.normal(size=(90, 4)) + 2.0 * np.eye(4)[y])
    weight /= weight.sum()
    smooth = 1.0 / (1.0 / (weight @ weight) + 1.0)
    target = (1.0 - smooth) * np.eye(4)[y] + smooth / 4.0

    def value(log_a):
        return -weight @ (target * log_softmax(np.exp(log_a) * F, axis=1)).sum(axis=1)

    found = minimize_scalar(value, bounds=(-6, 3), method="bounded", options={"xatol": 1e-9})
    scale, loss = best_scale(F, y, weight)
    assert loss <= found.fun + 1e-12
    assert loss == pytest.approx(value(np.log(scale)), rel=1e-12)
    assert np.log(scale) == pytest.approx(found.x, abs=1e-5)


def test_a_perfect_separation_does_not_make_it_sure():
    y, weight = np.arange(30) % 3, np.full(30, 1 / 30)
    scale, _ = best_scale(5.0 * np.eye(3)[y], y, weight)
    # The smoothed labels: one row more that is of all classes alike.
    assert softmax(scale * np.array([5.0, 0, 0]))[1] == pytest.approx(1 / 93, rel=1e-2)


def test_a_class_with_fewer_rows_than_folds():
    X, y = load_iris(return_X_y=True)
    few = np.r_[0:40, 50:90, 100:102]
    model = MultiBoostMO(theta="cv", max_iter=20).fit(X[few], y[few])
    assert set(model.classes_) == {0, 1, 2}
    assert model.score(X[few], y[few]) > 0.9


def test_the_papers_cross_validation():
    """Sec. IV: 16 budgets, five folds, the same codes for every candidate, lowest error."""
    X, y = load_iris(return_X_y=True)
    model = MultiBoostECC(theta="cv", max_iter=6, random_state=0).fit(X, y)
    choice = model.theta_choice_
    assert_array_equal(choice.thetas[[0, 1, -1]], [2, 5, 200])
    assert len(choice.thetas) == 16
    assert choice.best == choice.validation_error.argmin()
    assert model.theta_ == choice.theta
    # The first is what a fit of its own gives on the rows outside the fold.
    rows = rows_of(X, y)
    fold, wrong = content_folds(rows, 5), np.zeros(len(rows), bool)
    for k in range(5):
        part = rows.subset(fold != k)
        alone = MultiBoostECC(theta=2.0, max_iter=6, random_state=0)
        alone.fit(part.X, part.y, part.weight)
        wrong[fold == k] = alone.predict(rows.X[fold == k]) != rows.y[fold == k]
    assert choice.validation_error[0] == pytest.approx(rows.weight @ wrong)


@pytest.mark.parametrize(
    ("model", "in_threads"),
    [
        (MultiBoostMO(theta="cv", max_iter=20), True),
        (MultiBoostECC(theta="cv", max_iter=20, random_state=0), True),
        (MultiBoostECC(theta="cv", max_iter=10, loss="logistic", random_state=0), True),
        (MultiBoostECC(theta="cv", max_iter=10, weak_learner="product", random_state=0), True),
        (MultiBoostECC(theta="cv", max_iter=4, weak_learner="lda", random_state=0), False),
        (MultiBoostHinge(theta="cv", max_iter=4), False),
    ],
    ids=lambda value: str(value).replace(" ", "") if isinstance(value, BaseEstimator) else "",
)
def test_folds_in_threads_choose_the_same(model, in_threads, monkeypatch):
    X, y = load_wine(return_X_y=True)
    callers, boost = set(), Run.boost

    def seen(run, *args, **kwargs):
        callers.add(threading.get_ident())
        return boost(run, *args, **kwargs)

    monkeypatch.setattr(Run, "boost", seen)
    expected = clone(model).set_params(n_jobs=1).fit(X, y)
    assert callers == {threading.get_ident()}
    for n_jobs in (2, 7):
        found = clone(model).set_params(n_jobs=n_jobs).fit(X, y)
        for a, b in zip(found.theta_choice_, expected.theta_choice_, strict=True):
            assert_array_equal(a, b)
        assert_array_equal(found.decision_function(X), expected.decision_function(X))
    assert (len(callers) > 1) == in_threads


def test_an_error_in_a_fold_is_told(monkeypatch):
    X, y = load_wine(return_X_y=True)
    boost = Run.boost

    def fails(run, *args, **kwargs):
        if len(run.task.rows) < len(y) - 35:
            raise FloatingPointError("in a fold")
        return boost(run, *args, **kwargs)

    monkeypatch.setattr(Run, "boost", fails)
    with pytest.raises(FloatingPointError, match="in a fold"):
        MultiBoostMO(theta="cv", max_iter=20, n_jobs=2).fit(X, y)
