"""The reference algorithms against hand calculation, identities and each other."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from reference import algorithms as ref

OVA = 2 * np.eye(3) - 1  # one against all


def three_classes(n: int = 24, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 2)) + np.array([[0, 0], [1.0, 0], [0, 1.0]])[y]
    return X, y


def random_codes(C: int, T: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    codes = [m for m in itertools.product((-1, 1), repeat=C) if len(set(m)) > 1]
    return np.array(codes)[rng.integers(len(codes), size=T)].T


def test_two_class_adaboost_by_hand():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 0])
    run = ref.adaboost_mo(X, y, np.array([[-1], [1]]), T=2)
    # All stumps tie in round 1 (the constant is first), two of them in round 2.
    assert run.stumps == [[ref.Stump(0, -math.inf, -1)], [ref.Stump(0, 0.5, 1)]]
    np.testing.assert_allclose(run.eps, [1 / 3, 1 / 4])
    np.testing.assert_allclose(run.omegas, [math.log(2) / 2, math.log(3) / 2])
    np.testing.assert_allclose(run.u[1].ravel(), [1 / 4, 1 / 2, 1 / 4])
    np.testing.assert_allclose(run.u[2].ravel(), [1 / 6, 1 / 3, 1 / 2])
    normalisers = [2 * math.sqrt(2) / 3, math.sqrt(3) / 2]  # 2 sqrt(eps (1 - eps))
    np.testing.assert_allclose(run.losses, np.log(np.cumprod(normalisers)))


def test_two_class_ecc_is_mo_with_half_the_coefficients():
    X, y = three_classes()
    y = (y == 1).astype(int)
    s = np.random.default_rng(3).uniform(0.5, 2, len(y))
    mo = ref.adaboost_mo(X, y, np.array([[-1], [1]]), T=6, s=s)
    ecc = ref.adaboost_ecc(X, y, np.tile([[-1], [1]], 6), T=6, s=s)
    np.testing.assert_allclose(ecc.omegas, mo.omegas / 2)
    np.testing.assert_allclose(ecc.losses, mo.losses)
    assert [h for (h,) in mo.stumps] == ecc.stumps


def test_a_row_of_weight_two_is_two_rows():
    X, y = three_classes()
    s = np.where(np.arange(len(y)) == 5, 2.0, 1.0)
    codes = random_codes(3, 4)
    doubled = np.append(X, X[5:6], axis=0), np.append(y, y[5])
    for weighted, repeated in [
        (ref.adaboost_mo(X, y, OVA, 4, s), ref.adaboost_mo(*doubled, OVA, 4)),
        (ref.adaboost_ecc(X, y, codes, 4, s), ref.adaboost_ecc(*doubled, codes, 4)),
    ]:
        np.testing.assert_allclose(weighted.omegas, repeated.omegas)
        np.testing.assert_allclose(weighted.losses, repeated.losses)


def test_stage_wise_updates_are_corrective():
    X, y = three_classes()
    codes = random_codes(3, 8)
    mo, ecc = ref.adaboost_mo(X, y, OVA, 8), ref.adaboost_ecc(X, y, codes, 8)
    for t in range(8):
        rho = ref.rho_mo(X, y, OVA, mo.stumps[t])
        assert abs(np.sum(mo.u[t + 1] * rho)) < 1e-12
        rho = ref.rho_ecc(X, y, codes[:, t].astype(float), ecc.stumps[t])
        assert abs(np.sum(ecc.u[t + 1] * rho)) < 1e-12


def test_separable_data_meet_the_error_floor():
    X, y = np.arange(4.0)[:, None], np.array([0, 0, 1, 1])
    run = ref.adaboost_mo(X, y, np.array([[-1], [1]]), T=1)
    assert run.eps == [1 / 8]
    assert run.omegas == pytest.approx([math.log(7) / 2])
    xor = np.array([[0.0, 0], [1, 1], [0, 1], [1, 0]])
    assert ref.adaboost_mo(xor, y, np.array([[-1], [1]]), T=3).stumps == []


def test_best_code_is_the_sign_of_a():
    X, _ = three_classes(12)
    V = np.random.default_rng(4).normal(size=(12, 3))
    edge, h, m = ref.best_stump_and_code(X, V)
    a = h.predict(X) @ V
    np.testing.assert_array_equal(m, np.where(a >= 0, 1, -1))
    assert edge == pytest.approx(max(np.abs(g.predict(X) @ V).sum() for g in ref.all_stumps(X)))
    assert edge >= max(ref.best_stump(X, V @ k)[1] for k in random_codes(3, 9).T) - 1e-12


@pytest.mark.parametrize("theta", [0.5, 3.0, 30.0])
@pytest.mark.parametrize("coding", ["M", "codes"])
def test_multiboost_primal_equals_dual(coding, theta):
    X, y = three_classes(n=18)
    s = np.random.default_rng(5).uniform(0.5, 2, len(y))
    code = OVA if coding == "M" else random_codes(3, 5)
    run = ref.multiboost(X, y, theta, T=5, s=s, **{coding: code})
    np.testing.assert_allclose(run.losses, run.duals, atol=1e-8)
    assert np.all(np.diff(run.losses) <= 1e-9)
    assert all(w.min() >= 0 and w.sum() <= theta * (1 + 1e-12) for w in run.paths)

    # The same coefficients from another solver, on the primal.
    if coding == "M":
        rhos = [ref.rho_mo(X, y, OVA, h).ravel() for h in run.stumps]
    else:
        rhos = [
            ref.rho_ecc(X, y, m, h).ravel() for m, h in zip(code.T, run.stumps, strict=False)
        ]
    P, u0 = np.column_stack(rhos), run.u[0].ravel()
    edges = P.T @ run.u[-1].ravel()
    assert np.all(edges <= run.r[-1] + 1e-9)
    found = minimize(
        lambda w: ref.log_loss(u0, P @ w),
        x0=np.full(P.shape[1], 0.1 * theta / P.shape[1]),
        jac=lambda w: -P.T @ ref.weights(u0, P @ w),
        method="SLSQP",
        bounds=[(0, None)] * P.shape[1],
        constraints=[
            {
                "type": "ineq",
                "fun": lambda w: theta - w.sum(),
                "jac": lambda w: -np.ones(len(w)),
            }
        ],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert run.losses[-1] <= found.fun + 1e-10
    np.testing.assert_allclose(run.omegas, found.x, atol=1e-4 * theta)


def test_multiboost_beats_stage_wise_at_the_same_budget():
    X, y = three_classes()
    codes = random_codes(3, 6)
    stage = ref.adaboost_ecc(X, y, codes, 1)
    total = ref.multiboost(X, y, stage.omegas.sum(), 1, codes=codes)
    # One column: the exact line search is the stage-wise coefficient.
    np.testing.assert_allclose(total.omegas, stage.omegas, rtol=1e-9)
    stage = ref.adaboost_ecc(X, y, codes, 6)
    total = ref.multiboost(X, y, stage.omegas.sum(), 6, codes=codes)
    assert total.losses[-1] <= stage.losses[-1]


def test_full_optimum_bounds_every_feasible_loss():
    X, y = three_classes(n=9)
    s = np.random.default_rng(6).uniform(0.5, 2, len(y))
    codes = random_codes(3, 40)
    stage = ref.adaboost_ecc(X, y, codes, 6, s)
    theta = stage.omegas.sum()
    best = ref.optimum_of_class(X, y, s, theta)
    assert best.loss == pytest.approx(best.dual, abs=1e-7)
    assert best.dual <= stage.losses[-1]
    assert best.dual <= ref.multiboost(X, y, theta, 6, s, codes=codes).losses[-1]

    stage = ref.adaboost_mo(X, y, OVA, 6, s)
    theta = stage.omegas.sum()
    best = ref.optimum_of_class(X, y, s, theta, OVA, "codewords")
    assert best.loss == pytest.approx(best.dual, abs=1e-7)
    assert best.dual <= stage.losses[-1]
    total = ref.multiboost(X, y, theta, 60, s, M=OVA)  # priced out: it is the optimum
    assert len(total.losses) < 60
    assert total.losses[-1] == pytest.approx(best.loss, abs=1e-7)


def test_tuples_enumerated_or_bit_by_bit():
    X, y = three_classes(n=6)
    M = OVA[:, :2]
    tuples = ref.optimum_over_tuples(X, y, None, 2.0, M)
    bits = ref.optimum_of_class(X, y, None, 2.0, M, "codewords")
    assert tuples.loss == pytest.approx(bits.loss, abs=1e-7)


def test_predictions_and_margins_agree():
    X, y = three_classes()
    codes = random_codes(3, 12)
    mo, ecc = ref.adaboost_mo(X, y, OVA, 12), ref.adaboost_ecc(X, y, codes, 12)
    wrong = ref.predict_ecc(X, codes, ecc.stumps, ecc.omegas) != y
    margins = ref.margins_ecc(X, y, codes, ecc.stumps, ecc.omegas)
    np.testing.assert_array_equal(wrong, margins < 0)
    margins = ref.margins_mo(X, y, OVA, mo.stumps, mo.omegas)
    wrong = ref.predict_mo(X, OVA, mo.stumps, mo.omegas) != y
    assert not np.any(wrong & (margins > 0))  # every bit right, so the class is
    assert np.all(np.abs(margins) <= 1)
