"""A path of budgets: certified points, honest validation, one picture."""

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine

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
        TCBoostClassifier(tol=1e-3),
        TCBoostClassifier(coding="learned", loss="exponential"),
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


def test_auto_takes_the_best_of_the_path():
    path = theta_path(TCBoostClassifier(), *WINE)
    model = TCBoostClassifier().fit(*WINE)
    assert model.theta_ == path.thetas[path.best]
    assert_array_equal(model.theta_choice_.validation_loss, path.validation_loss)


def test_the_picture():
    matplotlib.use("Agg")
    path = theta_path(TCBoostClassifier(tol=0.01), *WINE, thetas=[1, 4, 16])
    axes = plot_theta_path(path)
    assert [a.get_title() for a in axes] == ["loss", "error", "active hypotheses"]
    assert_array_equal(axes[2].lines[0].get_ydata(), path.n_active)
    matplotlib.pyplot.close(axes[0].figure)


@pytest.mark.parametrize("thetas", [[], [0, 1], [-1.0], [np.inf], [np.nan], [1, 1]])
def test_bad_budgets_are_named(thetas):
    with pytest.raises(ValueError, match="thetas"):
        theta_path(TCBoostClassifier(), *WINE, thetas=thetas)


def test_a_stage_wise_estimator_has_no_path():
    with pytest.raises(ValueError, match="totally corrective"):
        theta_path(AdaBoostMO(), *WINE)
