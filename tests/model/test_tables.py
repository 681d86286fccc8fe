"""Stump models compiled into tables: against plain loops, and against the stumps themselves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import tcboost
from reference import kernels
from tcboost._core import table_scores
from tcboost.ensemble import Ensemble
from tcboost.margins import Codeword, Pairwise
from tcboost.oracles import Column, Stump
from tcboost.step_functions import Steps, additive_model

RNG = np.random.RandomState(0)


def rows(n, n_features, missing=0.1):
    X = RNG.randint(-3, 4, (n, n_features)).astype(float)
    X[RNG.rand(*X.shape) < missing] = np.nan
    return X


def stumps(n, n_features):
    """Some cut at a value of the data, some constant, some that tell missing values alone."""
    special = [-np.inf, np.inf]
    return [
        Stump(
            RNG.randint(n_features),
            special[j % 2] if j % 7 == 0 else RNG.randint(-4, 4) / 2,
            RNG.choice([-1, 1]),
            bool(j % 2 == 0 if j % 7 == 0 else RNG.randint(2)),
        )
        for j in range(n)
    ]


def summed(hs, v, weigh=None):
    """The tables of ``sum_j h_j v_j``."""
    v = np.asarray(v, dtype=float)
    about = {"n_features": 8, "feature_names": None, "classes": np.arange(v.shape[1])}
    return additive_model(Steps.of_stumps(hs), v, np.zeros(v.shape[1]), weigh, **about)


def arrays_of(n_features, width):
    """What the kernel takes: multiples of a half, of which any sum is exact."""
    cuts = [np.unique(RNG.randint(-4, 4, RNG.randint(5)) / 2) for _ in range(n_features)]
    start = np.cumsum([0, *map(len, cuts)])
    table = np.zeros((start[-1] + 2 * n_features, width + -width % 4))
    base = np.zeros(table.shape[1])
    table[:, :width] = RNG.randint(-99, 99, (len(table), width)) / 2
    base[:width] = RNG.randint(-99, 99, width) / 2
    return np.arange(n_features), start, np.concatenate(cuts), table, base


@pytest.mark.parametrize("width", [1, 3, 4, 7, 8, 9, 26])
@pytest.mark.parametrize("n", [1, 63, 64, 1025])
def test_kernel_is_its_twin(n, width):
    X, arrays = rows(n, 5), arrays_of(5, width)
    expected = kernels.table_scores(X, *arrays, width)
    for n_threads in (1, 3):
        assert table_scores(X, *arrays, width, False, n_threads).tolist() == expected
        best = table_scores(X, *arrays, width, True, n_threads)
        assert best.tolist() == [row.index(max(row)) for row in expected]
    assert table_scores(np.asfortranarray(X), *arrays, width, False, 2).tolist() == expected
    wide = np.full((n, 10), 7.0)
    wide[:, ::2] = X
    assert table_scores(wide[:, ::2], *arrays, width, False, 2).tolist() == expected


@pytest.mark.parametrize(
    "cuts",
    [
        [-np.inf, 1.0],
        [-np.inf, np.inf],
        [-1e308, 0.0, 1e308],  # their range is not a number
        [0.0, 5e-324, 1e-323],
        [1.0, np.nextafter(1.0, 2.0), 2.0, 1e300],  # nearly all in one bucket
        np.sort(np.random.RandomState(1).standard_cauchy(300)),
        np.arange(100) / 7.0,
    ],
    ids=["constant", "none", "wide", "tiny", "skew", "tails", "even"],
)
def test_places_among_any_cuts(cuts):
    """Rows enough for buckets, with values at the cuts and next to them."""
    cuts = np.asarray(cuts)
    hs = [Stump(0, c, 1, True) for c in cuts]
    model = summed(hs, np.eye(len(hs)))
    near = [cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf), [np.nan, 0.0]]
    X = np.resize(np.concatenate(near), 2000)[:, None]
    X = X[X[:, 0] != -np.inf]  # which no estimator takes
    expected = np.column_stack([h.predict(X) for h in hs])
    np.testing.assert_array_equal(np.sign(model.outputs(X, 1)), expected)


@pytest.mark.parametrize("n_stumps", [1, 2, 200])
def test_tables_are_the_sum_of_the_stumps(n_stumps):
    X, hs, v = rows(300, 6), stumps(n_stumps, 6), RNG.randn(n_stumps, 4)
    expected = sum(h.predict(X)[:, None] * a for h, a in zip(hs, v, strict=True))
    np.testing.assert_allclose(summed(hs, v).outputs(X), expected, atol=1e-13)


@pytest.mark.parametrize("kind", ["coded", "bits"])
def test_an_ensemble_is_the_sum_of_its_columns(kind):
    X, T, L = rows(100, 4), 12, 3
    w = RNG.rand(T)
    w[3] = 0.0
    code = np.array([1, -1, 1], dtype=np.int8)
    columns = [
        Column(tuple(stumps(L, 4)))
        if kind == "bits"
        else Column(tuple(stumps(1, 4)), code * RNG.choice([-1, 1]))
        for _ in range(T)
    ]
    M = np.array([[1, 1, -1], [-1, 1, 1], [1, -1, 1]], dtype=np.int8)
    model = Ensemble(columns, w, Codeword(M) if kind == "bits" else Pairwise(L))
    expected = sum(a * c.outputs(X) for c, a in zip(columns, w, strict=True))
    np.testing.assert_allclose(model.outputs(X), expected, atol=1e-13)
    np.testing.assert_allclose(model.scores(X), model.margin.scores(expected), atol=1e-13)


def test_ties_are_ties():
    """Sums of the same numbers, in an order of their own for each class."""
    w = np.array([0.1, 0.7, 1 / 3, 1e-9])
    X = RNG.randn(50, 8) + 10.0
    hs = [Stump(d, 0.0, 1, True) for d in range(8)]
    v = np.zeros((8, 2))
    v[:4, 0], v[4:, 1] = w, w[::-1]
    F = summed(hs, v).outputs(X, 1)
    assert (F[:, 0] == F[:, 1]).all()
    assert not summed(hs, v).best(X, 1).any()
    np.testing.assert_allclose(F, w.sum(), rtol=1e-15)


def test_a_model_without_columns_scores_zero():
    assert (
        Ensemble([], np.zeros(0), Pairwise(3)).outputs(rows(5, 2)).tolist() == [[0.0] * 3] * 5
    )


def test_tables_too_large_are_not_made(monkeypatch):
    columns = [Column((h,), np.array([1, -1], dtype=np.int8)) for h in stumps(20, 3)]
    X, model = rows(50, 3), Ensemble(columns, np.ones(20), Pairwise(2))
    expected = model.outputs(X)
    monkeypatch.setattr("tcboost.ensemble._CELLS", 39)
    other = Ensemble(columns, np.ones(20), Pairwise(2))
    np.testing.assert_allclose(other.outputs(X), expected, atol=1e-13)
    assert other.tables is None
    assert model.tables is not None


@pytest.mark.parametrize(
    "model",
    [
        tcboost.AdaBoostMO(max_iter=30),
        tcboost.AdaBoostMO(np.tile(1 - 2 * np.eye(3, dtype=int), 21), max_iter=30),
        tcboost.AdaBoostECC(max_iter=60, random_state=0),
        tcboost.TCBoostClassifier(alpha=0.5, l1_ratio=0.5),
    ],
)
def test_a_row_scores_the_same_in_any_company(model):
    X, X_new, y, _ = train_test_split(*load_wine(return_X_y=True), random_state=0)
    model.fit(X, y)
    whole = model.decision_function(X_new)
    np.testing.assert_array_equal(model.predict(X_new), model.classes_[whole.argmax(axis=1)])
    one_by_one = np.vstack([model.decision_function(x[None]) for x in X_new])
    assert whole.tobytes() == one_by_one.tobytes()
    assert whole.tobytes() == model.set_params(n_jobs=1).decision_function(X_new).tobytes()
    many = np.tile(X_new, (100, 1))
    assert model.set_params(n_jobs=3).decision_function(many)[: len(X_new)].tobytes() == (
        whole.tobytes()
    )


def test_coefficients_changed_by_hand_count():
    X, y = load_wine(return_X_y=True)
    model = tcboost.AdaBoostECC(max_iter=10, random_state=0).fit(X, y)
    before = model.decision_function(X)
    model.estimator_weights_ = 2.0 * model.estimator_weights_
    np.testing.assert_allclose(model.decision_function(X), 2.0 * before)


def test_kernel_refuses_what_does_not_fit():
    feature, start, cuts, table, base = arrays_of(3, 2)
    with pytest.raises(ValueError, match="no such feature"):
        table_scores(rows(4, 1), feature, start, cuts, table, base, 2, False, 1)
    with pytest.raises(ValueError, match="table"):
        table_scores(rows(4, 3), feature, start, cuts, table[1:], base, 2, False, 1)
    with pytest.raises(ValueError, match="start"):
        table_scores(rows(4, 3), feature, start + 1, cuts, table, base, 2, False, 1)
