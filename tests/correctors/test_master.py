"""The restricted master: frozen problems, a conic solver, and the certificate itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from scipy.special import logsumexp, rel_entr

from reference import newton, programs
from tcboost import solve_master
from tcboost.correctors import master as master_module
from tcboost.correctors.master import Master
from tcboost.losses import SMOOTH, Logistic

SMALL = ["wine-mo-50", "wine-mo-100-hard", "vehicle-ecc-200", "vehicle-ecc-200-hard"]
LARGE = ["svmguide4-mo-100", "thyroid-mo-200", "thyroid-ecc-300", "dna-ecc-400"]


def required(theta):
    """The gap that every solve must reach."""
    return 1e-6 if theta <= 1000 else 1e-9 * theta


def assert_certified(P, theta, solution, s=None):
    """Feasible, and the gap that is stated bounds primal minus dual, both from w and u only."""
    P = np.asarray(P, float)
    s = np.ones(len(P)) if s is None else np.asarray(s, float)
    w, u = solution.w, solution.u
    assert w.min() >= 0
    assert w.sum() <= theta * (1 + 1e-12)
    assert u.min() >= 0
    assert abs(u.sum() - 1) <= 1e-12
    assert not u[s == 0].any()
    # Pairwise sums: the rounding of u @ P, of many equal terms, reaches 1e-14.
    r = max(0.0, (np.ascontiguousarray(P.T) * u).sum(axis=1).max())
    primal = logsumexp(-P @ w, b=s)
    dual = -r * theta - rel_entr(u, s).sum()
    rounding = 1e-13 * (1 + np.abs(P).max() * theta)
    assert solution.r == pytest.approx(r, abs=1e-14 * np.abs(P).max())
    assert solution.log_loss == pytest.approx(primal, abs=rounding)
    assert solution.dual == pytest.approx(solution.log_loss - solution.gap)
    assert -rounding <= primal - dual <= solution.gap * (1 + 1e-6) + rounding
    assert (solution.status == "optimal") == (solution.gap <= required(theta))


def assert_solved(P, theta, solution, s=None):
    assert_certified(P, theta, solution, s)
    assert solution.status == "optimal"


# The frozen problems.


@pytest.mark.parametrize("frozen", SMALL + LARGE, indirect=True)
def test_frozen_cold(frozen):
    rho, theta, optimum, optimum_gap = frozen
    solution = solve_master(rho, theta)
    assert_solved(rho, theta, solution)
    assert abs(solution.log_loss - optimum) <= solution.gap + optimum_gap
    assert solution.n_iter <= 30


@pytest.mark.parametrize("frozen", SMALL + LARGE, indirect=True)
def test_frozen_warm(frozen):
    rho, theta, optimum, optimum_gap = frozen
    best = solve_master(rho, theta)
    again = solve_master(rho, theta, w0=best.w)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.w, best.w)
    rng = np.random.default_rng(0)
    near = best.w * rng.uniform(0.9, 1.1, len(best.w))
    solution = solve_master(rho, theta, w0=near)
    assert_solved(rho, theta, solution)
    assert abs(solution.log_loss - optimum) <= solution.gap + optimum_gap


@pytest.mark.parametrize("frozen", SMALL, indirect=True)
def test_frozen_from_infeasible_starts(frozen):
    rho, theta, optimum, optimum_gap = frozen
    rng = np.random.default_rng(1)
    n_columns = rho.shape[1]
    vertex = np.eye(n_columns)[rng.integers(n_columns)] * theta
    for w0 in (theta * rng.normal(size=n_columns), 1e6 * rng.random(n_columns), vertex):
        solution = solve_master(rho, theta, w0=w0)
        assert_solved(rho, theta, solution)
        assert abs(solution.log_loss - optimum) <= solution.gap + optimum_gap


@pytest.mark.parametrize("theta", [1e-3, 1, 20, 1000])
@pytest.mark.parametrize("frozen", SMALL, indirect=True)
def test_frozen_other_budgets(frozen, theta):
    assert_solved(frozen[0], theta, solve_master(frozen[0], theta))


@pytest.mark.parametrize("theta", [20.0, 1e6])
@pytest.mark.parametrize("frozen", SMALL[:2], indirect=True)
def test_frozen_bad_start_costs_little(frozen, theta):
    """A start far from optimal is scaled back to a budget where it is not."""
    rho = frozen[0]
    cold = solve_master(rho, theta)
    for seed in range(3):
        w0 = np.random.default_rng(seed).dirichlet(np.ones(rho.shape[1])) * theta
        solution = solve_master(rho, theta, w0=w0)
        assert_solved(rho, theta, solution)
        assert solution.log_loss == pytest.approx(cold.log_loss, abs=2 * required(theta))
        assert solution.n_iter <= 2 * cold.n_iter + 20


@pytest.mark.slow
@pytest.mark.parametrize("theta", 10.0 ** np.arange(-3, 7))
@pytest.mark.parametrize("frozen", SMALL + LARGE, indirect=True)
def test_frozen_all_budgets(frozen, theta):
    solution = solve_master(frozen[0], theta)
    assert_solved(frozen[0], theta, solution)
    assert solution.n_iter <= 150


@pytest.mark.parametrize("frozen", SMALL[1:2], indirect=True)
def test_columns_one_at_a_time(frozen):
    """As in boosting: each solve starts from the last one and a new column at zero."""
    rho, theta, optimum, optimum_gap = frozen
    w = np.zeros(0)
    for t in range(1, rho.shape[1] + 1):
        solution = solve_master(rho[:, :t], theta, w0=np.append(w, 0.0))
        assert_solved(rho[:, :t], theta, solution)
        w = solution.w
    assert abs(solution.log_loss - optimum) <= solution.gap + optimum_gap


# A conic solver on small random problems.


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n_rows, n_columns = rng.integers(1, 40), rng.integers(1, 12)
    shape = (n_rows, n_columns)
    P = [
        rng.choice([-1, 1], shape).astype(np.int8),
        rng.choice([-2, 0, 2], shape).astype(np.int8),
        np.where(rng.random(shape) < 0.15, -1, 1),
        rng.normal(size=shape),
        rng.normal(size=shape).astype(np.float32),
    ][seed % 5]
    s = None
    if seed % 2:
        s = rng.random(n_rows) * (rng.random(n_rows) < 0.7)
        s[0] = 0.5
    return P, float(10 ** rng.uniform(-2, 1.5)), s


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_a_conic_solver(seed):
    P, theta, s = random_problem(seed)
    solution = solve_master(P, theta, sample_weight=s)
    assert_solved(P, theta, solution, s)
    s = np.ones(len(P)) if s is None else s
    reference = programs.solve_master(np.asarray(P, float), s / s.sum(), theta)
    shift = np.log(s.sum())
    assert solution.log_loss == pytest.approx(reference.loss + shift, abs=1e-6)
    assert solution.log_loss - (reference.loss + shift) <= solution.gap + 1e-9
    assert solution.dual <= reference.loss + shift + 1e-9


# The NumPy twin of the native solver.


@pytest.mark.parametrize("loss", sorted(SMOOTH))
@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_the_twin(seed, loss):
    P, theta, s = random_problem(seed)
    s = np.ones(len(P)) if s is None else s
    native = solve_master(P, theta, sample_weight=s, tol=1e-9, loss=loss)
    twin = newton.Master(P, s, SMOOTH[loss]).solve(theta, np.zeros(P.shape[1]), 1e-9)
    assert native.status == twin.status == "optimal"
    rounding = 1e-13 * theta + 1e-15 * abs(twin.log_loss)
    assert abs(native.log_loss - twin.log_loss) <= native.gap + twin.gap + rounding


@pytest.mark.parametrize("frozen", SMALL, indirect=True)
def test_frozen_agrees_with_the_twin(frozen):
    rho, theta, *_ = frozen
    native = solve_master(rho, theta)
    twin = newton.Master(rho, np.ones(len(rho)), SMOOTH["exponential"])
    other = twin.solve(theta, np.zeros(rho.shape[1]), 1e-6)
    assert abs(native.log_loss - other.log_loss) <= native.gap + other.gap
    np.testing.assert_allclose(native.u, other.u, atol=1e-4)


def test_equal_rows_and_columns_are_taken_together_rightly():
    """Rows and columns that differ in one place only must stay apart."""
    rng = np.random.default_rng(3)
    P = np.repeat(rng.choice([-1, 1], (30, 6)), 4, axis=0)[:, [0, 1, 2, 3, 4, 5, 0, 1, 2, 0]]
    P[::7, 8] *= -1
    s = rng.random(len(P))
    w0 = rng.random(P.shape[1])
    for start in (None, w0):
        assert_solved(P, 4.0, solve_master(P, 4.0, w0=start, sample_weight=s), s)


def test_u_of_equal_rows_is_shared_by_their_weights():
    """A row of weight zero has none, also where its equals have some."""
    P = np.array([[1, -1], [1, -1], [-1, 1], [1, -1], [1, 1], [1, 1]], dtype=np.int8)
    s = np.array([1.0, 2.0, 1.5, 0.0, 0.0, 0.0])
    solution = solve_master(P, 0.3, sample_weight=s)
    assert_solved(P, 0.3, solution, s)
    assert solution.u[1] == pytest.approx(2 * solution.u[0], rel=1e-15)


@pytest.mark.parametrize("largest", [1, 2, 16, 17, 127, 128])
def test_numbers_of_any_size_are_solved(largest):
    """In a byte or two."""
    rng = np.random.default_rng(largest)
    P = rng.integers(-largest, largest, (700, 90), endpoint=True)
    for theta in (1 / largest, 30 / largest, 3000 / largest):
        assert_solved(P, theta, solve_master(P, theta))


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.float64])
def test_a_solve_repeats_to_the_bit(kind):
    P = np.random.default_rng(4).choice([-2, 0, 2], (300, 40)).astype(kind)
    first, again = solve_master(P, 9.0), solve_master(P.copy(order="F"), 9.0)
    np.testing.assert_array_equal(first.w, again.w)
    np.testing.assert_array_equal(first.u, again.u)
    small = solve_master(P.astype(np.int8), 9.0)
    np.testing.assert_array_equal(first.w, small.w)


def test_numbers_beyond_a_byte():
    """int16 in the core, or float64."""
    P = np.random.default_rng(4).integers(-300, 300, (60, 8))
    for scale, theta in ((1, 0.05), (1000, 5e-5)):
        assert_solved(P * scale, theta, solve_master(P * scale, theta))


def test_an_error_in_a_loss_of_python_is_raised(monkeypatch):
    class Broken(Logistic):
        def phi(self, z):
            raise RuntimeError("no value")

    monkeypatch.setitem(SMOOTH, "broken", Broken())
    with pytest.raises(RuntimeError, match="no value"):
        solve_master([[1.0, -1.0], [1.0, 1.0]], 1.0, loss="broken")


# Problems whose solution is known.


@pytest.mark.parametrize("theta", [1e-3, 1.0, 1e6])
def test_one_column(theta):
    """Three rows right and one wrong: w = log(3) / 2, or the budget if that is less."""
    solution = solve_master([[1], [1], [1], [-1]], theta)
    assert_solved([[1], [1], [1], [-1]], theta, solution)
    assert solution.w[0] == pytest.approx(min(theta, np.log(3) / 2), rel=1e-3)


def test_one_row():
    solution = solve_master([[1, -1, 0.5]], 3.0)
    assert_solved([[1, -1, 0.5]], 3.0, solution)
    np.testing.assert_allclose(solution.w, [3.0, 0.0, 0.0], atol=1e-6)
    assert solution.log_loss == pytest.approx(-3.0, abs=1e-6)
    assert solution.u.tolist() == [1.0]


def test_five_rows_many_columns():
    P = np.random.default_rng(0).choice([-1, 1], (5, 200))
    for theta in (0.1, 10.0, 1e4):
        assert_solved(P, theta, solve_master(P, theta))


@pytest.mark.parametrize("P", [-np.ones((6, 4)), -np.eye(5), np.zeros((3, 2))])
def test_columns_that_only_harm(P):
    solution = solve_master(P, 10.0)
    assert_solved(P, 10.0, solution)
    assert not solution.w.any()
    assert (solution.r, solution.gap, solution.n_iter) == (0.0, 0.0, 0)
    assert solution.log_loss == pytest.approx(np.log(len(P)))


def test_harmful_columns_get_nothing_from_any_start():
    solution = solve_master(-np.ones((6, 4)), 10.0, w0=[1, 2, 3, 9])
    assert_solved(-np.ones((6, 4)), 10.0, solution)
    assert solution.log_loss == pytest.approx(np.log(6), abs=1e-6)


def test_constant_columns():
    """The best constant takes all; among equals the split does not matter."""
    P = np.ones((7, 1)) * [0.5, 2.0, -1.0, 2.0]
    solution = solve_master(P, 4.0)
    assert_solved(P, 4.0, solution)
    assert solution.w[1] + solution.w[3] == pytest.approx(4.0, abs=1e-6)
    assert solution.log_loss == pytest.approx(np.log(7) - 8.0, abs=1e-6)


@pytest.mark.parametrize("theta", [0.5, 30.0, 1e5])
def test_duplicated_and_zero_columns_change_nothing(theta):
    P = np.random.default_rng(5).choice([-1, 1], (40, 8), p=[0.35, 0.65])
    alone = solve_master(P, theta)
    more = np.hstack([P, np.zeros((40, 2), int), P, P[:, :3]])
    solution = solve_master(more, theta)
    assert_solved(more, theta, solution)
    assert solution.log_loss == pytest.approx(alone.log_loss, abs=2 * required(theta))


def test_weight_two_is_a_row_twice():
    rng = np.random.default_rng(6)
    P = rng.normal(size=(30, 6))
    s = rng.integers(0, 4, 30)
    weighted = solve_master(P, 5.0, sample_weight=s)
    repeated = solve_master(np.repeat(P, s, axis=0), 5.0)
    assert_solved(P, 5.0, weighted, s)
    assert weighted.log_loss == pytest.approx(repeated.log_loss, abs=2e-6)
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-3)
    np.testing.assert_allclose(
        np.repeat(weighted.u / np.maximum(s, 1), s), repeated.u, atol=1e-4
    )


def test_scale_of_the_weights_only_shifts_the_loss():
    P = np.random.default_rng(7).normal(size=(20, 5))
    plain, scaled = solve_master(P, 2.0), solve_master(P, 2.0, sample_weight=np.full(20, 1e-9))
    assert scaled.log_loss == pytest.approx(plain.log_loss + np.log(1e-9), abs=2e-6)
    np.testing.assert_allclose(scaled.u, plain.u, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1e3, 1e9])
def test_scale_of_the_margins_is_that_of_the_budget(scale):
    P = np.random.default_rng(8).normal(size=(25, 6))
    plain, scaled = solve_master(P, 3.0), solve_master(P * scale, 3.0 / scale)
    assert scaled.gap <= max(1e-6, 3e-9 / scale)
    assert scaled.log_loss == pytest.approx(plain.log_loss, abs=plain.gap + scaled.gap)


@pytest.mark.parametrize("seed", range(6))
def test_columns_of_different_scales(seed):
    """The small ones matter too while the budget does not bind."""
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(60, 15))
    scale = 10.0 ** rng.uniform(-3, 3, 15)
    plain, scaled = solve_master(P, 1e4, tol=1e-9), solve_master(P * scale, 1e5)
    assert plain.w.sum() < 10
    assert scaled.status == "optimal"
    assert scaled.log_loss == pytest.approx(plain.log_loss, abs=plain.gap + scaled.gap)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("theta", [1e3, 1e6])
def test_separable_with_a_large_budget(seed, theta):
    """The loss is -theta times the best margin, up to log n; a linear program knows that."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns = 60, 30
    P = np.where(rng.random((n_rows, n_columns)) < 0.1, -1, 1)
    if seed % 2:
        P = np.hstack([P, P[:, ::3], -P[:, :5]])
    solution = solve_master(P, theta)
    assert_solved(P, theta, solution)
    lp = linprog(  # maximise m over P w >= m, sum w = 1
        np.append(np.zeros(P.shape[1]), -1.0),
        A_ub=np.hstack([-P, np.ones((n_rows, 1))]),
        b_ub=np.zeros(n_rows),
        A_eq=[np.append(np.ones(P.shape[1]), 0.0)],
        b_eq=[1.0],
        bounds=[(0, None)] * P.shape[1] + [(None, None)],
    )
    margin = -lp.fun
    assert margin > 0
    slack = 1e-7 * theta
    assert -theta * margin - slack <= solution.log_loss
    assert solution.log_loss <= -theta * margin + np.log(n_rows) + slack


def test_a_solution_is_not_changed_by_more_budget_than_it_needs():
    P = np.vstack([np.eye(4), -np.eye(4) * [0.1, 0.2, 0.3, 0.4]])
    losses = [solve_master(P, theta).log_loss for theta in (100.0, 1e3, 1e6)]
    np.testing.assert_allclose(losses, losses[0], atol=2e-3)
    assert_solved(P, 1e6, solve_master(P, 1e6))


# Found by random search: stiff and flat directions together made an exact line search zigzag,
# and equal columns left a step that did not sum to zero.
ZIGZAG = [
    [-2, -2, 2, 2, 2, -2],
    [2, 2, 2, -2, -2, -2],
    [0, 0, -2, 0, 0, 2],
    [0, 2, 2, 0, -2, -2],
    [2, 2, 0, -2, -2, 0],
]
EQUAL = np.repeat([[2, -2, 0, -2, 0], [-2, -2, 2, -2, 0]], [7, 7, 2, 2, 4], axis=1)


@pytest.mark.parametrize("theta", [955.0, 3366.0, 2e4, 1e6])
@pytest.mark.parametrize("P", [ZIGZAG, EQUAL], ids=["zigzag", "equal"])
def test_degenerate(P, theta):
    solution = solve_master(P, theta)
    assert_solved(P, theta, solution)
    assert solution.n_iter <= 60


def test_order_and_dtype_of_rho_do_not_matter():
    P = np.random.default_rng(9).choice([-2, 0, 2], (50, 9)).astype(np.int8)
    first = solve_master(P, 5.0)
    for other in (np.asfortranarray(P), P.astype(float), P.astype(np.float32), P.tolist()):
        np.testing.assert_allclose(solve_master(other, 5.0).w, first.w, atol=1e-9)
    assert P.flags.c_contiguous


def test_inputs_are_left_alone():
    P, w0, s = np.ones((3, 2)), np.array([-1.0, 50.0]), np.ones(3)
    solve_master(P, 1.0, w0=w0, sample_weight=s)
    assert w0.tolist() == [-1.0, 50.0]
    assert s.tolist() == [1.0] * 3


# Bad input.


@pytest.mark.parametrize(
    "rho",
    [
        [1.0, -1.0],
        [],
        np.empty((0, 3)),
        np.empty((3, 0)),
        np.ones((2, 2, 2)),
        [[1.0, np.nan]],
        [[1.0, np.inf]],
        [["1", "-1"]],
        [[1j, 1.0]],
        [[None, 1.0]],
        [[1.0, -1.0], [1.0]],
        7.0,
    ],
    ids=str,
)
def test_bad_rho(rho):
    with pytest.raises(ValueError, match="rho"):
        solve_master(rho, 1.0)


@pytest.mark.parametrize("bad", [0, -1, 0.0, np.nan, np.inf, -np.inf, "1", None, [1.0], 1j])
def test_bad_numbers(bad):
    with pytest.raises(ValueError, match="theta"):
        solve_master([[1, -1]], bad)
    with pytest.raises(ValueError, match="tol"):
        solve_master([[1, -1]], 1.0, tol=bad)


@pytest.mark.parametrize(
    "bad", [[1.0], [[1.0, 1.0]], [1.0, np.nan], [np.inf, 1.0], ["a", "b"], ["1", "2"], 1.0, []]
)
def test_bad_vectors(bad):
    with pytest.raises(ValueError, match="w0"):
        solve_master([[1, -1], [1, 1]], 1.0, w0=bad)
    with pytest.raises(ValueError, match="sample_weight"):
        solve_master([[1, -1], [1, 1]], 1.0, sample_weight=bad)


@pytest.mark.parametrize("bad", [[1.0, -1e-9], [0.0, 0.0]])
def test_bad_sample_weight(bad):
    with pytest.raises(ValueError, match="sample_weight"):
        solve_master([[1, -1], [1, 1]], 1.0, sample_weight=bad)


# Honest status.


@pytest.mark.parametrize("theta", [5.0, 300.0, 1e5])
def test_too_few_iterations(monkeypatch, theta):
    P = np.where(np.random.default_rng(2).random((200, 40)) < 0.3, -1, 1)
    optimum = solve_master(P, theta)
    monkeypatch.setattr(master_module, "_MAX_ITER", 2)
    solution = solve_master(P, theta)
    assert solution.status == "max_iter"
    assert solution.n_iter == 2
    assert_certified(P, theta, solution)
    assert solution.log_loss - optimum.dual >= -1e-9
    assert solution.log_loss - optimum.log_loss <= solution.gap


@pytest.mark.parametrize("theta", [1.0, 50.0, 1e4])
@pytest.mark.parametrize("seed", range(4))
def test_unreachable_tolerance(seed, theta):
    """The best that floating point allows, soon, and with its true gap."""
    rng = np.random.default_rng(seed)
    P = rng.choice([-1, 1], (80, 20), p=[0.3, 0.7]) if seed % 2 else rng.normal(size=(80, 20))
    solution = solve_master(P, theta, tol=1e-15)
    assert solution.status in ("optimal", "precision")
    assert solution.n_iter < 150
    assert solution.gap <= required(theta)
    reference = solve_master(P, theta)
    assert solution.log_loss - reference.log_loss <= 1e-12 * theta + 1e-12
    assert reference.log_loss - solution.log_loss <= reference.gap + 1e-12 * theta
    if theta <= 1000:  # above, the tolerance is not taken so small
        assert solution.gap <= 1e-10 * max(1.0, theta)


def test_loose_tolerance_is_kept():
    P = np.random.default_rng(4).choice([-1, 1], (200, 30))
    tight, loose = solve_master(P, 10.0), solve_master(P, 10.0, tol=0.5)
    assert loose.status == "optimal"
    assert loose.n_iter < tight.n_iter
    assert loose.gap <= 0.5
    assert 0 <= loose.log_loss - tight.dual <= loose.gap + tight.gap


# Properties.


@st.composite
def problems(draw, entries, dtype):
    n_rows, n_columns = draw(st.integers(1, 10)), draw(st.integers(1, 8))
    P = draw(arrays(dtype, (n_rows, n_columns), elements=entries))
    theta = 10.0 ** draw(st.floats(-3, 6))
    s = None
    if draw(st.booleans()):
        s = np.array(draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows)), float)
        s[draw(st.integers(0, n_rows - 1))] = 1.0
    w0 = None
    if draw(st.booleans()):
        w0 = theta * draw(arrays(float, n_columns, elements=st.integers(-1, 3).map(float)))
    return P, theta, s, w0


@settings(deadline=None, max_examples=300)
@given(problems(st.integers(-2, 2), np.int8))
def test_small_integers_are_always_solved(problem):
    P, theta, s, w0 = problem
    assert_solved(P, theta, solve_master(P, theta, w0=w0, sample_weight=s), s)


@settings(deadline=None, max_examples=300)
@given(problems(st.floats(-1e3, 1e3, width=32), np.float32))
def test_any_numbers_are_solved_or_honest(problem):
    P, theta, s, w0 = problem
    solution = solve_master(P, theta, w0=w0, sample_weight=s)
    assert_certified(P, theta, solution, s)
    # Rounding of the margins, eps |P| theta, reaches u and through it the gap.
    limit = 1e-15 * (1 + np.abs(P).max() * theta) ** 2
    assert solution.status == "optimal" or solution.gap <= limit


def test_rounding_that_undoes_a_solution_ends_the_run():
    """P w, computed anew, is never as good as the sum of the steps was: found at random."""
    P = np.array([[568.0, 105.0], [112.0, 498.0]])
    solution = solve_master(P, 1e6)
    assert_certified(P, 1e6, solution)
    assert solution.gap <= 1e-15 * (1 + 568e6) ** 2
    assert solution.n_iter <= 100


def test_no_step_raises_the_loss():
    """Where kinks are sharp a full step could, although it took most of the slope: a circle."""
    a, b = 291.54193, 29.154194
    P = np.array(
        [
            [a, 100.0, -0.1],
            [-1.0, -0.1, 0.1],
            [1.0, 100.0, b],
            [1.0, 100.0, -0.1],
            [-1.0, b, 0.1],
            [1000.0, b, b],
            [a, 0.05, b],
            [a, 0.05, b],
            [a, 0.0, 0.0],
            [-1.0, b, 0.05],
        ]
    )
    assert_solved(P, 191.07058897968508, solve_master(P, 191.07058897968508, w0=[0, 1, 0]))


def degenerate_problem(seed):
    """Of any shape: few rows or few columns, duplicates, opposites, low rank, one feature."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns = (10 ** rng.uniform(0, [2.2, 1.8])).astype(int)
    shape = (n_rows, n_columns)
    x, noisy, cuts = (rng.integers(0, 9, n) for n in (n_rows, n_rows, n_columns))
    P = [
        rng.choice([-2, 0, 2], shape),
        rng.choice([-1, 1], shape),
        np.where(rng.random(shape) < rng.uniform(0.02, 0.45), -1, 1),
        rng.normal(size=shape),
        rng.integers(-1, 2, (n_rows, 2)) @ rng.integers(-1, 2, (2, n_columns)),
        np.where(x[:, None] > cuts, 1, -1) * np.where(x > noisy, 1, -1)[:, None],
    ][seed % 6]
    change = rng.integers(4)
    if change == 0:
        P = P[:, rng.integers(0, n_columns, 2 * n_columns)]
    elif change == 1:
        P = P[rng.integers(0, n_rows, 2 * n_rows)]
    elif change == 2:
        P = np.hstack([P, -P])
    return P, float(10 ** rng.uniform(0, 6))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_random_search(block):
    for seed in range(100 * block, 100 * (block + 1)):
        P, theta = degenerate_problem(seed)
        assert_solved(P, theta, solve_master(P, theta))


# Other losses.


def random_master(seed, n=60, t=15):
    rng = np.random.default_rng(seed)
    P = np.sign(rng.normal(size=(n, t)) + 0.3) * rng.choice([1, 2], size=(n, t))
    return P.astype(np.int8), rng.dirichlet(np.ones(n))


def dual_value(P, s, theta, u, loss):
    """From u alone, by the conjugate of the loss."""
    r = max(0.0, (u @ P).max())
    if loss == "logistic":
        q = u / s
        return float(s @ -(rel_entr(q, 1.0) + rel_entr(1.0 - q, 1.0))) - theta * r
    return float(u.sum() - (u * u / s).sum() / 2) - theta * r


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("theta", [0.1, 1.0, 10.0, 100.0, 1e4])
@pytest.mark.parametrize("seed", range(4))
def test_other_losses_primal_is_dual(loss, theta, seed):
    P, s = random_master(seed)
    solution = solve_master(P, theta, sample_weight=s, tol=1e-9, loss=loss)
    assert solution.status == "optimal"
    assert solution.w.min() >= 0
    assert solution.w.sum() <= theta * (1 + 1e-12)
    dual = dual_value(P.astype(float), s, theta, solution.u, loss)
    rounding = 1e-12 * (1 + theta)
    assert -rounding <= solution.log_loss - dual <= max(solution.gap, 1e-9) + rounding
    if theta <= 100:
        primal, bound, _ = programs.smooth_program(P.astype(float), s, theta, loss)
        assert solution.log_loss == pytest.approx(primal, abs=2e-7)
        assert solution.dual == pytest.approx(bound, abs=2e-7)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("theta", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("frozen", SMALL, indirect=True)
def test_frozen_with_other_losses(frozen, theta, loss):
    rho = frozen[0]
    s = np.full(len(rho), 1 / len(rho))
    solution = solve_master(rho, theta, sample_weight=s, loss=loss)
    assert solution.status == "optimal"
    dual = dual_value(
        rho.astype(float), s, theta, np.minimum(solution.u, s * (1 - 1e-16)), loss
    )
    if loss == "squared_hinge":
        dual = dual_value(rho.astype(float), s, theta, solution.u, loss)
    assert solution.log_loss - dual <= 1.1e-6
    assert solution.n_iter <= 60


def test_losses_that_the_master_does_not_know():
    for loss in ("hinge", "multinomial", "none"):
        with pytest.raises(ValueError, match="loss must be one of"):
            solve_master([[1.0]], 1.0, loss=loss)


@pytest.mark.parametrize("growing", [False, True])
def test_threads_change_no_bit(monkeypatch, growing):
    """Enough rows and columns for every loop that uses them."""
    rng = np.random.default_rng(5)
    P = rng.choice(np.array([-2, 0, 2], dtype=np.int8), (9000, 130))
    s, w, loss, solutions = np.ones(len(P)), np.zeros(P.shape[1]), SMOOTH["exponential"], []
    for n_threads in (1, 2, 5):
        if growing:
            master = Master(s, loss, n_threads)
            master.add(np.asfortranarray(P))
            solutions.append(master.solve(20.0, w, 1e-9)[0])
        else:
            monkeypatch.setattr(master_module, "effective_n_jobs", lambda _, n=n_threads: n)
            solutions.append(master_module.solve_cold(P, s, loss, 20.0, w, 1e-9))
    for other in solutions[1:]:
        np.testing.assert_array_equal(other.w, solutions[0].w)
        assert (other.gap, other.n_iter) == (solutions[0].gap, solutions[0].n_iter)


def test_few_columns_of_many_rows_in_threads():
    """Seven tenths of them are none: there is nothing for a second thread."""
    rng = np.random.default_rng(6)
    P = rng.integers(-9, 10, size=(800_000, 5)).astype(np.int8)
    assert_solved(P, 0.5, solve_master(P, 0.5))
