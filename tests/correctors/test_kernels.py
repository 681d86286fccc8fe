"""The kernels of the restricted master, against NumPy: inner products and Hessians."""

from __future__ import annotations

import numpy as np
import pytest

from reference import newton
from tcboost import _core

SHAPES = [(1, 1), (3, 5), (17, 40), (33, 700), (50, 3001)]


def problem(shape, largest=2, light=False):
    """Columns of small integers, and weights of which many may be next to nothing."""
    rng = np.random.default_rng([*shape, largest])
    P = rng.integers(-largest, largest, shape, endpoint=True, dtype=np.int8)
    h = rng.exponential(size=shape[1]) ** (40 if light else 1)
    return P, h / h.sum()


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("bits", [53, 45, 15])
@pytest.mark.parametrize("shape", [*SHAPES, (40, 70_000)], ids=str)
def test_inner_products(shape, bits, n_threads):
    P, x = problem(shape, 127)
    x -= x.mean()
    found = _core.column_inners(P, x, bits, n_threads)
    # Every x is rounded by half a unit, of which the largest has 2^(bits - 1) or more.
    units = 0 if bits == 53 else np.abs(P.astype(float)).sum(axis=1) * np.abs(x).max()
    rounding = 1e-13 * np.abs(P.astype(float)) @ np.abs(x)
    assert (np.abs(found - P.astype(float) @ x) <= units * 2.0 ** (1 - bits) + rounding).all()
    assert bits == 53 or shape[1] < 9 or (found != P.astype(float) @ x).any()
    np.testing.assert_array_equal(found, _core.column_inners(P, x, bits, 3 - n_threads))


@pytest.mark.parametrize("light", [False, True], ids=["all rows", "few heavy rows"])
@pytest.mark.parametrize("centred", [False, True], ids=["not centred", "centred"])
@pytest.mark.parametrize("bits", [53, 24])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_hessian(shape, bits, centred, light):
    P, h = problem(shape, light=light)
    H, twin = _core.gram(P, h, centred, bits, 2), newton.gram(P, h, centred)
    rounding = 4 * (1e-13 if bits == 53 else 1e-5)
    np.testing.assert_allclose(H, twin, rtol=0, atol=rounding)
    np.testing.assert_array_equal(H, _core.gram(P, h, centred, bits, 1))
    assert np.linalg.eigvalsh(H).min() >= -rounding


@pytest.mark.parametrize("light", [False, True], ids=["all rows", "few heavy rows"])
@pytest.mark.parametrize("largest", [1, 2, 16])
@pytest.mark.parametrize("shape", [*SHAPES, (120, 3000)], ids=str)
def test_hessian_of_rounded_weights_is_exact(shape, largest, light):
    """It is that of the weights as they were rounded, to the last bit."""
    P, h = problem(shape, largest, light)
    weight, unit = newton.rounded_weights(h, P)
    Q = P.astype(np.int64)
    H = _core.gram(P, h, False, 15, 1)
    np.testing.assert_array_equal(H, ((Q * weight) @ Q.T) * unit)
    np.testing.assert_array_equal(H, _core.gram(P, h, False, 15, 2))
    # Near the one that was meant: every weight is rounded by half a unit.
    assert np.abs(H - newton.gram(P, h, False)).max() <= unit / 2 * shape[1] * largest**2
    centred = _core.gram(P, h, True, 15, 1)
    atol = 1e-12 * weight.sum() * unit * largest**2
    np.testing.assert_allclose(centred, newton.gram(P, weight * unit, True), rtol=0, atol=atol)


def test_large_numbers_are_not_rounded():
    P = np.array([[1, 17, -1], [0, 1, 0]], dtype=np.int8)
    assert _core.gram(P, np.ones(3), True, 15, 1) is None
    assert _core.gram(P[1:], np.ones(3), True, 15, 1) is not None


def test_lengths_must_agree():
    P, h = problem((3, 5))
    with pytest.raises(ValueError, match="differ in their length"):
        _core.gram(P, h[:4], True, 53, 1)
    with pytest.raises(ValueError, match="differ in their length"):
        _core.column_inners(P, h[:4], 45, 1)
