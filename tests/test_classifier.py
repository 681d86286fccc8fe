"""The estimators as scikit-learn's users meet them."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets
from threadpoolctl import ThreadpoolController

from tcboost import (
    AdaBoostECC,
    AdaBoostMO,
    MultiBoostECC,
    MultiBoostHinge,
    MultiBoostMO,
    TCBoostClassifier,
)
from tcboost._blas import one_blas_thread
from tcboost.validation import encoded

ALL = [AdaBoostMO, AdaBoostECC, MultiBoostMO, MultiBoostECC, MultiBoostHinge]
CORRECTIVE = [MultiBoostMO, MultiBoostECC, MultiBoostHinge]
IRIS = load_iris(return_X_y=True)


OBVIOUS = [
    TCBoostClassifier(),
    TCBoostClassifier(alpha=2.0, l1_ratio=0.5),
    TCBoostClassifier(class_weight="balanced"),
    MultiBoostECC(coding="learned", loss="logistic"),
    AdaBoostECC(coding="ovr"),
    MultiBoostECC(coding="runs"),
    AdaBoostMO(loss="logistic"),
    MultiBoostECC(coding="ecoc"),
    MultiBoostECC(coding="ecoc", loss="logistic", theta=5.0),
    MultiBoostMO(loss="logistic"),
    MultiBoostMO(loss="squared_hinge"),
    MultiBoostHinge(theta=2.0),
]


@parametrize_with_checks(
    [cls() for cls in ALL]
    + [cls(weak_learner="lda") for cls in ALL]
    + [cls(weak_learner="product", max_iter=20) for cls in ALL]
    + OBVIOUS
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("learner", [DecisionTreeClassifier(max_depth=2), GaussianNB()])
def test_scikit_learn_checks_with_any_weak_learner(cls, learner):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the weak learner on absurd data
        check_estimator(cls(weak_learner=learner, max_iter=20))


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["stump", "lda", DecisionTreeClassifier(max_depth=2)])
@pytest.mark.parametrize("cls", CORRECTIVE)
def test_scikit_learn_checks_with_a_growing_theta(cls, learner):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the weak learner on absurd data
        check_estimator(cls(theta="growing", weak_learner=learner, max_iter=20))


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(
    "learner", ["stump", "product", "lda", DecisionTreeClassifier(max_depth=2)]
)
def test_every_algorithm_with_every_weak_learner(cls, learner):
    model = cls(weak_learner=learner, max_iter=15, random_state=0).fit(*IRIS)
    assert model.score(*IRIS) >= 0.96
    assert np.isfinite(model.certificate_.gap) == (learner == "stump")
    assert model.estimator_weights_.shape == (model.n_iter_,)
    assert model.theta_ >= model.estimator_weights_.sum() * (1 - 1e-12)
    again = clone(model).fit(*IRIS)
    assert_array_equal(again.decision_function(IRIS[0]), model.decision_function(IRIS[0]))


@pytest.mark.parametrize("cls", CORRECTIVE)
def test_stagewise_theta_is_the_sum_of_the_stage_wise_coefficients(cls):
    stage_wise = {
        MultiBoostMO: AdaBoostMO,
        MultiBoostECC: AdaBoostECC,
        MultiBoostHinge: partial(AdaBoostECC, "ecoc"),
    }[cls]
    model = cls(max_iter=20, random_state=3).fit(*IRIS)
    other = stage_wise(max_iter=20, random_state=3).fit(*IRIS)
    assert model.theta_ == other.estimator_weights_.sum() == other.theta_
    assert cls is MultiBoostHinge or model.history_["loss"][-1] <= other.history_["loss"][-1]


def test_plain_arrays_are_taken_as_they_are():
    """The short way past the validation has the same end."""
    X, y = IRIS
    model = MultiBoostECC(theta=2.0, max_iter=5, random_state=0)
    expected = model.fit(X.tolist(), y.tolist()).decision_function(X)
    model.feature_names_in_ = np.array(list("abcd"), dtype=object)
    assert_array_equal(model.fit(X, y).decision_function(X), expected)
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")
    for bad, error in [
        ((X[:1], y[:1]), "minimum of 2"),
        ((X, y[:-1]), "inconsistent"),
        ((X[:, :0], y), "0 feature"),
        ((X[0], y), "2D array"),
        ((X, np.column_stack([y, y])), "1d array"),
        ((X, X[:, 0]), "continuous"),
        ((X * 1j, y), "Complex"),
    ]:
        with pytest.raises(ValueError, match=error):
            model.fit(*bad)
    for many in (np.arange(60) // 1.5 // 1, np.arange(60) * 2 // 3):
        with warnings.catch_warnings(record=True) as theirs:
            warnings.simplefilter("always")
            check_classification_targets(many)  # old versions do not mind
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always")
            model.fit(X[:60], many)
        assert {str(w.message) for w in ours} == {str(w.message) for w in theirs}


def test_all_libraries_of_linear_algebra_are_limited():
    found = [lib for lib in ThreadpoolController().info() if lib["user_api"] == "blas"]
    with one_blas_thread():
        limited = [lib for lib in ThreadpoolController().info() if lib["user_api"] == "blas"]
    assert {lib["filepath"] for lib in limited} == {lib["filepath"] for lib in found} != set()
    assert {lib["num_threads"] for lib in limited} == {1}


@pytest.mark.parametrize("cls", [AdaBoostMO, MultiBoostMO, MultiBoostHinge, AdaBoostECC])
def test_a_coding_matrix_may_lie_in_memory_as_it_likes(cls):
    M = np.array([[1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1], [-1, -1, -1, -1]])[:, :3][:3]
    scores = [
        cls(coding=code, max_iter=5).fit(*IRIS).decision_function(IRIS[0])
        for code in (M.copy(), np.asfortranarray(M), M, M.astype(float), M.tolist())
    ]
    for other in scores[1:]:
        assert_array_equal(scores[0], other)


@pytest.mark.parametrize("rounds", [10, 30])
def test_a_growing_theta_with_trees_is_below_the_stage_wise_loss(rounds):
    """Trees are not searched for: what the stage-wise run has found is not to be missed."""
    tree = DecisionTreeClassifier(max_depth=2)
    options = {"max_iter": rounds, "weak_learner": tree, "random_state": 0}
    for X, y in (IRIS, load_wine(return_X_y=True)):
        stage_wise = AdaBoostMO(**options).fit(X, y).certificate_
        model = MultiBoostMO(theta="growing", **options).fit(X, y)
        assert model.certificate_.primal < stage_wise.primal
        assert model.certificate_.gap == np.inf


@pytest.mark.parametrize("coding", ["ecoc", "learned", "random"])
@pytest.mark.parametrize("rounds", [10, 60])
def test_a_growing_theta_is_what_the_stage_wise_run_has_spent(coding, rounds):
    """Below the stage-wise loss all the way, with the same sum of coefficients."""
    X, y = load_digits(return_X_y=True) if rounds == 10 else IRIS
    X, y = X[::4], y[::4]
    fixed = coding == "ecoc"
    other = (AdaBoostMO if fixed else AdaBoostECC)(coding, rounds, random_state=3).fit(X, y)
    cls = MultiBoostMO if fixed else MultiBoostECC
    model = cls(coding, "growing", rounds, random_state=3).fit(X, y)
    spent = np.cumsum(other.estimator_weights_)
    assert model.theta_ == other.theta_
    # Where a budget is optimal without a new column the next one is taken at once.
    assert model.n_iter_ == rounds or model.certificate_.gap <= model.tol
    ours, theirs = model.history_["loss"], other.history_["loss"]
    n = min(len(ours), len(theirs))
    assert (ours[:n] <= theirs[:n] + 1e-12).all()
    assert ours[-1] < theirs[-1]
    if rounds == 10:
        used = [w.sum() for w in model.history_["weights"]]
        assert (used <= spent * (1 + 1e-12)).all()
    # The certificate is for the last budget: a run with all of it can be no better than that.
    best = cls(coding, model.theta_, 100, random_state=3).fit(X, y)
    assert model.certificate_.dual <= best.certificate_.primal
    assert model.certificate_.gap >= model.certificate_.primal - best.certificate_.primal


def test_two_classes_reduce_to_binary_adaboost():
    """With one bit or one pair both are AdaBoost; the pairwise margins are twice as large."""
    X, y = load_wine(return_X_y=True)
    X, y = X[y > 0], y[y > 0]
    mo = AdaBoostMO(max_iter=15).fit(X, y)
    ecc = AdaBoostECC(max_iter=15, random_state=0).fit(X, y)
    F = np.zeros(len(y))
    for w, column in zip(mo.estimator_weights_, mo.estimators_, strict=True):
        h, label = column.outputs(X)[:, 0], 2 * y - 3
        u = np.exp(-label * F)
        error = u[h != label].sum() / u.sum()
        assert w == pytest.approx(np.log((1 - error) / error) / 2)
        F += w * h
    assert_allclose(mo.decision_function(X), 2 * F, atol=1e-9)
    assert_allclose(ecc.estimator_weights_, mo.estimator_weights_ / 2, rtol=1e-12)
    assert_allclose(mo.decision_function(X), 2 * ecc.decision_function(X), atol=1e-9)
    corrective = [
        cls(theta=t, max_iter=30) for cls, t in ((MultiBoostMO, 4), (MultiBoostECC, 2))
    ]
    losses = [m.fit(X, y).certificate_.primal for m in corrective]
    assert losses[0] == pytest.approx(losses[1], abs=1e-3)
    assert corrective[0].decision_function(X).shape == (len(y),)


@pytest.mark.parametrize("cls", CORRECTIVE)
@pytest.mark.parametrize("theta", [1e-3, 1.0, 1e3, 1e6])
def test_any_budget_is_handled(cls, theta):
    model = cls(theta=theta, max_iter=10, random_state=0).fit(*IRIS)
    assert np.isfinite(model.certificate_.gap)
    assert np.isfinite(model.decision_function(IRIS[0])).all()
    assert model.estimator_weights_.sum() <= theta * (1 + 1e-9)


@pytest.mark.parametrize("cls", ALL)
def test_constant_features_are_handled(cls):
    X = np.column_stack([IRIS[0][:, 2:], np.ones(150), np.full(150, np.nan)])
    model = cls(max_iter=10, random_state=0).fit(X, IRIS[1])
    used = {
        h.feature for c in model.estimators_ for h in c.hypotheses if np.isfinite(h.threshold)
    }
    assert used <= {0, 1}
    flat = cls(max_iter=5, random_state=0).fit(np.ones((9, 2)), [0, 0, 0, 0, 1, 1, 1, 2, 2])
    assert_array_equal(flat.predict(np.zeros((2, 2))), [0, 0])  # the most frequent class
    balanced = cls(max_iter=5, random_state=0).fit(np.ones((4, 1)), [0, 0, 1, 1])
    assert balanced.n_iter_ == 0
    assert balanced.predict([[1.0]]).shape == (1,)


@pytest.mark.parametrize("cls", ALL)
def test_missing_values_are_a_value(cls):
    X, y = IRIS[0].copy(), IRIS[1]
    X[y == 1, 0] = np.nan  # whether it is missing tells the class
    model = cls(max_iter=10, random_state=0).fit(X[:, :1], y)
    assert (model.predict(X[y == 1, :1]) == 1).all()


def test_names_and_strings():
    X = pd.DataFrame(IRIS[0], columns=["sl", "sw", "pl", "pw"])
    y = np.array(["setosa", "versicolor", "virginica"])[IRIS[1]]
    model = MultiBoostECC(max_iter=15, random_state=0).fit(X, y)
    assert list(model.feature_names_in_) == list(X.columns)
    assert set(model.predict(X)) == set(y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"sl": "other"}))


def test_in_scikit_learns_tools():
    pipeline = make_pipeline(StandardScaler(), MultiBoostMO(max_iter=10, theta=5.0))
    assert cross_val_score(pipeline, *IRIS, cv=3).mean() > 0.9
    grid = GridSearchCV(MultiBoostMO(max_iter=10), {"theta": [0.1, 5.0]}, cv=3).fit(*IRIS)
    assert grid.best_params_ == {"theta": 5.0}


def test_verbose_prints_rounds(capsys):
    AdaBoostMO(max_iter=5, verbose=2).fit(*IRIS)
    assert len(capsys.readouterr().out.splitlines()) == 5
    AdaBoostMO(max_iter=20, verbose=1).fit(*IRIS)
    assert len(capsys.readouterr().out.splitlines()) == 5
    AdaBoostMO(max_iter=5).fit(*IRIS)
    assert capsys.readouterr().out == ""
    model = TCBoostClassifier(verbose=1).fit(*IRIS)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("alpha") for line in lines) == len(model.cv_results_["alpha"])


def spoiled(value):
    X = IRIS[0].copy()
    X[7, 2] = value
    return X


NAMED = pd.DataFrame(spoiled(-np.inf), columns=["a", "b", "c", "d"])
BAD_DATA = [
    (spoiled(np.inf), IRIS[1], None, "infinity in column 2"),
    (NAMED, IRIS[1], None, r"infinity in column 2 \('c'\)"),
    (IRIS[0], np.zeros(150), None, "one class"),
    (IRIS[0][:1], IRIS[1][:1], None, "minimum of 2"),
    (IRIS[0][:, :0], IRIS[1], None, r"0 feature\(s\)"),
    (IRIS[0][0], IRIS[1], None, "Expected 2D array"),
    (IRIS[0], IRIS[1][:-1], None, "inconsistent numbers of samples"),
    (IRIS[0], np.linspace(0, 1, 150), None, "Unknown label type"),
    (IRIS[0], np.where(IRIS[1] == 0, np.nan, IRIS[1]), None, "NaN"),
    (IRIS[0].astype(str).astype(object) + "x", IRIS[1], None, r"column 0 of X holds strings"),
    (IRIS[0], IRIS[1], np.r_[-1.0, np.ones(149)], "sample_weight"),
    (IRIS[0], IRIS[1], np.zeros(150), "sample_weight"),
    (IRIS[0], IRIS[1], np.r_[np.nan, np.ones(149)], "sample_weight"),
    (IRIS[0], IRIS[1], np.ones(149), "sample_weight"),
    (IRIS[0], IRIS[1], (IRIS[1] == 1).astype(float), "one class"),
]


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(("X", "y", "weight", "match"), BAD_DATA)
def test_bad_data_is_named(cls, X, y, weight, match):
    with pytest.raises(ValueError, match=match):
        cls(max_iter=2).fit(X, y, weight)


def test_missing_values_need_stumps():
    with pytest.raises(ValueError, match=r"NaN.*column 2"):
        AdaBoostECC(weak_learner="lda").fit(spoiled(np.nan), IRIS[1])


@pytest.mark.parametrize(
    ("cls", "parameters", "match"),
    [
        (cls, {"theta": v}, "theta")
        for cls in CORRECTIVE
        for v in (0, -1.0, np.inf, np.nan, "auto")
    ]
    + [
        (TCBoostClassifier, {"alpha": 0.0}, "alpha"),
        (TCBoostClassifier, {"l1_ratio": 1.5}, "l1_ratio"),
        (TCBoostClassifier, {"max_rules": 0}, "max_rules"),
        (TCBoostClassifier, {"max_bins": 65_535}, "max_bins"),
        (TCBoostClassifier, {"cv": 1}, "cv.*2"),
        (TCBoostClassifier, {"n_jobs": 0}, "n_jobs"),
        (MultiBoostMO, {"tol": 0.0}, "tol"),
        (AdaBoostMO, {"max_iter": 0}, "max_iter"),
        (AdaBoostMO, {"max_bins": 1}, "max_bins"),
        (AdaBoostMO, {"max_bins": 65_536}, "max_bins"),
        (AdaBoostMO, {"n_jobs": 0}, "n_jobs"),
        (AdaBoostMO, {"weak_learner": "tree"}, "weak_learner"),
        (AdaBoostMO, {"weak_learner": KNeighborsClassifier()}, "weak_learner.*sample_weight"),
        (AdaBoostMO, {"weak_learner": Ridge()}, "weak_learner.*classifier"),
        (AdaBoostMO, {"weak_learner": DecisionTreeClassifier}, "weak_learner.*classifier"),
        (AdaBoostMO, {"coding": "random"}, "coding"),
        (AdaBoostECC, {"coding": "vector"}, "coding"),
        (MultiBoostECC, {"coding": [[1], [1], [-1]]}, "coding.*distinct rows"),
        (MultiBoostHinge, {"coding": "random"}, "coding"),
        (MultiBoostMO, {"loss": "hinge"}, "loss"),
        (AdaBoostECC, {"loss": "multinomial"}, "loss"),
        (AdaBoostECC, {"coding": "learned", "weak_learner": "lda"}, "coding"),
        (AdaBoostMO, {"coding": np.ones((2, 3))}, r"coding.*\(3, n_columns\)"),
        (AdaBoostMO, {"coding": [[1, 1], [1, 1], [-1, -1]]}, "coding.*distinct rows"),
        (MultiBoostMO, {"coding": [[1, 1], [1, -1], [1, 1]]}, "coding"),
        (MultiBoostMO, {"coding": [[1, 1], [1, -1], [0, 1]]}, "coding"),
    ],
)
def test_bad_parameters_are_named(cls, parameters, match):
    with pytest.raises(ValueError, match=match):
        cls(**parameters).fit(*IRIS)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        AdaBoostMO().predict(IRIS[0])


def test_a_users_code_is_used():
    M = np.array([[1, 1, -1, 1], [1, -1, 1, -1], [-1, 1, 1, 1]])
    model = AdaBoostMO(coding=M, max_iter=10).fit(*IRIS)
    assert_array_equal(model.coding_matrix_, M)
    assert len(model.estimators_[0].hypotheses) == 4


def test_many_classes_use_a_dense_code():
    rng = np.random.default_rng(0)
    y = np.arange(180) % 9
    X = rng.normal(size=(180, 5)) + 3 * rng.normal(size=(9, 5))[y]
    model = MultiBoostMO(max_iter=10).fit(X, y)
    assert model.coding_matrix_.shape == (9, 32)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize(
    "model",
    [
        *(cls(max_iter=10, random_state=0) for cls in ALL),
        TCBoostClassifier(alpha=2.0, l1_ratio=0.5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_importances_select_features(model):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.normal(size=(120, 5))
    X[:, 3] = y + 0.1 * rng.normal(size=120)
    model.fit(X, y)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.argmax() == 3
    selector = SelectFromModel(clone(model), importance_getter="feature_importances_")
    assert selector.fit(X, y).get_support()[3]
    lda = AdaBoostMO(weak_learner="lda", max_iter=2).fit(X, y)
    with pytest.raises(AttributeError, match="stump"):
        _ = lda.feature_importances_


def test_two_classes_have_one_score_and_two_probabilities():
    X, y = load_wine(return_X_y=True)
    X, y = X[y > 0], y[y > 0]
    model = TCBoostClassifier().fit(X, y)
    assert model.decision_function(X).shape == (len(y),)
    assert_array_equal(model.predict_proba(X)[:, 1] > 0.5, model.predict(X) == 2)


@pytest.mark.parametrize(
    "y",
    [
        np.array([3, 1, 1, 7]),
        np.array([-128, 127] * 200, dtype=np.int8),
        np.array([255, 0, 7] * 200, dtype=np.uint8),
        np.array([-(2**63), 2**63 - 1]),
        np.array([2**64 - 1, 2**64 - 3] * 2, dtype=np.uint64),
        np.array([-7, -5, -6, -7]),
        np.array(["b", "a", "b"]),
        np.array([2.5, 1.5]),
        np.array([True, False, True]),
    ],
    ids=str,
)
def test_labels_are_encoded_as_numpy_does(y):
    for found, expected in zip(encoded(y), np.unique(y, return_inverse=True), strict=True):
        assert found.dtype == expected.dtype
        assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "model",
    [cls(max_iter=5, random_state=0) for cls in ALL],
    ids=lambda model: type(model).__name__,
)
def test_weights_of_any_size(model):
    X, y = IRIS
    for weight in (
        np.full(150, 1e308),
        np.full(150, 1e-300),
        np.r_[1e300, np.full(149, 1e10)],
    ):
        model.fit(X, y, weight)
        assert np.isfinite(model.certificate_.gap)
        assert np.isfinite(model.decision_function(X)).all()
    one = model.fit(X, y).predict(X)
    assert_array_equal(one, model.fit(X, y, np.full(150, 1e308)).predict(X))


def test_one_heavy_row_does_not_end_stage_wise_boosting():
    X, y = np.arange(40.0)[:, None], np.repeat([0, 1], 20)
    for heavy in (1.0, 1e4, 1e9):
        weight = np.r_[heavy, np.ones(39)]
        model = AdaBoostMO(max_iter=20).fit(X, y, weight)
        assert model.theta_ > 40
        assert MultiBoostMO(max_iter=20).fit(X, y, weight).score(X, y) == 1.0


def test_data_without_signal():
    model = TCBoostClassifier().fit(np.ones((20, 2)), [0, 1] * 10)
    assert model.n_rules_ == 0
    assert_allclose(model.predict_proba([[1.0, 1.0]]), 0.5)


def test_few_different_rows_that_occur_many_times():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(4000, 1)).astype(float)
    y = (rng.random(4000) < np.where(X[:, 0] > 0, 0.8, 0.2)).astype(int)
    model = TCBoostClassifier().fit(X, y)
    for x in (0.0, 1.0):
        p = model.predict_proba([[x]])[0, 1]
        assert p == pytest.approx(y[X[:, 0] == x].mean(), abs=0.02)


def test_rows_of_next_to_no_weight_are_next_to_nothing():
    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(300, X.shape[1])) * X.std(axis=0) + X.mean(axis=0)
    weight = np.r_[np.ones(len(y)), np.full(300, 1e-12)]
    model = TCBoostClassifier().fit(
        np.r_[X, noise], np.r_[y, rng.integers(3, size=300)], weight
    )
    without = TCBoostClassifier().fit(X, y)
    assert_allclose(model.predict_proba(X), without.predict_proba(X), atol=0.1)


def test_weights_of_classes_that_are_no_weights():
    X, y = IRIS
    with pytest.raises(ValueError, match="leave no row of positive weight"):
        TCBoostClassifier(class_weight=dict.fromkeys(range(3), 0)).fit(X, y)
    with pytest.raises(ValueError, match="class_weight must be finite"):
        TCBoostClassifier(class_weight={0: np.nan, 1: 1, 2: 1}).fit(X, y)


def test_a_feature_without_a_value_is_not_used():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [60, 20])
    X = rng.normal(size=(80, 3)) + y[:, None] * [1, 0, 0]
    X[:, 1] = np.nan
    model = TCBoostClassifier().fit(X, y)
    assert model.feature_importances_[1] == 0
    assert 1 in model.certificate_.features_not_needed
    known = np.column_stack([X[:, 0], np.ones(80), X[:, 2]])
    np.testing.assert_array_equal(model.predict_proba(known), model.predict_proba(X))


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.3, 1: 0.7}])
def test_rows_of_any_weight_in_any_order(class_weight):
    """Sums of weights that no number holds exactly do not depend on the order, either."""
    X, y = (a[::2] for a in load_wine(return_X_y=True))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        weight = np.exp(3.0 * rng.normal(size=len(y)))
        model = TCBoostClassifier(max_rules=15, class_weight=class_weight)
        scores = model.fit(X, y, weight).decision_function(X)
        for _ in range(3):
            order = rng.permutation(len(y))
            model.fit(X[order], y[order], weight[order])
            assert_array_equal(model.decision_function(X), scores)
