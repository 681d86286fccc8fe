"""The kernels over rows x margins, against plain loops; threads never matter."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from sklearn.base import clone

import tcboost
from reference import kernels as ref
from tcboost import _core

SIZES = [(1, 1), (7, 2), (300, 6), (9000, 3)]  # the last one is worth threads


def problem(n, width, seed=0, spread=3.0, even=False):
    rng = np.random.default_rng(seed)
    weight = np.full(n, 1 / n) if even else rng.dirichlet(np.ones(n))
    return spread * rng.normal(size=(n, width)), weight, rng


def integers(z, weight, n_threads=1):
    u = np.full(z.shape, -1)
    return u, *_core.dual_integers(z, weight, u, n_threads)


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("spread", [0.0, 1.0, 50.0])
def test_dual_integers(shape, even, spread):
    z, weight, _ = problem(*shape, spread=spread, even=even)
    expected, loss = ref.log_loss_weights(z, weight)
    u, top, bits, total, least = integers(z, weight)
    assert least == z.min()
    assert total == sum(u.ravel().tolist()) <= 2**60
    assert (u >= 0).all()
    assert top + np.log(np.ldexp(float(total), -bits)) == pytest.approx(loss, abs=1e-13)
    assert total > 2**58  # no digit is given away
    np.testing.assert_allclose(u / total, expected, rtol=1e-14, atol=2.0**-58)
    for n_threads in (2, 3):
        again = integers(z, weight, n_threads)
        np.testing.assert_array_equal(again[0], u)
        assert again[1:] == (top, bits, total, least)


@pytest.mark.parametrize("first", [-9.0, 9.0])
def test_rows_that_mislead_about_the_scale(first):
    """The first chunk, by which the sum is guessed, weighs more or less than the others."""
    z, weight, _ = problem(9000, 3)
    z[:1300] += first
    u, _, _, total, _ = integers(z, weight)
    expected, _ = ref.log_loss_weights(z, weight)
    assert 2**58 < total == u.sum() <= 2**60
    np.testing.assert_allclose(u / total, expected, rtol=1e-14, atol=2.0**-57)


def test_exponentials_to_the_last_place():
    """Of one row against many: every weight is exp of its margin, as exactly as can be."""
    z = np.linspace(0.0, 36.0, 20_001)[:, None]
    u, _, bits, *_ = integers(z, np.full(len(z), 1.0))
    expected = np.ldexp(np.exp(-z[:, 0].astype(np.longdouble)), bits)
    error = np.abs(u[:, 0] - expected)
    assert (error <= 0.5 + 2.5e-16 * expected).all()


@pytest.mark.parametrize("shape", SIZES)
def test_margins(shape):
    z, _, rng = problem(*shape)
    n, width = shape
    y = rng.integers(width + 1, size=n)
    outputs = rng.choice(np.array([-1, 1], dtype=np.int8), size=(n, width + 1))
    z[rng.random(z.shape) < 0.3] = 0.0
    wide = 20 * n
    big = [np.tile(a, (20, 1)) if a.ndim > 1 else np.tile(a, 20) for a in (outputs, y, z)]
    for n_threads, (o, labels, margins) in [(1, (outputs, y, z)), (3, big)]:
        rho = _core.pairwise_margins(o, labels, n_threads)
        assert rho.dtype == np.int8
        assert rho[:n].tolist() == ref.pairwise_margins(outputs, y)
        scores = rng.normal(size=o.shape)
        real = _core.pairwise_margins(scores, labels, n_threads)
        assert real.tolist() == ref.pairwise_margins(scores, labels)
        wrong = _core.pairwise_wrong(margins, labels, n_threads)
        assert wrong[:n].tolist() == ref.pairwise_wrong(z, y)
    assert len(rho) == wide


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("n_bins", [[3, 5, 2], [3, 900, 2]])  # many: in two steps
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("coded", [False, True])
def test_weights_and_their_sums_at_once(dtype, n_bins, shape, coded):
    (z, weight, rng), (n, width) = problem(*shape), shape
    z[: n // 7] += 9.0  # misleads about the scale
    if dtype == np.uint8:
        n_bins = np.minimum(n_bins, 256).tolist()
    y = rng.integers(width + 1, size=n)
    M = rng.choice(np.array([-1, 1], dtype=np.int8), size=(width + 1, width))
    M = M if coded else None
    cells = np.asfortranarray(
        np.column_stack([rng.integers(b, size=n) for b in n_bins]).astype(dtype)
    )
    offset = np.cumsum([0, *n_bins])
    place = np.concatenate([np.arange(b) for b in n_bins]).astype(np.int32)
    arrays = offset, np.arange(3), place, offset
    u, *found = integers(z, weight)
    expected = _core.prefix_sums(cells, u, y, M, arrays, 1)
    for n_threads in (1, 2, 3):
        sums, told = _core.weigh_and_sum(z, weight, cells, y, M, arrays, n_threads)
        np.testing.assert_array_equal(sums, expected)
        assert told == tuple(found)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_stump_signs(dtype):
    """Of a feature that shares its group, and of one with a group for itself."""
    rng = np.random.default_rng(0)
    n, of_group = 5000, rng.integers(0, 9, size=200)
    bins = of_group, np.arange(256)
    place, start = np.concatenate(bins).astype(np.int32), np.array([0, 200, 456])
    cells = np.asfortranarray(rng.integers([256, 200], size=(n, 2)).astype(dtype))
    group = np.array([1, 0])
    cuts = 0, 4, 7, 254
    every = [(d, cut, right) for d in (0, 1) for cut in cuts for right in (True, False)]
    feature, cut_of = np.array([one[:2] for one in every]).T.copy()
    candidates = feature, cut_of, np.array([right for *_, right in every])
    rule = cells, group, place, start, candidates
    stumps = [(j, sign) for j in range(len(every)) for sign in (1, -1)]
    expected = [
        ref.stump_signs(cells[:, group[d]], bins[d], cut, right, sign)
        for d, cut, right in every
        for sign in (1, -1)
    ]
    np.testing.assert_array_equal(_core.stump_signs(*rule, stumps), np.transpose(expected))
    for j, one in enumerate(stumps):
        found = _core.stump_signs(*rule, [one])
        assert found.shape == (n, 1)
        assert found[:, 0].tolist() == expected[j]
    assert _core.stump_signs(*rule, []).shape == (n, 0)
    with pytest.raises(ValueError, match="no such candidate"):
        _core.stump_signs(*rule, [(len(every), 1)])
    with pytest.raises(ValueError, match="no such feature"):
        _core.stump_signs(*rule[:4], (feature + 1, *candidates[1:]), stumps)
    with pytest.raises(ValueError, match="differ in their sizes"):
        _core.stump_signs(*rule[:4], (feature[1:].copy(), *candidates[1:]), stumps)


@pytest.mark.parametrize("width", [1, 3, 10])
def test_stump_edges_and_the_best_of_them(width):
    rng = np.random.default_rng(width)
    sums = rng.integers(-5, 6, size=(30, width))
    left, missing = rng.integers(-1, 30, size=(2, 40))
    A = _core.stump_edges(sums, left, missing, (29, 3))
    np.testing.assert_array_equal(A, ref.stump_edges(sums, left, missing, (29, 3)))
    codes = np.where(rng.random((width, 5)) < 0.5, 1, -1).astype(np.int8)
    for given in (codes, codes[:, :1].copy(), None):
        assert _core.largest(A, given) == ref.largest(A, given)
    assert _core.largest(0 * A, None) == [(0, 0)]
    for matrix, given in ((A[:0], codes), (A, np.ones((width + 1, 1), dtype=np.int8))):
        with pytest.raises(ValueError, match="A has no rows, or not one column"):
            _core.largest(matrix, given)
    for n_stumps in (1, width):
        places = array("q", rng.integers(len(A), size=6 * n_stumps).tolist())
        signs = array("q", rng.choice([-1, 1], size=6 * width).tolist())
        expected = ref.column_edges(A, places.tolist(), signs.tolist())
        assert _core.column_edges(A, places, signs).tolist() == expected
        with pytest.raises(ValueError, match="columns need a sign"):
            _core.column_edges(A, places, signs[1:] if width > 1 else signs[:0])
        with pytest.raises(ValueError, match="no such row"):
            _core.column_edges(A[: max(places)], places, signs)
    assert _core.column_edges(A, array("q"), array("q")).size == 0
    starts = np.array([0, 1, 12, 13, 30, 40])
    for limit in (0, 1, 2, 4, 9):
        found = _core.largest_of_parts(A, starts, limit)
        assert found == ref.largest_of_parts(A, starts, limit)
    with pytest.raises(ValueError, match="starts must ascend"):
        _core.largest_of_parts(A, starts[:-1], 2)
    with pytest.raises(ValueError, match="no such row of sums"):
        _core.stump_edges(sums, left + 30, missing, (29, 3))
    with pytest.raises(ValueError, match="no such row of sums"):
        _core.stump_edges(sums, left, missing, (30, 3))


def test_kernels_refuse_what_does_not_fit():
    z, weight, _ = problem(4, 2)
    u, rho = np.zeros((4, 2), dtype=np.int64), np.zeros((4, 2), dtype=np.int8)
    y = np.zeros(4, dtype=np.int64)
    with pytest.raises(ValueError, match="shapes"):
        _core.dual_integers(z, weight[:3], u, 1)
    with pytest.raises(ValueError, match="shapes"):
        _core.dual_integers(z, weight, u[:3], 1)
    with pytest.raises(ValueError, match="rows"):
        _core.pairwise_margins(rho, y[:3], 1)
    with pytest.raises(ValueError, match="rows"):
        _core.pairwise_wrong(z, y[:3], 1)
    cells, one = np.zeros((4, 1), dtype=np.uint8, order="F"), np.array([0, 1])
    arrays = one, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int32), one
    with pytest.raises(ValueError, match="shapes"):
        _core.weigh_and_sum(z, weight[:3], cells, y, None, arrays, 1)
    with pytest.raises(ValueError, match="rows"):
        _core.weigh_and_sum(z, weight, cells, y[:3], None, arrays, 1)
    with pytest.raises(ValueError, match="code"):
        _core.weigh_and_sum(z, weight, cells, y, np.ones((4, 1), dtype=np.int8), arrays, 1)


@pytest.mark.parametrize(
    "model",
    [
        tcboost.AdaBoostECC("learned", 8),
        tcboost.AdaBoostECC("random", 8, random_state=0),
        tcboost.AdaBoostMO("ovr", 5),
    ],
)
def test_fits_large_enough_for_threads_do_not_depend_on_them(model):
    """Nor on the order of the rows."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(12_000, 6)), 1)
    X[:, 3:] = X[:, 3:] > 0
    y = (X[:, 0] > 0) + (X[:, 1] > X[:, 3]).astype(int) + (rng.random(len(X)) < 0.1)
    found = []
    for n_jobs in (1, 2, 3):
        order = np.arange(len(y)) if n_jobs == 1 else rng.permutation(len(y))
        fit = clone(model).set_params(n_jobs=n_jobs).fit(X[order], y[order])
        w, scores = fit.estimator_weights_.tobytes(), fit.decision_function(X).tobytes()
        loss = fit.history_["loss"].tobytes()
        found.append((w, scores, loss, fit.certificate_.gap, fit.predict(X).tobytes()))
    assert found[0] == found[1] == found[2]
