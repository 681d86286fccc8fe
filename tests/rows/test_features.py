"""The kernels that look at every value, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from reference import kernels as ref
from tcboost import _core
from tcboost.rows.binning import bin_features

SEEDS = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F


def values(n, d, seed=0):
    """Ties, both zeros, several kinds of NaN, infinities."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1)
    odd = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 5e-324, 1.7e308]
    kind = rng.integers(4 * len(odd), size=X.shape)
    X = np.where(kind < len(odd), np.take(odd, kind % len(odd)), X)
    X.flat[:: 2 * d + 1] = np.array([0x7FF8000000000123], np.uint64).view(float)
    return X


LAYOUTS = {
    "by rows": np.ascontiguousarray,
    "by columns": np.asfortranarray,
    "parts": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 103])
def test_hashes(layout, n):
    X = LAYOUTS[layout](values(n, 3))
    expected = [[ref.row_hash(row, seed) for row in X] for seed in SEEDS]
    assert _core.hash_rows(X, 1).tolist() == expected
    assert _core.hash_rows(X, 2).tolist() == expected


def test_hashes_in_threads():
    X = values(9001, 5)
    whole = _core.hash_rows(X, 1)
    for n_threads in (2, 3, 7):
        np.testing.assert_array_equal(_core.hash_rows(X, n_threads), whole)
    assert _core.hash_rows(X[:0], 2).shape == (2, 0)


def test_the_two_hashes_differ_and_see_every_column():
    X = np.random.default_rng(0).normal(size=(20, 3))
    hashes = _core.hash_rows(X, 1)
    assert len(set(hashes.ravel().tolist())) == 40
    for d in range(3):
        other = X.copy()
        other[:, d] = np.nextafter(other[:, d], np.inf)
        assert (_core.hash_rows(other, 1) != hashes).all()
    assert (_core.hash_rows(X[:, [1, 0, 2]], 1) != hashes).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("n", "n_threads"), [(0, 1), (1, 1), (40, 1), (9001, 1), (9001, 3)])
def test_chosen_values(layout, n, n_threads):
    X = LAYOUTS[layout](values(50, 19))
    rows = np.random.default_rng(1).integers(50, size=n, dtype=np.int64)
    for first, k in [(0, 19), (3, 1), (2, 17), (19, 0)]:
        out = np.full((k, n), 7.0)
        _core.chosen_values(X, rows, first, out, n_threads)
        expected = X[rows, first : first + k].T
        expected = np.where(np.isnan(expected), np.nan, expected + 0.0)
        np.testing.assert_array_equal(out.view(np.uint64), expected.view(np.uint64))


def test_values_that_are_not_there_are_refused():
    X, out = np.zeros((5, 4)), np.zeros((3, 2))
    for rows, first, what in [
        ([0, 5], 0, "row"),
        ([-1, 0], 0, "row"),
        ([0, 1], 2, "feature"),
        ([0, 1], 5, "feature"),
        ([0], 0, "out must be features x rows"),
    ]:
        with pytest.raises(ValueError, match=what):
            _core.chosen_values(X, np.array(rows, dtype=np.int64), first, out, 1)


@pytest.mark.parametrize("n_cuts", [0, 1, 2, 3, 4, 5, 7, 8, 30, 31, 32, 33, 254, 255, 700])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 200])
def test_bins(n_cuts, n):
    rng = np.random.default_rng(n_cuts)
    cuts = np.sort(rng.choice(2000, n_cuts, replace=False)) / 4
    x = np.concatenate([cuts, values(9, 9).ravel(), rng.uniform(-9, 509, 99)])
    x = rng.choice(x, n)
    bins = _core.bins_of(cuts, x)
    assert bins.tolist() == ref.bins_of(cuts, x)
    assert bins.dtype == np.min_scalar_type(n_cuts + 1)


def test_bins_beyond_16_bits():
    cuts = np.arange(70_000.0)
    x = np.array([69_999.5, -1.0, np.nan, 65_535.0, np.inf])
    bins = _core.bins_of(cuts, x)
    assert bins.dtype == np.uint32
    assert bins.tolist() == [70_001, 1, 0, 65_536, 70_001]


# Those of groups, and of merged rows.
TYPES = [(np.uint8, np.uint8), (np.uint8, np.uint16), (np.int32, np.uint8)]


@pytest.mark.parametrize(("cell", "bin_"), TYPES)
@pytest.mark.parametrize(("n", "n_threads"), [(0, 1), (1, 2), (60, 1), (9001, 1), (9001, 3)])
def test_pairs(cell, bin_, n, n_threads):
    rng = np.random.default_rng(n)
    cells, bins = rng.integers(9, size=n).astype(cell), rng.integers(4, size=n).astype(bin_)
    bins[cells == 3] = 1
    number, pairs = ref.join_cells(cells, bins)
    n_pairs = len(pairs)
    joined = _core.join_cells(cells, 9, bins, 5, n_pairs, n_threads)
    assert joined is not None
    assert joined[0].tolist() == number
    assert joined[1].tolist() == [5 * c + b for c, b in pairs]
    if n:
        assert _core.join_cells(cells, 9, bins, 5, n_pairs - 1, n_threads) is None


def test_pairs_that_there_cannot_be_are_refused():
    cells, bins = np.array([0, 1, 2], np.uint8), np.array([0, 4, 1], np.uint8)
    for n_cells, n_bins in [(2, 5), (3, 4), (0, 0)]:
        with pytest.raises(ValueError, match="there is no such cell or bin"):
            _core.join_cells(cells, n_cells, bins, n_bins, 99, 1)
    with pytest.raises(ValueError, match="there is no such cell or bin"):
        _core.join_cells(np.array([0, -1, 2], np.int32), 3, bins, 5, 99, 1)
    with pytest.raises(ValueError, match="too many pairs"):
        _core.join_cells(cells, 2**62, bins, 4, 99, 1)
    with pytest.raises(ValueError, match="differ in their rows"):
        _core.join_cells(cells, 3, bins[:2], 5, 99, 1)


@pytest.mark.parametrize("max_bins", ["auto", 20])
def test_features_in_threads(monkeypatch, max_bins):
    X = np.ascontiguousarray(values(500, 40).T)
    X[np.isinf(X)] = 0.0
    weight = np.random.default_rng(0).uniform(size=500)
    expected, bins = bin_features([X], weight, max_bins)
    assert expected.exact == (max_bins == "auto")
    monkeypatch.setattr("tcboost.rows.binning._MANY", 1)

    def in_one_room(*parts):
        room = np.empty((30, 500))
        for part in parts:
            room[: len(part)] = part
            yield room[: len(part)]
            room[:] = np.nan

    def none(*args, **kwargs):
        raise RuntimeError("can't start new thread")

    for n_threads, start in [(1, None), (3, None), (3, none)]:
        if start:
            monkeypatch.setattr("threading.Thread.start", start)
        blocks = in_one_room(X[:1], X[1:30], X[30:])
        found, others = bin_features(blocks, weight, max_bins, n_threads)
        assert found.exact == expected.exact
        for a, b in zip(found.cuts + tuple(others), expected.cuts + tuple(bins), strict=True):
            np.testing.assert_array_equal(a, b)
