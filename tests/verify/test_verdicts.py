"""What fits claim is verified, and what is no longer true is not, with the reason."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)

from tcboost import (
    AdaBoostECC,
    AdaBoostMO,
    MultiBoostECC,
    MultiBoostHinge,
    MultiBoostMO,
    TCBoostClassifier,
    verify,
)
from tcboost.model.claim import RowWeights
from tcboost.paper import datasets

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ROUNDS = {"max_iter": 25}
DRAWN = {"random_state": 0, **ROUNDS}
DEFAULTS = {
    "chosen": TCBoostClassifier(),
    "sparse": TCBoostClassifier(alpha=1.0, l1_ratio=1.0),
    "half": TCBoostClassifier(alpha=0.5, l1_ratio=0.5),
    "curves": TCBoostClassifier(alpha=2.0, l1_ratio=0.01),
    "few rules": TCBoostClassifier(alpha=0.1, l1_ratio=0.5, max_rules=3),
    "balanced": TCBoostClassifier(alpha=1.0, l1_ratio=0.5, class_weight="balanced"),
    "class weights": TCBoostClassifier(alpha=1.0, l1_ratio=0.5, class_weight={0: 3.0, 1: 0.5}),
    "levels": TCBoostClassifier(alpha=1.0, l1_ratio=0.5, categorical_features=[0, 1]),
    "constant": TCBoostClassifier(alpha=1e9, l1_ratio=0.5),
}
PAPER = {
    "AdaBoostMO": AdaBoostMO("ovr", **ROUNDS),
    "AdaBoostMO, logistic": AdaBoostMO("ovr", loss="logistic", **ROUNDS),
    "AdaBoostMO, squared hinge": AdaBoostMO("ecoc", loss="squared_hinge", max_iter=8),
    "AdaBoostECC": AdaBoostECC(**DRAWN),
    "AdaBoostECC, runs": AdaBoostECC("runs", loss="logistic", **DRAWN),
    "AdaBoostECC, learned": AdaBoostECC("learned", **DRAWN),
    "AdaBoostECC, fixed": AdaBoostECC("ovr", **DRAWN),
    "AdaBoostECC, bins": AdaBoostECC(max_bins=4, **DRAWN),
    "MultiBoostMO": MultiBoostMO("ovr", theta=3.0, **ROUNDS),
    "MultiBoostMO, logistic": MultiBoostMO("ovr", loss="logistic", **ROUNDS),
    "MultiBoostMO, growing": MultiBoostMO("ovr", theta="growing", **ROUNDS),
    "MultiBoostECC": MultiBoostECC(theta=3.0, **DRAWN),
    "MultiBoostECC, runs": MultiBoostECC("runs", theta=3.0, loss="squared_hinge", **DRAWN),
    "MultiBoostECC, learned": MultiBoostECC("learned", theta=3.0, loss="logistic", **DRAWN),
    "MultiBoostECC, fixed": MultiBoostECC("ovr", theta=1.0, loss="logistic", **DRAWN),
    "MultiBoostECC, one round": MultiBoostECC(theta=1e-9, max_iter=1, random_state=0),
    "MultiBoostHinge": MultiBoostHinge("ovr", theta=1.0, **ROUNDS),
    "MultiBoostHinge, ecoc": MultiBoostHinge("ecoc", theta=20.0, **ROUNDS),
}


def missing(X, share):
    X = X.copy()
    X[np.random.default_rng(5).random(X.shape) < share] = np.nan
    return X


def rounded(X):
    return np.round(X / np.maximum(X.std(axis=0), 1e-9))


@functools.cache
def data(name):
    if name == "two classes":
        X, y = load_breast_cancer(return_X_y=True)
        return X[::2, :8], y[::2]
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X[::6], y[::6]
    if name == "ties":
        X, y = load_iris(return_X_y=True)
        return np.round(X), y
    if name == "made":
        X, y = make_classification(300, 6, n_informative=4, n_classes=4, random_state=1)
        return rounded(X), y
    if name in ("glass", "svmguide4"):
        return datasets.load(name, None)
    X, y = {"iris": load_iris, "wine": load_wine}[name.split()[0]](return_X_y=True)
    return (missing(X, 0.2), y) if "missing" in name else (X, y)


SMALL = ["wine missing", "two classes", "ties"]
EIGHT = [*SMALL, "wine", "iris", "digits", "made", "iris missing"]


def check(model, X, y, weight=None):
    """Verified with rows in any order, and no worse than claimed."""
    claim = model.fit(X, y, weight).additive_.claim
    order = np.random.default_rng(0).permutation(len(y))
    found = verify(model, X[order], y[order], None if weight is None else weight[order])
    assert found, str(found)
    assert found.problems == ()
    assert found.loss == pytest.approx(claim.primal, rel=1e-12, abs=1e-12)
    assert found.gap <= claim.primal - claim.dual + 1e-8
    assert found.gap <= found.gap_all_thresholds + 1e-12
    return found


def weights(y):
    weight = np.random.default_rng(3).random(len(y))
    weight[::7] = 0.0
    return weight


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("kind", [*DEFAULTS, *PAPER])
def test_fits_are_verified(kind, name):
    check({**DEFAULTS, **PAPER}[kind], *data(name))


@pytest.mark.parametrize("kind", [*DEFAULTS, *PAPER])
def test_fits_with_weights_are_verified(kind):
    X, y = data("wine missing")
    check({**DEFAULTS, **PAPER}[kind], X, y, weights(y))


@pytest.mark.parametrize("kind", PAPER)
def test_fits_that_held_rows_out_are_verified(kind):
    X, y = data("wine missing")
    X, y = np.vstack([X, X[:20]]), np.append(y, y[:20])  # copies are held out together
    model = PAPER[kind].set_params(early_stopping=True, n_iter_no_change=3)
    check(model, X, y)
    with pytest.raises(ValueError, match="give the estimator"):
        verify(model.additive_, X, y)
    model.set_params(early_stopping=False)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", EIGHT)
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("kind", [*DEFAULTS, *PAPER])
def test_every_fit_is_verified(kind, early, name, weighted):
    X, y = data(name)
    model = {**DEFAULTS, **PAPER}[kind]
    if kind in DEFAULTS:
        if early:
            pytest.skip("holds no rows out")
        check(model, X, y, weights(y) if weighted else None)
        return
    model.set_params(early_stopping=early)
    check(model, X, y, weights(y) if weighted else None)
    model.set_params(early_stopping=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["glass", "svmguide4"])
@pytest.mark.parametrize("kind", [*DEFAULTS, *PAPER])
def test_fits_on_sets_of_the_paper_are_verified(kind, name, data_dir):
    X, y = datasets.load(name, data_dir)
    check({**DEFAULTS, **PAPER}[kind], X, y)


@pytest.mark.parametrize("kind", ["curves", "AdaBoostECC", "MultiBoostECC, learned"])
def test_decimals_say_the_same(kind):
    X, y = data("wine missing")
    model = {**DEFAULTS, **PAPER}[kind].fit(X, y)
    one, other = verify(model, X, y), verify(model, X, y, arithmetic="decimal")
    assert other
    assert other.loss == pytest.approx(one.loss, rel=1e-14)
    assert other.bound == pytest.approx(one.bound, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("name", ["wine", "iris", "two classes"])
def test_rounded_models_have_bounds(name):
    X, y = data(name)
    model = TCBoostClassifier(alpha=1.0, l1_ratio=0.5).fit(X, y)
    found, short = verify(model, X, y), verify(model.additive_.rounded(2), X, y)
    assert short
    assert 0 <= short.gap < found.gap + 0.05
    assert short.loss + 1e-12 >= found.bound


def test_the_verdict_is_a_sentence():
    X, y = data("wine")
    model = TCBoostClassifier(alpha=1.0, l1_ratio=0.01).fit(X, y)
    found = verify(model, X, y)
    text = str(found)
    for told in ("178 rows", "cross-entropy", "class vectors", "claimed cuts", "log loss"):
        assert told in text
    assert f"{found.gap:.3g}" in text
    assert f"{found.gap_all_thresholds:.3g}" in text
    y = np.append(y[1:], y[0])
    worse = verify(model, X, y)
    assert str(worse).startswith("Not verified")
    assert worse.problems[0] in str(worse)


@pytest.mark.parametrize("kind", PAPER)
def test_constant_models_are_verified(kind):
    X, y = np.ones((8, 2)), np.arange(8) % 2
    check(PAPER[kind], X, y)
    check(PAPER[kind], X, np.minimum(np.arange(8), 2))


def test_rounded_models_may_be_beyond_the_budget():
    X, y = data("wine")
    model = MultiBoostECC(theta=3.0, **DRAWN).fit(X, y)
    short = verify(model.additive_.rounded(1), X, y)
    assert short
    assert short.loss - short.bound == short.gap
    assert f"{short.budget:.6g}" in str(short)


# ---------------------------------------------------------------- what is no longer true


@functools.cache
def fitted(kind):
    X, y = data("wine missing")
    return {**DEFAULTS, **PAPER}[kind].fit(X, y).additive_, X, y


MUTABLE = ["half", "curves", "AdaBoostECC", "MultiBoostMO", "MultiBoostECC, fixed"]
MUTABLE += ["MultiBoostHinge", "AdaBoostMO, logistic", "MultiBoostECC, runs"]


def claiming(model, **changes):
    return replace(model, claim=replace(model.claim, **changes))


def refused(model, X, y, told, **options):
    found = verify(model, X, y, **options)
    assert not found
    assert any(told in text for text in found.problems), str(found)


@pytest.mark.parametrize("kind", MUTABLE)
def test_another_table_row_or_label_has_another_loss(kind):
    model, X, y = fitted(kind)
    term = max(model.terms, key=lambda t: np.abs(t.table).max())
    table = term.table.copy()
    table[1, 0] += 0.25
    terms = tuple(replace(t, table=table) if t is term else t for t in model.terms)
    refused(replace(model, terms=terms), X, y, "the loss is")
    other = y.copy()
    other[0] = 2
    refused(model, X, other, "the loss is")
    rows = X.copy()
    # The largest jump of the model is crossed by rows.
    jumps = [
        (np.abs(np.diff(t.table[1:], axis=0)).sum(axis=1).max(initial=0), t)
        for t in model.terms
    ]
    t = max(jumps, key=lambda pair: pair[0])[1]
    j, cut = t.inputs[0], t.axes[0].cuts
    rows[rows[:, j] <= cut[0], j] = cut[-1] + 100.0
    refused(model, rows, y, "the loss is")
    refused(model, X[1:], y[1:], "rows of positive weight")
    refused(model, X, y, "the loss is", sample_weight=1.0 + (np.arange(len(y)) == 0))


@pytest.mark.parametrize("kind", MUTABLE)
def test_numbers_better_than_the_truth(kind):
    model, X, y = fitted(kind)
    claim = model.claim
    found = verify(claiming(model, primal=None, dual=None), X, y)  # the best bound there is
    refused(claiming(model, primal=claim.primal - 1e-6), X, y, "the loss is")
    refused(claiming(model, dual=found.bound + 1e-6 * (1 + abs(claim.primal))), X, y, "the gap")
    refused(claiming(model, primal=claim.primal - 1e-6, dual=None), X, y, "the loss is")
    refused(claiming(model, primal=None, dual=claim.primal), X, y, "the gap")
    for wrong in (np.nan, np.inf):
        assert not verify(claiming(model, primal=wrong), X, y)
    every = tuple(range(X.shape[1]))
    refused(claiming(model, unused_features=every), X, y, "claimed to be unused")


@pytest.mark.parametrize("kind", [k for k in MUTABLE if k not in DEFAULTS])
def test_another_budget(kind):
    model, X, y = fitted(kind)
    theta = model.claim.theta
    for other, told in ((theta / 2, "more than theta"), (theta * 2, "the gap")):
        if told == "the gap" and model.claim.dual == 0.0:
            continue  # the least that this loss can be, for any budget
        refused(claiming(model, theta=other), X, y, told)
    refused(claiming(model, ridge=0.1), X, y, "a ridge of 0.1")


@pytest.mark.parametrize("kind", ["half", "curves", "few rules"])
def test_other_penalties(kind):
    model, X, y = fitted(kind)
    for name in ("penalty", "ridge", "intercept_ridge"):
        value = getattr(model.claim, name)
        refused(claiming(model, **{name: value * 1.01}), X, y, "the loss is")


def test_other_cuts():
    model, X, y = fitted("curves")
    cuts = list(model.claim.cuts)
    j = model.terms[0].inputs[0]
    used = model.terms[0].axes[0].cuts
    cuts[j] = np.setdiff1d(cuts[j], used[:1])
    refused(claiming(model, cuts=tuple(cuts)), X, y, "not among the claimed cuts")
    refused(claiming(model, cuts="all"), X, y, "the gap found")
    moved = replace(model.terms[0].axes[0], cuts=used + np.ptp(X[:, j][X[:, j] > 0]) / 5)
    terms = (replace(model.terms[0], axes=(moved,)), *model.terms[1:])
    refused(replace(model, terms=terms), X, y, "the loss is")
    cuts[j] = cuts[j][::-1]
    with pytest.raises(ValueError, match=f"feature {j} do not ascend"):
        verify(claiming(model, cuts=tuple(cuts)), X, y)


@pytest.mark.parametrize("kind", MUTABLE)
def test_a_wrong_witness_only_enlarges_the_gap(kind):
    model, X, y = fitted(kind)
    truth = verify(model, X, y)
    if model.claim.loss == "hinge":
        w = model.claim.witness
        others = [None, RowWeights(w.place[::-1], w.weight), RowWeights(w.place, 9 * w.weight)]
        others.append(RowWeights(w.place - 10**6, w.weight))
    else:
        others = [
            replace(
                model,
                claim=None,
                intercept=model.intercept + 8.0 * (np.arange(len(model.intercept)) == 0),
            )
        ]
        term = model.terms[0]
        others.append(replace(model, terms=(replace(term, inputs=(99,)),)))
        others.append(replace(model, terms=(replace(term, table=term.table[:-1]),)))
        others.append(replace(model, intercept=np.full_like(model.intercept, np.nan)))
        others.append(replace(model, intercept=np.zeros(len(model.intercept) + 1)))
    for witness in others:
        found = verify(claiming(model, witness=witness), X, y)
        assert found.loss == truth.loss
        if model.claim.loss == "hinge":
            assert found.bound <= truth.bound + 1e-12
        assert found.bound <= found.loss + 1e-12


def test_a_wrong_split_of_missing_values_only_costs_more():
    model, X, y = fitted("half")
    truth = verify(model, X, y)
    right = tuple(None if R is None else R + 0.01 for R in model.claim.missing_right)
    found = verify(claiming(model, missing_right=right), X, y)
    assert found.loss > truth.loss
    assert not found


def test_another_split_of_rows_held_out():
    X, y = data("wine missing")
    model = AdaBoostMO("ovr", early_stopping=True, **ROUNDS).fit(X, y)
    assert verify(model, X, y)
    model.validation_fraction = 0.3
    refused(model, X, y, "rows held out")


def test_unscaled_probabilities_stand_beside():
    X, y = data("wine")
    model = MultiBoostECC(theta=3.0, **DRAWN).fit(X, y)
    scores = model.decision_function(X)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    assert f"{-np.log(p[np.arange(len(y)), y]).mean():.4g}"[:5] in str(verify(model, X, y))
