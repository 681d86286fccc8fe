"""The losses: value, gradient, and weights in integers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

from tcboost.losses import LOSSES, SMOOTH, Exponential


def exponential(z, log_s):
    log_s = np.broadcast_to(log_s, z.shape)[:, 0]
    return Exponential().dual_weights(z, z.shape[1] * np.exp(log_s))


def problem(seed, n=30, width=4, spread=3.0):
    rng = np.random.default_rng(seed)
    log_s = np.log(rng.dirichlet(np.ones(n)) / width)[:, None]
    return spread * rng.normal(size=(n, width)), log_s


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 1000.0])
def test_value_and_weights(seed, spread):
    z, log_s = problem(seed, spread=spread)
    dual = exponential(z, log_s)
    np.testing.assert_allclose(dual.loss, logsumexp(log_s - z), rtol=1e-13, atol=1e-13)
    assert dual.u.dtype == np.int64
    assert dual.u.shape == z.shape
    assert (dual.u >= 0).all()
    assert isinstance(dual.scale, int)
    assert dual.scale == sum(dual.u.ravel().tolist())
    np.testing.assert_allclose(
        dual.u / dual.scale, softmax(log_s - z), rtol=1e-12, atol=2.0**-58
    )


def test_no_margin_no_loss():
    weight = np.array([0.5, 0.25, 0.25])
    dual = exponential(np.zeros((3, 2)), np.log(weight / 2)[:, None])
    assert abs(dual.loss) < 1e-14
    np.testing.assert_allclose(dual.u / dual.scale, np.outer(weight, [0.5, 0.5]), rtol=1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_minus_the_gradient(seed):
    z, log_s = problem(seed, n=6, width=3, spread=1.0)
    dual = exponential(z, log_s)
    step = 1e-5
    for i in np.ndindex(z.shape):
        up, down = z.copy(), z.copy()
        up[i] += step
        down[i] -= step
        slope = exponential(up, log_s).loss - exponential(down, log_s).loss
        np.testing.assert_allclose(-slope / (2 * step), dual.u[i] / dual.scale, atol=1e-9)


@pytest.mark.parametrize("spread", [0.0, 0.1, 5.0, 1e4])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1000, 50_000])
def test_total_uses_60_bits_and_no_more(n, spread):
    z, log_s = problem(n, n=n, width=2, spread=spread)
    total = exponential(z, log_s).scale
    assert 0.999 * 2**59 <= total <= 2**60


@given(
    st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=20),
    st.floats(-700, 0),
)
@settings(deadline=None, max_examples=200)
def test_total_property(values, log_s):
    z = np.array(values)[:, None]
    dual = exponential(z, np.full((len(z), 1), log_s))
    assert 0.999 * 2**59 <= dual.scale <= 2**60
    np.testing.assert_allclose(dual.loss, logsumexp(log_s - z), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("extreme", [1e6, -1e6, 1e300, -1e300])
def test_extreme_margins(extreme):
    n = 10
    log_s = np.full((n, 1), -math.log(n))
    dual = exponential(np.full((n, 1), extreme), log_s)
    np.testing.assert_allclose(dual.loss, -extreme, rtol=1e-14)
    assert len(np.unique(dual.u)) == 1
    # One row far from the others: it takes all the weight, or none.
    z = np.zeros((n, 1))
    z[3] = extreme
    dual = exponential(z, log_s)
    others = np.delete(dual.u, 3)
    if extreme < 0:
        np.testing.assert_allclose(dual.loss, -extreme - math.log(n), rtol=1e-14)
        assert (others == 0).all()
        assert dual.scale == dual.u[3, 0] >= 2**59
    else:
        np.testing.assert_allclose(dual.loss, math.log((n - 1) / n), atol=1e-14)
        assert dual.u[3, 0] == 0
        assert (others > 0).all()


def test_weights_are_rounded_to_the_nearest():
    z = np.linspace(30, 45, 200)
    dual = exponential(np.append(0.0, z)[:, None], np.zeros((201, 1)))
    assert dual.u[0, 0] == 2**59  # exp(0), so this is the unit
    exact = np.exp(-z) * 2.0**59
    assert np.abs(dual.u[1:, 0] - exact).max() <= 0.5 + 1e-9
    assert dual.u[-1, 0] == 0


def test_both_extremes_at_once():
    dual = exponential(np.array([[1e6, -1e6, 0.0]]), np.zeros((1, 1)))
    assert dual.u[0].tolist() == [0, dual.scale, 0]
    assert dual.loss == 1e6


@pytest.mark.parametrize("seed", range(10))
def test_order_of_the_margins_does_not_matter(seed):
    z, log_s = problem(seed, n=200, width=3, spread=2.0)
    dual = exponential(z, log_s)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(200), rng.permutation(3)
    moved = exponential(z[rows][:, columns], log_s[rows])
    np.testing.assert_array_equal(moved.u, dual.u[rows][:, columns])
    assert moved.scale == dual.scale
    assert moved.loss == dual.loss


def test_equal_margins_have_equal_weights():
    # Also at the ends of an array, where vector instructions stop.
    rng = np.random.default_rng(0)
    few = rng.normal(size=5)
    z = few[np.arange(103) % 5][:, None]
    dual = exponential(z, np.zeros((103, 1)))
    for k in range(5):
        assert len(set(dual.u[k::5, 0].tolist())) == 1
    assert len(set(dual.u.ravel().tolist())) == 5


def test_a_constant_shift_of_dyadic_margins_changes_no_weight():
    z = np.random.default_rng(0).integers(-32, 32, size=(20, 3)) / 8
    dual = exponential(z, np.zeros((20, 1)))
    shifted = exponential(z + 1024, np.zeros((20, 1)))
    np.testing.assert_array_equal(shifted.u, dual.u)
    np.testing.assert_allclose(shifted.loss, dual.loss - 1024, rtol=1e-14)


@given(
    st.lists(st.sampled_from([1.0, 3.0, 9.0, 7.0, 5e-17, 2.0**53]), min_size=1), st.randoms()
)
@settings(deadline=None, max_examples=200)
def test_order_does_not_matter_where_float_sums_would_differ(values, random):
    z, order = np.log(values)[:, None], list(range(len(values)))
    random.shuffle(order)
    a, b = exponential(z, np.zeros((1, 1))), exponential(z[order], np.zeros((1, 1)))
    assert (a.scale, a.loss) == (b.scale, b.loss)
    assert (a.u[order] == b.u).all()
    assert 2**58 < a.scale <= 2**60


def test_a_loss_of_zero_is_zero():
    dual = exponential(np.zeros((10, 1)), np.full((10, 1), -np.log(10)))
    assert abs(dual.loss) < 1e-15


# ---------------------------------------------------------------- every loss


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_every_loss_is_convex_decreasing_and_knows_its_gradient(loss, n_classes):
    rng = np.random.default_rng(n_classes)
    weight = rng.dirichlet(np.ones(12))
    z = rng.normal(size=(12, n_classes - 1))
    dual = loss.dual_weights(z, weight)
    assert dual.u.sum() <= 2**60
    assert (dual.u >= 0).all()
    step = 1e-6
    for i in np.ndindex(z.shape):
        up, down = z.copy(), z.copy()
        up[i] += step
        down[i] -= step
        slope = loss.dual_weights(up, weight).loss - loss.dual_weights(down, weight).loss
        assert -slope / (2 * step) == pytest.approx(dual.u[i] / dual.scale, abs=1e-8)
    other = rng.normal(size=z.shape)
    tangent = dual.loss - ((other - z) * dual.u).sum() / dual.scale
    assert loss.dual_weights(other, weight).loss >= tangent


def outside(z):
    """A step of finite differences away from where the hinges bend."""
    return np.where(np.abs(z - 1.0) < 1e-4, 0.9, z)


@pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0])
def test_every_smooth_loss_knows_its_second_derivative(loss, spread):
    rng = np.random.default_rng(int(10 * spread))
    z, s = outside(spread * rng.normal(size=8)), rng.dirichlet(np.ones(8))
    expand = loss.on_margins(s)
    at = expand(z)
    H = np.diag(at.h) - loss.centred * np.outer(at.u, at.u)
    step = 1e-6
    for i in range(8):
        up, down = (expand(z + sign * step * np.eye(8)[i]) for sign in (1, -1))
        assert at.u[i] == pytest.approx(-(up.loss - down.loss) / (2 * step), abs=1e-8)
        np.testing.assert_allclose(-(up.u - down.u) / (2 * step), H[i], atol=1e-7)


@pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
@pytest.mark.parametrize("spread", [0.0, 1.0, 100.0])
def test_the_master_and_the_loop_see_the_same_loss(loss, spread):
    rng = np.random.default_rng(3)
    z, weight = spread * rng.normal(size=(9, 3)), rng.dirichlet(np.ones(9))
    at = loss.on_margins(np.repeat(weight / 3, 3))(z.ravel())
    dual = loss.dual_weights(z, weight)
    assert dual.loss == pytest.approx(at.loss, rel=1e-12, abs=1e-15)
    np.testing.assert_allclose(dual.u.ravel() / dual.scale, at.u, rtol=1e-12, atol=1e-16)
    assert dual.offset is None


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("shift", [-1e6, -3.0, 0.0, 3.0, 1e6])
def test_the_bound_of_every_loss_holds_at_the_rounded_weights(loss, shift):
    """``loss(z') + <u, z'>`` is nowhere below the offset that the loop takes for it."""
    rng = np.random.default_rng(0)
    weight = rng.dirichlet(np.full(20, 0.2))  # some of them weigh next to nothing
    weight = np.maximum(weight, 1e-20)
    z = shift + rng.normal(size=(20, 3))
    dual = loss.dual_weights(z, weight)
    u, scale = dual.u.astype(np.longdouble), np.longdouble(dual.scale)
    offset = (
        dual.offset if dual.offset is not None else dual.loss + float((u * z).sum() / scale)
    )
    offset -= 2.0 * u.size * max(1.0, 1.0 - z.min()) / dual.scale
    for spread in (0.0, 1e-3, 1.0, 100.0):
        other = z + spread * rng.normal(size=z.shape)
        value = loss.dual_weights(other, weight).loss + float((u * other).sum() / scale)
        assert value >= offset - 1e-15 * (1 + 100 * abs(shift))


@pytest.mark.parametrize("name", [n for n, loss in SMOOTH.items() if not loss.centred])
def test_elementwise_losses_are_means_of_a_function_of_one_margin(name):
    rng = np.random.default_rng(0)
    loss, z = LOSSES[name], 3 * rng.normal(size=(7, 3))
    weight = rng.dirichlet(np.ones(7))
    value, slope, h = loss.phi(z)
    assert (slope >= 0).all()
    assert (h >= 0).all()
    assert h.max() <= loss.bend * (1 + 1e-12)
    dual = loss.dual_weights(z, weight)
    assert dual.loss == pytest.approx(weight @ value.mean(axis=1))
    # No distribution: the weights sum to what is left of the slope, and not to one.
    assert dual.u.sum() / dual.scale == pytest.approx(weight @ slope.mean(axis=1))
    if name == "logistic":
        assert dual.u.sum() < dual.scale
        np.testing.assert_allclose(value, np.log1p(np.exp(-z)))


def test_squared_hinge_weights_may_sum_to_more_than_one():
    dual = LOSSES["squared_hinge"].dual_weights(np.full((4, 2), -1e6), np.full(4, 0.25))
    assert dual.u.sum() / dual.scale == pytest.approx(1e6 + 1)
    assert 2**58 < dual.u.sum() <= 2**60
    assert dual.loss == pytest.approx((1e6 + 1) ** 2 / 2)


def test_hinge_is_one_slack_a_row():
    z = np.array([[2.0, 1.5], [0.5, 0.5], [-1.0, 3.0], [1.0, 4.0]])
    weight = np.array([0.1, 0.2, 0.3, 0.4])
    dual = LOSSES["hinge"].dual_weights(z, weight)
    assert dual.loss == pytest.approx(0.2 * 0.5 + 0.3 * 2.0)
    expected = [[0, 0], [0.1, 0.1], [0.3, 0], [0, 0]]
    np.testing.assert_allclose(dual.u / dual.scale, expected, atol=1e-14)
    assert dual.offset == pytest.approx(0.5)
    # Whatever shares are asked for, a row gives no more than its weight.
    v = np.array([[3.0, 1.0], [0.2, 0.3], [0.0, 0.0], [1.0, 1e-12]])
    dual = LOSSES["hinge"].shared_out(v, z, weight)
    rows = dual.u.sum(axis=1) / dual.scale
    assert (rows <= weight).all()
    np.testing.assert_allclose(rows, [0.1, 0.1, 0.0, 0.4], rtol=1e-12)
