"""Random fits of every estimator with every option, and what must hold of any of them.

All that is random follows from the number of a fit. `make attack FITS=5000` makes so many, and
`make attack FROM=137 FITS=1` the one of number 137 again.
"""

import os
import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

import tcboost
from reference import algorithms as ref
from reference import programs
from tcboost.coding import runs
from tcboost.correctors import lengths

FROM = int(os.environ.get("TCBOOST_ATTACK_FROM", "0"))
FITS = int(os.environ.get("TCBOOST_ATTACK_FITS", "500"))
QUICK = 20  # by `make test` and under the sanitizers; the others are slow tests
SMALL = 24  # rows for which the problem of the whole class is solved
FAMILY = (
    *("AdaBoostMO", "AdaBoostECC", "AdaBoostSAMME", "MultiBoostMO", "MultiBoostECC"),
    *("MultiBoostHinge", "MultiBoostSAMME", "TCBoostClassifier", "TCBoostClassifier"),
)
STATUS = {"optimal", "max_iter", "stalled", "stopped early", "weak learner", "unknown"}


class Draw:
    """Choices that follow from one number."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, *options):
        return options[self.rng.integers(len(options))]

    def decades(self, low, high, size=None):
        """Of any order of magnitude."""
        return 10.0 ** self.rng.uniform(low, high, size)


def draw_table(draw, n):
    """Ties, constants, columns that are the same, any scale, missing values."""
    X = draw.rng.normal(size=(n, draw(1, 2) if n <= SMALL else draw(1, 2, 3, 6)))
    for d, x in enumerate(X.T):
        kind = draw("real", "ties", "ties", "constant", "same", "huge", "tiny", "close")
        if kind == "ties":
            x[:] = draw.rng.integers(0, draw(2, 3, 8), n)
        elif kind == "constant":
            x[:] = x[0]
        elif kind == "same":
            x[:] = X[:, d - 1] * draw(1, -1)
        elif kind == "close":  # neighbours among the doubles
            x[:] = 1.0 + np.spacing(1.0) * draw.rng.integers(0, 4, n)
        elif kind != "real":
            x *= {"huge": 1e307, "tiny": 1e-307}[kind]
        if draw(True, False, False):
            x[draw.rng.random(n) < draw(0.1, 0.5, 1.0)] = np.nan
    return X


def draw_data(draw):
    """A table, classes and weights; mostly few rows."""
    C, n = draw(2, 3, 4, 5), draw(*draw.rng.integers(5, 17, 17).tolist(), 60, 400, 2000)
    X, y = draw_table(draw, n), draw.rng.integers(0, C, n)
    if draw(True, False):  # something to learn
        y = np.where(draw.rng.random(n) < 0.7, np.argsort(np.argsort(X[:, 0])) * C // n, y)
    y[draw.rng.permutation(n)[:C]] = np.arange(C)
    if draw(True, False):  # rows that occur again, in their class or another
        again = draw.rng.integers(0, n, n // 2)
        X, y = np.vstack([X, X[again]]), np.r_[y, draw(y[again], np.roll(y[again], 1))]
    n = len(y)
    weight = draw(
        *(None, draw.rng.integers(1, 4, n), np.where(np.arange(n) % 7 == 0, 0.0, 0.3)),
        *(draw.rng.random(n) + 1e-3, draw.decades(-9, 9, n)),
    )
    return X, y, weight if weight is None or len({*y[weight > 0]}) == C else None


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
    elif name == "TCBoostClassifier":
        options |= draw_vectors(draw, C)
    if options["weak_learner"] != "stump":  # each takes its time to be fitted
        options["max_iter"] = min(options["max_iter"], 20)
    model = getattr(tcboost, name)()
    return model.set_params(**{k: v for k, v in options.items() if k in vars(model)})


def total(model, z, s):
    """The loss of margins (rows, margins) of rows that weigh s, by its formula."""
    s = s / s.sum()
    if model.loss == "exponential":
        return logsumexp(-z, b=s[:, None] / z.shape[1])
    if model.loss == "multinomial":
        return s @ np.logaddexp(0.0, logsumexp(-z, axis=1))
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
        z = model.margins(X, y) * max(lengths(w).sum(), 1e-300)
        rounding = 1e-9 * (1.0 + abs(z).max())
        off = total(model, z, s) + (penalty(model) or 0.0) - proof.primal
        assert abs(off) <= rounding or penalty(model) is None


def optimum(model, X, y, s):
    """The value of a point of the whole class, nearly optimal: no bound may be above it."""
    theta, loss = model.theta_, model.loss
    if loss == "multinomial" or str(model.coding) == "vector":
        return optimum_of_vectors(model, X, y, s)
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


# ---------------------------------------------------------------- of TCBoostClassifier alone


def draw_vectors(draw, C):
    coding = draw("vector", "vector", "learned", "random")
    losses = "multinomial", "multinomial", "exponential", "logistic", "squared_hinge"
    return {
        "weak_learner": "stump",
        "coding": coding,
        "loss": draw(*losses[: 3 if coding == "vector" else 5]),
        "theta": draw(*[draw.decades(-2, draw(0, 3))] * 7, "auto", "cv"),
        "ridge": draw("auto", draw.decades(-4, 0)) if coding == "vector" else "auto",
        "class_weight": draw(None, None, "balanced", dict(enumerate(draw.decades(-1, 1, C)))),
    }


def penalty(model):
    """What is added to the loss; None where a price is chosen by how many rows there are."""
    if model.loss == "multinomial" and model.theta == "auto":
        return None
    ridge = getattr(model, "ridge", "auto")
    return 0.0 if isinstance(ridge, str) else ridge / 2 * (model.estimator_weights_**2).sum()


def optimum_of_vectors(model, X, y, s):
    """As `optimum`, of class vectors, or of codes and cross-entropy."""
    C, ridge, s = len(model.classes_), 0.0, s / s.sum()
    if str(model.coding) == "vector":
        ridge = 0.0 if isinstance(model.ridge, str) else model.ridge
        H = np.column_stack([np.ones(len(y)), *(h.predict(X) for h in ref.all_stumps(X))])
        H = H[:, [True, *(abs(H[:, 1:].sum(axis=0)) < len(y))]]  # one constant is enough
        apart = np.eye(C)[y][:, None, :] - np.eye(C)[ref.other_classes(y, C)]
        P = np.einsum("ikc,ij->ikjc", apart, H).reshape(len(y), C - 1, -1)
        w = cp.Variable(P.shape[2])
        used = cp.sum(cp.norm(cp.reshape(w, (H.shape[1], C), order="C"), 2, axis=1))
    else:
        P = ref.class_columns(X, y)[0]
        w = cp.Variable(P.shape[2], nonneg=True)
        used = cp.sum(w)
    z = [-P[:, k] @ w for k in range(C - 1)]
    if model.loss == "multinomial":
        value = s @ cp.log_sum_exp(cp.vstack([0 * z[0], *z]), axis=0)
    else:
        value = cp.log_sum_exp(cp.hstack(z) + np.tile(np.log(s / (C - 1)), C - 1))
    value += ridge / 2 * cp.sum_squares(w)
    assert programs.solve(cp.Problem(cp.Minimize(value), [used <= model.theta_]))
    w = w.value * min(1.0, model.theta_ / used.value)
    w = w if str(model.coding) == "vector" else programs.feasible(w, model.theta_)
    return total(model, P @ w, s) + ridge / 2 * w @ w


# ---------------------------------------------------------------- one fit


def fitted(model, *data):
    """The model, and the warnings of its fit."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ConvergenceWarning)
        return model.fit(*data), [str(w.message) for w in warned]


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

    s, classes = np.ones(n) if weight is None else weight, getattr(model, "class_weight", None)
    s = s / np.bincount(y, s)[y] if classes == "balanced" else s
    s = s * [classes[c] for c in y] if isinstance(classes, dict) else s
    rows = X[s > 0], y[s > 0], s[s > 0]
    check(model, *rows, warned)
    proof, weighs = model.certificate_, penalty(model) is not None
    exact = "stumps on exact ranks" in proof.hypothesis_class and np.isfinite(proof.gap)
    if weighs and exact and n <= SMALL and proof.theta > 0.0:
        best, rounding = optimum(model, *rows), 1.0 + abs(proof.primal) + proof.theta
        assert proof.dual <= best + 1e-10 * rounding
        assert best <= proof.primal + 1e-5 * rounding, "the reference is not solved"

    again = clone(model).set_params(**{"n_jobs": draw(1, 2)} if "n_jobs" in vars(model) else {})
    order, other = draw.rng.permutation(n), weight
    if classes is None and (weight is None or weight.dtype == int):  # copies, without weights
        copies = 1 + weighs if weight is None else weight
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
def test_attack(number):
    told = [f"again by: make attack FROM={number} FITS=1"]
    try:
        attack(Draw(number), told.append)
    except BaseException as error:
        error.add_note("\n".join(told))
        raise
