"""Bounds are below Clarabel's optimum, losses are NumPy's, and no false claim is verified."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcboost import verify
from verify.by_rules import THETA_LOSSES, random_problem

KINDS = [("cross-entropy", "vectors")]
KINDS += [(loss, c) for loss in THETA_LOSSES for c in ("codes", "listed codes", "bits")]
CLARABEL = 1e-7


def check(problem, arithmetic="float"):
    """Whatever the claim says, only what is true is verified."""
    args = problem.X, problem.y, problem.weight
    found = verify(problem.model, *args, arithmetic=arithmetic)
    cost, budget = problem.cost()
    F = problem.b + problem.H @ problem.V
    assert found.loss == pytest.approx(problem.loss(F) + cost, rel=1e-12, abs=1e-13)
    assert found.budget == pytest.approx(budget, rel=1e-12)
    best = problem.solved()[0]
    assert found.bound <= best + CLARABEL * (1 + abs(best))
    assert found.gap_all_thresholds >= found.gap or problem.claim.cuts != "all"
    theta = problem.claim.theta
    within = theta is None or budget <= theta
    assert found  # where nothing is claimed
    true = {"primal": found.loss, "dual": found.bound}
    assert verify(problem.claiming(**true), *args, arithmetic=arithmetic).verified == within
    for false, told in (
        ({"primal": found.loss - 1e-8 * (1 + abs(found.loss))}, "the loss is"),
        ({"dual": found.bound + 1e-7 * (1 + abs(found.bound))}, "the gap found is"),
        ({"n_rows": 3}, "rows"),
    ):
        other = verify(problem.claiming(**{**true, **false}), *args, arithmetic=arithmetic)
        assert not other
        assert any(told in text for text in other.problems)
    return found


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_near_the_optimum_the_gap_closes_and_unused_features_are_not_needed(kind, seed):
    problem = random_problem(2000 + seed, *kind)
    best, V, b = problem.solved()
    model = problem.at(V, b).claiming(primal=None, dual=None)
    if model.claim.theta is not None:  # a hair more, since coefficients were rounded
        model = replace(model, claim=replace(model.claim, theta=model.claim.theta * (1 + 1e-4)))
    args = problem.X, problem.y, problem.weight
    found = verify(model, *args)
    if kind[0] != "hinge":
        assert found.gap < 1e-3
    for j in range(problem.X.shape[1]):
        claimed = replace(model, claim=replace(model.claim, unused_features=(j,)))
        if verify(claimed, *args):
            others = [r.feature != j for r in problem.rules]
            without = problem.solved(np.array(others, dtype=bool))[0]
            assert without == pytest.approx(best, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_claims(kind, seed):
    check(random_problem(seed, *kind))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_claims_in_decimals(kind, seed):
    problem = random_problem(seed, *kind)
    found = check(problem, "decimal")
    args = problem.X, problem.y, problem.weight
    double = verify(problem.model, *args)
    assert found.loss == pytest.approx(double.loss, rel=1e-14, abs=1e-15)
    assert found.bound == pytest.approx(double.bound, rel=1e-12, abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_thousands_of_random_claims(kind, seed):
    check(random_problem(seed, *kind))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_that_of_all_rules_one_by_one(kind, seed):
    """The table of docs/verify.md at the model itself, in floating point."""
    problem = random_problem(1000 + seed, *kind)
    if kind[0] == "hinge":
        return  # whose bound is from its witness alone: see the random claims
    problem = random_problem(1000 + seed, *kind)
    model = problem.claiming(witness=None)
    found = verify(model, problem.X, problem.y, problem.weight)
    bounds = [by_hand(problem, scale) for scale in (np.arange(10, 0, -1) / 10)]
    expected = bounds[0] if problem.claim.penalty is not None else max(bounds)
    infimum = -math.inf if kind[0] == "exponential" else 0.0
    assert found.bound == pytest.approx(max(expected, infimum), rel=1e-9, abs=1e-10)


def by_hand(problem, scale):
    claim, s, signed = problem.claim, problem.s, problem.signed()
    F = scale * (problem.b + problem.H @ problem.V)
    z = np.einsum("nkl,nl->nk", signed, F)
    prior = np.repeat(s[:, None] / z.shape[1], z.shape[1], axis=1)
    if claim.loss == "cross-entropy":
        e = np.exp(-z)
        u = s[:, None] * e / (1 + e.sum(axis=1, keepdims=True))
    elif claim.loss == "exponential":
        u = prior * np.exp(-z)
        u /= u.sum()
    else:
        u = prior * (1 / (1 + np.exp(z)) if claim.loss == "logistic" else np.maximum(0, 1 - z))
    # Of a convex loss the tangent at F, at outputs of zero.
    value = problem.loss(F) + (u * z).sum()
    H = np.hstack([np.ones((len(s), 1)), problem.H])
    A = np.einsum("nt,nkl,nk->tl", H, signed, u)
    if claim.penalty is None:
        measure = {
            "codes": lambda: np.abs(A).sum(axis=1).max(),
            "listed codes": lambda: np.abs(A @ claim.codes).max(),
            "bits": lambda: np.abs(A).max(axis=0).sum(),
        }[claim.columns]()
        return value - claim.theta * measure
    loss = problem.loss(problem.b + problem.H @ problem.V) + problem.cost()[0]
    over = np.maximum(np.linalg.norm(A[1:], axis=1) - claim.penalty, 0.0)
    gain = min(loss, math.log(len(problem.model.classes))) / claim.penalty * over.max(initial=0)
    if claim.ridge > 0:
        gain = min(gain, (over**2).sum() / (2 * claim.ridge))
    return value - gain - A[0] @ A[0] / (2 * claim.intercept_ridge)
