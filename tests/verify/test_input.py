"""What cannot be verified is refused, with what is wrong."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from tcboost import AdaBoostECC, TCBoostClassifier, verify
from tcboost.model.additive import AdditiveModel, Levels, Ordered, Term
from tcboost.model.claim import Claim


@pytest.fixture(scope="module")
def model():
    return TCBoostClassifier(alpha=2, l1_ratio=0.5).fit(*load_iris(return_X_y=True))


def changed(what, place, value):
    X, y = load_iris(return_X_y=True)
    weight = np.ones(len(y))
    arrays = {"X": X, "y": y, "weight": weight}
    arrays[what] = arrays[what].astype(float)
    arrays[what][place] = value
    return arrays["X"], arrays["y"], arrays["weight"]


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        (changed("X", (0, 1), np.inf), "infinity in column 1"),
        (changed("y", 0, 7), "7.0, which is not among the classes"),
        (changed("y", 0, np.nan), "nan, which is not among the classes"),
        (changed("weight", 0, np.nan), "sample_weight"),
        (changed("weight", 0, -1), "sample_weight"),
        (changed("weight", 0, np.inf), "sample_weight"),
        (changed("weight", slice(None), 0), "sample_weight"),
    ],
)
def test_rows_that_are_none(model, arrays, told):
    with pytest.raises(ValueError, match=told):
        verify(model.additive_, *arrays)
    with pytest.raises(ValueError, match=r"."):
        verify(model, *arrays)


def test_shapes(model):
    X, y = load_iris(return_X_y=True)
    for args in (
        (X[:, :3], y),
        (X[:, 0], y),
        (X[:1], y[:1]),
        (X[:0], y[:0]),
        (X, y[1:]),
        (X, y, np.ones(3)),
        (X, np.column_stack([y, y])),
    ):
        with pytest.raises(ValueError, match="shape"):
            verify(model, *args)
    with pytest.raises(ValueError, match="arithmetic"):
        verify(model, X, y, arithmetic="exact")


def test_names_of_features():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = TCBoostClassifier(alpha=2, l1_ratio=0.5).fit(X, y)
    assert verify(model, X, y)
    with pytest.raises(ValueError, match="features of X are not those of the model"):
        verify(model, X[X.columns[::-1]], y)


def test_models_without_a_claim(model):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="not fitted"):
        verify(TCBoostClassifier(), X, y)
    with pytest.raises(ValueError, match="no claim"):
        verify(replace(model.additive_, claim=None), X, y)
    with pytest.raises(ValueError, match="additive_"):
        verify(AdaBoostECC(3, weak_learner="lda").set_params(coding="ovr").fit(X, y), X, y)
    with pytest.raises(ValueError, match="nothing can be verified"):
        verify("a model", X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", "zero-one"),
        ("margin", "codeword"),
        ("margin", "wide"),
        ("columns", "trees"),
        ("penalty", -1.0),
        ("penalty", 0.0),
        ("penalty", np.nan),
        ("penalty", None),
        ("ridge", -1e-3),
        ("ridge", np.nan),
        ("intercept_ridge", 0.0),
        ("theta", 3.0),
        ("loss", "logistic"),
        ("columns", "bits"),
        ("cuts", (None,)),
        ("class_weight", np.ones(2)),
        ("class_weight", np.array([1.0, -1.0, 1.0])),
        ("missing_right", (np.zeros((1, 1)),)),
    ],
)
def test_claims_that_make_no_sense(model, name, value):
    X, y = load_iris(return_X_y=True)
    wrong = replace(model.additive_, claim=replace(model.additive_.claim, **{name: value}))
    with pytest.raises(ValueError, match="no bound is known"):
        verify(wrong, X, y)


def by_hand(**changes):
    """Levels that are words, and numbers."""
    axes = Levels(("red", "green")), Ordered(np.array([1.5]))
    tables = (
        np.array([[0, 0], [0.5, -0.5], [-0.25, 0.25], [0, 0]]),
        np.array([[0, 0], [-0.5, 0.5], [0.5, -0.5]]),
    )
    terms = tuple(
        Term((j,), (axis,), table)
        for j, (axis, table) in enumerate(zip(axes, tables, strict=True))
    )
    claim = Claim(
        *("cross-entropy", "pairwise", "vectors", None, 0.05, 0.1, 0.1, "all", (0,)),
        *(None, None, "by hand"),
        n_rows=6,
    )
    about = {"classes": np.array(["no", "yes"]), "terms": terms, "unit": -10, "claim": claim}
    return AdditiveModel(
        **{"n_features": 2, "feature_names": None, "intercept": np.zeros(2), **about, **changes}
    )


WORDS = np.array(
    [["red", 1.0], ["green", 2.0], [None, 3.0], ["blue", np.nan], ["red", 2.0], ["green", 1.0]],
    dtype=object,
)
LABELS = np.array(["no", "yes", "no", "yes", "yes", "no"])


def test_levels_may_be_words():
    model = by_hand()
    found = verify(model, WORDS, LABELS)
    assert found
    F = model.outputs(WORDS)
    p = np.exp(F) / np.exp(F).sum(axis=1, keepdims=True)
    log_loss = -np.log(p[np.arange(6), (LABELS == "yes").astype(int)]).mean()
    # Half of what each level and the cut tell apart; missing values of the second feature are
    # half way, which a rule of their own says, and none else.
    v = [np.array([0.25, -0.25]), np.array([-0.125, 0.125]), np.array([0.5, -0.5])]
    alone, b = np.array([0.25, -0.25]), np.array([0.375, -0.375])
    rules = np.array([*v, alone])
    cost = 0.05 * np.linalg.norm(rules, axis=1).sum() + 0.05 * (rules**2).sum()
    assert found.loss == pytest.approx(log_loss + cost + 0.05 * (b**2).sum(), rel=1e-12)
    wrong = WORDS.copy()
    wrong[0, 1] = "one"
    with pytest.raises(ValueError, match="feature 1"):
        verify(model, wrong, LABELS)


def test_models_out_of_their_class():
    term = Term((0, 1), (Levels(("red",)), Ordered(np.array([1.5]))), np.zeros((3, 3, 2)))
    found = verify(by_hand(terms=(term,)), WORDS, LABELS)
    assert not found
    assert "couples" in found.problems[0]
    found = verify(by_hand(unit=0), WORDS, LABELS)
    assert not found
    assert "multiples of 2^0" in found.problems[0]
    claim = replace(by_hand().claim, categorical=())
    found = verify(by_hand(claim=claim), WORDS, LABELS)
    assert not found
    assert "levels" in found.problems[0]
    short = Term((1,), (Ordered(np.array([1.5])),), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="terms"):
        verify(by_hand(terms=(short,)), WORDS, LABELS)
    descending = Term((1,), (Ordered(np.array([1.5, 0.5])),), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="terms"):
        verify(by_hand(terms=(descending,)), WORDS, LABELS)
