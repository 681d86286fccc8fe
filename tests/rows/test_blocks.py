"""Sums over rows do not depend on threads, blocks, order or repetition."""

import itertools
import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import kernels as ref
from tcboost import _core
from tcboost.margins import Codeword, Pairwise
from tcboost.rows import blocks
from tcboost.rows.binning import bins_of
from tcboost.rows.blocks import Block, LocalRows, effective_n_jobs

DTYPES = [np.uint8, np.uint16, np.uint32]


def problem(n, n_bins, width, dtype=np.uint8, largest=100, seed=0):
    """Bins with every number of bins in n_bins, weights of both signs, and the offsets."""
    rng = np.random.default_rng(seed)
    bins = np.column_stack([rng.integers(b, size=n) for b in n_bins]).astype(dtype)
    V = rng.integers(-largest, largest + 1, size=(n, width))
    offset = np.concatenate([[0], np.cumsum(n_bins)])
    return np.asfortranarray(bins), V, offset


def prefix_sums(bins, V, offset, n_threads, y=None, M=None):
    """Every feature for itself."""
    n_bins = np.diff(offset)
    place = np.concatenate([np.arange(b) for b in [0, *n_bins]]).astype(np.int32)
    group = np.arange(bins.shape[1])
    return _core.prefix_sums(bins, V, y, M, (offset, group, place, offset), n_threads)


def local_rows(X, y=None, weight=None, max_bins="auto", n_jobs=1):
    y = np.zeros(len(X), dtype=np.intp) if y is None else np.asarray(y, dtype=np.intp)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    return LocalRows(np.asarray(X, dtype=float), y, weight, max_bins, n_jobs)


# ---------------------------------------------------------------- the kernel


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 2, 5, 16])
@pytest.mark.parametrize("n_bins", [[2], [2, 3, 9], [11, 2, 2, 30]])
def test_kernel_against_loops(dtype, width, n_bins):
    bins, V, offset = problem(40, n_bins, width, dtype)
    sums = prefix_sums(bins, V, offset, 1)
    assert sums.dtype == np.int64
    assert sums.tolist() == ref.prefix_sums(bins, V, offset)


@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_do_not_matter(dtype):
    # Large enough for threads to be started: below 100,000 additions there is one.
    bins, V, offset = problem(2500, [5, 3, 8, 2, 4, 3, 2], 6, dtype)
    assert bins.size * V.shape[1] > 100_000
    expected = ref.prefix_sums(bins, V, offset)
    for n_threads in (1, 2, 3, 7, 20):
        assert prefix_sums(bins, V, offset, n_threads).tolist() == expected


def test_many_bins_are_summed_up_in_threads():
    n, n_bins, n_features = 40_000, 6_000, 3
    rng = np.random.default_rng(5)
    bins = np.asfortranarray(rng.integers(n_bins, size=(n, n_features)).astype(np.uint16))
    V, offset = rng.integers(-9, 10, size=(n, 3)), n_bins * np.arange(n_features + 1)
    expected = np.zeros((n_features, n_bins, 3), dtype=np.int64)
    for d in range(n_features):
        np.add.at(expected[d], bins[:, d], V)
    expected[:, 1:] = expected[:, 1:].cumsum(axis=1)
    for n_threads in (1, 2, 5):
        sums = prefix_sums(bins, V, offset, n_threads)
        np.testing.assert_array_equal(sums, expected.reshape(-1, 3))


@pytest.mark.parametrize(("dtype", "n_bins"), [(np.uint8, 256), (np.uint16, 65_536)])
def test_all_bins_of_a_type(dtype, n_bins):
    bins = np.asfortranarray(np.arange(n_bins, dtype=dtype)[:, None])
    V = np.arange(1, n_bins + 1)[:, None]
    sums = prefix_sums(bins, V, np.array([0, n_bins]), 1)
    np.testing.assert_array_equal(sums[1:, 0], np.cumsum(V[1:, 0]))
    assert sums[0, 0] == 1


def test_bins_beyond_16_bits():
    bins = np.array([[70_000], [69_999], [0], [1]], dtype=np.uint32, order="F")
    V, offset = np.array([[1], [2], [4], [8]]), np.array([0, 70_001])
    sums = prefix_sums(bins, V, offset, 1)
    assert sums.shape == (70_001, 1)
    assert sums[[0, 1, 69_998, 69_999, 70_000], 0].tolist() == [4, 8, 8, 10, 11]


def test_totals_near_two_to_the_60():
    rng = np.random.default_rng(0)
    n = 50
    u = rng.multinomial(2**60, rng.dirichlet(np.ones(n) * 0.3))
    V = np.column_stack([u, -u, u * rng.choice([-1, 1], size=n)])
    bins, _, offset = problem(n, [4, 20], 1)
    sums = prefix_sums(bins, V, offset, 2)
    assert sums.tolist() == ref.prefix_sums(bins, V, offset)
    for d in range(2):  # the last bin and the missing values together are everything
        assert sums[offset[d + 1] - 1, 0] + sums[offset[d], 0] == 2**60
        assert sums[offset[d + 1] - 1, 1] + sums[offset[d], 1] == -(2**60)


def test_the_adjoints_are_built_in():
    rng = np.random.default_rng(1)
    bins, _, offset = problem(700, [4, 20], 1)
    u, y = rng.integers(2**40, size=(700, 5)), rng.integers(3, size=700)
    M = rng.choice(np.array([-1, 1], dtype=np.int8), (3, 5))
    expected = ref.prefix_sums(bins, Codeword(M).adjoint(u, y), offset)
    assert prefix_sums(bins, u, offset, 2, y, M).tolist() == expected
    expected = ref.prefix_sums(bins, Pairwise(6).adjoint(u, y), offset)
    expected += ref.sums_by_class(u, y)
    assert prefix_sums(bins, u, offset, 2, y).tolist() == expected
    for arguments in ((None, M), (y, M[:, :4].copy())):
        with pytest.raises(ValueError, match="a code needs classes"):
            prefix_sums(bins, u, offset, 1, *arguments)


def test_no_rows_and_no_features():
    bins = np.empty((0, 2), dtype=np.uint8, order="F")
    sums = prefix_sums(bins, np.empty((0, 3), dtype=np.int64), np.array([0, 2, 5]), 2)
    np.testing.assert_array_equal(sums, np.zeros((5, 3)))
    bins = np.empty((4, 0), dtype=np.uint8, order="F")
    assert prefix_sums(bins, np.ones((4, 3), dtype=np.int64), np.array([0]), 2).shape == (0, 3)


def test_kernel_refuses_what_does_not_fit():
    bins, V, offset = problem(6, [3, 4], 2)
    with pytest.raises(ValueError, match="differ in their rows"):
        prefix_sums(bins, V[:5], offset, 1)
    with pytest.raises(ValueError, match="offset"):
        prefix_sums(bins, V, offset[:-1], 1)
    with pytest.raises(TypeError):
        prefix_sums(bins.astype(np.int64), V, offset, 1)
    with pytest.raises(TypeError):
        prefix_sums(bins, V.astype(float), offset, 1)
    with pytest.raises(TypeError):
        prefix_sums(np.ascontiguousarray(bins), V, offset, 1)


# ---------------------------------------------------------------- blocks


def rows_with_everything(n=53):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=n), rng.integers(4, size=n), rng.normal(size=n)])
    X[::5, 2] = np.nan
    return X, rng.integers(3, size=n), rng.integers(1, 4, size=n)


@pytest.mark.parametrize("size", [1, 7, 52, 53, 54])
def test_blocks_do_not_matter(monkeypatch, size):
    X, y, weight = rows_with_everything()
    whole = local_rows(X, y, weight)
    assert len(whole.blocks) == 1
    monkeypatch.setattr(blocks, "_BLOCK", size)
    parts = local_rows(X, y, weight)
    assert len(parts.blocks) == -(-53 // size)
    V = np.random.default_rng(4).integers(-(2**50), 2**50, size=(53, 4))
    expected = whole.sum(Block.prefix_sums, V)
    np.testing.assert_array_equal(parts.sum(Block.prefix_sums, V), expected)
    pairs = zip(whole.binning.cuts, map(np.ascontiguousarray, whole.X.T), strict=True)
    bins = np.column_stack([bins_of(*pair) for pair in pairs])
    assert expected.tolist() == ref.prefix_sums(bins, V, whole.groups.offset)
    # A map sees every row once, in order.
    seen = parts.map(lambda block, v: (len(block.cells), v), V)
    assert sum(n for n, _ in seen) == len(parts) == 53
    np.testing.assert_array_equal(np.concatenate([v for _, v in seen]), V)


@pytest.mark.parametrize("together", [1, 2, 5])
def test_features_may_be_cut_some_at_a_time(monkeypatch, together):
    X, y, weight = rows_with_everything()
    X = np.column_stack([X, X[:, ::-1] ** 2])
    whole = local_rows(X, y, weight)
    monkeypatch.setattr(blocks, "_TOGETHER", together)
    assert X.shape[1] > together
    parts = local_rows(X, y, weight)
    for a, b in zip(parts.binning.cuts, whole.binning.cuts, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(parts.blocks[0].cells, whole.blocks[0].cells)


def test_weights_of_any_layout_and_threads():
    X, y, weight = rows_with_everything()
    V = np.random.default_rng(4).integers(-9, 9, size=(53, 4))
    expected = local_rows(X, y, weight).sum(Block.prefix_sums, V)
    for n_jobs in (None, 2, 3):
        rows = local_rows(X, y, weight, n_jobs=n_jobs)
        np.testing.assert_array_equal(rows.sum(Block.prefix_sums, V), expected)
        in_columns = np.asfortranarray(V)
        np.testing.assert_array_equal(rows.sum(Block.prefix_sums, in_columns), expected)


# ---------------------------------------------------------------- the canonical order


def bits(a):
    return a.dtype.str, a.shape, np.ascontiguousarray(a).tobytes()


def assert_identical(a, b):
    """Bit for bit."""
    assert bits(a.X) == bits(b.X)
    assert bits(a.y) == bits(b.y)
    assert bits(a.weight) == bits(b.weight)
    assert a.binning.exact == b.binning.exact
    assert [bits(c) for c in a.binning.cuts] == [bits(c) for c in b.binning.cuts]
    for p, q in zip(a.blocks, b.blocks, strict=True):
        assert bits(p.cells) == bits(q.cells)


VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 1e300, 5e-324, np.nan])


@st.composite
def tables(draw, weights):
    """X, y and weights with many equal rows."""
    n, D = draw(st.integers(1, 25)), draw(st.integers(1, 3))
    X = draw(st.lists(st.tuples(*[VALUES] * D), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    weight = draw(st.lists(weights, min_size=n, max_size=n))
    return np.array(X).reshape(n, D), np.array(y, dtype=np.intp), np.array(weight, dtype=float)


@given(tables(st.integers(1, 2**20)), st.data())
@settings(deadline=None, max_examples=100)
def test_order_and_repetition_do_not_matter(table, data):
    X, y, weight = table
    max_bins = data.draw(st.sampled_from(["auto", 2]))
    expected = local_rows(X, y, weight, max_bins)
    times = data.draw(st.integers(1, 5))
    order = np.array(data.draw(st.permutations(range(len(y)))), dtype=int)
    order = np.tile(order, times)
    assert_identical(local_rows(X[order], y[order], weight[order], max_bins), expected)
    layout = np.asfortranarray(X[order])
    assert_identical(local_rows(layout, y[order], weight[order], max_bins), expected)


@given(tables(st.integers(1, 6)), st.data())
@settings(deadline=None, max_examples=60)
def test_an_integer_weight_is_a_repetition(table, data):
    X, y, weight = table
    order = np.repeat(np.arange(len(y)), weight.astype(int))
    order = order[np.array(data.draw(st.permutations(range(len(order)))), dtype=int)]
    assert_identical(local_rows(X[order], y[order]), local_rows(X, y, weight))


@given(tables(st.floats(1e-3, 1e3)), st.data())
@settings(deadline=None, max_examples=60)
def test_order_does_not_matter_to_weights_that_round(table, data):
    X, y, weight = table
    order = np.array(data.draw(st.permutations(range(len(y)))), dtype=int)
    assert_identical(local_rows(X[order], y[order], weight[order]), local_rows(X, y, weight))


@given(tables(st.integers(1, 9)))
@settings(deadline=None, max_examples=100)
def test_equal_rows_are_merged_and_no_others(table):
    X, y, weight = table
    expected = {}
    for x, c, w in zip(X.tolist(), y.tolist(), weight.tolist(), strict=True):
        key = tuple("missing" if v != v else v + 0.0 for v in x), c
        expected[key] = expected.get(key, 0) + w
    rows = local_rows(X, y, weight)
    assert len(rows) == len(rows.X) == len(expected)
    total = sum(expected.values())
    for x, c, w in zip(rows.X.tolist(), rows.y.tolist(), rows.weight.tolist(), strict=True):
        key = tuple("missing" if v != v else v + 0.0 for v in x), c
        assert w == expected.pop(key) / total
    assert not expected


@given(tables(st.floats(1e-3, 1e3)), st.data())
@settings(deadline=None, max_examples=60)
def test_a_subset_is_what_its_rows_alone_would_be(table, data):
    rows = local_rows(*table)
    n = len(rows)
    drawn = data.draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any))
    chosen, subset = np.array(drawn), rows.subset(np.array(drawn))
    alone = LocalRows(rows.X[chosen], rows.y[chosen], rows.weight[chosen], "auto", 1)
    assert_identical(subset, alone)


def test_a_sum_that_rounds_does_not_depend_on_the_order():
    weight = np.array([0.1, 0.2, 0.3, 1.0])
    X, y = np.array([[1.0], [1.0], [1.0], [2.0]]), np.zeros(4, dtype=np.intp)
    assert sum(weight[:3]) != sum(weight[2::-1])
    expected = local_rows(X, y, weight)
    for order in itertools.permutations(range(4)):
        assert_identical(local_rows(X[list(order)], y, weight[list(order)]), expected)


def test_every_nan_is_the_same_value():
    quiet = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000123], np.uint64)
    X = np.column_stack([quiet.view(float), np.ones(3)])
    assert np.isnan(X[:, 0]).all()
    rows = local_rows(np.vstack([X, [[0.0, 1.0]]]))
    assert len(rows) == 2
    np.testing.assert_array_equal(np.sort(rows.weight), [0.25, 0.75])


def test_many_rows_in_another_order():
    rng = np.random.default_rng(5)
    X, y = rng.integers(5, size=(3000, 4)).astype(float), rng.integers(4, size=3000)
    order = rng.permutation(3000)
    rows = local_rows(X, y)
    assert_identical(local_rows(X[order], y[order]), rows)
    assert len(rows) == len(np.unique(np.column_stack([X, y]), axis=0))


def test_equal_hashes_do_not_merge_rows(monkeypatch):
    none = lambda X, n_threads: np.zeros((2, len(X)), np.uint64)  # noqa: E731
    monkeypatch.setattr(blocks, "hash_rows", none)
    X, y, weight = rows_with_everything()
    rows = local_rows(X, y, weight)
    assert len(rows) == 53
    np.testing.assert_allclose(rows.weight.sum(), 1)
    np.testing.assert_array_equal(np.sort(rows.X[:, 0]), np.sort(X[:, 0]))


@pytest.mark.parametrize("n_hashes", [1, 3, 2**64 - 1])
def test_rows_are_in_the_order_of_their_hashes(monkeypatch, n_hashes):
    hashed = blocks.hash_rows

    def fewer(X, n_threads):
        return hashed(X, n_threads) % np.uint64(n_hashes)

    monkeypatch.setattr(blocks, "hash_rows", fewer)
    rng = np.random.default_rng(8)
    X, y = rng.integers(3, size=(300, 3)).astype(float), rng.integers(3, size=300)
    weight = rng.integers(1, 4, size=300).astype(float)
    first, second = fewer(X, 1).tolist()
    order, starts = blocks.canonical_groups(X, y, weight, 2)
    keys = list(zip(first, second, y.tolist(), weight.tolist(), range(300), strict=True))
    assert order.tolist() == sorted(range(300), key=keys.__getitem__)
    content = np.column_stack([X, y])[order]
    new = (content[1:] != content[:-1]).any(axis=1)
    assert starts.tolist() == [0, *(1 + np.flatnonzero(new)).tolist()]


# ---------------------------------------------------------------- threads


def test_effective_n_jobs(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    expected = {None: 3, -1: 3, -2: 2, -3: 1, -4: 1, -100: 1, 1: 1, 2: 2, 8: 3}
    assert {n: effective_n_jobs(n) for n in expected} == expected
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        effective_n_jobs(0)


@pytest.mark.parametrize(("count", "cores"), [(6, 6), (None, 1)])
def test_effective_n_jobs_without_affinity(monkeypatch, count, cores):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    assert effective_n_jobs(None) == effective_n_jobs(-1) == cores
    assert effective_n_jobs(-2) == max(1, cores - 1)


@pytest.mark.parametrize("n_jobs", [1, -1])
def test_blocks_know_their_threads(n_jobs):
    rows = local_rows([[1.0], [2.0]], n_jobs=n_jobs)
    assert [b.n_threads for b in rows.blocks] == [effective_n_jobs(n_jobs)]


def test_the_sign_of_a_zero_is_no_content():
    X, y = np.array([[0.0], [-0.0]]), np.zeros(2, np.intp)
    assert_identical(local_rows(X, y, np.ones(2)), local_rows(X[::-1], y, np.ones(2)))


@pytest.mark.parametrize(
    "weight",
    [
        np.ones(7),
        np.full(7, 3.0),
        0.25 * np.arange(1.0, 900.0),
        np.random.default_rng(0).uniform(size=1000),
        np.array([0.25, 0.3]),
        np.array([2.0**-900, 1.0, 3.0]),
        np.array([1.0, 2.0**53, 3.0]),
    ],
    ids=lambda w: f"{len(w)} from {w[0]:.3g}",
)
def test_sums_of_weights_are_rounded_once(weight):
    total = sum(map(Fraction, weight.tolist()))
    assert blocks.exact_sum(weight) == float(total)
