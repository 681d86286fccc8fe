"""Dual weights as products against those of margins."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tcboost
from reference import kernels as ref
from tcboost import _core, boosting
from tcboost.correctors import products
from tcboost.margins import Pairwise
from tcboost.oracles import Column
from tcboost.oracles.stump import StumpOracle
from tcboost.rows.blocks import LocalRows


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("n_classes", [3, 4, 7, 8, 9])
@pytest.mark.parametrize("n", [1, 40, 9000])
def test_kernel(dtype, n_classes, n):
    rng = np.random.default_rng(n_classes)
    y, weight = rng.integers(n_classes, size=n), rng.dirichlet(np.ones(n))
    width = -(-n_classes // 4) * 4
    E = np.zeros((n, width))
    E[:, :n_classes] = np.exp(rng.integers(-2, 3, size=(n, n_classes)))
    E[np.arange(n), y] = 0.0
    coefficient, code = 0.5, rng.choice(np.array([-1, 1], dtype=np.int8), size=n_classes)
    n_bins = [3, 5]
    cells = np.column_stack([rng.integers(b, size=n) for b in n_bins]).astype(dtype)
    cells = np.asfortranarray(cells)
    offset, place = np.cumsum([0, *n_bins]), np.array([0, 1, 2, 0, 1, 2, 3, 4], dtype=np.int32)
    arrays = offset, np.arange(2), place, offset
    bits, d, sign, missing_right = 40, n_classes % 2, (-1) ** n_classes, n_classes < 5
    bins = cells[:, d]
    signs = np.where((bins > 1) | ((bins == 0) & missing_right), sign, -sign)
    step = coefficient, code, (d, 1, missing_right, sign)
    expected, u, wrong = ref.multiplied(E, coefficient, code, signs, y, weight, bits)
    sums = _core.prefix_sums(cells, np.array(u, dtype=np.int64), y, None, arrays, 1)
    for n_threads in (1, 2, 3):
        moved = E.copy()
        rule = *step, weight, bits, cells, y, arrays, n_threads
        got, *told = _core.multiply_and_sum(moved, *rule)
        assert_array_equal(moved, expected)
        assert_array_equal(got, sums)
        assert told[:2] == [sum(map(sum, u)), expected.max()]
        assert told[2] == pytest.approx(wrong, rel=1e-13)


def test_kernel_refuses_what_does_not_fit():
    y, weight, code = np.zeros(4, dtype=np.int64), np.ones(4), np.ones(3, dtype=np.int8)
    cells, one = np.zeros((4, 1), dtype=np.uint8, order="F"), np.array([0, 1])
    arrays = one, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int32), one
    E = np.tile([0.0, 1.0, 1.0, 0.0], (4, 1))

    def call(E=E, code=code, feature=0, weight=weight, y=y):
        step = 0.0, code, (feature, 0, True, 1)
        return _core.multiply_and_sum(E, *step, weight, 3, cells, y, arrays, 1)[1:]

    assert call() == (4 * 2 * 8, 1.0, 0.0)
    for wrong in ({"weight": weight[:3]}, {"y": y[:3]}):
        with pytest.raises(ValueError, match="rows"):
            call(**wrong)
    with pytest.raises(ValueError, match="no such feature"):
        call(feature=1)
    for wrong in ({"E": E[:, :3].copy()}, {"code": code[:2]}, {"y": y + 3}):
        with pytest.raises(ValueError, match=r"E must|code must|y must"):
            call(**wrong)


def data(n_classes=5, n=12_000):
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n)
    X = np.round(rng.normal(size=(n, 4)) + rng.normal(size=(n_classes, 4))[y], 2)
    return X, y, rng.integers(1, 4, size=n)


@pytest.fixture
def few(monkeypatch):
    """As if few rows were many."""
    made = []

    class Spied(products.Products):
        def __init__(self, *arguments):
            made.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(boosting, "WORTH", 1)
    monkeypatch.setattr(boosting, "Products", Spied)
    return made


@pytest.mark.parametrize(("light", "kept"), [(2.0**-8, 1), (1e-4, 0), (1e-12, 0), (1e-20, 0)])
def test_uneven_weights_lose_no_digits(light, kept, few, monkeypatch):
    """The heaviest rows, which are right, would leave no bits for the lightest."""
    X, y, _ = data(3, 6000)
    X[:, 0] = y
    wrong = np.arange(len(y)) % 10 == 0
    y[wrong] = (y[wrong] + 1) % 3
    model = tcboost.AdaBoostECC("learned", 30, max_bins=100)
    weight = np.where(wrong, light, 1.0)
    found = model.fit(X, y, weight).certificate_
    assert len(few) == kept
    monkeypatch.setattr(boosting, "WORTH", 1 << 60)
    expected = model.fit(X, y, weight).certificate_
    assert found.primal == pytest.approx(expected.primal, abs=1e-9)
    assert found.gap == pytest.approx(expected.gap, abs=1e-9)


def test_margins_that_grow_too_far_are_kept_as_sums(few, monkeypatch):
    X, y, _ = data(3)
    X[:, 0] = y  # separable: coefficients are as large as they can be
    model = tcboost.AdaBoostECC("learned", 40, max_bins=100)
    far = model.fit(X, y).certificate_
    assert far.theta > 50
    monkeypatch.setattr(products, "_FAR", 20.0)
    near = model.fit(X, y).certificate_
    assert near.primal == pytest.approx(far.primal, abs=1e-9)
    assert near.gap == pytest.approx(far.gap, abs=1e-9)


def test_products_give_the_margins_back():
    X, y, _ = data(4, 50)
    rows = LocalRows(X, y, np.ones(len(y)), None, 1)
    oracle = StumpOracle(rows)
    kept = products.Products(rows, oracle, Pairwise(4))
    code = np.array([1, -1, 1, -1], dtype=np.int8)
    stump = oracle.stump(int(oracle.starts[-1]) // 2, -1)
    assert kept.move(0.25, Column((stump,), code))
    signs = stump.predict(rows.X)[:, None]
    z = 0.25 * _core.pairwise_margins(signs * code, rows.y, 1)
    assert_allclose(kept.margins(), z, atol=1e-15)
    kept.weigh()
    assert_allclose(kept.margins(), z, atol=1e-15)
    assert kept.weigh()[1].least == pytest.approx(z.min())
