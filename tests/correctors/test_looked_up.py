"""Dual weights at margins that are looked up against those of margins."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tcboost
from reference import kernels as ref
from tcboost import _core, boosting
from tcboost.correctors import looked_up
from tcboost.margins import Codeword
from tcboost.oracles.stump import StumpOracle
from tcboost.rows.blocks import LocalRows


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("width", [1, 3, 4, 7, 8, 15, 63])
@pytest.mark.parametrize("n", [1, 40, 3000])
def test_kernel(dtype, width, n):
    rng = np.random.default_rng(width)
    M = rng.choice(np.array([-1, 1], dtype=np.int8), size=(4, width))
    y, weight = rng.integers(4, size=n), rng.dirichlet(np.ones(n))
    n_bins = [3, 5]
    cells = np.column_stack([rng.integers(b, size=n) for b in n_bins]).astype(dtype)
    cells = np.asfortranarray(cells)
    offset, place = np.cumsum([0, *n_bins]), np.array([0, 1, 2, 0, 1, 2, 3, 4], dtype=np.int32)
    arrays = offset, np.arange(2), place, offset
    table = np.zeros((8, -(-width // 4) * 4))
    table[:, :width] = rng.integers(-2, 3, size=(8, width)) / 4  # sums are exact, ties common
    for used in (np.arange(2), np.array([1])):
        z, wrong = ref.looked_up(cells, used, offset, table, M, y)
        top, bits, tie = 0.25 - z.min(), 50, 1e-9
        u = np.rint(np.ldexp(weight[:, None] * np.exp(-z - top), bits)).astype(np.int64)
        sums = _core.prefix_sums(cells, u, y, M, arrays, 1)
        rule = used, table, y, M, weight, top, bits, tie
        got, *told = _core.look_up_and_sum(cells, *rule, arrays, 1)
        # The exponential has its last digit to itself: 2^50 of it is one at the most.
        assert_allclose(got, sums, rtol=0, atol=2.0 * n)
        assert abs(told[0] - u.sum()) <= 2.0 * n * width
        assert told[1] == z.min()
        assert told[2] == pytest.approx(weight @ wrong, rel=1e-13, abs=1e-300)
        for n_threads in (2, 3):
            again, *same = _core.look_up_and_sum(cells, *rule, arrays, n_threads)
            assert_array_equal(again, got)
            assert same == told


def test_kernel_refuses_what_does_not_fit():
    y, weight, M = np.zeros(4, dtype=np.int64), np.ones(4), np.ones((2, 3), dtype=np.int8)
    cells, one = np.zeros((4, 1), dtype=np.uint8, order="F"), np.array([0, 1])
    arrays = one, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int32), one

    table = np.zeros((1, 4))

    def call(used=one[:1], table=table, y=y, M=M, weight=weight):
        return _core.look_up_and_sum(cells, used, table, y, M, weight, 0.0, 3, 0.0, arrays, 1)

    assert call()[1:] == (4 * 3 * 8, 0.0, 0.0)
    for wrong, match in (
        ({"weight": weight[:3]}, "rows"),
        ({"y": y[:3]}, "rows"),
        ({"y": y + 2}, "class"),
        ({"y": y - 1}, "class"),
        ({"used": one}, "group"),
        ({"table": np.zeros((2, 4))}, "cell"),
        ({"table": np.zeros((1, 3))}, "four"),
        ({"M": np.ones((2, 5), dtype=np.int8)}, "four"),
        ({"M": np.ones((2, 0), dtype=np.int8)}, "bits"),
    ):
        with pytest.raises(ValueError, match=match):
            call(**wrong)


def test_large_steps_lose_no_digits(monkeypatch):
    """Separable: the weights are e^-10 of what they might have become."""
    monkeypatch.setattr(boosting, "MANY", 1)
    rng, calls = np.random.default_rng(0), []
    y = rng.integers(2, size=6000)
    X = np.column_stack([y, rng.normal(size=6000)])
    kernel = looked_up.Block.look_up_and_sum
    monkeypatch.setattr(
        looked_up.Block,
        "look_up_and_sum",
        lambda *a, **k: calls.append(k["bits"]) or kernel(*a, **k),
    )
    model = tcboost.AdaBoostMO(max_iter=40, max_bins=100)
    found = model.fit(X, y).certificate_
    assert len(calls) > 41  # some were done again
    assert found.theta > 100
    monkeypatch.setattr(boosting, "MANY", 1 << 60)
    expected = model.fit(X, y).certificate_
    assert found.primal == pytest.approx(expected.primal, abs=1e-9)
    assert found.gap == pytest.approx(expected.gap, abs=1e-9)


def test_weights_far_below_their_bounds_are_found():
    """However far off: bounds are made good before weights are used."""
    X, y, M = np.eye(50), np.arange(50) % 3, np.array([[1], [-1], [1]], dtype=np.int8)
    rows = LocalRows(X, y, np.ones(50), None, 1)
    kept = looked_up.LookedUp(rows, StumpOracle(rows), Codeword(M))
    kept._sum, kept._least = 1e200, -300.0
    sums, dual = kept.weigh()
    assert dual.loss == pytest.approx(0.0, abs=1e-12)
    assert dual.scale >= 1 << 50
    assert dual.least == 0.0
    assert sums.dtype == np.int64
