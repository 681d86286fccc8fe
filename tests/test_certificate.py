"""The certificate against the truth: the whole class enumerated and solved."""

import numpy as np
import pytest

from reference import algorithms as ref
from tcboost import AdaBoostECC, MultiBoostMO
from tcboost.certificate import Certificate, Certifier
from tcboost.coding import ecoc
from tcboost.columns import FixedCode, LearnedCode, RandomCode
from tcboost.margins import Codeword, Pairwise
from test_boosting import problem, run

CHOOSERS = {
    "random": lambda oracle: RandomCode(oracle, 3, np.random.RandomState(1)),
    "learned": LearnedCode,
}


@pytest.mark.parametrize("theta", [0.3, 3.0, 15.0])
@pytest.mark.parametrize("coding", ["random", "learned"])
@pytest.mark.parametrize("seed", [0, 1])
def test_gap_bounds_the_true_excess_in_every_round(coding, theta, seed):
    rows = problem(seed, 3, n=14, n_features=2)
    truth = ref.full_class_optimum(rows.X, rows.y, rows.weight, theta)
    fit = run(rows, CHOOSERS[coding], Pairwise(3), 60, theta=theta, tol=1e-7)
    history = fit.history.arrays()
    excess = history["loss"] - truth.loss
    assert (excess >= -1e-6).all()
    # The enumerated optimum is itself known to within loss - dual.
    assert (excess <= history["gap"] + 1e-6).all()
    assert fit.certificate.gap <= 1e-7
    assert fit.certificate.dual <= truth.loss + 1e-6


@pytest.mark.parametrize("theta", [0.3, 3.0])
def test_codeword_gap_bounds_the_true_excess(theta):
    rows, M = problem(2, 3, n=12, n_features=2), ecoc(3)
    truth = ref.full_class_optimum_mo(rows.X, rows.y, rows.weight, theta, M)
    fit = run(rows, FixedCode, Codeword(M), 100, theta=theta, tol=1e-7)
    history = fit.history.arrays()
    excess = history["loss"] - truth.loss
    assert (excess >= -1e-6).all()
    assert (excess <= history["gap"] + 1e-6).all()
    assert fit.certificate.gap <= 1e-7


def test_stage_wise_fits_have_a_true_certificate_too():
    rows = problem(3, 3, n=14, n_features=2)
    for n_rounds in (1, 4, 10):
        fit = run(rows, CHOOSERS["random"], Pairwise(3), n_rounds)
        truth = ref.full_class_optimum(rows.X, rows.y, rows.weight, fit.w.sum())
        excess = fit.certificate.primal - truth.loss
        assert -1e-6 <= excess <= fit.certificate.gap + 1e-6
        assert fit.certificate.theta == pytest.approx(fit.w.sum())


def test_the_best_bound_of_all_rounds_is_kept():
    rows = problem(4, 3, n=14, n_features=2)
    fit = run(rows, LearnedCode, Pairwise(3), 60, theta=5.0, tol=1e-7)
    history = fit.history.arrays()
    assert (np.diff(history["loss"] - history["gap"]) >= -1e-12).all()


def test_a_bound_of_one_budget_holds_for_another():
    certifier = Certifier()
    certifier.add(0.5, 0.0)
    certifier.add(0.1, -1.0)
    assert certifier.dual(1.0) == pytest.approx(-0.5)
    assert certifier.dual(10.0) == pytest.approx(-2.0)
    assert certifier.dual(0.0) == 0.0


def test_one_sentence_when_printed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    model = MultiBoostMO(theta=2, max_iter=200).fit(X, y)
    text = str(model.certificate_)
    assert text.count(". ") == 0
    assert text.endswith("with a budget of 2.")
    assert "stumps on exact ranks for every bit of the code" in text
    lda = AdaBoostECC(max_iter=3, weak_learner="lda", random_state=0).fit(X, y)
    assert lda.certificate_.gap == np.inf
    assert lda.certificate_.dual == -np.inf
    assert "nothing is proved" in str(lda.certificate_)
    with pytest.raises(AttributeError):
        lda.certificate_.gap = 0.0
    assert isinstance(lda.certificate_, Certificate)
