"""Newton steps on class vectors and codes: exact near the optimum, quick, within bounds."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_blobs
from test_ball import ON_SCORES, ball_run, optimum
from test_descent import both_kinds, both_losses, small

from tcboost import TCBoostClassifier
from tcboost.correctors import BallCorrective, Budget, ball, lengths, newton
from tcboost.correctors.newton import newton_step
from tcboost.losses import LOSSES
from test_boosting import problem


@pytest.mark.parametrize("loss", sorted(ON_SCORES))
@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("flops", [newton._FLOPS, 1.0])  # 1.0: the heaviest rows stand for all
def test_a_newton_step_near_the_optimum_is_exact(loss, coded, flops, monkeypatch):
    monkeypatch.setattr(newton, "_FLOPS", flops)
    rows = problem(6, 3, n=40, n_features=3)
    run = ball_run(rows, loss, "learned" if coded else "vector", 3.0, 1e-2, 8)
    corrector = run.corrector
    w = corrector.w
    for _ in range(8):
        better = newton_step(
            corrector._H.matrix,
            corrector._codes if coded else None,
            w,
            LOSSES[loss],
            rows.y[corrector._order],
            rows.weight[corrector._order],
            Budget(3.0),
        )
        if better is None:
            break
        w = better.w
    used = lengths(w) > 0
    H = corrector._H.matrix[:, used].astype(float)
    vectors = w[:, None] * corrector._codes if coded else w
    _, V = LOSSES[loss].on_scores(
        H @ vectors[used], rows.y[corrector._order], rows.weight[corrector._order]
    )
    A = H.T @ V
    edges = (corrector._codes[used] * A).sum(axis=1) if coded else lengths(A)
    assert np.ptp(edges) <= 1e-6  # all hypotheses in use have the same edge
    assert lengths(w).sum() <= 3.0 * (1 + 1e-12)


@pytest.mark.parametrize("loss", sorted(ON_SCORES))
def test_a_newton_step_needs_few_conjugate_gradients(loss, monkeypatch):
    solve, counts = newton._conjugate_gradients, []

    def counted(times, divide, b):
        counts.append(0)

        def once_more(p):
            counts[-1] += 1
            return times(p)

        return solve(once_more, divide, b)

    monkeypatch.setattr(newton, "_conjugate_gradients", counted)
    X, y = load_wine(return_X_y=True)
    model = TCBoostClassifier(loss=loss, theta=20.0, tol=1e-6, max_iter=200).fit(X, y)
    assert model.certificate_.gap <= 1e-6
    assert len(counts) > 5
    assert np.mean(counts) <= 10  # 22 without a part for the lengths


@pytest.mark.parametrize("loss", sorted(ON_SCORES))
def test_rounds_take_newton_steps_where_sweeps_leave_too_much(loss, monkeypatch):
    monkeypatch.setattr(ball, "_SEVERAL", 4)
    steps, rounds, update = [], [], BallCorrective.update

    def counted(*arguments):
        steps.append(1)
        return newton_step(*arguments)

    def updated(self, *arguments):
        class_gap = self._gap
        steps.clear()  # what was polished
        done = update(self, *arguments)
        rounds.append((len(steps), self.gap / class_gap))
        return done

    monkeypatch.setattr(ball, "newton_step", counted)
    monkeypatch.setattr(BallCorrective, "update", updated)
    rows = problem(3, 3, n=120, n_features=4)
    run = ball_run(rows, loss, "vector", 15.0, 1e-5, 12)
    assert [n for n, _ in rounds[:3]] == [0, 0, 0]  # of few columns
    assert 1 <= max(n for n, _ in rounds) <= 3
    assert all(left <= 0.5 for n, left in rounds[3:] if n < 3)
    H = np.column_stack([c.hypotheses[0].predict(rows.X) for c in run.columns]).astype(float)
    best = optimum(rows, H, None, loss, 15.0)
    assert run.certificate.primal == pytest.approx(best, abs=1e-5)
    assert run.certificate.dual <= best + 1e-7


@pytest.mark.parametrize(("rows_each", "most"), [(11, 10), (8, 12)])
def test_few_rows_take_no_newton_steps_in_rounds(rows_each, most, monkeypatch):
    """Of fewer than so many rows for each column sweeps take next to no time."""
    monkeypatch.setattr(ball, "_SEVERAL", 4)
    monkeypatch.setattr(ball, "_ROWS", rows_each)
    monkeypatch.setattr(BallCorrective, "polish", lambda *a: False)
    sizes = []
    monkeypatch.setattr(ball, "newton_step", lambda H, *a: sizes.append(H.shape[1]))
    rows = problem(3, 3, n=120, n_features=4)
    ball_run(rows, "multinomial", "vector", 15.0, 1e-5, 12)
    assert max(sizes) == most


def test_newton_steps_in_threads_have_the_same_bits(monkeypatch):
    monkeypatch.setattr(ball, "_SEVERAL", 8)
    X, y = make_blobs(9000, n_features=5, centers=6, cluster_std=4.0, random_state=1)
    steps = []
    monkeypatch.setattr(ball, "newton_step", lambda *a: steps.append(1) or newton_step(*a))
    fits = [TCBoostClassifier(theta=30.0, max_iter=24, n_jobs=n).fit(X, y) for n in (1, 2, 3)]
    assert len(steps) >= 6
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.estimator_weights_, fits[0].estimator_weights_)


@pytest.mark.parametrize("size", [1, 30])
def test_a_factor_of_a_singular_matrix(size):
    """In single precision a Gram matrix of few rows may have eigenvalues below zero."""
    x = np.random.default_rng(size).normal(size=(size, 1))
    G = x @ x.T - 1e-5 * np.eye(size)
    factor = np.triu(newton._cholesky(G.copy(), np.zeros(size)))
    np.testing.assert_allclose(factor.T @ factor, G, rtol=0, atol=1e-3 * np.trace(G))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        newton._cholesky(-np.eye(size), np.zeros(size))


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_rows_of_little_weight_do_not_lead_newton_astray(n_classes):
    X, y = make_blobs(centers=n_classes, cluster_std=20, random_state=2)
    weights = {c: 1e3 if c == 0 else 1e-4 for c in range(n_classes)}
    model = TCBoostClassifier(
        loss="exponential", theta=10.0, class_weight=weights, max_iter=100
    )
    assert model.fit(X, y).certificate_.gap <= 1e-3


@both_losses
@both_kinds
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_newton_step_stays_within_bounds(exponential, coded, n_classes):
    """Coefficients as large as these leave no curvature but that of rounding."""
    loss = LOSSES["exponential" if exponential else "multinomial"]
    for seed, used, theta in itertools.product(range(40), [0.0, 1e-3, 1e3, 9e3], [1e4, np.inf]):
        made = small(seed, exponential, coded, n_classes, n=6, t=4, used=used)
        before = made.objective()
        step = newton_step(made.H, made.codes, made.W, loss, made.y, made.weight, Budget(theta))
        if step is not None:
            made.W = step.w
            assert np.isfinite(step.w).all()
            np.testing.assert_allclose(step.F, made.scores, rtol=0, atol=1e-10)
            assert made.size <= theta * (1 + 1e-12)
            assert made.objective() < before + 1e-9 * abs(before)
