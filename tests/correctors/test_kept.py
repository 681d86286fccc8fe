"""Weights of many rows that are kept otherwise than by margins make the same model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import tcboost
from tcboost import boosting
from tcboost.rows.blocks import LocalRows

KINDS = {
    "Products": ("WORTH", tcboost.AdaBoostECC, ("random", "learned")),
    "LookedUp": ("MANY", tcboost.AdaBoostMO, ("ecoc", "ovr")),
}


def data(n_classes=5, n=6000):
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n)
    X = np.round(rng.normal(size=(n, 4)) + rng.normal(size=(n_classes, 4))[y], 2)
    X[rng.random(X.shape) < 0.05] = np.nan
    X = np.hstack([X, np.eye(n_classes)[rng.integers(n_classes, size=n)]])  # a group of them
    return X, y, rng.uniform(1.0, 3.0, size=n)  # no two stumps are as good as each other


@pytest.fixture(params=KINDS)
def kept(request, monkeypatch):
    """A kind of estimator, its codes, and what was kept by it, as if few rows were many."""
    least, estimator, codings = KINDS[request.param]
    made = []

    class Spied(getattr(boosting, request.param)):
        def __init__(self, *arguments):
            made.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(boosting, least, 1)
    monkeypatch.setattr(boosting, "ROWS_PER_CELL", 1)
    monkeypatch.setattr(boosting, request.param, Spied)
    return estimator, codings, made


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize("n_classes", [3, 5])
def test_the_same_model(kept, code, n_classes, monkeypatch):
    estimator, codings, made = kept
    X, y, weight = data(n_classes)
    fit = estimator(codings[code], 30, max_bins=100, random_state=0).fit(X, y, weight)
    assert len(made) == 1
    least = made[0].margins().min() / fit.theta_
    assert fit.history_["min_margin"][-1] == pytest.approx(least, abs=1e-12)
    for predicted, error in zip(
        fit.staged_predict(X), fit.history_["train_error"], strict=True
    ):
        assert error == pytest.approx(weight @ (predicted != y) / weight.sum(), abs=1e-12)
    for least, *_ in KINDS.values():
        monkeypatch.setattr(boosting, least, 1 << 60)
    other = clone(fit).fit(X, y, weight)
    assert len(made) == 1
    for one, same in zip(fit.estimators_, other.estimators_, strict=True):
        assert one.hypotheses == same.hypotheses
    assert_allclose(other.estimator_weights_, fit.estimator_weights_, rtol=1e-10)
    for name in ("loss", "train_error", "min_margin", "edge", "gap", "r"):
        assert_allclose(other.history_[name], fit.history_[name], atol=1e-11, err_msg=name)
    assert other.certificate_.gap == pytest.approx(fit.certificate_.gap, abs=1e-10)


def test_threads_blocks_and_warm_starts_change_no_bit(kept, monkeypatch):
    estimator, (_, coding), made = kept
    (X, y, _), rule = data(), {"max_bins": 100}
    found = [estimator(coding, 20, n_jobs=n, **rule).fit(X, y) for n in (1, 2, 3)]
    warm = estimator(coding, 7, warm_start=True, **rule).fit(X, y)
    found.append(warm.set_params(max_iter=20).fit(X, y))
    monkeypatch.setitem(LocalRows.__init__.__globals__, "_BLOCK", 2500)
    found.append(estimator(coding, 20, **rule).fit(X, y))
    assert len(made) == 5
    for fit in found[1:]:
        assert_array_equal(fit.estimator_weights_, found[0].estimator_weights_)
