"""How a fit ended, in one word, and what is said of it."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

import tcboost
from tcboost import (
    AdaBoostECC,
    AdaBoostMO,
    AdaBoostSAMME,
    MultiBoostECC,
    MultiBoostHinge,
    MultiBoostMO,
    MultiBoostSAMME,
    TCBoostClassifier,
)

IRIS, WINE = load_iris(return_X_y=True), load_wine(return_X_y=True)
CONSTANT = np.ones((6, 2)), np.arange(6) % 2
LAST = DecisionTreeClassifier(max_depth=1)


@pytest.mark.parametrize(
    ("model", "data", "status"),
    [
        (TCBoostClassifier(), IRIS, "optimal"),
        (TCBoostClassifier(alpha=2.0, l1_ratio=0.5), IRIS, "optimal"),
        (TCBoostClassifier(alpha=2.0, l1_ratio=0.5, max_rules=1), IRIS, "max_rules"),
        (MultiBoostMO(theta=2.0), IRIS, "optimal"),
        (MultiBoostMO(theta=1e6, tol=1e-3, max_iter=300), IRIS, "optimal"),
        (MultiBoostMO(theta=20.0, max_iter=4), WINE, "max_iter"),
        (
            MultiBoostMO(theta=20.0, early_stopping=True, n_iter_no_change=1),
            WINE,
            "stopped early",
        ),
        (MultiBoostECC(theta=2.0, max_iter=300, random_state=0), IRIS, "optimal"),
        (MultiBoostHinge(theta=1e6), WINE, "optimal"),
        (MultiBoostHinge(theta=0.5, max_iter=2), WINE, "max_iter"),
        (MultiBoostMO(theta=2.0, weak_learner="lda"), WINE, "unknown"),
        (MultiBoostMO(theta=2.0, weak_learner="lda", max_iter=2), WINE, "max_iter"),
        (MultiBoostSAMME(theta=2.0, random_state=0, weak_learner=LAST), CONSTANT, "unknown"),
        (AdaBoostMO(max_iter=4), IRIS, "max_iter"),
        (AdaBoostMO(max_iter=4), CONSTANT, "weak learner"),
        (AdaBoostECC(max_iter=4, random_state=0, weak_learner="lda"), IRIS, "max_iter"),
        (AdaBoostSAMME(random_state=0, weak_learner=LAST), CONSTANT, "weak learner"),
        (AdaBoostMO(early_stopping=True, n_iter_no_change=1), WINE, "stopped early"),
    ],
    ids=str,
)
def test_how_a_fit_ended(model, data, status):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proof = model.fit(*data).certificate_
    assert proof.status == status
    if hasattr(model, "tol") and hasattr(model, "max_iter"):
        assert (proof.gap <= model.tol) == (status == "optimal")
    if status == "max_iter":
        assert model.n_iter_ == model.max_iter


def test_a_fit_that_stalled_is_told():
    model = MultiBoostMO(theta=1e8, max_iter=300)
    with pytest.warns(
        ConvergenceWarning, match=r"no more progress at a gap .* above tol=0.0001"
    ):
        model.fit(*IRIS)
    assert model.certificate_.status == "stalled"
    assert model.certificate_.gap > model.tol
    assert model.n_iter_ < 300


def test_large_budgets_are_solved_to_the_tolerance_that_was_asked_for():
    for loss in ("logistic", "squared_hinge"):
        model = MultiBoostMO(theta=1e6, max_iter=300, loss=loss, tol=1e-6).fit(*WINE)
        assert model.certificate_.gap <= 1e-6
    assert MultiBoostHinge(theta=1e8, max_iter=100).fit(*WINE).certificate_.gap <= 1e-4


def test_thinned_models_have_a_status():
    forest = RandomForestClassifier(10, random_state=0).fit(*IRIS)
    assert tcboost.thin(forest, *IRIS, theta=2.0).certificate_.status == "optimal"


@pytest.mark.parametrize(
    "model",
    [
        AdaBoostMO(loss="logistic", max_iter=3),
        AdaBoostMO(loss="squared_hinge", max_iter=3),
        MultiBoostHinge(theta=300.0, max_iter=2),
    ],
    ids=str,
)
def test_a_loss_that_cannot_be_negative_has_no_negative_bound(model):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (60, 3)).astype(float), rng.integers(0, 3, 60)
    model.fit(X, y)
    assert 0 <= model.certificate_.dual <= model.certificate_.primal
    assert (model.history_["gap"] <= model.history_["loss"]).all()


def test_a_gap_larger_than_the_loss_proves_little():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (60, 3)).astype(float), rng.integers(0, 3, 60)
    for little in (
        MultiBoostHinge(theta=300.0, max_iter=2),
        MultiBoostMO(theta=9.0, max_iter=2),
    ):
        assert "which proves little" in str(little.fit(X, y).certificate_)
    for much in (MultiBoostMO(theta=2.0, max_iter=300), MultiBoostHinge(theta=1e3)):
        assert "which proves little" not in str(much.fit(*IRIS).certificate_)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (MultiBoostMO(theta=2.0), "logarithm of the exponential loss"),
        (MultiBoostMO(theta=2.0, loss="logistic"), "logistic loss"),
        (MultiBoostMO(theta=2.0, loss="squared_hinge"), "squared hinge"),
        (MultiBoostHinge(theta=2.0), "hinge"),
    ],
)
def test_losses_have_one_name(model, name):
    assert str(model.fit(*IRIS).certificate_).startswith(f"The training {name} ")
