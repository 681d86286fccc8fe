"""The master over a ball of class vectors, against Clarabel and against its own gap."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tcboost.boosting import Run, lengths
from tcboost.columns import LearnedCode, RandomCode, VectorCode
from tcboost.correctors import BallCorrective, CodeSimplex, GroupBall
from tcboost.correctors.ball import project_to_budget
from tcboost.losses import LOSSES
from tcboost.margins import Pairwise
from test_boosting import problem, task_for

CHOOSERS = {
    "vector": VectorCode,
    "learned": LearnedCode,
    "random": lambda oracle: RandomCode(oracle, 3, np.random.RandomState(0)),
}


def ball_run(rows, loss, coding, theta, tol, n_rounds, n_classes=3):
    margin = Pairwise(n_classes)
    ball = GroupBall(n_classes) if coding == "vector" else CodeSimplex()
    corrector = BallCorrective(
        margin, rows.y, rows.weight, LOSSES[loss], ball, theta=theta, tol=tol
    )
    return Run(task_for(rows, CHOOSERS[coding], margin, loss), corrector).boost(n_rounds)


def optimum(rows, H, codes, loss, theta):
    """The same master by an interior-point method."""
    n, n_classes = len(rows), 3
    if codes is None:
        V = cp.Variable((H.shape[1], n_classes))
        constraints = [cp.sum(cp.norm(V, 2, axis=1)) <= theta]
    else:
        w = cp.Variable(H.shape[1], nonneg=True)
        V, constraints = cp.diag(w) @ codes, [cp.sum(w) <= theta]
    F = H @ V
    own = cp.sum(cp.multiply(F, np.eye(n_classes)[rows.y]), axis=1)
    if loss == "multinomial":
        value = rows.weight @ (cp.log_sum_exp(F, axis=1) - own)
    else:
        others = [
            F[i, c] - own[i] + np.log(rows.weight[i] / 2)
            for i in range(n)
            for c in range(n_classes)
            if c != rows.y[i]
        ]
        value = cp.log_sum_exp(cp.hstack(others))
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(problem.value)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("coding", sorted(CHOOSERS))
@pytest.mark.parametrize("theta", [0.5, 5.0])
def test_the_restricted_master_is_solved(loss, coding, theta):
    rows = problem(1, 3, n=25, n_features=2)
    run = ball_run(rows, loss, coding, theta, 1e-5, 6)
    codes = None if coding == "vector" else np.array([c.code for c in run.columns])
    H = np.column_stack([c.hypotheses[0].predict(rows.X) for c in run.columns]).astype(float)
    expected = optimum(rows, H, codes, loss, theta)
    assert -1e-7 <= run.certificate.primal - expected <= 3e-6 + 2e-7
    assert lengths(run.w).sum() <= theta * (1 + 1e-12)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("theta", [0.5, 4.0])
def test_the_gap_bounds_the_true_excess_over_all_stumps(loss, theta):
    rows = problem(2, 3, n=16, n_features=2)
    run = ball_run(rows, loss, "vector", theta, 1e-4, 40)
    oracle = run.task.oracle
    H = np.column_stack([oracle.stump(j, 1).predict(rows.X) for j in range(len(oracle))])
    truth = optimum(rows, H.astype(float), None, loss, theta)
    history = run.history.arrays()
    excess = history["loss"] - truth
    assert (excess >= -1e-6).all()
    assert (excess <= history["gap"] + 1e-6).all()
    assert run.certificate.gap <= 1e-4


def test_another_budget_continues_from_the_last():
    rows = problem(3, 3, n=60)
    run = ball_run(rows, "multinomial", "vector", 1.0, 1e-3, 50)
    small = run.certificate.primal
    run.set_budget(8.0)
    run.boost(80)
    fresh = ball_run(rows, "multinomial", "vector", 8.0, 1e-3, 80)
    assert run.certificate.theta == 8.0
    assert run.certificate.gap <= 1e-3
    assert run.certificate.primal == pytest.approx(fresh.certificate.primal, abs=1e-3)
    assert run.certificate.primal < small


@settings(deadline=None, max_examples=100)
@given(
    arrays(float, st.integers(1, 20), elements=st.floats(0, 100)),
    st.floats(0.01, 200),
)
def test_projection_onto_the_budget(lengths, theta):
    p = project_to_budget(lengths, theta)
    assert (p >= 0).all()
    assert p.sum() <= theta * (1 + 1e-9) + 1e-9
    # Nearest: the residual has no positive product with any feasible direction.
    residual = lengths - p
    assert (
        residual @ p >= theta * residual.max() - 1e-6 * (1 + lengths.sum()) ** 2
        or (residual == 0).all()
    )
