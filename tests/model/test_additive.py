"""The fitted model as data: against the rules themselves, and what its form promises."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression

import tcboost
from tcboost.features import Rule
from tcboost.model import AdditiveModel, Levels, Ordered, Term
from tcboost.step_functions import Steps, additive_model

RNG = np.random.RandomState(0)
WINE = load_wine(return_X_y=True)


def answers(rule, X):
    """+1 where the answer is yes."""
    x = X[:, rule.feature]
    if rule.threshold is not None:
        yes = (x > rule.threshold) | (np.isnan(x) & rule.missing_right)
    else:
        yes = np.isnan(x) if math.isnan(rule.level) else x == rule.level
    return np.where(yes, 1.0, -1.0)


def table(n=300, missing=0.2):
    """Numbers in two columns, levels in another; some values missing."""
    X = RNG.randint(0, 9, (n, 3)) / 2.0
    X[RNG.rand(n, 3) < missing] = np.nan
    y = (np.nan_to_num(X[:, 0], nan=1) + np.nan_to_num(X[:, 2]) + RNG.rand(n)).astype(int) % 3
    return X, y


FITS = [
    tcboost.TCBoostClassifier(alpha=2.0, l1_ratio=0.5, categorical_features=[2]),
    tcboost.AdaBoostMO(max_iter=20),
    tcboost.AdaBoostMO(np.tile(1 - 2 * np.eye(3, dtype=int), 3), max_iter=20),
    tcboost.AdaBoostECC(max_iter=30, random_state=0),
    tcboost.MultiBoostECC(max_iter=30, random_state=0),
    tcboost.MultiBoostHinge(max_iter=5),
]


@pytest.mark.parametrize("model", FITS, ids=lambda m: type(m).__name__)
def test_scores_are_those_of_the_estimator(model):
    X, y = table()
    form = model.fit(X, y).additive_
    X_new = np.concatenate([X, [[99.0, -99.0, 99.0], [np.nan] * 3]])
    scores = form.scores(X_new)
    np.testing.assert_array_equal(scores, model.decision_function(X_new))
    np.testing.assert_array_equal(form.classes[form.best(X_new)], model.predict(X_new))
    np.testing.assert_array_equal(form.decoded(form.outputs(X_new)), scores)
    claim, proof = form.claim, model.certificate_
    found = (
        (proof.objective, proof.lower_bound)
        if claim.theta is None
        else (proof.primal, proof.dual)
    )
    assert (claim.primal, claim.dual) == found


@pytest.mark.parametrize("model", FITS, ids=lambda m: type(m).__name__)
def test_tables_are_the_only_ones_of_their_function(model):
    X, y = table()
    weight = RNG.randint(1, 4, len(y)).astype(float)
    form = model.fit(X, y, weight).additive_
    assert [t.inputs for t in form.terms] == sorted({t.inputs for t in form.terms})
    for term in form.terms:
        (j,), (axis,) = term.inputs, term.axes
        cells = axis.cells(X[:, j])
        np.testing.assert_allclose(
            term.weight, np.bincount(cells, weight, axis.n_cells) / weight.sum(), atol=1e-12
        )
        assert np.abs(term.weight @ term.table).max() < 2.0 ** (form.unit + 1)
        steps = (
            np.diff(term.table[1:], axis=0)
            if isinstance(axis, Ordered)
            else (term.table[1:-1] - term.table[-1])
        )
        assert steps.any(axis=1).all()


@pytest.mark.parametrize("model", FITS, ids=lambda m: type(m).__name__)
def test_every_sum_is_exact(model):
    """So that no order of it matters, in no language."""
    X, y = table()
    form = model.fit(X, y).additive_
    units = 2.0**form.unit
    for values in (form.intercept, *(t.table for t in form.terms)):
        assert (values / units == np.rint(values / units)).all()
    most = np.abs(form.intercept) + sum(np.abs(t.table).max(axis=0) for t in form.terms)
    assert (np.abs(form.decoded(np.diag(most))).sum(axis=0).max() / units) < 2.0**53
    for x in X[:20]:
        rows = [form.intercept, *(t.table[t.cells(x[None])][0] for t in form.terms)]
        RNG.shuffle(rows)
        exact = [sum(map(Fraction, column)) for column in zip(*rows, strict=True)]
        assert sum(rows[1:], rows[0]).tolist() == exact


def rules_and_vectors(n):
    """Rules with cuts twice, on either side of missing values, and levels."""
    rules = [Rule(0, RNG.randint(5) / 2.0, bool(RNG.randint(2))) for _ in range(n)]
    rules += [Rule(1, math.inf, True), Rule(1, 0.5, False)]
    rules += [Rule(2, level=level) for level in (0.0, 1.5, 3.0, math.nan)]
    return rules, RNG.randn(len(rules), 3), RNG.randn(3)


ABOUT = {"n_features": 3, "feature_names": None, "classes": np.arange(3)}


def test_rules_of_all_kinds_add_up():
    (rules, v, b), (X, _) = rules_and_vectors(12), table()
    form = additive_model(Steps.of_rules(rules), v, b, **ABOUT)
    expected = b + sum(
        answers(r, X)[:, None] * vector for r, vector in zip(rules, v, strict=True)
    )
    np.testing.assert_allclose(form.scores(X), expected, atol=1e-13)


def test_the_form_does_not_depend_on_the_order_of_the_rules():
    (rules, v, b), (X, _) = rules_and_vectors(30), table()

    def weigh(j, axis):
        return np.bincount(axis.cells(X[:, j]), minlength=axis.n_cells) / len(X)

    order = RNG.permutation(len(rules))
    one = additive_model(Steps.of_rules(rules), v, b, weigh, **ABOUT)
    other = additive_model(
        Steps.of_rules([rules[t] for t in order]), v[order], b, weigh, **ABOUT
    )
    assert one.intercept.tobytes() == other.intercept.tobytes()
    for a, c in zip(one.terms, other.terms, strict=True):
        assert a.table.tobytes() == c.table.tobytes()


def by_hand(decode=None):
    """A couple of a number and a text, a couple of numbers, a text alone."""
    color, size = Levels(("blue", "red")), Ordered(np.array([0.5, 2.0]))
    tables = [RNG.randint(-9, 9, shape) / 4.0 for shape in ((4, 4, 2), (4, 4, 2), (4, 2))]
    terms = (
        Term((0, 1), (size, color), tables[0]),
        Term((0, 2), (size, size), tables[1]),
        Term((1,), (color,), tables[2]),
    )
    classes = np.array(["a", "b", "c"][: 2 if decode is None else 3])
    return AdditiveModel(
        3, None, classes, terms, np.array([0.25, -1.0]), decode=decode, unit=-2
    )


@pytest.mark.parametrize("decode", [None, np.array([[1, 1], [1, -1], [-1, 1]], dtype=np.int8)])
def test_couples_and_text(decode):
    model = by_hand(decode)
    X = np.array(
        [[0.5, "red", 7.0], [np.nan, "green", 1.0], [1.0, None, np.nan], [9, "blue", 0]], object
    )
    places = [[1, 2, 3], [0, 3, 2], [2, 0, 0], [3, 1, 1]]
    F = np.array(
        [
            model.intercept
            + model.terms[0].table[a, b]
            + model.terms[1].table[a, c]
            + model.terms[2].table[b]
            for a, b, c in places
        ]
    )
    scores = F if decode is None else F @ decode.T
    np.testing.assert_array_equal(model.outputs(X), F)
    np.testing.assert_array_equal(model.scores(X), scores)
    np.testing.assert_array_equal(model.best(X), scores.argmax(axis=1))


def test_the_unit_of_a_model_made_by_hand():
    model = by_hand()
    assert AdditiveModel(3, None, model.classes, model.terms, model.intercept).unit == -2
    assert AdditiveModel(3, None, model.classes, (), np.array([0.1, 3.0])).unit == -55
    assert AdditiveModel(3, None, model.classes, (), np.zeros(2)).unit == 0


def test_rounding_is_off_by_half_a_unit():
    X, y = table()
    form = tcboost.TCBoostClassifier(alpha=1.0, l1_ratio=0.01).fit(X, y).additive_
    short = form.rounded(2)
    off = np.abs(short.scores(X) - form.scores(X)).max()
    assert 0 < off <= 0.005 * (1 + len(form.terms))
    assert sum(t.table.size for t in short.terms) <= sum(t.table.size for t in form.terms)
    assert max(len(repr(float(v))) for t in short.terms for v in t.table.ravel()) < 12
    assert short.claim.primal is None


def test_nobody_changes_it():
    form = tcboost.TCBoostClassifier(alpha=1.0, l1_ratio=0.5).fit(*WINE).additive_
    with pytest.raises(ValueError, match="read-only"):
        form.terms[0].table[0] = 7.0
    with pytest.raises(FrozenInstanceError):
        form.unit = 0
    again = pickle.loads(pickle.dumps(form))
    assert again.scores(WINE[0]).tobytes() == form.scores(WINE[0]).tobytes()


def test_coefficients_changed_by_hand_claim_nothing():
    model = tcboost.TCBoostClassifier(alpha=1.0, l1_ratio=0.5).fit(*WINE)
    paper = tcboost.AdaBoostECC(max_iter=5, random_state=0).fit(*WINE)
    before = model.decision_function(WINE[0]), paper.decision_function(WINE[0])
    model.coef_, model.intercept_ = 2.0 * model.coef_, 2.0 * model.intercept_
    paper.estimator_weights_ = 2.0 * paper.estimator_weights_
    for one, scores in zip((model, paper), before, strict=True):
        np.testing.assert_allclose(one.additive_.scores(WINE[0]), 2.0 * scores)
        assert one.additive_.claim is None


@pytest.mark.parametrize(
    "model",
    [
        tcboost.AdaBoostECC(weak_learner="lda", max_iter=3),
        tcboost.AdaBoostECC(weak_learner="product", max_iter=3),
        tcboost.AdaBoostMO(weak_learner=LogisticRegression(), max_iter=2),
        tcboost.AdaBoostSAMME(max_iter=3),
    ],
)
def test_without_tables_there_is_none(model):
    model.fit(*load_iris(return_X_y=True))
    with pytest.raises(AttributeError, match="weak_learner"):
        _ = model.additive_
    assert not hasattr(model, "additive_")


def test_a_constant_model_has_no_terms():
    X = np.zeros((6, 2))
    y = [0, 1, 1, 1, 2, 2]
    for model in (tcboost.TCBoostClassifier(), tcboost.AdaBoostECC(random_state=0)):
        form = model.fit(X, y).additive_
        assert form.terms == ()
        np.testing.assert_array_equal(form.scores(X), model.decision_function(X))
