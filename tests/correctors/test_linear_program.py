"""The hinge loss: the linear program of Sec. III-D against linprog, enumeration and LPBoost."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from reference import algorithms as ref
from reference import programs
from tcboost import AdaBoostECC, MultiBoostHinge, theta_path
from tcboost.boosting import Run
from tcboost.coding import ecoc, one_vs_rest
from tcboost.columns import FixedCode
from tcboost.correctors import LinearProgram, linear_program
from tcboost.margins import PairwiseCode
from test_boosting import problem, task_for


def hinge_run(rows, M, theta, n_rounds, tol=1e-7):
    margin = PairwiseCode(M)
    corrector = LinearProgram(margin, rows.y, rows.weight, theta, tol)
    return Run(task_for(rows, FixedCode, margin, "hinge"), corrector).boost(n_rounds)


def matrix(run):
    """(N, C-1, columns), from the columns alone."""
    rows, margin = run.task.rows, run.task.margin
    return np.stack([margin.apply(c.outputs(rows.X), rows.y) for c in run.columns], axis=2)


@pytest.mark.parametrize("theta", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("code", [ecoc, one_vs_rest])
def test_every_round_solves_its_program(code, n_classes, theta):
    rows = problem(n_classes, n_classes, n=30)
    run = hinge_run(rows, code(n_classes), theta, 25)
    P, losses = matrix(run), run.history.arrays()["loss"]
    assert n_classes == 2 or len(losses) > 1
    for t in range(1, len(losses) + 1):
        expected = programs.hinge_primal(P[:, :, :t], rows.weight, theta, [slice(None)])
        assert losses[t - 1] == pytest.approx(expected, abs=1e-9)
    dual = run.corrector.dual
    u = dual.u / dual.scale
    # Primal = dual, both from w and u alone; u is feasible as it is.
    assert (dual.u.sum(axis=1) / dual.scale <= rows.weight).all()
    r = max(0.0, np.einsum("ic,ict->t", u, P).max())
    assert u.sum() - theta * r == pytest.approx(losses[-1], abs=1e-9)
    assert run.history.arrays()["r"][-1] == pytest.approx(r, abs=1e-12)


@pytest.mark.parametrize("theta", [0.1, 1.0])
def test_the_optimum_is_n_minus_the_value_of_theorem_3(theta):
    rows = problem(7, 3, n=24, weighted=False)
    run = hinge_run(rows, ecoc(3), theta, 20)
    value = programs.hinge_theorem_3(matrix(run), theta)
    assert 24 * run.certificate.primal == pytest.approx(24 - value, abs=1e-7)


@pytest.mark.parametrize("theta", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_certificate_is_true_over_the_whole_class(theta, seed):
    rows, M = problem(seed, 3, n=14, n_features=2), ecoc(3)
    P, groups = ref.class_columns(rows.X, rows.y, M, "pairwise")
    truth = programs.hinge_primal(P, rows.weight, theta, groups)
    run = hinge_run(rows, M, theta, 200)
    history = run.history.arrays()
    excess = history["loss"] - truth
    assert (excess >= -1e-8).all()
    assert (excess <= history["gap"] + 1e-8).all()
    assert run.certificate.gap <= 1e-7


def test_the_best_bound_of_all_rounds_is_kept():
    """Those of the rounds go up and down."""
    run = hinge_run(problem(4, 4, n=60), ecoc(4), 0.1, 60)
    history = run.history.arrays()
    kept = history["loss"] - history["gap"]
    assert (np.diff(kept) >= -1e-12).all()
    bounds = np.array(run._certifier._offsets) - 0.1 * np.array(run._certifier._edges)
    assert (np.diff(bounds) < -1e-4).any()
    np.testing.assert_allclose(kept, np.maximum.accumulate(bounds)[1:], atol=1e-12)


@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_two_classes_are_lpboost(nu):
    """With D = 1 / (N nu) it has the margin rho; its theta is 1 / (2 rho)."""
    rows = problem(3, 2, n=40, weighted=False)
    y = 2.0 * rows.y - 1
    H = np.column_stack(
        [sign * h.predict(rows.X) for h in ref.all_stumps(rows.X) for sign in (1, -1)]
    )
    rho, slack = programs.lpboost(H, y, 1 / (40 * nu))
    assert rho > 0
    theta = 1 / (2 * rho)
    model = MultiBoostHinge(theta=theta, tol=1e-9, max_iter=500).fit(rows.X, rows.y)
    assert model.certificate_.gap <= 1e-9
    assert 40 * model.certificate_.primal == pytest.approx(slack / rho, rel=1e-6)
    assert model.estimator_weights_.sum() == pytest.approx(theta)


def test_rows_of_weight_two_are_rows_that_occur_twice():
    X, y = load_iris(return_X_y=True)
    weight = 1 + np.arange(150) % 2
    one = MultiBoostHinge(theta=0.4, max_iter=30).fit(X, y, weight)
    rows = np.repeat(np.arange(150), weight)
    two = MultiBoostHinge(theta=0.4, max_iter=30).fit(X[rows], y[rows])
    assert one.n_iter_ > 5
    assert_array_equal(one.estimator_weights_, two.estimator_weights_)
    for key in ("loss", "gap", "edge"):
        assert_array_equal(one.history_[key], two.history_[key])


@pytest.mark.parametrize("again", [copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))])
def test_a_run_that_was_put_away_goes_on_as_if_it_had_not(again):
    rows = problem(5, 4, n=60)
    run = hinge_run(rows, ecoc(4), 0.5, 8)
    other = again(run)
    run.boost(25)
    other.boost(25)
    assert len(run.columns) == 25
    assert_array_equal(run.w, other.w)
    assert [c.hypotheses for c in run.columns] == [c.hypotheses for c in other.columns]
    # And as if it had not paused either.
    assert_array_equal(run.w, hinge_run(rows, ecoc(4), 0.5, 25).w)


def test_the_certificate_of_programs_that_are_not_solved_is_true(monkeypatch):
    X, y = load_wine(return_X_y=True)
    truth = MultiBoostHinge(theta=0.3, max_iter=300, tol=1e-8).fit(X, y).certificate_.primal
    monkeypatch.setitem(linear_program._OPTIONS, "simplex_iteration_limit", 3)
    with pytest.warns(ConvergenceWarning, match="no more progress"):
        model = MultiBoostHinge(theta=0.3, max_iter=10).fit(X, y)
    assert model.certificate_.dual <= truth <= model.certificate_.primal
    assert model.certificate_.gap > 1e-3


def test_a_path_of_budgets():
    X, y = load_wine(return_X_y=True)
    path = theta_path(MultiBoostHinge(max_iter=100), X, y, thetas=[0.1, 0.2, 0.4])
    for theta, loss in zip(path.thetas, path.loss, strict=True):
        alone = MultiBoostHinge(theta=theta, max_iter=300).fit(X, y)
        assert loss == pytest.approx(alone.certificate_.primal, abs=2e-4)
    assert (np.diff(path.loss) < 0).all()
    assert (path.gap <= 1e-4).all()


@pytest.mark.parametrize("theta", [1e-6, 1e3, 1e9])
def test_any_budget_is_handled(theta):
    X, y = load_iris(return_X_y=True)
    noisy = np.where(np.arange(150) % 7 == 0, (y + 1) % 3, y)
    for labels in (y, noisy):
        model = MultiBoostHinge(theta=theta, max_iter=15).fit(X[:, :2], labels)
        assert np.isfinite(model.certificate_.gap)
        assert model.estimator_weights_.sum() <= theta * (1 + 1e-12)
        assert 0 <= model.certificate_.primal <= 1


def test_budgets_by_name():
    X, y = load_iris(return_X_y=True)
    model = MultiBoostHinge(max_iter=10).fit(X, y)
    stage_wise = AdaBoostECC(coding="ecoc", max_iter=10).fit(X, y)
    assert model.theta_ == stage_wise.estimator_weights_.sum()
    model = MultiBoostHinge(theta="cv", max_iter=5).fit(X, y)
    assert model.theta_ in model.theta_choice_.thetas
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")
    with pytest.raises(AttributeError):
        _ = model.predict_proba
