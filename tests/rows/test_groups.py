"""Features counted together: the cells tell every bin, and the sums are those of the bins."""

from __future__ import annotations

import numpy as np
import pytest

from reference import kernels as ref
from tcboost import _core
from tcboost.rows.groups import group_features


def one_hot(rng, n, k):
    return 1 + np.eye(k, dtype=np.uint8)[rng.integers(k, size=n)]


def bins_of(kind, n=400, seed=0):
    rng = np.random.default_rng(seed)
    parts = {
        "one-hot": [one_hot(rng, n, 12), rng.integers(200, size=(n, 2))],
        "binary": [rng.integers(1, 3, size=(n, 30))],
        "missing": [rng.integers(3, size=(n, 6)), rng.integers(1, 60, size=(n, 2))],
        "alone": [rng.integers(1, 150, size=(n, 3))],
        "constant": [np.ones((n, 3)), rng.integers(1, 5, size=(n, 1))],
        "ranks": [
            rng.permuted(np.tile(np.arange(1, n + 1), (2, 1)), axis=1).T,
            np.ones((n, 1)),
        ],
    }[kind]
    bins = np.column_stack(parts)
    return np.asfortranarray(bins.astype(np.min_scalar_type(int(bins.max()))))


def by_feature(bins):
    """In the smallest type for each, as they come from binning."""
    return [column.astype(np.min_scalar_type(int(column.max()))) for column in bins.T]


KINDS = {
    "one-hot": 3,
    "binary": None,
    "missing": None,
    "alone": 3,
    "constant": 1,
    "ranks": None,
}


@pytest.mark.parametrize("kind", KINDS)
def test_cells_tell_every_bin(kind):
    bins = bins_of(kind)
    n_bins = bins.max(axis=0).astype(np.int64) + 1
    cells, groups = group_features(by_feature(bins), n_bins)
    assert cells.dtype == bins.dtype
    assert cells.flags.f_contiguous
    assert KINDS[kind] in (None, cells.shape[1])
    assert cells.shape[1] <= bins.shape[1]
    for d in range(bins.shape[1]):
        found = groups.bins(d)[cells[:, groups.group[d]]]
        np.testing.assert_array_equal(found, bins[:, d])
    n_cells = np.diff(groups.first)
    for g in range(cells.shape[1]):
        assert cells[:, g].max() < n_cells[g]
        if (groups.group == g).sum() > 1:
            assert len(np.unique(cells[:, g])) == n_cells[g] <= 256


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1, 2, 3, 6, 8, 11])
@pytest.mark.parametrize("pairwise", [False, True])
def test_sums_are_those_of_the_bins(kind, width, pairwise):
    bins = bins_of(kind, n=120)
    n_bins = bins.max(axis=0).astype(np.int64) + 1
    cells, groups = group_features(by_feature(bins), n_bins)
    rng = np.random.default_rng(1)
    u = rng.integers(2**50, size=(len(bins), width))
    y = rng.integers(width + 1, size=len(bins)) if pairwise else None
    V = np.array(ref.pairwise_adjoint(u, y)) if pairwise else u
    arrays = groups.first, groups.group, groups.place, groups.offset
    expected = ref.prefix_sums(bins, V, groups.offset)
    expected += ref.sums_by_class(u, y) if pairwise else []
    assert _core.prefix_sums(cells, u, y, None, arrays, 1).tolist() == expected
    # Enough rows for slices of them and shares of the groups.
    times = 40
    many = np.asfortranarray(np.tile(cells, (times, 1)))
    u, y = np.tile(u, (times, 1)), np.tile(y, times) if pairwise else None
    for n_threads in (1, 2, 5):
        sums = _core.prefix_sums(many, u, y, None, arrays, n_threads)
        np.testing.assert_array_equal(sums, times * np.array(expected))


def test_kernel_refuses_groups_that_do_not_fit():
    bins = bins_of("missing")
    cells, groups = group_features(by_feature(bins), bins.max(axis=0).astype(np.int64) + 1)
    u = np.ones((len(bins), 2), dtype=np.int64)
    first, group, place, offset = groups.first, groups.group, groups.place, groups.offset
    with pytest.raises(ValueError, match="group"):
        _core.prefix_sums(cells, u, None, None, (first, group + 99, place, offset), 1)
    with pytest.raises(ValueError, match="place"):
        _core.prefix_sums(cells, u, None, None, (first, group, place[1:], offset), 1)
    with pytest.raises(ValueError, match="rows"):
        _core.prefix_sums(
            cells, u, np.zeros(3, dtype=np.int64), None, (first, group, place, offset), 1
        )
