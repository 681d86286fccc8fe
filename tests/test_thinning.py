"""Thinning: the ensemble's own columns, the exact optimum over them, a model that predicts."""

import pickle
from itertools import pairwise

import matplotlib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine, make_classification
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

import tcboost
from reference.newton import Master
from reference.programs import solve_master
from tcboost import plot_theta_path, theta_path, thin
from tcboost.losses import SMOOTH
from tcboost.theta import content_folds
from tcboost.thinning import Thinning

WINE = load_wine(return_X_y=True)
NOISY = make_classification(
    240, 8, n_informative=4, n_classes=3, weights=[0.6, 0.3], flip_y=0.2, random_state=0
)
NOISY_TWO = make_classification(200, 6, weights=[0.8], flip_y=0.2, random_state=1)
DATA = {"three classes": NOISY, "two classes": NOISY_TWO}


def _adaboost():
    return AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=2), n_estimators=25, random_state=0
    )


def _forest():
    return RandomForestClassifier(25, random_state=0)


def _extra_trees():
    return ExtraTreesClassifier(25, max_depth=4, random_state=0)


def _gradient_boosting():
    return GradientBoostingClassifier(n_estimators=20, random_state=0)


def _xgboost():
    xgboost = pytest.importorskip("xgboost")
    return xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1)


def _lightgbm():
    lightgbm = pytest.importorskip("lightgbm")
    return lightgbm.LGBMClassifier(n_estimators=20, num_leaves=6, n_jobs=1, verbose=-1)


MAKERS = [_adaboost, _forest, _extra_trees, _gradient_boosting, _xgboost, _lightgbm]


@pytest.fixture(params=DATA)
def data(request):
    return DATA[request.param]


@pytest.fixture(params=MAKERS, ids=lambda make: make.__name__[1:])
def ensemble(request, data):
    return request.param().fit(*data)


def scores_by_hand(ensemble, X):
    """Class scores of every tree or round, and last the base score, read another way."""
    name, n_classes = type(ensemble).__name__, len(ensemble.classes_)

    def of_classes(raw):
        raw = np.asarray(raw, float).reshape(len(X), -1)
        return np.column_stack([0 * raw, raw]) if raw.shape[1] == 1 else raw

    if name == "AdaBoostClassifier":
        return [np.eye(n_classes)[tree.predict(X)] for tree in ensemble.estimators_]
    if name in ("RandomForestClassifier", "ExtraTreesClassifier"):
        return [tree.predict_proba(X) for tree in ensemble.estimators_]
    if name == "GradientBoostingClassifier":
        stages = [of_classes(F) for F in ensemble.staged_decision_function(X)]
        rate = ensemble.learning_rate
        first = of_classes(np.array([tree.predict(X) for tree in ensemble.estimators_[0]]).T)
        rounds = [(b - a) / rate for a, b in pairwise(stages)]
        return [first, *rounds, stages[0] - rate * first]
    if name == "XGBClassifier":  # leaf by leaf
        xgboost = pytest.importorskip("xgboost")
        booster, X_ = ensemble.get_booster(), xgboost.DMatrix(X)
        table = booster.trees_to_dataframe().query("Feature == 'Leaf'")
        value = {(t, n): v for t, n, v in table[["Tree", "Node", "Gain"]].to_numpy()}
        leaves = booster.predict(X_, pred_leaf=True).astype(int)
        values = [[value[t, leaf] for leaf in leaves[:, t]] for t in range(leaves.shape[1])]
        width = leaves.shape[1] // 20
        rounds = [
            of_classes(np.array(values[t : t + width]).T) for t in range(0, 20 * width, width)
        ]
        return [*rounds, of_classes(booster.predict(X_, output_margin=True)) - sum(rounds)]
    stages = [
        of_classes(ensemble.predict(X, raw_score=True, num_iteration=t + 1)) for t in range(20)
    ]
    return [stages[0], *(b - a for a, b in pairwise(stages))]


def margins_by_hand(scores, y):
    """One column a tree, its largest margin 1."""
    rho = np.array(
        [
            np.concatenate([np.delete(o[c] - o, c) for o, c in zip(O, y, strict=True)])
            for O in scores
        ]
    ).T
    scale = np.abs(rho).max(axis=0)
    used = scale > 1e-5 * scale.max()
    return rho[:, used] / scale[used]


@pytest.mark.parametrize("theta", [0.5, 5.0, 40.0])
def test_the_optimum_is_that_of_a_conic_solver(ensemble, data, theta):
    X, y = data
    model = thin(ensemble, X, y, theta)
    rho = margins_by_hand(scores_by_hand(ensemble, X), y)
    u0 = np.full(len(rho), 1 / len(rho))
    oracle = solve_master(rho, u0, theta)
    certificate = model.certificate_
    assert certificate.primal == pytest.approx(oracle.loss, abs=1e-5)
    assert certificate.dual == pytest.approx(oracle.dual, abs=1e-5)
    assert 0 <= certificate.gap <= 1e-6
    assert certificate.primal - certificate.dual == pytest.approx(certificate.gap, abs=1e-12)
    assert (model.estimator_weights_ > 0).all()
    assert model.estimator_weights_.sum() <= theta * (1 + 1e-12)


def test_predictions_are_those_of_the_trees_by_hand(ensemble, data):
    X, y = data
    model = thin(ensemble, X[::2], y[::2], 8.0)
    F = np.zeros((len(X), len(ensemble.classes_)))
    scores = scores_by_hand(ensemble, X)
    for member, w, j in zip(
        model.estimators_, model.estimator_weights_, model.estimator_indices_, strict=True
    ):
        F += w * scores[j] / member.scale
    expected = F if F.shape[1] > 2 else F[:, 1] - F[:, 0]
    assert_allclose(model.decision_function(X), expected, atol=1e-4)  # single precision
    assert_array_equal(
        model.predict(X), ensemble.classes_[model._ensemble().scores(X).argmax(1)]
    )
    p = model.predict_proba(X)
    odds = np.exp(2 * (F - F.max(axis=1, keepdims=True)))
    assert_allclose(p, odds / odds.sum(axis=1, keepdims=True), atol=1e-3)
    assert_array_equal(p.argmax(axis=1), np.searchsorted(model.classes_, model.predict(X)))


def test_the_loss_is_that_of_the_predictions(ensemble, data):
    """What the certificate speaks of is what the model does."""
    X, y = data
    model = thin(ensemble, X, y, 8.0)
    F = model._ensemble().scores(X)
    z = np.concatenate([np.delete(f[c] - f, c) for f, c in zip(F, y, strict=True)])
    assert np.log(np.mean(np.exp(-z))) == pytest.approx(model.certificate_.primal, abs=1e-9)


def test_trees_are_the_ensembles_own():
    X, y = NOISY
    for make in (_adaboost, _forest):
        ensemble = make().fit(X, y)
        model = thin(ensemble, X, y, 4.0)
        for member, j in zip(model.estimators_, model.estimator_indices_, strict=True):
            assert member.tree is ensemble.estimators_[j]
    boosting = _gradient_boosting().fit(X, y)
    model = thin(boosting, X, y, 1.0)
    for member, j in zip(model.estimators_, model.estimator_indices_, strict=True):
        if j < 20:
            assert all(
                a is b for a, b in zip(member.tree, boosting.estimators_[j], strict=True)
            )


def test_adaboost_is_never_better_by_its_own_weights(data):
    X, y = data
    ensemble = _adaboost().fit(X, y)
    rho = margins_by_hand(scores_by_hand(ensemble, X), y)
    w = ensemble.estimator_weights_
    original = np.log(np.mean(np.exp(-rho @ w)))
    model = thin(ensemble, X, y, w.sum())
    assert model.certificate_.primal <= original
    assert len(model.estimators_) <= len(w)


def test_a_small_budget_leaves_few_trees():
    X, y = NOISY
    forest = RandomForestClassifier(200, random_state=0).fit(X, y)
    sizes = [len(thin(forest, X, y, theta).estimators_) for theta in (0.1, 1, 10)]
    assert sizes == sorted(sizes)
    assert sizes[0] < 20
    assert sizes[-1] < 200


@pytest.mark.parametrize("make", [_gradient_boosting, _xgboost])
def test_the_base_score_is_a_column(make, data):
    """Four of five rows of one class: it is far from zero, and the same for all rows."""
    X, y = data
    ensemble = make().fit(X, y)
    base, problem = scores_by_hand(ensemble, X)[-1], Thinning(ensemble, X, y)
    assert problem.P.shape[1] == 21
    member = problem._members[-1]
    assert np.ptp(member.outputs(X), axis=0).max() == 0
    assert_allclose(member.outputs(X), base, atol=1e-5)
    assert np.ptp(base, axis=1).min() > 0.5
    # Alone with rounds that say nothing, it is what decides.
    constant = thin(make().fit(0 * X, y), 0 * X, y, 1.0)
    assert_array_equal(constant.estimator_indices_[-1:], [20])
    assert (constant.predict(X) == np.bincount(y).argmax()).all()


def test_weights_are_repetitions_and_order_does_not_matter():
    X, y = NOISY
    forest, rng = _forest().fit(X, y), np.random.default_rng(0)
    weight = rng.integers(0, 4, len(y))
    a = thin(forest, X, y, 3.0, sample_weight=weight)
    b = thin(forest, np.repeat(X, weight, axis=0), np.repeat(y, weight), 3.0)
    order = rng.permutation(len(y))
    c = thin(forest, X[order], y[order], 3.0, sample_weight=weight[order])
    for other in (b, c):
        assert_array_equal(a.estimator_indices_, other.estimator_indices_)
        assert_allclose(a.estimator_weights_, other.estimator_weights_, atol=1e-9)


def test_names_of_classes_and_features():
    frame = pd.DataFrame(NOISY[0], columns=[f"f{d}" for d in range(8)])
    names = np.array(["apple", "pear", "quince"])[NOISY[1]]
    forest = _forest().fit(frame, names)
    model = thin(forest, frame, pd.Series(names), 4.0)
    assert set(model.predict(frame)) <= set(names)
    assert_array_equal(model.feature_names_in_, frame.columns)
    assert model.n_features_in_ == 8
    numbers = thin(_forest().fit(*NOISY), *NOISY, 4.0).predict(NOISY[0])
    assert_array_equal(model.predict(frame), model.classes_[numbers])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


def test_rows_may_lack_a_class():
    X, y = NOISY
    forest = _forest().fit(X, y)
    some = y != 1
    model = thin(forest, X[some], y[some], 4.0)
    assert_array_equal(model.classes_, [0, 1, 2])
    assert model.predict_proba(X).shape == (len(X), 3)


def test_it_is_a_fitted_model_for_good(ensemble, data):
    X, y = data
    model = thin(ensemble, X, y, 4.0)
    assert clone(model) is model
    assert model.fit(X[:3], y[:3]) is model
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.certificate_ == model.certificate_
    folds = cross_val_score(model, X, y, cv=4)
    assert np.mean(folds) == pytest.approx(model.score(X, y), abs=0.02)
    CalibratedClassifierCV(model, cv=3).fit(X, y).predict(X)
    with pytest.raises(ValueError, match="pickle"):
        tcboost.save(model, "model.json")


def test_missing_values_go_where_the_ensemble_takes_them():
    X, y = NOISY
    X = np.where(X > 2, np.nan, X)
    model = thin(_forest().fit(X, y), X, y, 4.0)
    assert model.score(X, y) > 0.8
    boosting = _gradient_boosting().fit(*NOISY)
    with pytest.raises(ValueError, match="NaN"):
        thin(boosting, X, y, 1.0)
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.full((1, 8), np.inf))


def test_xgboost_as_its_users_have_it():
    xgboost = pytest.importorskip("xgboost")
    X, y = NOISY
    missing = np.where(X > 2, -999.0, X)
    settings = {"n_estimators": 60, "max_depth": 2, "n_jobs": 1, "missing": -999.0}
    stopped = xgboost.XGBClassifier(**settings, early_stopping_rounds=3)
    stopped.fit(missing[::2], y[::2], eval_set=[(missing[1::2], y[1::2])], verbose=False)
    model = thin(stopped, missing, y, 20.0)
    assert model.estimator_indices_.max() <= stopped.best_iteration + 1 < 60
    nan = xgboost.XGBClassifier(**{**settings, "missing": np.nan}, base_score=0.5)
    same = thin(
        nan.fit(np.where(missing == -999, np.nan, missing), y),
        np.where(missing == -999, np.nan, missing),
        y,
        2.0,
    )
    other = xgboost.XGBClassifier(**settings, base_score=0.5).fit(missing, y)
    assert thin(other, missing, y, 2.0).certificate_.primal == pytest.approx(
        same.certificate_.primal, abs=1e-6
    )
    assert same.estimator_indices_.max() < 60  # a base score that is the same for all classes
    for booster in ("dart", "gblinear"):
        odd = xgboost.XGBClassifier(n_estimators=3, booster=booster).fit(X, y)
        with pytest.raises(ValueError, match="gbtree"):
            thin(odd, X, y, 1.0)


@pytest.mark.filterwarnings("ignore:The argument .eval_set. is deprecated")
def test_lightgbm_as_its_users_have_it():
    lightgbm = pytest.importorskip("lightgbm")
    frame = pd.DataFrame(NOISY[0], columns=list("abcdefgh"))
    names = np.array(["apple", "pear", "quince"])[NOISY[1]]
    stopped = lightgbm.LGBMClassifier(n_estimators=80, num_leaves=5, verbose=-1, n_jobs=1)
    stop = lightgbm.early_stopping(3, verbose=False)
    stopped.fit(frame[::2], names[::2], eval_set=[(frame[1::2], names[1::2])], callbacks=[stop])
    model = thin(stopped, frame, names, 20.0)
    assert model.estimator_indices_.max() < stopped.best_iteration_ < 80
    assert model.score(frame, names) > 0.6


def test_categories_are_refused():
    frame = pd.DataFrame(NOISY[0], columns=list("abcdefgh"))
    frame["a"] = pd.Series(np.arange(len(frame)) % 3 + 10).astype("category")
    forest = _forest().fit(NOISY[0], NOISY[1])
    with pytest.raises(ValueError, match="categories"):
        thin(forest, frame, NOISY[1], 1.0)


class Homemade:
    pass


@pytest.mark.parametrize(
    ("ensemble", "error", "match"),
    [
        (RandomForestClassifier(), NotFittedError, "not fitted"),
        (RandomForestClassifier, ValueError, "ensemble must be one of"),
        (RandomForestRegressor(5).fit(*WINE), ValueError, "RandomForestRegressor"),
        (DecisionTreeClassifier().fit(*WINE), ValueError, "DecisionTreeClassifier"),
        (HistGradientBoostingClassifier(max_iter=2).fit(*WINE), ValueError, "HistGradient"),
        (Homemade(), ValueError, "Homemade"),
        (None, ValueError, "None"),
        (
            GradientBoostingClassifier(n_estimators=2, init=DecisionTreeClassifier()).fit(
                *WINE
            ),
            ValueError,
            "init",
        ),
    ],
)
def test_other_ensembles_are_named(ensemble, error, match):
    with pytest.raises(error, match=match):
        thin(ensemble, *WINE, 1.0)
    with pytest.raises(error, match=match):
        theta_path(ensemble, *WINE, thetas=[1.0])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"X": WINE[0][:, :4]}, "features"),
        ({"X": WINE[0][:20]}, "inconsistent"),
        ({"X": WINE[0] * np.inf}, "infinity"),
        ({"y": WINE[1] + 1}, "classes"),
        ({"y": WINE[1].astype(str)}, "classes"),
        ({"y": 0 * WINE[1]}, "one class"),
        ({"X": WINE[0][:1], "y": WINE[1][:1]}, "1 sample"),
        ({"y": np.column_stack([WINE[1], WINE[1]])}, "1d|2d"),
        ({"theta": 0.0}, "theta"),
        ({"theta": -1.0}, "theta"),
        ({"theta": np.inf}, "theta"),
        ({"theta": "auto"}, "theta"),
        ({"sample_weight": np.zeros(178)}, "sample_weight"),
        ({"sample_weight": -np.ones(178)}, "negative"),
    ],
)
def test_bad_input_is_named(change, match):
    good = {"X": WINE[0], "y": WINE[1], "theta": 1.0}
    forest = _forest().fit(*WINE)
    with pytest.raises(ValueError, match=match):
        thin(forest, **{**good, **change})


def test_extreme_budgets():
    forest = _forest().fit(*NOISY)
    with pytest.warns(ConvergenceWarning, match="theta=1e"):
        large = thin(forest, *NOISY, 1e9)
    small = thin(forest, *NOISY, 1e-9)
    # What double precision allows, and it says so: u changes in its seventh digit where margins
    # of 1e8 do in their last. The loss itself is exact.
    assert large.certificate_.gap <= 1e-6 * 1e9
    problem = Thinning(forest, *NOISY)
    width = len(problem.P) // len(problem.rows)
    twin = Master(
        problem.P, np.repeat(problem.rows.weight / width, width), SMOOTH["exponential"]
    )
    loss = twin.solve(1e9, np.zeros(problem.P.shape[1]), 5e-7).log_loss
    assert large.certificate_.primal == pytest.approx(loss, rel=1e-14)
    assert large.score(*NOISY) > 0.95
    assert small.certificate_.gap <= 1e-6
    assert small.predict(NOISY[0]).shape == NOISY[1].shape


def test_trees_that_say_nothing():
    X, y = np.zeros((12, 2)), np.arange(12) % 2
    model = thin(_forest().fit(X, y), X, y, 1.0)
    assert model.certificate_.gap <= 1e-6
    boosting = thin(_gradient_boosting().fit(X, y), X, y, 1.0)
    assert boosting.predict(X).shape == y.shape


def test_a_path_of_budgets(ensemble, data):
    X, y = data
    path = theta_path(ensemble, X, y, thetas=[4, 1, 16])
    assert_array_equal(path.thetas, [1, 4, 16])
    assert (path.gap <= 1e-6).all()
    assert (np.diff(path.loss) <= 1e-6).all()
    assert path.loss[0] < 0
    for theta, loss, error, size, model in zip(
        path.thetas, path.loss, path.train_error, path.n_active, path.estimators, strict=True
    ):
        alone = thin(ensemble, X, y, theta)
        assert alone.certificate_.primal == pytest.approx(loss, abs=1e-6)
        assert 1 - model.score(X, y) == pytest.approx(error, abs=1e-12)
        assert len(model.estimators_) == size
    assert 0 <= path.best < 3


def test_the_path_validates_out_of_fold():
    """Literally: five folds, thinned without one, scored on it."""
    X, y = NOISY
    forest = _forest().fit(X[::2], y[::2])
    path = theta_path(forest, X[1::2], y[1::2], thetas=[2.0])
    rows = Thinning(forest, X[1::2], y[1::2]).rows
    fold = content_folds(rows, 5)
    wrong = np.zeros(len(rows), bool)
    for k in range(5):
        part = thin(forest, rows.X[fold != k], rows.y[fold != k], 2.0)
        wrong[fold == k] = part.predict(rows.X[fold == k]) != rows.y[fold == k]
    assert path.validation_error[0] == pytest.approx(wrong.mean(), abs=1.5 / len(rows))


def test_the_picture_of_a_path():
    matplotlib.use("Agg")
    path = theta_path(_forest().fit(*WINE), *WINE)
    axes = plot_theta_path(path)
    assert_array_equal(axes[2].lines[0].get_ydata(), path.n_active)
    matplotlib.pyplot.close(axes[0].figure)
