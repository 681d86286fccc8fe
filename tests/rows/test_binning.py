"""Bins and cuts ask the same question; quantiles are exact; types are the smallest."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import kernels as ref
from tcboost.rows.binning import MISSING, bin_features, bins_of

TINY = 5e-324


def column(*values):
    return np.array(values, dtype=float)[:, None]


def fit(X, max_bins="auto", weight=None):
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    binning, bins = bin_features([np.ascontiguousarray(X.T)], weight, max_bins)
    np.testing.assert_array_equal(np.column_stack(bins), transform(binning, X))
    return binning


def transform(binning, X):
    columns = map(np.ascontiguousarray, X.T)
    return np.column_stack([bins_of(*pair) for pair in zip(binning.cuts, columns, strict=True)])


def assert_same_question(binning, X):
    """bin > b <=> x > cuts[b - 1], for every cut, on the given rows."""
    bins = transform(binning, X)
    for d, cuts in enumerate(binning.cuts):
        assert (np.diff(cuts) > 0).all()
        assert np.isfinite(cuts).all()
        for b, cut in enumerate(cuts, start=1):
            np.testing.assert_array_equal(bins[:, d] > b, X[:, d] > cut)
        # No value is above the last bin or below the first.
        seen = ~np.isnan(X[:, d])
        assert (bins[seen, d] >= 1).all()
        assert (bins[seen, d] <= len(cuts) + 1).all()
        assert (bins[~seen, d] == MISSING).all()


def assert_exact(X, max_bins="auto"):
    binning = fit(X, max_bins)
    assert binning.exact
    assert_same_question(binning, X)
    bins = transform(binning, X)
    for d in range(X.shape[1]):
        assert bins[:, d].tolist() == ref.ranks(X[:, d])
        assert binning.n_bins[d] == max(2, 1 + max(ref.ranks(X[:, d])))
    return binning


# ---------------------------------------------------------------- exact ranks


@pytest.mark.parametrize("max_bins", ["auto", None, 64])
def test_exact_ranks_of_random_values(max_bins):
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:, 1] = np.round(X[:, 1])
    X[::7, 2] = np.nan
    assert_exact(X, max_bins)


def test_cuts_are_midpoints():
    (cuts,) = fit(column(3, 1, 2, 2, 8)).cuts
    np.testing.assert_array_equal(cuts, [1.5, 2.5, 5.5])


@pytest.mark.parametrize(
    "start", [0.0, 1.0, -1.0, 0.1, 1e308, -1e308, 2.0**52, TINY, -3 * TINY]
)
def test_adjacent_doubles(start):
    values = [start]
    for _ in range(9):
        values.append(np.nextafter(values[-1], np.inf))
    binning = assert_exact(column(*values))
    assert len(binning.cuts[0]) == 9


def test_huge_values():
    top = np.finfo(float).max
    assert_exact(column(-top, -1e308, 0, 1e308, np.nextafter(top, 0), top))
    (cuts,) = fit(column(-top, top)).cuts
    assert cuts == [0.0]
    (cuts,) = fit(column(1e308, 1.5e308)).cuts
    assert cuts == [1.25e308]


def test_the_two_zeros_are_one_value():
    X = column(-0.0, 0.0, 1.0, -1.0)
    binning = assert_exact(X)
    np.testing.assert_array_equal(transform(binning, X)[:, 0], [2, 2, 3, 1])
    X = column(-0.0, 0.0)
    np.testing.assert_array_equal(transform(fit(X), X), [[1], [1]])
    # The cut between zero and the smallest number is a zero itself.
    for zero in (0.0, -0.0):
        X = column(-TINY, zero, TINY)
        np.testing.assert_array_equal(transform(assert_exact(X), -X)[:, 0], [3, 2, 1])


def test_nan_is_bin_zero():
    X = column(np.nan, 5, -np.nan, 7)
    binning = assert_exact(X)
    np.testing.assert_array_equal(transform(binning, X)[:, 0], [0, 1, 0, 2])
    # Also where fit saw none.
    np.testing.assert_array_equal(transform(fit(column(5, 7)), X)[:, 0], [0, 1, 0, 2])


def test_column_of_nan_and_constant_column():
    X = np.column_stack([np.full(4, np.nan), np.full(4, 0.1), [1, 2, 3, 4]])
    binning = assert_exact(X)
    assert [len(c) for c in binning.cuts] == [0, 0, 3]
    np.testing.assert_array_equal(binning.n_bins, [2, 2, 5])
    new = np.array([[3.0, 0.2, 2.5], [np.nan, -9, 9]])
    np.testing.assert_array_equal(transform(binning, new), [[1, 1, 2], [0, 1, 4]])


def test_single_precision_ties():
    # 0.1 in two precisions is two values; the same precision twice is one.
    single = float(np.float32(0.1))
    assert single != 0.1
    X = column(0.1, single, single, 0.1)
    np.testing.assert_array_equal(transform(assert_exact(X), X)[:, 0], [1, 2, 2, 1])
    grid = np.arange(200, dtype=np.float32) / np.float32(10)
    X = column(*grid.tolist(), *np.arange(0.0, 20.0, 0.1).tolist(), *grid.tolist())
    assert_exact(X)


FLOATS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.sampled_from([0.0, -0.0, TINY, -TINY, 1.0, 1 + 2**-52, 1e308, -1e308]),
    st.integers(-3, 3).map(float),
)


@given(st.lists(FLOATS, min_size=1, max_size=30))
@settings(deadline=None, max_examples=100)
def test_exact_ranks_property(values):
    assert_exact(column(*values))


@given(st.lists(FLOATS, min_size=1, max_size=30), st.lists(FLOATS, min_size=1, max_size=10))
@settings(deadline=None, max_examples=100)
def test_new_values_are_asked_the_same_question(values, new):
    assert_same_question(fit(column(*values)), column(*new))
    assert_same_question(fit(column(*values), max_bins=3), column(*new))


# ---------------------------------------------------------------- quantiles


WEIGHTED = st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 5)), min_size=1, max_size=40)


@given(WEIGHTED, st.integers(2, 8), st.sampled_from([1.0, 1 / 3, 1e-3]))
@settings(deadline=None, max_examples=150)
def test_quantiles_are_those_of_exact_arithmetic(pairs, max_bins, scale):
    x, weight = (np.array(a) for a in zip(*pairs, strict=True))
    X = x[:, None].astype(float)
    binning = fit(X, max_bins, weight * scale)
    distinct = np.unique(x)
    if len(distinct) <= max_bins:
        assert binning.exact
        assert len(binning.cuts[0]) == len(distinct) - 1
        return
    assert not binning.exact
    ends = np.array(ref.quantile_ends(X[:, 0], weight, max_bins), dtype=int)
    cuts = (distinct[ends - 1] + distinct[ends]) / 2 if len(ends) else np.empty(0)
    np.testing.assert_array_equal(binning.cuts[0], cuts)
    assert binning.n_bins[0] - 1 <= max_bins
    assert_same_question(binning, X)


@given(WEIGHTED, st.integers(2, 8))
@settings(deadline=None, max_examples=100)
def test_a_weight_is_a_repetition(pairs, max_bins):
    x, weight = (np.array(a) for a in zip(*pairs, strict=True))
    X = x[:, None].astype(float)
    once = fit(X, max_bins, weight)
    repeated = fit(np.repeat(X, weight, axis=0), max_bins)
    normalised = fit(X, max_bins, weight / weight.sum())
    for other in (repeated, normalised):
        assert once.exact == other.exact
        np.testing.assert_array_equal(once.cuts[0], other.cuts[0])


def test_equal_weights_give_equal_bins():
    x = np.random.default_rng(1).permutation(1000).astype(float)[:, None]
    binning = fit(x, 10)
    np.testing.assert_array_equal(np.bincount(transform(binning, x)[:, 0])[1:], [100] * 10)
    binning = fit(x, 255)
    counts = np.bincount(transform(binning, x)[:, 0])[1:]
    assert len(counts) == 255
    assert counts.min() >= 3
    assert counts.max() <= 4


def test_missing_values_have_no_part_in_quantiles():
    x = np.arange(100.0)
    some = np.concatenate([x, np.full(900, np.nan)])[:, None]
    np.testing.assert_array_equal(fit(some, 7).cuts[0], fit(x[:, None], 7).cuts[0])
    # The weights belong to their rows, wherever the missing ones are.
    weight = np.random.default_rng(2).integers(1, 9, 100)
    mixed = np.full((200, 1), np.nan)
    mixed[::2, 0] = x
    weights = np.full(200, 1000)
    weights[::2] = weight
    np.testing.assert_array_equal(
        fit(mixed, 7, weights).cuts[0], fit(x[:, None], 7, weight).cuts[0]
    )


def test_exactness_is_said_of_all_features():
    X = np.column_stack([np.arange(10.0), np.arange(10.0) % 3])
    assert fit(X, 10).exact
    binning = fit(X, 9)
    assert not binning.exact
    assert len(binning.cuts[0]) == 8
    np.testing.assert_array_equal(binning.cuts[1], [0.5, 1.5])


# ---------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("n_values", "dtype"),
    [(2, np.uint8), (255, np.uint8), (256, np.uint16), (65_535, np.uint16)],
)
@pytest.mark.parametrize("max_bins", ["auto", None])
def test_smallest_type(n_values, dtype, max_bins):
    x = np.random.default_rng(0).permutation(n_values).astype(float)[:, None]
    binning = fit(x, max_bins)
    assert binning.exact
    bins = transform(binning, x)
    assert bins.dtype == dtype
    assert bins.flags.f_contiguous
    np.testing.assert_array_equal(bins, x + 1)
    assert transform(binning, np.array([[np.nan]])).dtype == dtype


def test_the_widest_feature_decides_the_type():
    X = np.column_stack([np.arange(256.0), np.arange(256.0) % 2])
    assert transform(fit(X), X).dtype == np.uint16
    X[255, 0] = np.nan
    assert transform(fit(X), X).dtype == np.uint8


@pytest.mark.parametrize(("max_bins", "dtype"), [(255, np.uint8), (256, np.uint16)])
def test_type_of_quantile_bins(max_bins, dtype):
    x = np.arange(5000.0)[:, None]
    binning = fit(x, max_bins)
    assert binning.n_bins[0] - 1 == max_bins
    bins = transform(binning, x)
    assert bins.dtype == dtype
    assert bins.max() == max_bins


@pytest.mark.parametrize("n_values", [65_536, 100_000])
def test_beyond_16_bits(n_values):
    x = np.random.default_rng(0).permutation(n_values).astype(float)[:, None]
    auto = fit(x, "auto")
    assert not auto.exact
    assert auto.n_bins[0] <= 65_536
    bins = transform(auto, x)
    assert bins.dtype == np.uint16
    # As fine as 16 bits allow: a bin holds one value or two.
    assert set(np.bincount(bins[:, 0])[1:].tolist()) <= {1, 2}
    exact = fit(x, None)
    assert exact.exact
    bins = transform(exact, x)
    assert bins.dtype == np.uint32
    np.testing.assert_array_equal(bins, x + 1)
