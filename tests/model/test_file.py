"""Files of the paper's estimators: what comes back is what was saved, all of it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import tcboost
from tcboost import (
    AdaBoostECC,
    AdaBoostMO,
    MultiBoostECC,
    MultiBoostHinge,
    MultiBoostMO,
)

ESTIMATORS = [AdaBoostMO, AdaBoostECC, MultiBoostMO, MultiBoostECC, MultiBoostHinge]


def iris(step=2):
    X, y = load_iris(return_X_y=True)
    return X[::step], y[::step]


def new_rows(n_features=4, missing=False):
    X = np.random.default_rng(0).normal(3, 2, size=(200, n_features))
    if missing:
        X[::3, 0] = np.nan
        X[1::3, -1] = np.nan
    return X


def through_file(model, tmp_path):
    path = tmp_path / "model.json"
    tcboost.save(model, path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]
    return tcboost.load(path)


def assert_same_arrays(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tolist() == b.tolist()


def assert_same_model(model, again, X):
    """Everything that is public, bit for bit."""
    assert type(again) is type(model)
    scores = model.decision_function(X)
    assert again.decision_function(X).tobytes() == scores.tobytes()
    assert_same_arrays(again.predict(X), model.predict(X))
    ours, theirs = model.get_params(), again.get_params()
    coding = theirs["coding"]
    for drawn in (ours, theirs):
        del drawn["coding"], drawn["random_state"]  # the seed is no part of the model
    assert theirs == ours
    if isinstance(model.coding, str):
        assert coding == model.coding
    else:
        np.testing.assert_array_equal(coding, model.coding)
    for name in ("classes_", "coding_matrix_", "estimator_weights_"):
        assert_same_arrays(getattr(again, name), getattr(model, name))
    for name in ("theta_", "n_iter_", "n_features_in_", "certificate_"):
        assert getattr(again, name) == getattr(model, name)
    assert str(again.certificate_) == str(model.certificate_)
    assert hasattr(again, "feature_names_in_") == hasattr(model, "feature_names_in_")
    assert set(again.history_) == set(model.history_) - {"inner_products", "weights"}
    for name, values in again.history_.items():
        assert_same_arrays(values, model.history_[name])
    raw = np.asarray(X)
    assert len(again.estimators_) == len(model.estimators_)
    for column, other in zip(again.estimators_, model.estimators_, strict=True):
        np.testing.assert_array_equal(column.outputs(raw), other.outputs(raw))
        assert (column.code is None) == (other.code is None)


# ---------------------------------------------------------------- there and back


@pytest.mark.parametrize("weak_learner", ["stump", "product", "lda"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_round_trip(estimator, weak_learner, tmp_path):
    X, y = iris()
    model = estimator(max_iter=6, weak_learner=weak_learner, random_state=0).fit(X, y)
    again = through_file(model, tmp_path)
    assert_same_model(model, again, new_rows())
    assert np.isinf(again.certificate_.gap) == (weak_learner != "stump")
    assert again.score(X, y) == model.score(X, y) > 0.8
    # It can be saved again, and fitted again.
    assert_same_model(model, through_file(again, tmp_path), new_rows())
    again.set_params(random_state=0).fit(X, y)
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()


OTHER = {  # than the defaults
    "max_iter": 3,
    "max_bins": 7,
    "n_jobs": 1,
    "verbose": 1,
    "theta": 1.25,
    "tol": 3e-3,
    "round_tol": 0.5,
    "loss": "logistic",
    "coefficient": "pseudo-loss",
    "weak_learner": "product",
    "warm_start": True,
    "early_stopping": True,
    "validation_fraction": 0.25,
    "n_iter_no_change": 3,
    "coding": "learned",
    "random_state": 4,
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_parameter_is_left_out(estimator, tmp_path):
    X, y = iris()
    names = set(estimator().get_params(deep=False))
    assert names <= set(OTHER)
    few = {name: OTHER[name] for name in names & {"max_iter", "theta"}}
    for name in names:
        model = estimator(**few).set_params(**{name: OTHER[name]})
        try:
            model.fit(X, y)
        except ValueError:  # not with this estimator, or not alone
            assert name in ("loss", "coding", "weak_learner", "coefficient")
            continue
        assert through_file(model, tmp_path).get_params()[name] == OTHER[name], name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters(estimator, tmp_path):
    X, y = iris()
    parameters = {"max_iter": 4, "max_bins": 7, "n_jobs": 1}
    if estimator in (MultiBoostMO, MultiBoostECC, MultiBoostHinge):
        parameters |= {"theta": 1.25, "tol": 3e-3}
    model = estimator(**parameters, random_state=0).fit(X, y)
    assert_same_model(model, through_file(model, tmp_path), new_rows())
    model = estimator(max_iter=2, max_bins=None, random_state=0).fit(X, y)
    assert_same_model(model, through_file(model, tmp_path), new_rows())


@pytest.mark.parametrize("coding", ["random", "learned"])
def test_code_columns(coding, tmp_path):
    X, y = iris()
    model = AdaBoostECC(coding, max_iter=8, random_state=0).fit(X, y)
    again = through_file(model, tmp_path)
    assert_same_model(model, again, new_rows())
    for t, column in enumerate(again.estimators_):
        np.testing.assert_array_equal(column.code, again.coding_matrix_[:, t])


@pytest.mark.parametrize("coding", ["ecoc", "ovr", [[1, 1], [1, -1], [-1, -1]]])
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_the_mixture_comes_back(coding, loss, tmp_path):
    X, y = iris()
    model = MultiBoostECC(coding, max_iter=6, loss=loss).fit(X, y)
    again = through_file(model, tmp_path)
    assert_same_model(model, again, new_rows())
    assert again.loss == loss
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("as_list", [False, True])
def test_coding_matrix_of_the_user(as_list, tmp_path):
    X, y = iris()
    M = [[1, -1, 1, 1], [-1, 1, 1, -1], [-1, -1, -1, 1]]
    for estimator in (AdaBoostMO, MultiBoostMO):
        model = estimator(M if as_list else np.array(M), max_iter=4).fit(X, y)
        again = through_file(model, tmp_path)
        assert_same_model(model, again, new_rows())
        again.fit(X, y)  # the code is good for another fit
        assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    model = AdaBoostMO("ovr", max_iter=4).fit(X, y)
    assert_same_model(model, through_file(model, tmp_path), new_rows())


CLASSES = {
    "int": np.array([-5, 3, 1000]),
    "small int": np.array([1, 2, 200], dtype=np.uint8),
    "str": np.array(["setosa", "Veil\u00adchen", "\u96ea \U0001f338"]),
    "object str": np.array(["setosa", "versicolor", "virginica"], dtype=object),
    "float": np.array([-1.0, 0.0, 2.0]),
    "bool": np.array([False, True]),
}


@pytest.mark.parametrize("estimator", [AdaBoostMO, MultiBoostECC])
@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_classes_of_any_type(classes, estimator, tmp_path):
    X, y = iris()
    X, y = X[y < len(classes)], y[y < len(classes)]
    model = estimator(max_iter=3, random_state=0).fit(X, classes[y])
    assert model.classes_.dtype == classes.dtype
    again = through_file(model, tmp_path)
    assert_same_model(model, again, new_rows())
    assert again.classes_.dtype == classes.dtype
    assert {type(c) for c in again.predict(X)} == {type(c) for c in model.predict(X)}


@pytest.mark.parametrize("names", [["a", "b", "c", "d"], ["\u03b1", "", "x y", "'\""]])
def test_feature_names(names, tmp_path):
    X, y = iris()
    table = pd.DataFrame(X, columns=names)
    model = MultiBoostECC(max_iter=3, random_state=0).fit(
        table, pd.Series(y).map({0: "a", 1: "b", 2: "c"})
    )
    again = through_file(model, tmp_path)
    new = pd.DataFrame(new_rows(), columns=names)
    assert_same_model(model, again, new)
    assert_same_arrays(again.feature_names_in_, model.feature_names_in_)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(new[names[::-1]])


def test_missing_values_and_extreme_thresholds(tmp_path):
    X, y = iris()
    X = np.column_stack([X, np.full(len(X), np.nan), 1e308 * (y - 1.0)])
    X[::2, 0] = np.nan
    X[y == 1, 2] = np.nan
    model = AdaBoostMO(max_iter=10).fit(X, y)
    thresholds = [h.threshold for c in model.estimators_ for h in c.hypotheses]
    assert np.isinf(thresholds).any()  # a stump that asks only whether there is a value
    again = through_file(model, tmp_path)
    assert_same_model(model, again, X)
    assert_same_model(model, again, new_rows(6, missing=True))


def test_two_classes(tmp_path):
    X, y = iris()
    for estimator in ESTIMATORS:
        model = estimator(max_iter=3, random_state=0).fit(X, y == 1)
        assert model.decision_function(X).ndim == 1
        assert_same_model(model, through_file(model, tmp_path), new_rows())


@pytest.mark.parametrize("weak_learner", ["stump", "product", "lda"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_model_without_columns(estimator, weak_learner, tmp_path):
    X, y = np.ones((4, 2)), [0, 1, 0, 1]
    model = estimator(weak_learner=weak_learner, random_state=0).fit(X, y)
    assert model.n_iter_ == 0
    assert_same_model(model, through_file(model, tmp_path), X)


def test_path_as_a_string_without_suffix(tmp_path):
    X, y = iris()
    model = AdaBoostMO(max_iter=2).fit(X, y)
    path = str(tmp_path / "model")
    tcboost.save(model, path)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert_same_model(model, tcboost.load(path), new_rows())


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_iter": np.int64(3)},
        {"max_iter": 3, "n_jobs": np.int32(1)},
        {"max_iter": 3, "max_bins": np.int16(20)},
        {"max_iter": 3, "theta": np.float32(2)},
    ],
)
def test_parameters_may_be_numpy_scalars(parameters, tmp_path):
    model = MultiBoostMO(**parameters).fit(*iris())
    assert through_file(model, tmp_path).get_params() == model.get_params()


def test_the_seed_comes_back(tmp_path):
    model = AdaBoostECC(max_iter=2, random_state=3).fit(*iris())
    again = through_file(model, tmp_path)
    assert again.random_state == 3
    assert [c.hypotheses for c in again.estimators_] == [
        c.hypotheses for c in model.estimators_
    ]
