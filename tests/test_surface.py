"""TCBoostClassifier as a user of scikit-learn meets it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from tcboost import TCBoostClassifier

IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)
STATUS = {"optimal", "max_rules", "max_iter", "stalled", "stopped early"}


def given(alpha=2.0, l1_ratio=0.5, **parameters):
    """A quick one: nothing is to be chosen."""
    return TCBoostClassifier(alpha, l1_ratio, **parameters)


def assert_same_model(one, other):
    assert repr(one.rules_) == repr(other.rules_)
    assert_array_equal(one.intercept_, other.intercept_)
    assert_array_equal(one.coef_, other.coef_)
    assert one.certificate_.objective == other.certificate_.objective
    assert one.certificate_.gap == other.certificate_.gap


def table(seed=0, n=240):
    """Numbers with gaps, levels, and classes that both tell something of."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 7, n)
    X = np.column_stack([level, rng.normal(size=(n, 3)), rng.integers(0, 4, n)])
    y = (rng.random(n) < 0.2 + 0.6 * np.isin(level, [1, 4])).astype(int) + (X[:, 1] > 0.7)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


# ---------------------------------------------------------------- scikit-learn's own checks


@pytest.mark.parametrize(
    "model",
    [TCBoostClassifier(), given(), TCBoostClassifier(0.5), given(class_weight="balanced")],
)
def test_checks_of_scikit_learn(model):
    failed = [
        found
        for found in check_estimator(model, on_fail=None, on_skip=None)
        if found["status"] not in ("passed", "skipped")
    ]
    assert not failed


def test_checks_of_scikit_learn_with_levels():
    """Tables of the checks have one column at least, and few of them small whole numbers."""
    failed = [
        found
        for found in check_estimator(
            given(0.05, categorical_features=[0]), on_fail=None, on_skip=None
        )
        if found["status"] not in ("passed", "skipped")
    ]
    assert not failed


def test_grid_search_and_cross_validation():
    grid = {"alpha": [0.3, 3.0, 300.0], "l1_ratio": [0.5, 0.01]}
    search = GridSearchCV(TCBoostClassifier(), grid, scoring="neg_log_loss", cv=3).fit(*WINE)
    assert search.best_params_["alpha"] < 300.0
    assert search.best_estimator_.alpha_ == search.best_params_["alpha"]
    assert search.best_estimator_.l1_ratio_ == search.best_params_["l1_ratio"]
    assert cross_val_score(given(0.5), *WINE).mean() > 0.93
    assert cross_val_score(TCBoostClassifier(cv=3), *IRIS, cv=3).mean() > 0.9


def test_clone_and_pickle():
    X, y = table()
    model = given(categorical_features=[0, 4], tol=1e-4).fit(X, y)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "rules_")
    again = pickle.loads(pickle.dumps(model))
    assert_same_model(again, model)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert str(again.certificate_) == str(model.certificate_)


@pytest.mark.parametrize(
    "name",
    [
        "loss",
        "theta",
        "coding",
        "ridge",
        "max_iter",
        "weak_learner",
        "random_state",
        "early_stopping",
        "validation_fraction",
        "n_iter_no_change",
    ],
)
def test_names_that_are_not_there(name):
    with pytest.raises(TypeError, match=name):
        TCBoostClassifier(**{name: 1})


@pytest.mark.parametrize(
    "parameters",
    [
        {"alpha": 0.0},
        {"alpha": -1.0},
        {"alpha": np.nan},
        {"alpha": np.inf},
        {"alpha": "cv"},
        {"l1_ratio": 0.0},
        {"l1_ratio": 1.5},
        {"max_rules": 0},
        {"max_rules": 2.5},
        {"max_bins": 1},
        {"max_bins": 70_000},
        {"tol": 0.0},
        {"class_weight": "even"},
        {"n_jobs": 0},
        {"cv": 1},
        {"cv": "five"},
        {"categorical_features": "all"},
    ],
)
def test_refused_parameters(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=name):
        TCBoostClassifier(**parameters).fit(*IRIS)


def test_not_fitted():
    for ask in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(TCBoostClassifier(), ask)(IRIS[0])
    with pytest.raises(NotFittedError):
        TCBoostClassifier().feature_importances_  # noqa: B018


# ---------------------------------------------------------------- the same bits


@pytest.mark.parametrize("parameters", [{}, {"alpha": 1.0}, {"l1_ratio": 0.5, "alpha": 1.0}])
def test_the_order_of_rows_and_threads_change_nothing(parameters):
    X, y = table()
    weight = np.random.default_rng(1).integers(1, 5, len(y)) / 3.0
    order = np.random.default_rng(2).permutation(len(y))
    levels = {"categorical_features": [0]}
    first = TCBoostClassifier(n_jobs=1, **levels, **parameters).fit(X, y, weight)
    for n_jobs in (1, 2, 7):
        model = TCBoostClassifier(n_jobs=n_jobs, **levels, **parameters)
        assert_same_model(model.fit(X[order], y[order], weight[order]), first)
        assert model.alpha_ == first.alpha_


def test_a_weight_is_a_number_of_rows():
    X, y = table()
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    by_weight, by_rows = (given(categorical_features=[0]) for _ in range(2))
    assert_same_model(by_weight.fit(X, y, weight), by_rows.fit(X[rows], y[rows]))
    # With splits given, the same alpha is chosen too.
    part = np.arange(len(y)) % 3
    splits = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(3)]
    of_rows = [tuple(np.flatnonzero(np.isin(rows, p)) for p in pair) for pair in splits]
    by_weight = TCBoostClassifier(cv=splits).fit(X, y, weight)
    by_rows = TCBoostClassifier(cv=of_rows).fit(X[rows], y[rows])
    assert by_weight.alpha_ == by_rows.alpha_
    assert_same_model(by_weight, by_rows)


def test_alpha_counts_rows():
    """All weights and alpha times a power of two is the same problem."""
    X, y = table()
    heavy = given(2.0 * 1024).fit(X, y, np.full(len(y), 1024.0))
    assert_same_model(heavy, given(2.0).fit(X, y))
    chosen, thousand = TCBoostClassifier(), TCBoostClassifier()
    chosen.fit(*WINE)
    thousand.fit(*WINE, np.full(178, 1000.0))
    assert thousand.alpha_ == pytest.approx(1000 * chosen.alpha_, rel=0.05)
    assert_allclose(
        thousand.predict_proba(WINE[0]), chosen.predict_proba(WINE[0]), rtol=0, atol=0.02
    )


def test_the_order_of_columns_permutes():
    X, y = table()
    order = [3, 0, 4, 2, 1]
    model = given(tol=1e-6, categorical_features=[0]).fit(X, y)
    turned = given(tol=1e-6, categorical_features=[1]).fit(X[:, order], y)
    assert_allclose(
        turned.predict_proba(X[:, order]), model.predict_proba(X), rtol=0, atol=2e-3
    )
    assert_allclose(
        turned.feature_importances_, model.feature_importances_[order], rtol=0, atol=2e-2
    )


# ---------------------------------------------------------------- what is proved


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.5, 2: 1.0}])
def test_the_certificate_is_about_the_users_loss(class_weight):
    X, y = WINE
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    model = given(3.0, class_weight=class_weight).fit(X, y, weight)
    factor = {None: 1.0, "balanced": 1.0 / np.bincount(y, weight)[y]}
    total = weight * (
        factor[class_weight]
        if not isinstance(class_weight, dict)
        else np.array([class_weight[c] for c in y])
    )
    proof = model.certificate_
    loss = log_loss(y, model.predict_proba(X), sample_weight=total)
    assert proof.train_log_loss == pytest.approx(loss, rel=1e-9)
    v, n = model.coef_, weight.sum() if class_weight == "balanced" else total.sum()
    size = np.linalg.norm(v, axis=1)
    penalty = 3.0 / n * (0.5 * size.sum() + 0.25 * (v * v).sum())
    assert proof.objective == pytest.approx(loss + penalty, rel=1e-3)
    assert proof.gap == proof.objective - proof.lower_bound
    assert 0.0 <= proof.gap <= 1e-3
    assert proof.status == "optimal"
    assert model.theta_ == pytest.approx(size.sum())
    assert model.n_rules_ == len(model.rules_) == len(v) == proof.n_rules


def test_what_history_and_importances_tell():
    model = given(0.1, tol=1e-5).fit(*WINE)
    history = model.history_
    assert set(history) == {"objective", "gap", "train_error", "n_rules", "min_margin"}
    assert {len(column) for column in history.values()} == {model.n_iter_}
    assert history["objective"][-1] == pytest.approx(model.certificate_.objective, rel=1e-9)
    assert history["gap"][-1] == pytest.approx(model.certificate_.gap, rel=1e-6)
    assert history["train_error"][-1] == pytest.approx(1 - model.score(*WINE))
    assert history["n_rules"][-1] == model.n_rules_
    assert history["min_margin"][-1] == pytest.approx(model.margins(*WINE).min(), abs=1e-9)
    size, feature = np.linalg.norm(model.coef_, axis=1), [r.feature for r in model.rules_]
    expected = np.bincount(feature, size, 13) / size.sum()
    assert_allclose(model.feature_importances_, expected)


def test_the_certificate_in_words():
    X, y = IRIS
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=["sl", "sw", "pl", "pw"]).assign(noise=rng.normal(size=150))
    model = TCBoostClassifier(20.0, 0.9, tol=1e-6).fit(frame, y)
    assert "noise" in model.certificate_.features_not_needed
    assert "pw" not in model.certificate_.features_not_needed
    first, second, third = str(model.certificate_).splitlines()
    assert first.startswith("Log loss ")
    assert first.endswith(f" on the training rows. {model.n_rules_} of at most 450 rules.")
    assert second.startswith("At this alpha and l1_ratio no other model of rules (cuts between")
    assert f"by more than {model.certificate_.gap:.2g}." in second
    assert third.startswith("Provably not needed: ")
    assert "noise" in third
    assert given(20.0, 0.9, tol=1e-6).fit(X, y).certificate_.features_not_needed == (0, 1)
    searched = TCBoostClassifier().fit(X, y)
    loss = searched.certificate_.cv_log_loss
    assert f", about {loss:.3g} on new ones (5 folds). " in str(searched.certificate_)


def test_features_not_needed_are_not_used_at_the_optimum():
    X, y = load_breast_cancer(return_X_y=True)
    rough, fine = (given(60.0, 0.8, tol=tol).fit(X, y) for tol in (1e-3, 1e-9))
    assert len(rough.certificate_.features_not_needed) > 0
    assert set(rough.certificate_.features_not_needed) <= set(
        fine.certificate_.features_not_needed
    )
    used = {rule.feature for rule in fine.rules_}
    assert used.isdisjoint(rough.certificate_.features_not_needed)


def test_a_wide_gap_is_a_warning_except_for_used_up_rules():
    model = given(0.01, max_rules=3).fit(*WINE)  # warnings are errors here
    proof = model.certificate_
    assert proof.status == "max_rules"
    assert proof.gap > 0.01 * proof.objective
    assert model.n_rules_ == 3
    with pytest.warns(ConvergenceWarning, match="alpha") as caught:
        hard = given(1e-12, tol=1e-14).fit(*WINE)
    assert caught[0].filename == __file__
    assert hard.certificate_.gap > 0.01 * hard.certificate_.objective
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert given(1.0, tol=0.5).fit(*IRIS).certificate_.status == "optimal"


def test_verbose_tells_what_is_tried(capsys):
    loud = TCBoostClassifier(verbose=1).fit(*IRIS)
    *lines, last = capsys.readouterr().out.splitlines()
    assert last.startswith("final fit: ")
    assert len(lines) == len(loud.cv_results_["alpha"])
    assert all("alpha" in line and "l1_ratio" in line for line in lines)
    assert_same_model(loud, TCBoostClassifier().fit(*IRIS))
    assert capsys.readouterr().out == ""
