"""The master over a ball of class vectors, against Clarabel and against its own gap."""

import itertools
from functools import partial

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_wine

from tcboost import TCBoostClassifier
from tcboost.boosting import Run, lengths
from tcboost.columns import LearnedCode, RandomCode, VectorCode
from tcboost.correctors import BallCorrective, Budget, ball
from tcboost.losses import LOSSES, ScoreLoss
from tcboost.margins import Pairwise
from tcboost.oracles.stump import CONSTANT
from test_boosting import problem, task_for

ON_SCORES = [name for name, loss in LOSSES.items() if isinstance(loss, ScoreLoss)]
CHOOSERS = {
    "vector": VectorCode,
    "learned": LearnedCode,
    "random": lambda oracle: RandomCode(oracle, 3, np.random.RandomState(0)),
}


def ball_run(
    rows, loss, coding, theta, tol, n_rounds, n_classes=3, price=0.0, ridge=0.0, intercept=0.0
):
    margin = Pairwise(n_classes)
    task = task_for(rows, CHOOSERS[coding], margin, loss)
    corrector = BallCorrective(
        margin,
        rows.y,
        rows.weight,
        LOSSES[loss],
        coding != "vector",
        Budget(theta, price, ridge, intercept),
        tol,
        oracle=task.oracle,
    )
    return Run(task, corrector).boost(n_rounds)


def optimum(rows, H, codes, loss, theta, price=0.0, ridge=0.0, free=0.0):
    """The same master by an interior-point method; `free` is the ridge of a free first one."""
    n, n_classes = len(rows.y), 3
    if codes is None:
        V = cp.Variable((H.shape[1], n_classes))
        used = cp.sum(cp.norm(V[1:] if free else V, 2, axis=1))
    else:
        w = cp.Variable(H.shape[1], nonneg=True)
        V, used = cp.diag(w) @ codes, cp.sum(w)
    constraints = [used <= theta] if np.isfinite(theta) else []
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
    if ridge:
        value = value + ridge / 2 * cp.sum_squares(V[1:] if free else V)
    if free:
        value = value + free / 2 * cp.sum_squares(V[0])
    problem = cp.Problem(cp.Minimize(value + price * used), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
    return float(problem.value)


@pytest.mark.parametrize("loss", sorted(ON_SCORES))
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


@pytest.mark.parametrize("loss", sorted(ON_SCORES))
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
    run.set_budget(Budget(8.0))
    run.boost(80)
    fresh = ball_run(rows, "multinomial", "vector", 8.0, 1e-3, 80)
    assert run.certificate.theta == 8.0
    assert run.certificate.gap <= 1e-3
    assert run.certificate.primal == pytest.approx(fresh.certificate.primal, abs=1e-3)
    assert run.certificate.primal < small


@pytest.mark.parametrize("ridge", [0.0, 0.02])
@pytest.mark.parametrize("coding", ["vector", "learned"])
def test_a_price_instead_of_a_budget(coding, ridge):
    if coding == "learned" and ridge:
        return  # multiples of codes have no ridge
    rows = problem(4, 3, n=20, n_features=2)
    run = ball_run(rows, "multinomial", coding, np.inf, 1e-4, 200, price=0.02, ridge=ridge)
    oracle = run.task.oracle
    H = np.column_stack([oracle.stump(j, 1).predict(rows.X) for j in range(len(oracle))])
    H, codes = H.astype(float), None
    if coding == "learned":
        all_codes = np.array(list(itertools.product([-1, 1], repeat=3)))
        H, codes = np.repeat(H, len(all_codes), axis=1), np.tile(all_codes, (H.shape[1], 1))
    value = run.certificate.primal + 0.02 * run.certificate.theta
    truth = optimum(rows, H, codes, "multinomial", np.inf, 0.02, ridge)
    assert -1e-6 <= value - truth <= 1e-4
    # And the certificate is for the theta in use.
    assert run.certificate.theta == pytest.approx(lengths(run.w).sum())
    best = optimum(rows, H, codes, "multinomial", run.certificate.theta, 0.0, ridge)
    assert -1e-6 <= run.certificate.primal - best <= run.certificate.gap + 1e-6
    assert run.certificate.gap <= 2e-4


@pytest.mark.parametrize(("price", "tol"), [(0.02, 1e-4), (0.1, 1e-5), (10.0, 1e-5)])
def test_a_free_intercept(price, tol):
    """Unbalanced classes: every certificate is true, and the last one is small."""
    rows = problem(6, 3, n=24, n_features=2)
    ridge, free = 0.02, 2e-5
    run = ball_run(
        rows,
        "multinomial",
        "vector",
        np.inf,
        tol,
        200,
        price=price,
        ridge=ridge,
        intercept=free,
    )
    assert run.columns[0].hypotheses[0].threshold == -np.inf
    oracle = run.task.oracle
    H = np.column_stack([oracle.stump(j, 1).predict(rows.X) for j in range(len(oracle))])
    assert (H[:, 0] == H[0, 0]).all()
    paid = float(lengths(run.w)[1:].sum())
    assert run.certificate.theta == pytest.approx(paid)
    truth = optimum(rows, H.astype(float), None, "multinomial", np.inf, price, ridge, free)
    assert -1e-6 <= run.certificate.primal + price * paid - truth <= tol + 1e-6
    for certificate in (a_round.certificate for a_round in run.history.rounds):
        best = optimum(
            rows, H.astype(float), None, "multinomial", certificate.theta, 0.0, ridge, free
        )
        assert -1e-6 <= certificate.primal - best <= certificate.gap + 1e-6
    if price == 10.0:
        assert len(run.columns) == 1
        shares = np.array([rows.weight[rows.y == c].sum() for c in range(3)])
        p = np.exp(run.w[0]) / np.exp(run.w[0]).sum()
        np.testing.assert_allclose(p, shares, atol=1e-3)


@pytest.mark.parametrize(("theta", "price"), [(3.0, 0.0), (np.inf, 0.01)])
def test_with_a_ridge_the_gap_bounds_the_true_excess_in_every_round(theta, price):
    rows = problem(5, 3, n=16, n_features=2)
    run = ball_run(rows, "multinomial", "vector", theta, 1e-4, 60, price=price, ridge=0.05)
    oracle = run.task.oracle
    H = np.column_stack([oracle.stump(j, 1).predict(rows.X) for j in range(len(oracle))])
    for certificate in (a_round.certificate for a_round in run.history.rounds):
        truth = optimum(
            rows, H.astype(float), None, "multinomial", certificate.theta, ridge=0.05
        )
        assert -1e-6 <= certificate.primal - truth <= certificate.gap + 1e-6
    assert run.certificate.gap <= 1e-4


@settings(deadline=None, max_examples=60)
@given(
    arrays(float, st.integers(1, 12), elements=st.floats(0, 3)),
    st.floats(0.01, 20),
    st.sampled_from([0.0, 0.1, 2.0]),
    st.floats(0.01, 2),
)
def test_the_gain_is_the_maximum(edges, theta, ridge, price):
    s = cp.Variable(len(edges), nonneg=True)
    gain = edges @ s - ridge / 2 * cp.sum_squares(s)
    within = cp.Problem(cp.Maximize(gain), [cp.sum(s) <= theta])
    within.solve(solver=cp.CLARABEL)
    budget = Budget(np.inf, price, ridge)
    assert budget.gain(edges, theta) == pytest.approx(within.value, rel=1e-5, abs=1e-5)
    above = cp.Problem(cp.Maximize(gain - price * cp.sum(s)), [cp.sum(s) <= 7.0])
    above.solve(solver=cp.CLARABEL)
    assert budget.gain_above_price(edges, 7.0) >= above.value - 1e-5


@pytest.mark.parametrize("loss", ["multinomial", "exponential"])
def test_several_columns_a_round_find_the_same_optimum(loss, monkeypatch):
    X, y = load_wine(return_X_y=True)
    make = partial(TCBoostClassifier, loss=loss, theta=6.0, tol=1e-6, max_iter=400)
    several = make().fit(X, y)
    rounds = len(several.history_["loss"])
    assert rounds < several.n_iter_
    monkeypatch.setattr(BallCorrective, "batch", lambda self, draft: 1)
    one = make().fit(X, y)
    assert len(one.history_["loss"]) == one.n_iter_ > rounds
    for model in (several, one):
        assert model.certificate_.gap <= 1e-6
    assert several.certificate_.primal == pytest.approx(one.certificate_.primal, abs=1e-6)


@pytest.mark.parametrize(("price", "several"), [(0.0, True), (1e-3, False)])
def test_a_round_may_add_several_stumps_of_a_feature(price, several, monkeypatch):
    """Within a budget one between two in use; at a price there is no end of what would help."""
    monkeypatch.setattr(ball, "_BATCH", 2)
    monkeypatch.setattr(ball, "_BATCH_OF_MANY", 2)
    found, update = [], BallCorrective.update

    def updated(self, columns, *arguments):
        found.append(sum(c.hypotheses[0] != CONSTANT for c in columns))
        return update(self, columns, *arguments)

    monkeypatch.setattr(BallCorrective, "update", updated)
    rows, theta = problem(5, 3, n=400, n_features=1), np.inf if price else 20.0
    ball_run(rows, "multinomial", "vector", theta, 1e-4, 20, price=price)
    assert len(found) > 5
    assert (max(found) > 1) == several


# ---------------------------------------------------------------- on a sample of the rows


def few_are_many(monkeypatch, sample=1024, a_column=8):
    monkeypatch.setattr(ball, "_MANY", 1000)
    monkeypatch.setattr(ball, "_SAMPLE", sample)
    monkeypatch.setattr(ball, "_A_COLUMN", a_column)


def restricted_gap(run):
    """By plain formulas, from the columns and the coefficients."""
    rows, budget, w = run.task.rows, run.corrector.budget, run.w
    H = np.column_stack([c.hypotheses[0].predict(rows.X) for c in run.columns]).astype(float)
    coded = w.ndim == 1
    m = np.array([c.code for c in run.columns], dtype=float) if coded else None
    F = H @ (w[:, None] * m if coded else w)
    a = H.T @ run.task.loss.on_scores(F, rows.y, rows.weight)[1]
    g = (m * a).sum(axis=1) if coded else a - budget.ridges(w) * w
    paid = slice(int(budget.intercept > 0), None)
    most = budget.theta if np.isfinite(budget.theta) else lengths(w[paid]).sum()
    gap = most * max(lengths(g[paid]).max(), budget.price) - (w[paid] * g[paid]).sum()
    return gap + (g[0] @ g[0] / (2 * budget.intercept) if budget.intercept > 0 else 0.0)


SAMPLED = {
    "theta": {"theta": 3.0},
    "large theta": {"theta": 30.0},
    "price": {"theta": np.inf, "price": 0.01},
    "ridge": {"theta": 3.0, "ridge": 0.01},
    "all": {"theta": np.inf, "price": 0.01, "ridge": 0.02, "intercept": 2e-5},
}


@pytest.mark.parametrize("costs", sorted(SAMPLED))
@pytest.mark.parametrize("coding", sorted(CHOOSERS))
@pytest.mark.parametrize("loss", sorted(ON_SCORES))
def test_a_sample_finds_the_optimum_of_all_rows(loss, coding, costs, monkeypatch):
    costs = SAMPLED[costs]
    if loss == "exponential" and np.isinf(costs["theta"]):
        return  # has no minimum
    if coding != "vector" and "ridge" in costs:
        return  # multiples of codes have no ridge
    rows, tol = problem(7, 3, n=9000), 1e-4  # twice a doubled sample is less than all
    arguments = rows, loss, coding
    rest = {"tol": tol, "n_rounds": 12, **costs}
    full = ball_run(*arguments, **rest)
    few_are_many(monkeypatch)
    run = ball_run(*arguments, **rest)
    corrector = run.corrector
    assert corrector._sampled
    assert corrector._H.matrix.shape[0] < 4100
    # The gap that it ends with is that of all rows; the class gap is none of its business.
    assert corrector.gap == pytest.approx(restricted_gap(run), abs=1e-9)
    left = 0.3 * max(tol, run._open if costs.get("price") else 0.0)
    assert corrector.gap <= left
    assert lengths(run.w).sum() <= costs["theta"] * (1 + 1e-12)
    predictions = run.task.oracle.predictions(run.columns)
    scores = sum(H * v for H, v in zip(predictions, corrector._vectors, strict=True))
    value = LOSSES[loss].on_scores(scores, rows.y, rows.weight)[0]
    ridge = (corrector.budget.ridges(run.w) * run.w**2).sum() / 2
    assert run.certificate.primal == pytest.approx(value + ridge, abs=1e-12)
    wrong = scores.argmax(axis=1) != rows.y
    assert run.history.arrays()["train_error"][-1] == pytest.approx(rows.weight @ wrong)
    # Neither is below what the other has proved.
    for one, other in ((run, full), (full, run)):
        if one.certificate.theta == other.certificate.theta:
            assert one.certificate.primal >= other.certificate.dual - 1e-12


@pytest.mark.parametrize("costs", ["theta", "all"])
def test_a_sample_ends_with_the_same_certificate(costs, monkeypatch):
    costs, tol = SAMPLED[costs], 2e-3
    rest = {"tol": tol, "n_rounds": 300, **costs}
    rows = problem(8, 3, n=5000)
    full = ball_run(rows, "multinomial", "vector", **rest)
    few_are_many(monkeypatch, a_column=2)
    run = ball_run(rows, "multinomial", "vector", **rest)
    assert run.corrector._sampled
    values = [
        r.certificate.primal + costs.get("price", 0.0) * r.certificate.theta
        for r in (run, full)
    ]
    assert values[0] == pytest.approx(values[1], abs=tol)
    for one in (run, full):
        assert one._open <= tol


def test_a_sample_at_another_budget(monkeypatch):
    rows, tol = problem(3, 3, n=5000), 3e-3
    few_are_many(monkeypatch, a_column=2)
    run = ball_run(rows, "multinomial", "vector", 1.0, tol, 50)
    for theta in (8.0, 2.0):
        run.set_budget(Budget(theta))
        run.boost(80)
        fresh = ball_run(rows, "multinomial", "vector", theta, tol, 80)
        assert run.corrector._sampled
        assert run.certificate.gap <= tol
        assert lengths(run.w).sum() <= theta * (1 + 1e-12)
        assert run.certificate.primal == pytest.approx(fresh.certificate.primal, abs=tol)


@pytest.mark.parametrize("coding", ["vector", "learned"])
def test_a_sample_that_says_little_is_left_for_a_larger_one(coding, monkeypatch):
    few_are_many(monkeypatch, sample=6, a_column=0)
    rows = problem(9, 3, n=1500)
    run = ball_run(rows, "multinomial", coding, 20.0, 1e-5, 12)
    assert run.corrector._size > 6
    assert restricted_gap(run) <= 0.3e-5 + 1e-9
    losses = run.history.arrays()["loss"]
    assert (np.diff(losses) <= 1e-8).all()


def test_a_step_that_leads_astray_is_taken_back(monkeypatch):
    few_are_many(monkeypatch, sample=256)
    rows = problem(10, 3, n=3000)
    run = ball_run(rows, "multinomial", "vector", 4.0, 1e-3, 6)
    corrector, before = run.corrector, run.w.copy()
    corrector.w = far = before[::-1] * [-1.0, 1.0, 3.0]
    size, loss = corrector._size, run.certificate.primal
    assert not corrector.meet(loss + 1.0, np.zeros_like(before))
    np.testing.assert_array_equal(corrector.w, (before + far) / 2)
    assert corrector._size == 2 * size
    scores = corrector._H.matrix.astype(float) @ corrector.w
    np.testing.assert_allclose(corrector._F.T, scores, atol=1e-12)
    while not corrector.meet(loss + 1.0, np.zeros_like(before)):
        pass
    assert not corrector._sampled  # all rows, and no more to take back
    assert corrector.z.shape == (3000, 2)


def test_a_small_class_has_a_part_in_the_sample(monkeypatch):
    few_are_many(monkeypatch, sample=300)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [9000, 900, 90, 10])
    weight = rng.uniform(0.5, 2.0, len(y))
    oracle = task_for(problem(0, 4), VectorCode, Pairwise(4)).oracle
    corrector = BallCorrective(
        Pairwise(4), y, weight, LOSSES["multinomial"], False, Budget(1.0), 1e-3, oracle=oracle
    )
    counts = np.diff(corrector._start)
    np.testing.assert_array_equal(counts, [270, 38, 38, 10])
    assert len(np.unique(corrector._order)) == counts.sum()
    np.testing.assert_array_equal(y[corrector._order], np.repeat(np.arange(4), counts))
    for c in range(4):
        total = corrector._weight[corrector._sorted_y == c].sum()
        assert total == pytest.approx(weight[y == c].sum())


def test_a_sample_that_is_given_up_leaves_nothing_behind(monkeypatch):
    """Tiny samples lead astray; what is then said of the coefficients is about all rows."""
    few_are_many(monkeypatch, sample=6, a_column=0)
    monkeypatch.setattr(ball, "_MANY", 50)
    given_up = 0
    for seed in range(8):
        rows = problem(seed, 3, n=80)
        for n_rounds in range(2, 9):
            rest = {"tol": 1e-4, "n_rounds": n_rounds, **SAMPLED["all"]}
            run = ball_run(rows, "multinomial", "vector", **rest)
            given_up += not run.corrector._sampled
            used = run.corrector.budget.sizes(run.w).sum()
            assert run.certificate.theta == pytest.approx(used, rel=1e-12)
            # Within the rounding of single precision, which is the kernel's at this tolerance.
            assert run.corrector.gap >= restricted_gap(run) - 1e-5
    assert given_up > 10
