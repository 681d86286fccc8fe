"""The members beyond the four: what a user gets from each loss, margin and code."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_digits, load_iris, load_wine

import tcboost
from tcboost import AdaBoostECC, AdaBoostMO, MultiBoostECC, MultiBoostHinge, MultiBoostMO
from tcboost.losses import SMOOTH

IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)
TOTAL = {
    "mo": (MultiBoostMO, AdaBoostMO, "ecoc"),
    "ecc": (MultiBoostECC, AdaBoostECC, "learned"),
    "mixture": (MultiBoostECC, AdaBoostECC, "ecoc"),
}


@pytest.mark.parametrize("loss", sorted(SMOOTH))
@pytest.mark.parametrize("member", sorted(TOTAL))
def test_totally_corrective_beats_stage_wise_on_the_same_columns(member, loss):
    """With its own columns it need not, round by round; with the same ones it must."""
    total, stage_wise, coding = TOTAL[member]
    other = stage_wise(coding, 25, loss=loss).fit(*WINE)
    margin, y = other._ensemble().margin, WINE[1]
    P = np.array([margin.apply(c.outputs(WINE[0]), y).ravel() for c in other.estimators_]).T
    s = np.full(len(P), 1 / len(P))
    best = tcboost.solve_master(P, other.theta_, sample_weight=s, loss=loss)
    assert best.status == "optimal"
    assert best.log_loss < max(other.certificate_.primal - 1e-10, 1e-20)  # or none is left
    # And its certificate bounds what the stage-wise model could have reached with its budget.
    model = total(coding, other.theta_, 300, loss=loss, tol=1e-6).fit(*WINE)
    assert model.certificate_.gap <= 1e-6
    assert model.certificate_.primal <= best.log_loss + 1e-6
    assert other.certificate_.dual <= model.certificate_.primal


def test_a_code_that_is_learned_already_is_drawn_again():
    """Its column has an edge of next to nothing, which floats may take for a negative one."""
    model = AdaBoostECC("random", 50, loss="logistic", random_state=0).fit(*IRIS)
    assert model.n_iter_ == 50
    assert (model.estimator_weights_ > 1e-9).all()


def noisy_problem(n_classes):
    rng = np.random.default_rng(n_classes)
    y = np.arange(40 * n_classes) % n_classes
    return rng.normal(size=(len(y), 3)) + rng.normal(size=(n_classes, 3))[y], y


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("coding", ["learned", "ecoc", "ovr"])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_pairwise_probabilities_are_the_population_minimiser(n_classes, coding, loss):
    X, y = noisy_problem(n_classes)
    model = AdaBoostECC(coding, 8, loss=loss).fit(X, y)
    scores, p = model._ensemble().scores(X[:4]), model.predict_proba(X[:4])

    def risk(f, p):
        phi = (
            (lambda z: np.exp(-z)) if loss == "exponential" else (lambda z: np.logaddexp(0, -z))
        )
        pairs = [(a, b) for a in range(n_classes) for b in range(n_classes) if a != b]
        return sum(p[a] * phi(f[a] - f[b]) for a, b in pairs)

    for f, q in zip(scores, p, strict=True):
        found = minimize(risk, np.zeros(n_classes), args=(q,), tol=1e-12).x
        assert_allclose(found - found.mean(), f - f.mean(), atol=1e-4)


@pytest.mark.parametrize("coding", ["ecoc", "ovr"])
def test_the_bits_of_the_logistic_loss_have_half_the_log_odds(coding):
    X, y = noisy_problem(4)
    model = AdaBoostMO(coding, 6, loss="logistic").fit(X, y)
    M, F, p = model.coding_matrix_, model._ensemble().outputs(X[:4]), model.predict_proba(X[:4])
    for f, q in zip(F, p, strict=True):
        bit = expit(f)  # the minimum of b log(1 + exp(-t)) + (1 - b) log(1 + exp(t)) is at f
        odds = np.log(bit / (1 - bit))
        for a, b in combinations(range(4), 2):
            mean = (M[a] * odds)[M[a] != M[b]].mean()
            assert np.log(q[a] / q[b]) == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        MultiBoostHinge(theta=0.3, max_iter=12),
        MultiBoostMO(loss="squared_hinge", theta=5.0, max_iter=12),
    ],
)
def test_hinges_tell_no_probabilities(model):
    model.fit(*IRIS)
    for name in ("predict_proba", "predict_log_proba", "staged_predict_proba"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError) as told:
            getattr(model, name)
        assert "does not tell probabilities" in str(told.value.__cause__)


MEMBERS = [
    MultiBoostHinge(theta=0.2, max_iter=12),
    MultiBoostECC("ecoc", 2.0, 12),
    MultiBoostECC("ecoc", 2.0, 12, loss="logistic", weak_learner="lda"),
    MultiBoostMO("ovr", 5.0, 12, loss="logistic"),
    AdaBoostECC("ovr", 12),
    AdaBoostECC("learned", 12, loss="squared_hinge"),
]


@pytest.mark.parametrize("model", MEMBERS, ids=str)
def test_stages_margins_pickles_and_files(model, tmp_path):
    X, y = WINE
    model.fit(X, y)
    stages = list(model.staged_decision_function(X))
    assert len(stages) == model.n_iter_
    assert_array_equal(stages[-1], model.decision_function(X))
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(X), stages[-1])
    tcboost.save(model, tmp_path / "m.json")
    again = tcboost.load(tmp_path / "m.json")
    assert_array_equal(again.decision_function(X), stages[-1])
    assert again.certificate_ == model.certificate_
    assert again.loss == model.loss
    z = model.margins(X, y)
    assert z.min() == pytest.approx(model.history_["min_margin"][-1])
    if model._pairwise:
        F = stages[-1] / model.estimator_weights_.sum()
        expected = [np.delete(f[c] - f, c) for f, c in zip(F, y, strict=True)]
        assert_allclose(z, expected, atol=1e-12)


@pytest.mark.parametrize("model", MEMBERS[:2], ids=str)
def test_early_stopping(model):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 5)) + 0.7 * rng.normal(size=(3, 5))[y]
    model.set_params(early_stopping=True, max_iter=200, n_iter_no_change=5).fit(X, y)
    validation = model.history_["validation_loss"]
    assert model.n_iter_ == validation.argmin() + 1
    assert model.certificate_.gap >= 0


def test_ten_classes_of_many_bits():
    """Ten classes: 34 bits, of which up to 20 tell two classes apart, in margins up to 40."""
    X, y = load_digits(return_X_y=True)
    X, y = X[::6], y[::6]
    mixture = MultiBoostECC("ecoc", 2.0, 15).fit(X, y)
    assert mixture.score(X, y) > 0.9
    assert np.isfinite(mixture.certificate_.gap)
    # The certificate from nothing but columns and coefficients.
    margin, w = mixture._ensemble().margin, mixture.estimator_weights_
    P = np.array([margin.apply(c.outputs(X), y).ravel() for c in mixture.estimators_], float)
    z = w @ P
    assert mixture.certificate_.primal == pytest.approx(np.log(np.exp(-z).mean()), abs=1e-9)
    u = np.exp(-z) / np.exp(-z).sum()
    assert mixture.history_["r"][-1] == pytest.approx(max(0.0, (P @ u).max()), abs=1e-9)
    hinge = MultiBoostHinge(theta=0.1, max_iter=8).fit(X, y)
    assert hinge.score(X, y) > 0.7
    P = np.array([margin.apply(c.outputs(X), y) for c in hinge.estimators_], float)
    z = np.tensordot(hinge.estimator_weights_, P, 1)
    loss = np.maximum(0, 1 - z.min(axis=1)).mean()
    assert hinge.certificate_.primal == pytest.approx(loss, abs=1e-9)


def test_constant_features_are_unused_whatever_the_loss():
    X = np.column_stack([IRIS[0], np.ones(150)])
    for model in (
        MultiBoostHinge(theta=0.3),
        MultiBoostMO(theta=2.0, loss="logistic", tol=1e-8),
    ):
        assert 4 in model.fit(X, IRIS[1]).certificate_.unused_features


def test_unused_features_of_the_logistic_loss_are_in_no_optimum():
    rng = np.random.default_rng(5)
    y = np.arange(150) % 3
    X = rng.normal(size=(150, 6))
    X[:, 0] += 3 * y
    X[:, 1] -= 2 * (y == 1)
    for model in (
        MultiBoostECC("learned", 2.0, 500, loss="logistic", tol=1e-9),
        MultiBoostECC("ovr", 0.5, 500, loss="logistic", tol=1e-9),
    ):
        model.fit(X, y)
        unused = list(model.certificate_.unused_features)
        assert unused, "the gap was to be small enough"
        assert not model.feature_importances_[unused].any()
        primal = model.certificate_.primal
        model.fit(X[:, np.setdiff1d(np.arange(6), unused)], y)
        assert model.certificate_.primal == pytest.approx(primal, abs=3e-9)
