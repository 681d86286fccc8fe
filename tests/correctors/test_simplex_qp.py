"""The quadratic program of a Newton step: a conic solver, and the KKT conditions themselves."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reference import newton
from tcboost import _core

STARTS = ["zero", "interior", "boundary", "vertex", "face below the budget"]


def start(kind, q, theta, rng):
    """A feasible point."""
    w = np.zeros(q)
    if kind == "interior":
        w = rng.dirichlet(np.ones(q)) * theta * 0.7
    elif kind == "boundary":
        w = np.where(np.arange(q) % 3, rng.random(q), 0.0) + 1e-3
        w *= theta / w.sum()
    elif kind == "vertex":
        w[rng.integers(q)] = theta
    elif kind == "face below the budget":
        w[: (q + 1) // 2] = theta / (2 * q)
    return w


def objective(H, g, d):
    return 0.5 * d @ H @ d - g @ d


def assert_kkt(H, g, theta, w, d):
    """Feasible, and stationary: g - H d = mu on the support, at most mu elsewhere."""
    v = w + d
    assert v.min() >= -1e-14 * theta
    assert v.sum() <= theta * (1 + 1e-12)
    v = np.maximum(v, 0.0)
    slope = g - H @ d
    # An ill-conditioned H costs accuracy, which the next Newton step makes up for.
    accuracy = 1e-11 + 1e-15 * np.linalg.cond(H)
    rounding = accuracy * np.abs(g).max() + 1e-13 * np.abs(H).max() * np.abs(d).sum()
    mu = max(0.0, slope.max())
    # Complementary slackness, as one sum of nonnegative terms.
    assert v @ (mu - slope) + mu * max(0.0, theta - v.sum()) <= rounding * (theta + v.sum())


def by_clarabel(H, g, theta, w):
    d = cp.Variable(len(g))
    cost = 0.5 * cp.quad_form(d, cp.psd_wrap(H)) - g @ d
    problem = cp.Problem(cp.Minimize(cost), [w + d >= 0, cp.sum(w + d) <= theta])
    tight = dict.fromkeys(["tol_gap_abs", "tol_gap_rel", "tol_feas"], 1e-11)
    problem.solve(solver=cp.CLARABEL, **tight)
    return d.value


@pytest.mark.parametrize("theta", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("kind", STARTS)
@pytest.mark.parametrize("rank", [3, 12], ids=["singular", "regular"])
def test_agrees_with_a_conic_solver(rank, kind, theta):
    rng = np.random.default_rng([rank, STARTS.index(kind)])
    q = 12
    A = rng.normal(size=(rank, q))
    H = A.T @ A / q + 1e-6 * np.eye(q)
    g = A.T @ rng.normal(size=rank) + 0.1 * rng.normal(size=q) if rank < q else A[0]
    w = start(kind, q, theta, rng)
    d = _core.solve_simplex_qp(H, g, theta, w)
    assert_kkt(H, g, theta, w, d)
    reference = by_clarabel(H, g, theta, w)
    scale = 1 + abs(objective(H, g, reference))
    assert objective(H, g, d) <= objective(H, g, reference) + 1e-7 * scale
    if rank == q:
        np.testing.assert_allclose(w + d, w + reference, atol=1e-5 * theta)


@pytest.mark.parametrize("kind", STARTS)
def test_budget_that_does_not_bind(kind):
    """H = I and g > 0: the step is g itself where w + g has room."""
    rng = np.random.default_rng(0)
    g = rng.random(7)
    w = start(kind, 7, 100.0, rng) / 3
    np.testing.assert_allclose(_core.solve_simplex_qp(np.eye(7), g, 100.0, w), g, rtol=1e-12)


def test_projection_onto_the_simplex():
    """H = I from zero: the projection of g, known in closed form."""
    g = np.array([3.0, 2.5, 1.0, -1.0])
    d = _core.solve_simplex_qp(np.eye(4), g, 2.0, np.zeros(4))
    np.testing.assert_allclose(d, [1.25, 0.75, 0.0, 0.0], atol=1e-14)
    assert d[2] == d[3] == 0.0


def test_nothing_to_gain():
    """All slopes negative: zero is optimal, and reached exactly."""
    g = -np.ones(3)
    assert not _core.solve_simplex_qp(np.eye(3), g, 1.0, np.zeros(3)).any()
    w = np.array([0.2, 0.0, 0.5])
    np.testing.assert_array_equal(
        w + _core.solve_simplex_qp(1e-3 * np.eye(3), g, 1.0, w), np.zeros(3)
    )


@pytest.mark.parametrize("theta", [1.0, 1e6])
def test_duplicates_and_a_flat_variable(theta):
    """Equal columns and one without curvature, held by the ridge of the master alone."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(5, 6))[:, [0, 1, 1, 2, 2, 3]]
    A[:, 5] = 0.0
    H = A.T @ A + 1e-12 * np.eye(6)
    g = A.T @ rng.normal(size=5)
    for kind in STARTS:
        w = start(kind, 6, theta, rng)
        d = _core.solve_simplex_qp(H, g, theta, w)
        assert_kkt(H, g, theta, w, d)
        assert abs(min(0.0, theta - (w + d).sum())) <= 1e-12 * theta


def test_indefinite_matrix_is_refused():
    """The master raises its ridge then."""
    H = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert _core.solve_simplex_qp(H, np.ones(2), 1.0, np.array([0.3, 0.3])) is None


@st.composite
def problems(draw):
    q = draw(st.integers(1, 8))
    rank = draw(st.integers(1, 8))
    small = st.integers(-3, 3).map(float)
    A = draw(arrays(float, (rank, q), elements=small))
    ridge = draw(st.sampled_from([1e-9, 1e-6, 1.0]))
    g = draw(arrays(float, q, elements=small))
    theta = 10.0 ** draw(st.integers(-3, 6))
    shares = draw(arrays(float, q, elements=st.integers(0, 3).map(float)))
    total = shares.sum() + draw(st.integers(0, 2))
    w = theta * shares / total if total else shares
    return A.T @ A + ridge * np.eye(q), g, theta, w


@settings(deadline=None, max_examples=300)
@given(problem=problems())
def test_kkt_conditions(problem):
    H, g, theta, w = problem
    d = _core.solve_simplex_qp(H, g, theta, w)
    assert_kkt(H, g, theta, w, d)
    assert objective(H, g, d) <= 1e-12 * (1 + np.abs(g).max() * theta)
    twin = newton.solve_simplex_qp(H, g, theta, w)
    scale = 1 + np.abs(g).max() * theta
    # Of a nearly singular H the twin may stop a little short of the optimum.
    assert objective(H, g, d) <= objective(H, g, twin) + 1e-9 * scale


def test_circles_end():
    """Far from optimal and ill-conditioned."""
    rng = np.random.default_rng(0)
    for q in (30, 80):
        for theta in (1.0, 100.0):
            A = rng.choice([-1.0, 1.0], size=(q // 2, q)) * 10.0 ** rng.uniform(
                -3, 0, (q // 2, 1)
            )
            H = A.T @ A + 1e-9 * np.eye(q)
            g = A.T @ rng.normal(size=q // 2) + 0.1 * rng.random(q)
            for kind in STARTS:
                w = start(kind, q, theta, rng)
                assert_kkt(H, g, theta, w, _core.solve_simplex_qp(H, g, theta, w))


def test_sizes_must_agree():
    H, g = np.eye(3), np.ones(3)
    for bad in ((H[:2, :2].copy(), g, g), (H, g[:2], g), (H, g, g[:2])):
        with pytest.raises(ValueError, match="differ in their size"):
            _core.solve_simplex_qp(bad[0], bad[1], 1.0, bad[2])
