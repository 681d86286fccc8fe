"""The certificate against the truth: the whole class enumerated and solved."""

from functools import partial

import numpy as np
import pytest

from reference import algorithms as ref
from reference import programs
from tcboost import AdaBoostECC, MultiBoostECC, MultiBoostMO, theta_path
from tcboost.certificate import Certificate, Certifier
from tcboost.coding import ecoc, runs
from tcboost.columns import FixedCode, LearnedCode, RandomCode
from tcboost.losses import LOSSES
from tcboost.margins import Codeword, Pairwise, PairwiseCode
from test_boosting import problem, run

CHOOSERS = {
    "random": lambda oracle: RandomCode(oracle, 3, np.random.RandomState(1)),
    "learned": LearnedCode,
    "runs": lambda oracle: RandomCode(oracle, 3, np.random.RandomState(1), runs(3)),
}


@pytest.mark.parametrize("theta", [0.3, 3.0, 15.0])
@pytest.mark.parametrize("coding", CHOOSERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_gap_bounds_the_true_excess_in_every_round(coding, theta, seed):
    rows = problem(seed, 3, n=14, n_features=2)
    truth = ref.optimum_of_class(rows.X, rows.y, rows.weight, theta)
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
    truth = ref.optimum_of_class(rows.X, rows.y, rows.weight, theta, M, "codewords")
    fit = run(rows, FixedCode, Codeword(M), 100, theta=theta, tol=1e-7)
    history = fit.history.arrays()
    excess = history["loss"] - truth.loss
    assert (excess >= -1e-6).all()
    assert (excess <= history["gap"] + 1e-6).all()
    assert fit.certificate.gap <= 1e-7


@pytest.mark.parametrize("theta", [0.3, 2.0])
def test_the_gap_of_the_mixture_bounds_the_true_excess(theta):
    rows, M = problem(6, 3, n=12, n_features=2), ecoc(3)
    truth = ref.optimum_of_class(rows.X, rows.y, rows.weight, theta, M, "pairwise")
    fit = run(rows, FixedCode, PairwiseCode(M), 200, theta=theta, tol=1e-7)
    history = fit.history.arrays()
    excess = history["loss"] - truth.loss
    assert (excess >= -1e-6).all()
    assert (excess <= history["gap"] + 1e-6).all()
    assert fit.certificate.gap <= 1e-7


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("kind", ["codewords", "pairwise", "codes"])
def test_the_gap_of_elementwise_losses_bounds_the_true_excess(loss, kind):
    """The class enumerated, the whole problem by Clarabel; stage-wise fits too."""
    rows, M, theta = problem(8, 3, n=12, n_features=2), ecoc(3), 1.0
    if kind == "codes":
        margin, chooser = Pairwise(3), LearnedCode
        P, groups = ref.class_columns(rows.X, rows.y)
    else:
        margin, chooser = (Codeword if kind == "codewords" else PairwiseCode)(M), FixedCode
        P, groups = ref.class_columns(rows.X, rows.y, M, kind)
    P = P.reshape(-1, P.shape[2])
    s = np.repeat(rows.weight / margin.width, margin.width)
    truth, bound, _ = programs.smooth_program(P, s, theta, loss, groups)
    assert truth == pytest.approx(bound, abs=1e-6)
    fit = run(rows, chooser, margin, 200, loss=loss, theta=theta, tol=1e-7)
    history = fit.history.arrays()
    excess = history["loss"] - truth
    assert (excess >= -1e-6).all()
    assert (excess <= history["gap"] + 1e-6).all()
    assert fit.certificate.gap <= 1e-7
    assert fit.certificate.loss == LOSSES[loss].name
    stage_wise = run(rows, chooser, margin, 4, loss=loss)
    used = stage_wise.w.sum()
    truth, _, _ = programs.smooth_program(P, s, used, loss, groups)
    excess = stage_wise.certificate.primal - truth
    assert -1e-6 <= excess <= stage_wise.certificate.gap + 1e-6


def test_stage_wise_fits_have_a_true_certificate_too():
    rows = problem(3, 3, n=14, n_features=2)
    for n_rounds in (1, 4, 10):
        fit = run(rows, CHOOSERS["random"], Pairwise(3), n_rounds)
        truth = ref.optimum_of_class(rows.X, rows.y, rows.weight, fit.w.sum())
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


UNUSED = {
    "learned": partial(MultiBoostECC, "learned", theta=2.0),
    "learned, logistic": partial(MultiBoostECC, "learned", theta=4.0, loss="logistic"),
    "MO": partial(MultiBoostMO, theta=2.0),
    "ECC": partial(MultiBoostECC, theta=2.0),
}


def noisy(n=150):
    """Two features that matter, of different use, a constant one and noise."""
    rng = np.random.default_rng(5)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 6))
    X[:, 0] += 3 * y
    X[:, 1] -= 2 * (y == 1)
    X[:, 2] = 1.0
    return X, y


@pytest.mark.parametrize("name", UNUSED)
def test_unused_features_are_in_no_optimum(name):
    X, y = noisy()
    make = partial(UNUSED[name], tol=1e-8, max_iter=1000, random_state=0)
    model = make().fit(X, y)
    unused = list(model.certificate_.unused_features)
    assert 2 in unused  # a constant feature always
    assert 0 not in unused
    assert not model.feature_importances_[unused].any()
    assert len(unused) > 1, "the gap was to be small enough for more"
    # To leave them out changes nothing.
    without = make().fit(X[:, np.setdiff1d(np.arange(6), unused)], y)
    assert without.certificate_.primal == pytest.approx(model.certificate_.primal, abs=3e-8)


def test_unused_features_are_those_of_a_budget():
    X, y = noisy()
    make = partial(MultiBoostECC, "learned", tol=1e-8, max_iter=1000)
    thetas = [1.0, 2.0, 12.0]
    path = theta_path(make(), X, y, thetas)
    unused = [set(m.certificate_.unused_features) for m in path.estimators]
    assert unused[2] < unused[0]
    for theta, loss, gap in zip(thetas, path.loss, path.gap, strict=True):
        truth = make(theta=theta).fit(X, y).certificate_
        assert loss - gap <= truth.primal
        assert loss == pytest.approx(truth.primal, abs=3e-8)


def test_unused_features_of_the_paper_s_estimators():
    X, y = noisy()
    for cls in (MultiBoostMO, MultiBoostECC):
        model = cls(theta=2.0, tol=1e-8, max_iter=500, random_state=0).fit(X, y)
        unused = list(model.certificate_.unused_features)
        assert 2 in unused
        assert not model.feature_importances_[unused].any()
    loose = MultiBoostECC(theta=2.0, max_iter=2, random_state=0).fit(X, y)
    assert loose.certificate_.unused_features == (2,)  # not much is known yet


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("seed", range(20))
def test_dual_weights_of_a_small_gap_are_near_the_best(loss, seed):
    """The strong concavity behind it, for random margins: |V - V*| <= spread sqrt(2 gap)."""
    rng = np.random.default_rng(seed)
    y, weight = np.arange(12) % 3, rng.dirichlet(np.ones(12))
    margin, kind = Pairwise(3), LOSSES[loss]
    z_best, z = rng.normal(size=(2, 12, 2)) * rng.choice([0.1, 1, 4])
    best, other = (kind.dual_weights(m, weight) for m in (z_best, z))
    u_best, u = best.u / best.scale, other.u / other.scale
    # Conjugates: the Bregman distance of the dual is that of the loss, the other way round.
    distance = best.loss - other.loss + float((u * (z_best - z)).sum())
    V = margin.adjoint(u - u_best, y)
    spread = kind.spread(margin)
    assert np.isinf(spread) == (loss == "hinge")  # whose dual is not strongly concave
    if np.isfinite(spread):
        assert np.abs(V).sum() <= spread * np.sqrt(2 * max(0.0, distance)) + 1e-9
