"""Rows that are merged against the same rows one by one."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine

from tcboost import MultiBoostECC
from tcboost.correctors import merged as merged_module
from tcboost.correctors import totally_corrective
from tcboost.correctors.master import Master
from tcboost.correctors.merged import MergedRows
from tcboost.losses import SMOOTH
from tcboost.margins import Pairwise


def patterns(y, signs):
    """Which rows are alike, by looking at all of them."""
    return np.unique(np.column_stack([y, *signs]), axis=0, return_inverse=True)


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_merged_as_long_as_no_hypothesis_tells_them_apart(seed):
    rng = np.random.default_rng(seed)
    n, n_classes = 400, 3
    y, weight = np.append([0, 1, 2], rng.integers(n_classes, size=n - 3)), rng.random(n)
    rows, signs = MergedRows(y, weight, n_classes), []
    assert_allclose(rows.weight, np.bincount(y, weight))
    z = of_classes = rng.normal(size=(n_classes, 2))
    for t in range(7):
        # The third and the fifth say what the first says: nothing is split.
        signs.append(signs[0] if t in (2, 4) else rng.random(n) < 0.5)
        parent, cells = rows.split(signs[-1])
        assert (parent is None) == (t in (2, 4))
        z = z if parent is None else z[parent]
        found, number = patterns(y, signs)
        assert len(cells) == len(rows.weight) == len(found)
        assert_allclose(np.sort(rows.weight), np.sort(np.bincount(number.ravel(), weight)))
        assert_array_equal(rows.unmerged(z), of_classes[y])
        assert_array_equal(rows.unmerged(cells[:, None])[:, 0], 2 * y + signs[-1])


def test_rows_that_mostly_differ_are_left_as_they_are():
    y, weight = np.repeat([0, 1], 4), np.arange(8.0)
    rows, bits = MergedRows(y, weight, 2), np.arange(8)
    assert rows.split(bits % 2 == 1)[0].tolist() == [0, 0, 1, 1]
    parent, cells = rows.split(bits % 4 > 1)  # now there would be eight
    assert parent.tolist() == [0, 1, 0, 1, 2, 3, 2, 3]
    assert cells.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert rows.weight is weight
    parent, cells = rows.split(bits % 4 == 0)
    assert parent is None
    assert cells.tolist() == [1, 0, 0, 0, 3, 2, 2, 2]
    z = np.ones((8, 1))
    assert rows.unmerged(z) is z


def test_a_class_without_rows():
    """As many rows that differ as there are classes, and yet one was split."""
    y, weight = np.array([0, 0, 1]), np.array([1.0, 2.0, 4.0])
    rows = MergedRows(y, weight, 3)
    parent, cells = rows.split(np.array([False, True, True]))
    assert parent.tolist() == [0, 0, 1]
    assert cells.tolist() == [0, 1, 3]
    assert rows.weight.tolist() == [1.0, 2.0, 4.0]


def grown(loss, y, s, signs, codes, merge):
    """Solutions of a master that grows by columns, and the margins of all rows."""
    margin = Pairwise(codes.shape[1])
    rows = MergedRows(y, s, codes.shape[1])
    width, classes = margin.width, np.repeat(np.arange(margin.n_outputs), 2)
    master = Master(rows.weight if merge else s, SMOOTH[loss], width=width)
    w, found = np.zeros(0), []
    for t, (right, code) in enumerate(zip(signs, codes, strict=True)):
        parent, cells = rows.split(right)
        if not merge:
            cells = (2 * y + right).astype(np.uint8)
        elif parent is not None:
            master.split(parent, rows.weight)
        master.add(cells, margin.apply(np.tile([-code, code], (len(code), 1)), classes))
        solution, z = master.solve(1.0, np.append(w, 0.0), 1e-10)
        w, z = solution.w, z.reshape(-1, width)
        found.append((solution, rows.unmerged(z) if merge else z))
        if t % 3 == 1:
            master = pickle.loads(pickle.dumps(master)) if t % 2 else copy.deepcopy(master)
        if t == 5:
            master.keep(w > 0)
            w = w[w > 0]
    return found


@pytest.mark.parametrize("loss", sorted(SMOOTH))
@pytest.mark.parametrize("part", [0.0, 0.1, 1.0])
def test_a_master_of_merged_rows_is_that_of_all(monkeypatch, loss, part):
    monkeypatch.setattr(merged_module, "_PART", part)
    rng = np.random.default_rng(3)
    y, s = np.arange(300) % 3, rng.random(300) / 300
    s[:5] = 0.0
    signs = [rng.random(300) < 0.3 + 0.2 * (y == t % 3) for t in range(12)]
    codes = rng.choice(np.array([-1, 1], dtype=np.int8), size=(12, 3))
    ones, others = (grown(loss, y, s, signs, codes, merge) for merge in (True, False))
    for (one, z), (other, expected) in zip(ones, others, strict=True):
        assert one.status == other.status == "optimal"
        assert abs(one.log_loss - other.log_loss) <= max(one.gap, other.gap) + 1e-14
        assert_allclose(z, expected, atol=1e-4)
        assert_allclose(one.r, other.r, atol=1e-6)


def test_a_split_that_does_not_fit():
    master = Master(np.ones(2), SMOOTH["exponential"], width=2)
    master.add(np.zeros(2, dtype=np.uint8), np.ones((1, 2), dtype=np.int8))
    for parent, s in (([0, 2], 2), ([0, 1], 3), ([], 0)):
        with pytest.raises(ValueError, match="a part needs"):
            master.split(np.array(parent, dtype=np.uint32), np.ones(s))


@pytest.mark.parametrize("coding", ["random", "learned"])
@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("part", [0.0, 0.2, 0.5])
def test_fits_are_the_same(monkeypatch, coding, load, part):
    X, y = load(return_X_y=True)
    monkeypatch.setattr(merged_module, "_PART", part)
    fits = []
    for merged, a_table in ((0, np.inf), (0, 0), (np.inf, np.inf)):
        monkeypatch.setattr(totally_corrective, "_WORTH_MERGING", merged)
        monkeypatch.setattr(totally_corrective, "_WORTH_A_TABLE", a_table)
        fits.append(MultiBoostECC(coding, theta=30.0, max_iter=25, random_state=0).fit(X, y))
    one, *others = fits
    for other in others:
        assert one.n_iter_ == other.n_iter_
        assert_allclose(one.history_["loss"], other.history_["loss"], atol=2e-6)
        assert_allclose(one.history_["gap"], other.history_["gap"], rtol=1e-3, atol=1e-5)
        assert_array_equal(one.coding_matrix_, other.coding_matrix_)
        assert_array_equal(one.predict(X), other.predict(X))
