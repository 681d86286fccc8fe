"""A path of budgets: certified points, honest validation, one picture."""

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

from tcboost import (
    AdaBoostMO,
    MultiBoostECC,
    MultiBoostMO,
    TCBoostClassifier,
    plot_theta_path,
    theta_path,
)

WINE = load_wine(return_X_y=True)


@pytest.mark.parametrize(
    "estimator",
    [
        MultiBoostECC("learned", max_iter=400, tol=1e-3),
        MultiBoostECC(random_state=0),
        MultiBoostMO(),
    ],
)
def test_every_point_is_a_certified_model(estimator):
    path = theta_path(estimator, *WINE, thetas=[4, 1, 2])
    assert_array_equal(path.thetas, [1, 2, 4])
    assert (path.gap <= estimator.tol).all()
    assert (np.diff(path.loss) < 0).all()
    for theta, loss, model in zip(path.thetas, path.loss, path.estimators, strict=True):
        alone = type(estimator)(**{**estimator.get_params(), "theta": theta}).fit(*WINE)
        # Both are within their gaps of the same optimum.
        assert alone.certificate_.primal == pytest.approx(loss, abs=estimator.tol)
        assert model.theta_ == model.theta == theta
        assert model.score(*WINE) > 0.8
    errors = [1 - m.score(*WINE) for m in path.estimators]
    assert_allclose(path.train_error, errors, atol=1e-12)
    assert (path.validation_error >= 0).all()


def test_the_model_that_is_chosen_by_alpha_has_no_path_of_budgets():
    with pytest.raises(TypeError, match="cv_results_"):
        theta_path(TCBoostClassifier(), *WINE)


def test_the_picture():
    matplotlib.use("Agg")
    path = theta_path(MultiBoostMO(tol=0.01), *WINE, thetas=[1, 4, 16])
    axes = plot_theta_path(path)
    assert [a.get_title() for a in axes] == ["loss", "error", "active hypotheses"]
    assert_array_equal(axes[2].lines[0].get_ydata(), path.n_active)
    matplotlib.pyplot.close(axes[0].figure)


@pytest.mark.parametrize(
    "thetas", [[], [0, 1], [-1.0], [np.inf], [np.nan], [1, 1], "a", {1, 2}]
)
def test_bad_budgets_are_named(thetas):
    with pytest.raises(ValueError, match="thetas"):
        theta_path(MultiBoostMO(), *WINE, thetas=thetas)


def test_a_stage_wise_estimator_has_no_path():
    with pytest.raises(ValueError, match="totally corrective"):
        theta_path(AdaBoostMO(), *WINE)


def test_a_limit_on_the_columns_that_binds_starts_afresh():
    """Columns of smaller budgets must not crowd out those that the next one needs."""
    estimator = MultiBoostMO(max_iter=10)
    path = theta_path(estimator, *WINE, thetas=[1, 4, 16])
    for theta, model in zip(path.thetas, path.estimators, strict=True):
        alone = clone(estimator).set_params(theta=theta).fit(*WINE)
        assert model.certificate_.primal <= alone.certificate_.primal + 1e-3
        assert model.n_iter_ <= 10
        assert len(model.history_["loss"]) == len(model.history_["edge"])


@pytest.mark.parametrize("learner", ["lda", DecisionTreeClassifier(max_depth=2)])
def test_fitted_weak_learners_keep_their_columns_apart(learner):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)), np.arange(80) % 3
    estimator = MultiBoostECC(weak_learner=learner, max_iter=15, random_state=0)
    for model in theta_path(estimator, X, y, thetas=[0.5, 1, 2, 4]).estimators:
        rho = np.array(
            [
                [np.delete(o[c] - o, c) for o, c in zip(k.outputs(X), y, strict=True)]
                for k in model.estimators_
            ]
        ).reshape(model.n_iter_, -1)
        z = model.estimator_weights_ @ rho
        u = np.exp(-z + z.min())
        r = max(0.0, (rho @ (u / u.sum())).max())
        assert model.history_["r"][-1] == pytest.approx(r, abs=1e-9)


@pytest.mark.parametrize("estimator", [MultiBoostMO(max_iter=5), MultiBoostECC()])
def test_nothing_to_learn(estimator):
    path = theta_path(estimator, np.ones((20, 2)), [0, 1] * 10, thetas=[1, 2])
    assert_array_equal(path.n_active, [0, 0])
    assert_allclose(path.train_error, 0.5)
    tiny = theta_path(estimator, *WINE, thetas=[1e-300, 1.0])
    assert tiny.n_active[1] > 0
