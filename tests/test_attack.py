"""Random fits of the paper's estimators with every option, and what must hold of any of them.

All that is random follows from the number of a fit. `make attack FITS=5000` makes so many, and
`make attack FROM=137 FITS=1` the one of number 137 again.
"""

import os

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

import tcboost
from attack_draws import SMALL, Draw, draw_data, fitted
from attack_rules import attack_rules
from reference import algorithms as ref
from reference import programs
from tcboost.coding import runs

FROM = int(os.environ.get("TCBOOST_ATTACK_FROM", "0"))
FITS = int(os.environ.get("TCBOOST_ATTACK_FITS", "500"))
QUICK = 20  # by `make test` and under the sanitizers; the others are slow tests
FAMILY = (
    *("AdaBoostMO", "AdaBoostECC", "AdaBoostSAMME", "MultiBoostMO", "MultiBoostECC"),
    *("MultiBoostHinge", "MultiBoostSAMME"),
)
STATUS = {"optimal", "max_iter", "stalled", "stopped early", "weak learner", "unknown"}


def draw_model(draw, C, n):
    """An estimator, with options that it takes."""
    name, tree = draw(*FAMILY), DecisionTreeClassifier(max_depth=draw(1, 2))
    own = (2.0 * np.eye(C) - 1.0) * draw.rng.choice([-1.0, 1.0], C)  # a code of one's own
    options = {
        "max_iter": draw(1, 2, 5, 20, *[200] * 4 * (n <= SMALL)),
        "early_stopping": n > SMALL and draw(True, False, False),
        "validation_fraction": draw(0.1, 0.5),
        "n_iter_no_change": draw(1, 4),
        "random_state": draw(0, 1, 2, 3),
        "max_bins": draw("auto", "auto", None, None, 2, 6, 1023),
        "weak_learner": draw(*["stump"] * 9, "product", "lda", tree),
        "loss": draw("exponential", "exponential", "logistic", "squared_hinge"),
        "coding": draw("ecoc", "ovr", own),
        "theta": draw(*[draw.decades(-2, draw(0, 0, 4))] * 9, "stagewise", "growing", "cv"),
        "tol": draw.decades(-9, -1),
        "round_tol": draw(0.0, 0.0, 0.03, 0.5),
        "variant": draw("samme", "m1", "m2"),
    }
    if name.endswith("ECC") and draw(True, True, False):
        options["coding"] = draw("random", "runs", "learned")
        if options["coding"] == "learned":
            options["weak_learner"] = "stump"
        if options["loss"] == "exponential":
            options["coefficient"] = draw("error", "pseudo-loss")
    elif name.endswith("SAMME"):
        options["weak_learner"] = draw(None, tree)
    if options["weak_learner"] != "stump":  # each takes its time to be fitted
        options["max_iter"] = min(options["max_iter"], 20)
    model = getattr(tcboost, name)()
    return model.set_params(**{k: v for k, v in options.items() if k in vars(model)})


def total(model, z, s):
    """The loss of margins (rows, margins) of rows that weigh s, by its formula."""
    s = s / s.sum()
    if model.loss == "exponential":
        return logsumexp(-z, b=s[:, None] / z.shape[1])
    if model.loss == "hinge":
        return s @ np.maximum(0.0, 1.0 - z.min(axis=1))
    if model.loss == "logistic":
        return s @ np.logaddexp(0.0, -z).mean(axis=1)
    return s @ (np.maximum(0.0, 1.0 - z) ** 2 / 2.0).mean(axis=1)


def check(model, X, y, s, warned):
    """What must hold of a fit on rows that weigh s."""
    proof, history, w = model.certificate_, model.history_, model.estimator_weights_
    searched, whole = model.weak_learner == "stump", not model.early_stopping
    assert not any("np." in words for words in (str(proof), repr(proof), *warned))
    assert proof.status in STATUS
    assert (proof.status == "optimal") == (proof.gap <= getattr(model, "tol", -1.0))
    assert (proof.status == "stalled") == any("no more progress" in text for text in warned)
    assert proof.status != "stopped early" or model.early_stopping
    assert proof.status != "max_iter" or model.n_iter_ == model.max_iter or not whole
    assert proof.status != "weak learner" or model._stage_wise
    assert proof.status != "unknown" or not searched
    assert np.isfinite(proof.gap) == (searched or proof.theta == 0.0)
    assert 0.0 <= proof.gap == proof.primal - proof.dual
    assert not searched or model.loss == "exponential" or proof.dual >= 0.0
    assert model.theta_ == proof.theta >= 0.0
    assert model.n_iter_ == len(w) == len(model.estimators_) <= model.max_iter
    assert model.classes_.tolist() == sorted({*y.tolist()})
    assert np.isfinite(w).all()
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))

    rounds = len(history["loss"])
    assert {len(values) for values in history.values()} == {rounds}
    assert all(np.isfinite(history[k]).all() for k in ("loss", "train_error", "min_margin"))
    if whole:
        if rounds:
            assert history["loss"][-1] == proof.primal
            assert history["gap"][-1] == proof.gap
            np.testing.assert_array_equal(history["weights"][-1], w)
        z = model.margins(X, y) * max(w.sum(), 1e-300)
        rounding = 1e-9 * (1.0 + abs(z).max())
        assert abs(total(model, z, s) - proof.primal) <= rounding


def optimum(model, X, y, s):
    """The value of a point of the whole class, nearly optimal: no bound may be above it."""
    theta, loss = model.theta_, model.loss
    code = [runs(len(model.classes_))] if str(model.coding) == "runs" else []
    if not model._grown:
        code = [model.coding_matrix_, "pairwise" if model._pairwise else "codewords"]
    P, groups = ref.class_columns(X, y, *code)
    if loss == "hinge":
        return programs.hinge_primal(P, s / s.sum(), theta, groups)
    flat, each = P.reshape(-1, P.shape[2]), np.repeat(s / s.sum() / P.shape[1], P.shape[1])
    if loss == "exponential":
        w = programs.primal_program(flat, each, theta, groups)
    else:
        w = programs.smooth_program(flat, each, theta, loss, groups)[2]
        w = np.concatenate([programs.feasible(w[k], theta) for k in groups])
    return total(model, P @ w, s)


# ---------------------------------------------------------------- one fit


def bits(model, X):
    """What may depend on the problem only."""
    numbers = model.decision_function(X), model.estimator_weights_, model.history_["loss"]
    return model.certificate_, model.classes_.tolist(), [a.tobytes() for a in numbers]


def attack(draw, note):
    X, y, weight = draw_data(draw)
    C, n = len({*y}), len(y)
    model, new = draw_model(draw, C, n), draw.rng.permuted(X, axis=0)
    if model.weak_learner not in ("stump", "product"):  # the others take nothing missing or odd
        X, new = (np.where((abs(A) > 1e-30) & (abs(A) < 1e30), A, 0.0) for A in (X, new))
    note(f"{model} on {X.shape}, {C} classes, weights {weight!r:.60}")
    try:
        model, warned = fitted(model, X, y, weight)
    except ValueError as refused:
        if "less than one row of every class" not in str(refused):
            raise
        return

    s = np.ones(n) if weight is None else weight
    rows = X[s > 0], y[s > 0], s[s > 0]
    check(model, *rows, warned)
    proof = model.certificate_
    exact = "stumps on exact ranks" in proof.hypothesis_class and np.isfinite(proof.gap)
    if exact and n <= SMALL and proof.theta > 0.0:
        best, rounding = optimum(model, *rows), 1.0 + abs(proof.primal) + proof.theta
        assert proof.dual <= best + 1e-10 * rounding
        assert best <= proof.primal + 1e-5 * rounding, "the reference is not solved"

    again = clone(model).set_params(**{"n_jobs": draw(1, 2)} if "n_jobs" in vars(model) else {})
    order, other = draw.rng.permutation(n), weight
    if weight is None or weight.dtype == int:  # copies, without weights
        copies = 2 if weight is None else weight
        order, other = draw.rng.permutation(np.repeat(np.arange(n), copies)), None
    fitted(again, X[order], y[order], None if other is None else other[order])
    assert bits(again, new) == bits(model, new)

    if not isinstance(getattr(model, "theta", 0.0), str):  # which fewer rounds would change
        again = clone(model).set_params(max_iter=draw(1, model.max_iter), warm_start=True)
        fitted(again, X, y, weight)
        fitted(again.set_params(max_iter=model.max_iter), X, y, weight)
        assert bits(again, new) == bits(model, new)


NUMBERS = range(FROM, FROM + FITS)


@pytest.mark.parametrize(
    "number", [pytest.param(k, marks=[pytest.mark.slow] * (k >= QUICK)) for k in NUMBERS]
)
@pytest.mark.parametrize("kind", [attack, attack_rules])
def test_attack(kind, number):
    told = [f"again by: make attack FROM={number} FITS=1"]
    try:
        kind(Draw(number), told.append)
    except BaseException as error:
        error.add_note("\n".join(told))
        raise
