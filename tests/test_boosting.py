"""The one loop against the literal forms of Algorithms 1 to 3."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from sklearn.base import clone

from reference import algorithms as ref
from reference.programs import solve_master
from tcboost import MultiBoostECC, MultiBoostMO
from tcboost.boosting import Run, Task
from tcboost.coding import ecoc, one_vs_rest
from tcboost.columns import FixedCode, LearnedCode, RandomCode
from tcboost.correctors import SMALL, StageWise, TotallyCorrective
from tcboost.ensemble import Ensemble
from tcboost.losses import LOSSES, SMOOTH
from tcboost.margins import Codeword, Pairwise, PairwiseCode
from tcboost.oracles import make_oracle
from tcboost.rows.blocks import LocalRows

T = 12


def problem(seed, n_classes, weighted=True, n=40, n_features=3):
    """Continuous data in canonical order, so that only equal partitions can tie."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, n_features)) + 0.8 * rng.normal(size=(n_classes, n_features))[y]
    s = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    return LocalRows(X, y, s, "auto", 1)


def task_for(rows, chooser, margin, loss="exponential"):
    oracle = make_oracle("stump", rows, np.random.RandomState(0))
    return Task(rows, margin, LOSSES[loss], oracle, chooser(oracle))


def begun(rows, chooser, margin, loss="exponential", **corrective):
    """A run: stage-wise, or totally corrective if theta and tol are given."""
    cls = TotallyCorrective if corrective else StageWise
    corrector = cls(margin, rows.y, rows.weight, **corrective, loss=LOSSES[loss])
    return Run(task_for(rows, chooser, margin, loss), corrector)


def run(rows, chooser, margin, n_rounds, loss="exponential", **corrective):
    """A finished one."""
    return begun(rows, chooser, margin, loss, **corrective).boost(n_rounds)


def dual_weights(rows, margin, z):
    dual = LOSSES["exponential"].dual_weights(z, rows.weight)
    return dual.u / dual.scale


def assert_same_stumps(columns, stumps):
    for column, expected in zip(columns, stumps, strict=True):
        expected = expected if isinstance(expected, list | tuple) else [expected]
        for h, e in zip(column.hypotheses, expected, strict=True):
            assert (h.feature, h.sign) == (e.feature, e.sign)
            assert h.threshold == e.threshold


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("code", [ecoc, one_vs_rest])
def test_adaboost_mo_is_algorithm_1(n_classes, weighted, code):
    rows = problem(n_classes, n_classes, weighted)
    M = code(n_classes)
    margin = Codeword(M)
    fit = run(rows, FixedCode, margin, T)
    expected = ref.adaboost_mo(rows.X, rows.y, M, T, rows.weight)
    assert len(fit.w) == T
    assert_allclose(fit.w, expected.omegas, rtol=1e-10)
    assert_same_stumps(fit.columns, expected.stumps)
    assert_allclose(fit.history.arrays()["loss"], expected.losses, atol=1e-12)
    assert_allclose(dual_weights(rows, margin, fit.corrector.z), expected.u[-1], atol=1e-13)
    X = np.random.default_rng(9).normal(size=(200, 3))
    scores = Ensemble(fit.columns, fit.w, margin).scores(X)
    assert_array_equal(
        scores.argmax(axis=1), ref.predict_mo(X, M, expected.stumps, expected.omegas)
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_adaboost_ecc_is_algorithm_2(n_classes, weighted):
    rows = problem(10 + n_classes, n_classes, weighted)
    margin, draws = Pairwise(n_classes), np.random.RandomState(3)
    fit = run(rows, lambda oracle: RandomCode(oracle, n_classes, draws), margin, T)
    codes = np.array([c.code for c in fit.columns]).T
    expected = ref.adaboost_ecc(rows.X, rows.y, codes, T, rows.weight)
    assert_allclose(fit.w, expected.omegas, rtol=1e-10)
    assert_same_stumps(fit.columns, expected.stumps)
    assert_allclose(fit.history.arrays()["loss"], expected.losses, atol=1e-12)
    assert_allclose(dual_weights(rows, margin, fit.corrector.z), expected.u[-1], atol=1e-13)
    X = np.random.default_rng(9).normal(size=(200, 3))
    scores = Ensemble(fit.columns, fit.w, margin).scores(X)
    assert_array_equal(
        scores.argmax(axis=1), ref.predict_ecc(X, codes, expected.stumps, expected.omegas)
    )
    margins = ref.margins_ecc(rows.X, rows.y, codes, expected.stumps, expected.omegas)
    assert fit.history.arrays()["min_margin"][-1] == pytest.approx(margins.min(), abs=1e-12)


@pytest.mark.parametrize("theta", [4.0, 8.0, 20.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_multiboost_mo_is_algorithm_3(theta, n_classes):
    rows, M = problem(20 + n_classes, n_classes), ecoc(n_classes)
    fit = MultiBoostMO(theta=theta, max_iter=T, tol=1e-9).fit(rows.X, rows.y, rows.weight)
    expected = ref.multiboost(rows.X, rows.y, theta, T, rows.weight, M=M)
    assert_totally_corrective_agrees(fit, expected, rows, Codeword(M))


@pytest.mark.parametrize("theta", [0.5, 4.0, 8.0])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_multiboost_ecc_is_algorithm_3(theta, n_classes):
    rows, options = problem(30 + n_classes, n_classes), {"tol": 1e-9, "random_state": 5}
    fit = MultiBoostECC(theta=theta, max_iter=T, **options).fit(rows.X, rows.y, rows.weight)
    n, codes = fit.n_iter_, fit.coding_matrix_
    expected = ref.multiboost(rows.X, rows.y, theta, n, rows.weight, codes=codes)
    assert_totally_corrective_agrees(fit, expected, rows, Pairwise(n_classes))


@pytest.mark.parametrize("theta", [0.5, 2.0])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("code", [ecoc, one_vs_rest])
def test_the_mixture_is_algorithm_3(code, theta, n_classes):
    """Sec. III-D: a predefined code, one hypothesis for each bit, pairwise margins."""
    rows, M = problem(60 + n_classes, n_classes), code(n_classes)
    fit = MultiBoostECC(M, theta, T, tol=1e-9).fit(rows.X, rows.y, rows.weight)
    expected = ref.multiboost(rows.X, rows.y, theta, T, rows.weight, M=M, pairwise=True)
    assert_totally_corrective_agrees(fit, expected, rows, PairwiseCode(M))


@pytest.mark.parametrize(
    ("model", "margin"),
    [
        (MultiBoostMO(theta=8.0), Codeword(ecoc(3))),
        (MultiBoostMO("ovr"), Codeword(one_vs_rest(3))),
        (MultiBoostECC("random", 30.0, random_state=0), Pairwise(3)),
        (MultiBoostECC("learned", random_state=0), Pairwise(3)),
        (MultiBoostECC("ecoc", 3.0), PairwiseCode(ecoc(3))),
    ],
    ids=["ecoc", "ovr", "random", "learned", "mixture"],
)
def test_every_round_adds_one_column_and_solves_its_master(model, margin):
    """By default, as Algorithm 3 has it: against Clarabel, over the columns of the round."""
    rows, n = problem(90, 3, n=120), 50
    model = clone(model).set_params(max_iter=n, tol=1e-6)
    history = model.fit(rows.X, rows.y, rows.weight).history_
    assert [len(w) for w in history["weights"]] == list(range(1, n + 1))
    assert {len(entries) for entries in history.values()} == {model.n_iter_} == {n}
    P = np.array([margin.apply(c.outputs(rows.X), rows.y).ravel() for c in model.estimators_])
    u0 = np.repeat(rows.weight / margin.width, margin.width)
    for t in (1, 2, 10, *range(33, n + 1)):
        optimum = solve_master(P[:t].T.astype(float), u0, model.theta_)
        assert optimum.dual - 1e-8 <= history["loss"][t - 1] <= optimum.loss + model.tol


MARGINS = {
    "codeword": (FixedCode, lambda C: Codeword(ecoc(C))),
    "pairwise": (LearnedCode, Pairwise),
    "mixture": (FixedCode, lambda C: PairwiseCode(ecoc(C))),
}


@pytest.mark.parametrize("margin", sorted(MARGINS))
@pytest.mark.parametrize("loss", sorted(SMOOTH))
@pytest.mark.parametrize("n_classes", [2, 4])
def test_stage_wise_coefficients_are_exact_minima(loss, margin, n_classes):
    chooser, make = MARGINS[margin]
    rows, margin = problem(70 + n_classes, n_classes), make(n_classes)
    fit = run(rows, chooser, margin, T, loss=loss)
    assert len(fit.w) == T
    z = np.zeros((len(rows), margin.width))
    for w, column in zip(fit.w, fit.columns, strict=True):
        rho = margin.apply(column.outputs(rows.X), rows.y).astype(float)

        def value(t, z=z, rho=rho):
            return SMOOTH[loss].dual_weights(z + t * rho, rows.weight).loss

        found = minimize_scalar(value, bounds=(0, 20), method="bounded").x
        assert value(w) <= value(found) + 1e-12
        dual = SMOOTH[loss].dual_weights(z + w * rho, rows.weight)
        assert abs((dual.u / dual.scale * rho).sum()) < 1e-9  # the corrective update
        z = z + w * rho
    assert_allclose(fit.corrector.z, z, atol=1e-12)
    assert (np.diff(fit.history.arrays()["loss"]) < 0).all()


@pytest.mark.parametrize("loss", sorted(SMOOTH))
def test_a_column_without_an_error_has_a_finite_coefficient(loss):
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 2])
    rows, margin = (
        LocalRows(X, y, np.ones(3), "auto", 1),
        PairwiseCode(one_vs_rest(3)[:, [0, 2]]),
    )
    fit = run(rows, FixedCode, margin, 2, loss=loss)
    assert len(fit.w) >= 1
    assert (fit.w > 0).all()
    assert (fit.w < 20).all()
    assert np.isfinite(fit.certificate.gap)


@pytest.mark.parametrize("margin", sorted(MARGINS))
@pytest.mark.parametrize("loss", sorted(SMOOTH))
@pytest.mark.parametrize("theta", [0.5, 5.0])
def test_totally_corrective_rounds_are_optimal_for_every_loss_and_margin(loss, margin, theta):
    """Against a general minimiser over the same columns, and the optimality conditions."""
    chooser, make = MARGINS[margin]
    rows, margin = problem(80, 3), make(3)
    fit = run(rows, chooser, margin, T, loss=loss, theta=theta, tol=1e-8)
    P = np.array([margin.apply(c.outputs(rows.X), rows.y) for c in fit.columns], dtype=float)
    kind = SMOOTH[loss]

    def value(w):
        dual = kind.dual_weights(np.tensordot(w, P, 1), rows.weight)
        return dual.loss, -np.tensordot(P, dual.u / dual.scale, 2)

    within = {
        "type": "ineq",
        "fun": lambda w: theta - w.sum(),
        "jac": lambda w: -np.ones_like(w),
    }
    start = np.full(len(P), theta / (2 * len(P)))
    found = minimize(
        value,
        start,
        jac=True,
        bounds=[(0, None)] * len(P),
        constraints=[within],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    loss_, gradient = value(fit.w)
    assert loss_ <= found.fun + 1e-8
    assert loss_ == pytest.approx(fit.certificate.primal, abs=1e-12)
    g = -gradient
    assert theta * max(0.0, g.max()) - fit.w @ g <= 1e-9 + 1e-12
    assert fit.w.sum() <= theta * (1 + 1e-12)


@pytest.mark.parametrize("margin", ["codeword", "pairwise"])
def test_masters_between_rounds_may_leave_a_gap_and_the_last_does_not(margin):
    """In a hundred rounds: never more than was allowed, and the loss of exact rounds."""
    chooser, make = MARGINS[margin]
    rows, margin = problem(81, 3, n=120), make(3)
    loose, exact = (
        run(rows, chooser, margin, 100, theta=30.0, tol=1e-6, round_tol=left)
        for left in (0.01, 0.0)
    )
    left, most = restricted_gaps(loose), loose.history.arrays()["gap"]
    assert len(left) > 60
    assert (left[:SMALL] <= 1e-7).all()
    assert (left[SMALL:-1] > 1e-7).any()
    assert (left[SMALL:-1] <= np.minimum(0.01, 0.1 * most[SMALL - 1 : -2]) + 1e-12).all()
    assert left[-1] <= 1e-7 or most[-1] <= 1e-6
    assert (restricted_gaps(exact) <= 1e-7).all()
    optima = [fit.certificate.dual for fit in (loose, exact)]
    assert loose.certificate.primal >= max(optima) - 1e-9
    assert exact.certificate.primal >= max(optima) - 1e-9
    assert abs(loose.certificate.primal - exact.certificate.primal) <= 5e-3


def test_a_paced_run_grows_into_its_budget_and_ends_with_all_of_it():
    """Two columns a round from SMALL on; certified for theta, as low as exact rounds."""
    rows, margin = problem(81, 3, n=120), Codeword(ecoc(3))
    options = {"theta": 30.0, "tol": 1e-6}
    paced = run(rows, FixedCode, margin, 100, round_tol=0.01, paced=True, **options)
    exact = run(rows, FixedCode, margin, 100, **options)
    sizes = np.array([len(w) for w, *_ in paced.history.rounds])
    used = np.array([w.sum() for w, *_ in paced.history.rounds])
    assert sizes[-1] == len(paced.columns) <= 100
    assert (np.diff(sizes)[:SMALL] == 1).all()
    assert (np.diff(sizes)[SMALL:-1] == 2).any()
    assert (used[:5] < 3.0).all()
    assert used.max() <= 30.0 * (1 + 1e-12)
    assert used[-1] == pytest.approx(30.0)
    assert paced.certificate.theta == 30.0
    assert restricted_gaps(paced)[-1] <= 1e-7 or paced.certificate.gap <= 1e-6
    assert paced.certificate.primal >= exact.certificate.dual - 1e-9
    assert paced.certificate.primal <= exact.certificate.primal + 5e-3


def test_a_run_too_short_for_its_budget_is_not_paced():
    rows, margin = problem(81, 3, n=120), Codeword(ecoc(3))
    options = {"theta": 30.0, "tol": 1e-6}
    short, exact = (
        run(rows, FixedCode, margin, 30, round_tol=left, paced=left > 0, **options)
        for left in (0.01, 0.0)
    )
    assert_array_equal(short.w, exact.w)
    assert short.history.arrays()["loss"].tolist() == exact.history.arrays()["loss"].tolist()


def restricted_gaps(fit):
    """Of the master of every round: what its columns could still gain."""
    history, theta = fit.history.arrays(), fit.corrector.theta
    rounds = zip(history["r"], history["weights"], history["inner_products"], strict=True)
    return np.array([theta * r - w @ g for r, w, g in rounds])


def assert_totally_corrective_agrees(fit, expected, rows, margin):
    w, history = fit.estimator_weights_, fit.history_
    assert len(w) == len(expected.omegas) > 1
    rhos = [margin.apply(c.outputs(rows.X), rows.y) for c in fit.estimators_]
    # At an optimum different stumps have the same edge, so the edges are compared.
    for rho, u, edge in zip(rhos, expected.u, expected.edges, strict=False):
        assert (u * rho).sum() == pytest.approx(edge, abs=1e-8)
    assert_allclose(history["loss"], expected.losses, atol=1e-8)
    assert_allclose(history["r"], expected.r, atol=1e-6)
    assert_allclose(history["edge"], expected.edges, atol=1e-6)
    assert_allclose(w, expected.omegas, atol=1e-4)
    z = np.tensordot(w, rhos, 1)
    assert_allclose(dual_weights(rows, margin, z), expected.u[-1], atol=1e-6)


def test_learned_codes_take_the_best_stump_and_code_of_all():
    rows, margin = problem(40, 3), Pairwise(3)
    fit = run(rows, LearnedCode, margin, 1, theta=5.0, tol=1e-9)
    V = margin.adjoint(np.repeat(rows.weight[:, None] / 2, 2, axis=1), rows.y)
    edge, stump, code = ref.best_stump_and_code(rows.X, V)
    assert fit.history.arrays()["edge"][0] == pytest.approx(edge, abs=1e-12)
    (h,) = fit.columns[0].hypotheses
    assert (h.feature, h.threshold) == (stump.feature, stump.threshold)
    assert_array_equal(h.sign * fit.columns[0].code, stump.sign * code)


def test_history_is_what_the_paper_plots():
    """Fig. 1: inner products with past mistake vectors, uncontrolled or bounded by r."""
    rows, M = problem(50, 3), ecoc(3)
    margin = Codeword(M)
    stage_wise = run(rows, FixedCode, margin, T)
    corrective = run(rows, FixedCode, margin, T, theta=stage_wise.w.sum(), tol=1e-8)
    for fit in (stage_wise, corrective):
        assert [len(g) for g in fit.history.arrays()["inner_products"]] == list(range(1, T + 1))
        outputs = [c.outputs(rows.X) for c in fit.columns]
        # Recomputed from nothing but columns and coefficients.
        z = sum(w * margin.apply(o, rows.y) for w, o in zip(fit.w, outputs, strict=True))
        u = np.exp(-z) * rows.weight[:, None]
        u /= u.sum()
        g = [(u * margin.apply(o, rows.y)).sum() for o in outputs]
        assert_allclose(fit.history.arrays()["inner_products"][-1], g, atol=1e-12)
        assert fit.history.arrays()["min_margin"][-1] == pytest.approx(z.min() / fit.w.sum())
        assert fit.history.arrays()["loss"][-1] == pytest.approx(
            np.log((np.exp(-z) * rows.weight[:, None]).sum() / 3)
        )
    last = [g[-1] for g in stage_wise.history.arrays()["inner_products"]]
    assert_allclose(last, 0.0, atol=1e-12)  # the corrective update of Sec. III-E
    for g, r in zip(
        corrective.history.arrays()["inner_products"],
        corrective.history.arrays()["r"],
        strict=True,
    ):
        assert (g <= r + 1e-15).all()
    assert (
        corrective.history.arrays()["loss"] <= stage_wise.history.arrays()["loss"] + 1e-9
    ).all()


def test_an_error_of_zero_is_bounded_and_one_half_ends_the_run():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([0, 0, 1, 1])
    rows = LocalRows(X, y, np.ones(4), "auto", 1)
    margin = Codeword(ecoc(2))
    fit = run(rows, FixedCode, margin, 3)
    assert_allclose(fit.w, 0.5 * np.log(7.0))  # an error of 1/8, of four rows and one bit
    flat = LocalRows(np.zeros((4, 1)), y, np.ones(4), "auto", 1)
    assert len(flat) == 2  # equal rows are merged
    fit = run(flat, FixedCode, margin, 3)
    assert fit.columns == []
    assert (fit.certificate.primal, fit.certificate.dual) == (
        0.0,
        pytest.approx(0.0, abs=1e-12),
    )


@pytest.mark.parametrize("corrective", [{}, {"theta": 4.0, "tol": 1e-6}])
def test_stumps_leave_the_features_where_they_are(corrective):
    rows = problem(0, 3)
    run(rows, LearnedCode, Pairwise(3), T, **corrective)
    assert "X" not in vars(rows)  # no copy was made


def test_where_no_gap_is_known_every_master_is_solved():
    rows = problem(82, 3, n=90)
    models = [
        MultiBoostECC(theta=20, max_iter=45, weak_learner="lda", random_state=0, round_tol=left)
        for left in (0.03, 0.0)
    ]
    for model in models:
        model.fit(rows.X, rows.y)
        assert model.n_iter_ > SMALL
    assert_array_equal(*(model.estimator_weights_ for model in models))
