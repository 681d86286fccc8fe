"""Files of models of rules: what comes back is what was saved, all of it."""

import pickle
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import tcboost
from tcboost import TCBoostClassifier


def rows(n=120):
    """Two numbers, one of which may be missing, and a category of which some are."""
    draw = np.random.default_rng(0)
    X = np.round(draw.normal(size=(n, 3)), 2)
    X[:, 2] = draw.integers(0, 4, n)
    y = (X[:, 0] > 0) + (X[:, 2] == 1).astype(int)
    X[::7, 2], y[::7] = np.nan, 2
    X[3::7, 1], y[3::7] = np.nan, 0
    return X, y


def new_rows():
    X = np.round(np.random.default_rng(1).normal(1, 2, size=(200, 3)))
    X[::3, 1], X[::4, 2] = np.nan, np.nan
    return X


def through_file(model, tmp_path):
    tcboost.save(model, tmp_path / "model.json")
    return tcboost.load(tmp_path / "model.json")


def assert_same_tables(one, other):
    assert list(one) == list(other)
    for name in one:
        assert one[name].dtype == other[name].dtype
        np.testing.assert_array_equal(one[name], other[name])


def assert_same_model(model, again, X):
    """Everything that is public, bit for bit."""
    assert type(again) is type(model)
    assert vars(again).keys() == vars(model).keys()
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert again.predict(X).dtype == model.predict(X).dtype
    assert again.predict(X).tolist() == model.predict(X).tolist()
    for name in ("coef_", "intercept_", "classes_", "feature_importances_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name), strict=True)
    for name in ("alpha_", "l1_ratio_", "theta_", "n_iter_", "n_rules_", "n_features_in_"):
        assert getattr(again, name) == getattr(model, name)
    # NaN, which is not equal to itself, may be a level, or a loss that is not known.
    assert repr(again.rules_) == repr(model.rules_)
    np.testing.assert_equal(asdict(again.certificate_), asdict(model.certificate_))
    assert str(again.certificate_) == str(model.certificate_)
    assert_same_tables(again.history_, model.history_)
    assert_same_tables(again.cv_results_, model.cv_results_)


WAYS = {
    "numbers": {},
    "levels": {"categorical_features": [2]},
    "no rules": {"alpha": 1e6, "l1_ratio": 1.0},
    "chosen": {"alpha": "auto", "l1_ratio": "auto", "categorical_features": [2]},
    "chosen alpha": {"alpha": "auto"},
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_round_trip(way, n_classes, tmp_path):
    X, y = rows()
    y = np.minimum(y, n_classes - 1)
    model = TCBoostClassifier(**{"alpha": 0.5, "l1_ratio": 0.5} | way).fit(X, y)
    again = through_file(model, tmp_path)
    assert_same_model(model, again, new_rows())
    assert again.get_params() == model.get_params()
    assert_same_model(model, through_file(again, tmp_path), new_rows())
    for copied in (pickle.loads(pickle.dumps(again)), clone(again).fit(X, y)):
        assert_same_model(model, copied, new_rows())


def test_all_kinds_of_rules_are_among_them(tmp_path):
    model = TCBoostClassifier(0.1, 0.5, categorical_features=[2]).fit(*rows())
    rules = through_file(model, tmp_path).rules_
    assert any(rule.threshold == np.inf for rule in rules)
    assert {rule.level is None for rule in rules} == {rule.threshold is None for rule in rules}
    assert any(rule.level != rule.level for rule in rules)
    assert all(type(rule.feature) is int for rule in rules)
    assert {type(rule.missing_right) for rule in rules} == {bool}


def test_names_and_classes(tmp_path):
    X, y = load_iris(return_X_y=True)
    table = pd.DataFrame(X, columns=["a", "\u03b1", "x y", ""])
    table["noise"] = np.arange(len(y)) % 2  # the other one in each next row
    for classes in (
        np.array(["setosa", "Veil\u00adchen", "\u96ea"]),
        np.array(["setosa", "versicolor", "virginica"], dtype=object),
        np.array([-1.0, 0.0, 2.0]),
    ):
        model = TCBoostClassifier(alpha=10.0, l1_ratio=0.5).fit(table, classes[y])
        again = through_file(model, tmp_path)
        assert_same_model(model, again, table)
        assert "noise" in again.certificate_.features_not_needed
        assert again.feature_names_in_.tolist() == list(table)
        with pytest.raises(ValueError, match="feature names"):
            again.predict(table[list(table)[::-1]])


OTHER = {  # than the defaults, and what comes back
    "alpha": [0.25, 2, np.float32(0.5)],
    "l1_ratio": [0.25, 1],
    "max_rules": [7, np.int64(7)],
    "max_bins": [9, np.int16(9)],
    "categorical_features": [[2], (2,), np.array([2]), [False, False, True], []],
    "cv": [3, np.int32(3), None],
    "class_weight": ["balanced", {0: 1.0, 1: 2.5, 2: 1}, {np.int64(1): np.float64(2.0)}],
    "tol": [2e-3],
    "max_seconds": [600.0],
    "warm_start": [True],
    "n_jobs": [1, np.int8(2)],
    "verbose": [1],
}


def test_no_parameter_is_left_out(tmp_path):
    assert OTHER.keys() == TCBoostClassifier().get_params().keys()
    X, y = rows()
    for name, values in OTHER.items():
        for value in values:
            model = TCBoostClassifier(**{"alpha": 1.0, "l1_ratio": 0.5} | {name: value})
            again = through_file(model.fit(X, y), tmp_path)
            expected = list(value) if name == "categorical_features" else value
            assert again.get_params() == model.get_params() | {name: expected}
            assert_same_model(model, again, new_rows())


@pytest.mark.parametrize("mask", [np.array([False, False, True]), np.array([2])])
def test_columns_and_splitters(mask, tmp_path):
    X, y = rows()
    model = TCBoostClassifier(cv=KFold(3), categorical_features=mask).fit(X, y)
    again = through_file(model, tmp_path)
    assert_same_model(model, again, new_rows())
    assert again.cv == 5  # a splitter has no plain form
    first = (tmp_path / "model.json").read_bytes()
    through_file(again, tmp_path)
    assert (tmp_path / "model.json").read_bytes() == first
    assert again.categorical_features == mask.tolist()
    # What was chosen makes the same model without a splitter.
    again.set_params(alpha=again.alpha_, l1_ratio=again.l1_ratio_).fit(X, y)
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()


def test_a_loaded_model_is_gone_on_from(tmp_path):
    X, y = rows()
    model = TCBoostClassifier(0.5, 0.5, max_rules=4, categorical_features=[2], warm_start=True)
    again = through_file(model.fit(X, y), tmp_path)
    for one in (model, again):
        one.set_params(max_rules=30, alpha=0.2).fit(X, y)
    assert_same_model(model, again, new_rows())
    again.set_params(max_rules=3)
    with pytest.raises(ValueError, match="warm_start"):
        again.fit(X, y)


def test_what_cannot_be_saved(tmp_path):
    path = tmp_path / "model.json"
    with pytest.raises(NotFittedError):
        tcboost.save(TCBoostClassifier(), path)
    model = TCBoostClassifier(1.0, 0.5).fit(*rows())
    with pytest.raises(ValueError, match="alpha"):  # which could not be loaded
        tcboost.save(clone(model).fit(*rows()).set_params(alpha=-1.0), path)
    model.classes_ = np.array([None, (1,), 2], dtype=object)
    with pytest.raises(ValueError, match="classes"):
        tcboost.save(model, path)
    assert not path.exists()
