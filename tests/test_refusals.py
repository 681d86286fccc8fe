"""A fit that does not end well changes nothing."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier

from tcboost import AdaBoostECC, AdaBoostMO, MultiBoostECC, MultiBoostMO, TCBoostClassifier

IRIS, WINE = load_iris(return_X_y=True), load_wine(return_X_y=True)
NAMED = pd.DataFrame(WINE[0]).add_prefix("x"), np.array(["a", "b", "c"])[WINE[1]]


class Interrupted(DecisionTreeClassifier):
    """A stump that Ctrl-C meets after so many fits."""

    left = 10**9

    def fit(self, X, y, sample_weight=None):
        if Interrupted.left == 0:
            raise KeyboardInterrupt
        Interrupted.left -= 1
        return super().fit(X, y, sample_weight)


def state(model, X):
    return (
        model.classes_.tolist(),
        model.n_features_in_,
        getattr(model, "feature_names_in_", np.empty(0)).tolist(),
        model.predict(X).tolist(),
        model.decision_function(X).tobytes(),
        model.theta_,
        model.certificate_,
        model.n_iter_,
        sorted(vars(model)),
    )


@pytest.mark.parametrize(
    ("model", "parameters", "data"),
    [
        (AdaBoostECC(max_iter=4), {"coefficient": "pseudo-loss", "loss": "logistic"}, NAMED),
        (AdaBoostECC(max_iter=4), {"coding": [[1], [-1]]}, NAMED),
        (MultiBoostMO(max_iter=4), {"weak_learner": "lda"}, (WINE[0] * np.nan, WINE[1])),
        (MultiBoostMO(max_iter=4), {"theta": -1.0}, NAMED),
        (TCBoostClassifier(), {"alpha": -1.0}, NAMED),
        (TCBoostClassifier(), {"cv": 1}, NAMED),
        (TCBoostClassifier(), {"categorical_features": [13]}, NAMED),
        (AdaBoostMO(max_iter=4), {}, (WINE[0], np.zeros(178))),
        (AdaBoostMO(max_iter=4), {"early_stopping": True, "validation_fraction": 1e-6}, NAMED),
        (AdaBoostMO(max_iter=4), {}, (*NAMED, np.full(178, -1.0))),
        (AdaBoostMO(max_iter=4), {}, (NAMED[0].assign(x3="red"), NAMED[1])),
    ],
    ids=str,
)
def test_what_is_refused_leaves_the_model_as_it_was(model, parameters, data):
    model = clone(model).fit(*IRIS)
    before = state(model, IRIS[0])
    with pytest.raises((ValueError, TypeError)):
        model.set_params(**parameters).fit(*data)
    model.set_params(**{name: clone(model).get_params()[name] for name in parameters})
    assert state(model, IRIS[0]) == before


@pytest.mark.parametrize("warm", [False, True])
def test_ctrl_c_leaves_the_model_as_it_was(warm):
    X, y = WINE
    model = MultiBoostECC(theta=5.0, max_iter=5, weak_learner=Interrupted(max_depth=1))
    model.set_params(warm_start=warm, random_state=0).fit(X, y)
    before = state(model, X)
    Interrupted.left = 7
    try:
        with pytest.raises(KeyboardInterrupt):
            model.set_params(max_iter=30).fit(X, y)
    finally:
        Interrupted.left = 10**9
    assert state(model, X) == before
    model.set_params(max_iter=12).fit(X, y)
    alone = clone(model).set_params(warm_start=False).fit(X, y)
    assert_array_equal(model.decision_function(X), alone.decision_function(X))


def test_a_refused_warm_start_can_still_go_on():
    X, y = WINE
    model = MultiBoostECC(theta=5.0, max_iter=5, warm_start=True, random_state=0).fit(X, y)
    before = state(model, X)
    for data, max_iter in (((X, y + 1), 9), ((X, y), 4), ((X[:, :3], y), 9), (IRIS, 9)):
        with pytest.raises(ValueError, match=r"changed; set warm_start=False|is less than"):
            model.set_params(max_iter=max_iter).fit(*data)
        assert state(model, X) == before
    model.set_params(max_iter=9).fit(X, y)
    alone = clone(model).set_params(warm_start=False).fit(X, y)
    assert_array_equal(model.decision_function(X), alone.decision_function(X))


def test_a_first_fit_that_is_refused_leaves_nothing():
    model = TCBoostClassifier(categorical_features=[4])
    with pytest.raises(ValueError, match="not among the 4"):
        model.fit(*IRIS)
    assert vars(model).keys() == model.get_params().keys()
