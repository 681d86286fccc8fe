"""What scikit-learn's users expect of any estimator."""

import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, rel_entr
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import _get_feature_names

import tcboost
from tcboost import (
    AdaBoostECC,
    AdaBoostMO,
    MultiBoostECC,
    MultiBoostMO,
    TCBoostClassifier,
)
from tcboost.ensemble import Ensemble

STAGE_WISE = [AdaBoostMO, AdaBoostECC]
PAPER = [*STAGE_WISE, MultiBoostMO, MultiBoostECC]
ALL = [*PAPER, TCBoostClassifier]
IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)


def small(cls, **parameters):
    """A quick estimator of the class, its budget or its penalty given."""
    if cls is TCBoostClassifier:
        return cls(**{"alpha": 2.0, "l1_ratio": 0.5, "max_rules": 12, **parameters})
    if cls not in STAGE_WISE:
        parameters = {"theta": 5.0, "tol": 1e-6, **parameters}
    return cls(**{"max_iter": 12, "random_state": 0, **parameters})


# ---------------------------------------------------------------- stages and margins


@pytest.mark.parametrize("cls", PAPER)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_stages_are_the_models_after_each_round(cls, n_classes):
    X, y = (a[WINE[1] < n_classes] for a in WINE)
    model = small(cls).fit(X, y)
    scores = list(model.staged_decision_function(X))
    assert len(scores) == model.n_iter_ == 12
    assert_array_equal(scores[-1], model.decision_function(X))
    assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    probabilities = list(model.staged_predict_proba(X))
    assert_array_equal(probabilities[-1], model.predict_proba(X))
    for p, best in zip(probabilities, model.staged_predict(X), strict=True):
        assert_allclose(p.sum(axis=1), 1.0)
        assert_array_equal(model.classes_[p.argmax(axis=1)], best)
    alone = small(cls, max_iter=5).fit(X, y)
    assert_array_equal(scores[4], alone.decision_function(X))
    assert_array_equal(probabilities[4], alone.predict_proba(X))
    if cls not in STAGE_WISE:  # no prefix of the final model
        prefix = Ensemble(
            model.estimators_[:5], model.estimator_weights_[:5], model._ensemble().margin
        ).scores(X)
        assert np.abs(model._signed(prefix) - scores[4]).max() > 1e-3


@pytest.mark.parametrize("cls", PAPER)
def test_stages_of_a_model_from_a_file(cls, tmp_path):
    model = small(cls).fit(*IRIS)
    tcboost.save(model, tmp_path / "model.json")
    again = tcboost.load(tmp_path / "model.json")
    for name in ("staged_predict", "staged_predict_proba"):
        stages = getattr(again, name)(IRIS[0])
        if cls in STAGE_WISE:
            assert_array_equal(list(stages), list(getattr(model, name)(IRIS[0])))
        else:
            with pytest.raises(ValueError, match="not the stages"):
                next(stages)


@pytest.mark.parametrize("learner", ["stump", "product", DecisionTreeClassifier(max_depth=1)])
@pytest.mark.parametrize("cls", PAPER)
def test_margins_are_those_of_the_paper(cls, learner):
    X, y = WINE
    names = np.array(["b", "a", "c"])[y]
    model = small(cls, weak_learner=learner).fit(X, names)
    z = model.margins(X, names)
    F = sum(
        w * c.outputs(X)
        for w, c in zip(model.estimator_weights_, model.estimators_, strict=True)
    )
    F /= model.estimator_weights_.sum()
    label = np.searchsorted(model.classes_, names)
    if model._pairwise:
        expected = [np.delete(f[c] - f, c) for f, c in zip(F, label, strict=True)]
    else:
        expected = model.coding_matrix_[label] * F
    assert_allclose(z, expected, atol=1e-12)
    assert z.min() == pytest.approx(model.history_["min_margin"][-1])
    wrong = model.predict(X) != names
    if model._pairwise:
        assert (z[wrong].min(axis=1) <= 1e-9).all()
        assert (z[~wrong].min(axis=1) >= -1e-9).all()


def test_margins_of_class_vectors_and_of_bad_labels():
    model = small(TCBoostClassifier).fit(*IRIS)
    z = model.margins(*IRIS)
    assert z.shape == (150, 2)
    assert z.min() == pytest.approx(model.history_["min_margin"][-1])
    with pytest.raises(ValueError, match=r"not seen in fit: \[7\]"):
        model.margins(IRIS[0][:2], [0, 7])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.margins(IRIS[0], IRIS[1][:-1])


@pytest.mark.parametrize("cls", ALL)
def test_pickling_keeps_every_bit(cls):
    model = small(cls).fit(*IRIS)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(IRIS[0]), model.decision_function(IRIS[0]))
    if cls is not TCBoostClassifier:
        stages = (list(each.staged_predict(IRIS[0])) for each in (again, model))
        assert_array_equal(*stages)


# ---------------------------------------------------------------- probabilities


def outputs_of(model, X):
    return model._ensemble().outputs(X)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_pairwise_probabilities_are_the_population_minimiser(n_classes):
    """Of ``sum_y p_y sum_{c != y} exp(F_c - F_y)``, found numerically for the given p."""
    rng = np.random.default_rng(n_classes)
    y = np.arange(40 * n_classes) % n_classes
    X = rng.normal(size=(len(y), 3)) + rng.normal(size=(n_classes, 3))[y]
    model = small(AdaBoostECC).fit(X, y)
    F, p = outputs_of(model, X[:5]), model.predict_proba(X[:5])

    def risk(f, p):
        return sum(
            p[a] * np.exp(f[b] - f[a])
            for a in range(n_classes)
            for b in range(n_classes)
            if a != b
        )

    for f, q in zip(F, p, strict=True):
        found = minimize(risk, np.zeros(n_classes), args=(q,), tol=1e-12).x
        assert_allclose(found - found.mean(), f - f.mean(), atol=1e-4)


@pytest.mark.parametrize("coding", ["ovr", "ecoc"])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_codeword_probabilities_are_the_nearest_to_the_bits(coding, n_classes):
    """The odds of two classes against a numerical minimum of the sum of KL(p, bit)."""
    rng = np.random.default_rng(n_classes)
    y = np.arange(40 * n_classes) % n_classes
    X = rng.normal(size=(len(y), 3)) + rng.normal(size=(n_classes, 3))[y]
    model = small(AdaBoostMO, coding=coding, max_iter=6).fit(X, y)
    M, F, p = model.coding_matrix_, outputs_of(model, X[:4]), model.predict_proba(X[:4])
    for i, f in enumerate(F):
        # The bit by itself: the minimum of q exp(-f) + (1 - q) exp(f) is at f.
        bit = expit(2 * f)
        found = minimize_scalar(lambda t, q=bit[0]: q * np.exp(-t) + (1 - q) * np.exp(t)).x
        assert found == pytest.approx(f[0], abs=1e-5)
        for a, b in combinations(range(n_classes), 2):
            q = np.where(M[a] > 0, bit, 1 - bit)[M[a] != M[b]]

            def distance(t, q=q):
                return (rel_entr(t, q) + rel_entr(1 - t, 1 - q)).sum()

            options = {"xatol": 1e-9}
            found = minimize_scalar(
                distance, bounds=(0, 1), method="bounded", options=options
            ).x
            assert p[i, a] / (p[i, a] + p[i, b]) == pytest.approx(found, abs=1e-5)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_most_probable_class_is_the_prediction(cls, n_classes):
    X, y = (a[IRIS[1] < n_classes] for a in IRIS)
    rounds = {"max_rules": 3} if cls is TCBoostClassifier else {"max_iter": 3}
    model = small(cls, **rounds).fit(X, y)
    grid = np.random.default_rng(0).uniform(0, 8, (500, 4))
    p, log_p = model.predict_proba(grid), model.predict_log_proba(grid)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_allclose(np.exp(log_p), p, atol=1e-12)
    for q in (p, log_p):
        assert_array_equal(model.classes_[q.argmax(axis=1)], model.predict(grid))


@pytest.mark.parametrize("scores", [[0.0, 1e-320], [0.3, 0.3 + 1e-16], [5e2, 0.0], [0.2, 0.2]])
def test_rounding_does_not_change_the_most_probable_class(scores, monkeypatch):
    model = small(MultiBoostECC).fit(*IRIS)
    F = np.array([[*scores, -1.0], [-1.0, *scores[::-1]], [-1e4, *scores]])
    monkeypatch.setattr(MultiBoostECC, "decision_function", lambda self, X: F)
    monkeypatch.setattr(MultiBoostECC, "staged_decision_function", lambda self, X: iter([F]))
    (staged,) = model.staged_predict_proba(IRIS[0])
    for q in (model.predict_proba(IRIS[0]), model.predict_log_proba(IRIS[0]), staged):
        assert np.isfinite(q).all()
        assert_array_equal(q.argmax(axis=1), F.argmax(axis=1))


def test_the_papers_cross_validation_fits_the_scale_too():
    X, y = WINE
    model = MultiBoostMO(theta="cv", max_iter=5).fit(X[::2], y[::2])
    assert model.probability_scale_ == model.theta_choice_.scale
    fitted = log_loss(y[1::2], model.predict_proba(X[1::2]))
    model.probability_scale_ *= 4  # too sure of itself
    assert fitted < log_loss(y[1::2], model.predict_proba(X[1::2]))


# ---------------------------------------------------------------- data and tools

NAMES = ["sl", "sw", "pl", "pw"]


POLARS = pytest.param(
    pl.DataFrame,
    marks=pytest.mark.skipif(
        _get_feature_names(pl.DataFrame({"a": [1]})) is None,
        reason="scikit-learn before 1.9 does not see the names of polars 2",
    ),
)


@pytest.mark.parametrize("frame", [pd.DataFrame, POLARS])
@pytest.mark.parametrize("cls", ALL)
def test_frames_and_strings(cls, frame):
    X, y = IRIS
    plain = small(cls).fit(X, y)
    table = frame({name: X[:, d] for d, name in enumerate(NAMES)})
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    model = small(cls).fit(table, labels)
    assert model.feature_names_in_.tolist() == NAMES
    assert_array_equal(model.decision_function(table), plain.decision_function(X))
    assert_array_equal(model.predict(table), labels[[0, 50, 100]][plain.predict(X)])
    assert_array_equal(model.margins(table, labels), plain.margins(X, y))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame({name: X[:, d] for d, name in enumerate(NAMES[::-1])}))


@pytest.mark.parametrize("cls", ALL)
def test_memory_layout_and_precision_change_nothing(cls):
    X = IRIS[0].astype(np.float32)
    models = [
        small(cls).fit(data, IRIS[1])
        for data in (
            X,
            X.astype(float),
            np.asfortranarray(X),
            np.asfortranarray(X, dtype=float),
        )
    ]
    F = models[0].decision_function(X)
    for model in models[1:]:
        assert_array_equal(model.decision_function(np.asfortranarray(X, dtype=float)), F)


@pytest.mark.parametrize("cls", ALL)
def test_fields_of_records_are_features(cls):
    X, y = IRIS
    records = np.zeros(len(X), [("id", "i4"), ("x", "f8", 4)])
    records["x"] = X
    odd = records["x"]
    assert not odd.flags.aligned
    model, same = (small(cls).fit(data, y) for data in (odd, X))
    for data in (odd, X):
        assert_array_equal(model.decision_function(data), same.decision_function(X))


@pytest.mark.parametrize("cls", ALL)
def test_metadata_is_routed(cls):
    """The weights arrive: rows of weight zero, mislabelled, do no harm."""
    X = np.repeat(IRIS[0], 2, axis=0)
    y = (np.repeat(IRIS[1], 2) + np.tile([0, 1], 150)) % 3
    weight = np.tile([1.0, 0.0], 150)
    with config_context(enable_metadata_routing=True):
        asking = small(cls).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, asking).fit(X, y, sample_weight=weight)
        assert pipeline.score(*IRIS) > 0.9
        name = "max_rules" if cls is TCBoostClassifier else "max_iter"
        grid = GridSearchCV(asking.set_score_request(sample_weight=True), {name: [1, 12]}, cv=3)
        grid.fit(X, y, sample_weight=weight)
        assert grid.best_params_ == {name: 12}
        assert grid.best_score_ > 0.85
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            make_pipeline(small(cls)).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("cls", ALL)
def test_calibration_and_clones(cls):
    X, y = WINE
    model = small(cls)
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X[::2], y[::2])
    assert log_loss(y[1::2], calibrated.predict_proba(X[1::2])) < 0.5
    twin = clone(model).fit(X, y)
    assert twin.get_params() == model.get_params()
    assert_array_equal(twin.decision_function(X), model.fit(X, y).decision_function(X))


@pytest.mark.parametrize("cls", [MultiBoostMO, MultiBoostECC])
def test_a_grid_search_over_budgets_in_a_pipeline(cls):
    pipeline = Pipeline([("scale", StandardScaler()), ("boost", small(cls))])
    grid = GridSearchCV(pipeline, {"boost__theta": [1e-3, 5.0]}, cv=3, scoring="neg_log_loss")
    assert grid.fit(*WINE).best_params_ == {"boost__theta": 5.0}
    assert grid.best_estimator_[-1].theta_ == 5.0


# ---------------------------------------------------------------- weights of classes


def test_class_weights_multiply_those_of_the_rows():
    X, y = WINE
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    names = np.array(["b", "a", "c"])[y]
    given = small(TCBoostClassifier, class_weight={"b": 4.0, "a": 0.5, "c": 1})
    given.fit(X, names, weight)
    alone = small(TCBoostClassifier)
    alone.fit(X, names, weight * np.array([4.0, 0.5, 1.0])[y])
    assert_array_equal(given.decision_function(X), alone.decision_function(X))
    balanced = small(TCBoostClassifier, class_weight="balanced").fit(X, names, weight)
    total = np.bincount(y, weight)
    alone.fit(X, names, weight * (total.sum() / 3 / total)[y])
    assert_allclose(balanced.decision_function(X), alone.decision_function(X), atol=1e-9)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))  # a weight of 2 is two rows
    repeated = clone(balanced).fit(X[rows], names[rows])
    assert_allclose(repeated.predict_proba(X), balanced.predict_proba(X), atol=1e-6)


def test_a_class_of_weight_zero_is_not_there():
    X, y = WINE
    model = small(TCBoostClassifier, class_weight={0: 1.0, 1: 0.0, 2: 2.0}).fit(X, y)
    assert model.classes_.tolist() == [0, 2]
    for bad, match in (({0: -1.0}, "negative"), ({9: 1.0}, "class_weight"), ("even", "class")):
        with pytest.raises(ValueError, match=match):
            small(TCBoostClassifier, class_weight=bad).fit(X, y)


@pytest.mark.parametrize("ratio", [1e6, 1e9])
def test_rows_that_weigh_nothing_do_not_choose_a_feature(ratio):
    """The constant model is proved optimal: no rule is worth its penalty."""
    X, y = WINE
    weight = np.where(y == 0, 1.0, 1.0 / ratio)
    model = small(TCBoostClassifier, tol=1e-4).fit(X, y, weight)
    assert (model.predict(X) == 0).all()
    assert not model.feature_importances_.any()
    assert model.certificate_.gap <= 1e-4
    loss = log_loss(y, model.predict_proba(X), sample_weight=weight)
    assert loss == pytest.approx(model.certificate_.train_log_loss, rel=1e-6)
