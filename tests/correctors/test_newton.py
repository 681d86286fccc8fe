"""Newton steps on class vectors and codes: exact near the optimum, quick, within bounds."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_blobs
from test_ball import ON_SCORES, ball_run
from test_descent import both_kinds, both_losses, small

from tcboost import TCBoostClassifier
from tcboost.correctors import Budget, lengths, newton
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
        w = better
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
        w = newton_step(made.H, made.codes, made.W, loss, made.y, made.weight, Budget(theta))
        if w is not None:
            made.W = w
            assert np.isfinite(w).all()
            assert made.size <= theta * (1 + 1e-12)
            assert made.objective() < before + 1e-9 * abs(before)
