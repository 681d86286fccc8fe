"""What a budget is worth: levels and gains, by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar

from tcboost.correctors import Budget

EDGES = arrays(float, st.integers(1, 10), elements=st.floats(0, 3))


@settings(deadline=None)
@given(EDGES, st.floats(0, 20), st.sampled_from([1e-6, 0.1, 2.0, 1e4]))
def test_level_and_gain_by_brute_force(edges, theta, ridge):
    budget = Budget(ridge=ridge)
    r = budget.level(edges, theta)
    # What each would get at that level adds up to theta, or to less at the level zero.
    spent = np.maximum(edges - r, 0.0).sum() / ridge
    assert r >= 0
    assert spent <= theta + 1e-9 * (1 + 1 / ridge)
    if r > 0:
        assert spent == pytest.approx(theta, abs=1e-9 * (1 + 1 / ridge))

    def bound(r):
        return r * theta + (np.maximum(edges - r, 0.0) ** 2).sum() / (2 * ridge)

    least = minimize_scalar(bound, bounds=(0, 3), method="bounded", options={"xatol": 1e-10})
    expected = min(float(least.fun), bound(0.0))
    if theta == 0:
        expected = 0.0
    assert budget.gain(edges, theta) == pytest.approx(expected, rel=1e-6, abs=1e-7)


@given(EDGES, st.floats(0, 20))
def test_without_a_ridge_the_largest_edge_gets_all(edges, theta):
    budget = Budget()
    assert budget.level(edges, theta) == edges.max()
    assert budget.gain(edges, theta) == theta * edges.max()
    assert budget.gain(np.array([np.inf]), 0.0) == 0.0


@given(EDGES, st.floats(0, 2), st.sampled_from([0.0, 0.1, 2.0]), st.floats(0, 10))
def test_gain_above_a_price_by_brute_force(edges, price, ridge, most):
    found = Budget(price=price, ridge=ridge).gain_above_price(edges, most)
    over = np.maximum(edges - price, 0.0)
    rng = np.random.default_rng(0)
    shares = np.vstack([rng.dirichlet(np.ones(len(edges)), 50), np.eye(len(edges))])
    for used in (most, most / 2, most / 10):
        W = used * shares
        values = W @ (edges - price) - ridge / 2 * (W * W).sum(axis=1)
        assert (values <= found + 1e-12).all()
    if ridge == 0:
        assert found == most * over.max()
    elif over.sum() / ridge <= most:  # then the best is within
        W = over / ridge
        assert found == pytest.approx(W @ over - ridge / 2 * W @ W, abs=1e-12)
