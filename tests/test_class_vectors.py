"""The solver of class vectors against its NumPy form and Clarabel, and what ends it."""

import os
import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_wine

from reference.by_features import Column, Twin, signs_by_cell
from tcboost._core import VectorProblem
from tcboost.class_vectors import Model, Penalty, Solution, State, solve
from tcboost.features import CellTable, cell_table

UNLIMITED = 10_000


@dataclass
class Rows:
    table: CellTable
    y: np.ndarray
    s: np.ndarray
    C: int

    @property
    def n(self):
        return len(self.y)

    def problem(self, n_threads=1):
        return self.table.problem(self.y, self.s, self.C, n_threads)

    def all_by_row(self, n_threads=1):
        """The same, without a feature whose most common cell is left out."""
        columns = [
            (f.ordered, f.n_cells, f.missing, cells, None, 0)
            for f, cells in zip(self.table.features, self.table.cells, strict=True)
        ]
        return VectorProblem(columns, self.y, self.s, self.C, n_threads)

    def solve(self, o, max_rules=UNLIMITED, start=None, n_threads=1, **settings):
        start = Model.empty(self.C) if start is None else start
        problem = self.problem(n_threads)
        settings.setdefault("share", 10.0 * settings["tol"])
        return solve(problem, self.n, start, o, max_rules, **settings)

    def columns(self):
        """As the NumPy form sees them; a sweep leaves out the cell of nearly all rows."""
        found = []
        for f, cells in zip(self.table.features, self.table.cells, strict=True):
            counts = np.bincount(cells, minlength=f.n_cells)
            main = int(counts.argmax())
            limit = 0.08 if f.n_rules == 1 else 0.25
            few = self.n - counts[main] < limit * self.n
            signs = signs_by_cell(f.ordered, f.n_cells, f.missing)
            alone = f.ordered and f.missing
            found.append(Column(signs, alone, cells, main if few else None))
        return found

    def twin(self, model, columns=None):
        columns = self.columns() if columns is None else columns
        v = np.zeros((self.table.first[-1], self.C))
        v[model.used] = model.v
        return Twin(columns, self.y, self.s, model.b, np.split(v, self.table.first[1:-1]))

    def by_feature(self, used):
        first = self.table.first
        of_each = np.split(used, np.searchsorted(used, first[1:-1]))
        return [rules - start for rules, start in zip(of_each, first, strict=False)]


def rows_of(X, y, s=None, categorical=None, max_bins=1000, C=None):
    X = np.asarray(X, dtype=float)
    n, D = X.shape
    s = np.ones(n) if s is None else s
    s = s / s.sum()
    categorical = np.zeros(D, dtype=bool) if categorical is None else np.asarray(categorical)
    table = cell_table(X, np.arange(n), s, max_bins, categorical, 1)
    y = np.asarray(y, dtype=np.int32)
    return Rows(table, y, s, int(y.max()) + 1 if C is None else C)


def random_rows(rng, most=40):
    """Ties, constants, missing values, levels, features with a common value, all weights."""
    n, D, C = int(rng.integers(7, most)), int(rng.integers(1, 5)), int(rng.integers(2, 7))
    X = np.round(rng.normal(size=(n, D)) * rng.choice([0.3, 1, 2, 5]), rng.integers(0, 2))
    X[:, rng.random(D) < 0.1] = 1.0
    for j in np.flatnonzero(rng.random(D) < 0.3):
        X[rng.random(n) < 0.85, j] = X[0, j]
    if rng.random() < 0.5:
        X[rng.random((n, D)) < 0.2] = np.nan
    X[:, rng.random(D) < 0.05] = np.nan
    y = rng.integers(0, C, n)
    if rng.random() < 0.5:  # something to learn
        y = np.where(rng.random(n) < 0.8, np.nan_to_num(X[:, 0]).astype(int) % C, y)
    s = [np.ones(n), rng.random(n), rng.random(n) ** 4, 10.0 ** rng.uniform(-6, 0, n)]
    bins = int(rng.choice([3, 1000]))
    categorical = rng.random(D) < 0.4
    return rows_of(X, y, s[rng.integers(len(s))], categorical, bins, C)


def random_penalty(rng, rows, smallest=1e-7):
    """From the smallest to where no rule enters."""
    start = State(rows.problem(), rows.n, Model.empty(rows.C), Penalty(1.0, 0.0, 1.0))
    top = max(float(start.edges()[0].max(initial=0.0)), 1e-3)
    l1 = 10.0 ** rng.uniform(np.log10(smallest), np.log10(1.5 * top))
    ridge = l1 * rng.choice([0.0, 1.0, 99.0])
    return Penalty(l1, ridge, 1e-3 * (l1 + ridge))


def random_model(rng, rows, size=0.5):
    T = int(rows.table.first[-1])
    used = np.flatnonzero(rng.random(T) < rng.choice([0.1, 0.5, 1.0])).astype(np.int64)
    v = size * rng.normal(size=(len(used), rows.C))
    v[rng.random(len(used)) < 0.2] = 0.0
    return Model(size * rng.normal(size=rows.C), used, v)


def oracle(rows, o):
    """The objective of the model that Clarabel finds, which is not below the optimum."""
    twin = rows.twin(Model.empty(rows.C))
    H = np.concatenate([c.signs[:, c.cells] for c in twin.columns]).T
    b, V = cp.Variable(rows.C), cp.Variable((max(H.shape[1], 1), rows.C))
    F = np.ones((rows.n, 1)) @ cp.reshape(b, (1, rows.C), order="C")
    F = F + H @ V if H.shape[1] else F
    terms = cp.log_sum_exp(F, axis=1) - cp.sum(cp.multiply(twin.labels, F), axis=1)
    cost = rows.s @ terms + o.intercept / 2 * cp.sum_squares(b)
    cost += o.l1 * cp.sum(cp.norm(V, 2, axis=1)) + o.ridge / 2 * cp.sum_squares(V)
    tight = dict.fromkeys(["tol_gap_abs", "tol_gap_rel", "tol_feas"], 1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an inaccurate solution, which is one all the same
        cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL, **tight)
    v = V.value if H.shape[1] else np.zeros((0, rows.C))
    return rows.twin(Model(b.value, np.arange(H.shape[1]), v)).objective(o)


def check_certificate(rows, o, found, best):
    """The gap is no less than what a model is known to gain; the objective is the model's."""
    assert isinstance(found, Solution)
    exact = rows.twin(found.model).objective(o)
    assert found.objective == pytest.approx(exact, rel=1e-9, abs=1e-12)
    assert exact - best <= found.gap
    assert found.gap <= found.objective


@pytest.mark.parametrize("seed", range(25))
def test_edges_are_those_of_numpy(seed):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng)
    model = random_model(rng, rows)
    state = State(rows.problem(), rows.n, model, Penalty(1e-2, 1e-2, 1e-4))
    sizes, gap, own_gap = state.edges()
    twin = rows.twin(model)
    assert_allclose(sizes, np.sqrt((twin.edges()[0] ** 2).sum(axis=1)), rtol=0, atol=1e-12)
    assert gap == pytest.approx(min(twin.gap(state.penalty), state.objective), rel=1e-9)
    assert own_gap <= gap or gap == state.objective


@pytest.mark.parametrize("curvature", [1.5, 2.0])
@pytest.mark.parametrize("seed", range(25))
def test_a_sweep_is_that_of_numpy(seed, curvature):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng)
    # With vectors of length 3 some steps are limited, and little curvature is left.
    size = float(rng.choice([0.1, 0.5, 3.0]))
    model, close = random_model(rng, rows, size), {"rtol": 0.0, "atol": max(1e-9, 3e-9 * size)}
    o = random_penalty(rng, rows, smallest=1e-4)
    for problem, columns in (
        (rows.problem(), rows.columns()),
        (rows.all_by_row(), [Column(c.signs, c.alone, c.cells) for c in rows.columns()]),
    ):
        state = State(problem, rows.n, model, o)
        path = problem.sweeps(state.p, *model, o, curvature, 1)
        twin = rows.twin(model, columns)
        twin.sweep(o, curvature, rows.by_feature(model.used), problem.together)
        assert_allclose(path[0], np.concatenate([model.b[None], model.v]))
        assert_allclose(path[1, 0], twin.b, **close)
        assert_allclose(path[1, 1:], np.concatenate(twin.v)[model.used], **close)
        p = np.exp(twin.log_probabilities())
        assert_allclose(state.p[:, : rows.C], p, **close)


@pytest.mark.parametrize("seed", range(10))
def test_features_of_one_cut_are_corrected_together_as_by_numpy(seed):
    rng = np.random.default_rng(seed)
    n, C = 400, int(rng.integers(2, 7))
    X = (rng.random((n, 7)) < rng.random(7) / 2 + 0.2).astype(float)
    X[:, 3] = rng.normal(size=n)
    rows = rows_of(X, np.append(np.arange(C), rng.integers(0, C, n - C)), rng.random(n))
    problem = rows.problem()
    assert sorted(j for group in problem.together for j in group) == [0, 1, 2, 4, 5, 6]
    model, o = random_model(rng, rows, 0.5), Penalty(1e-3, 1e-2, 1e-5)
    state = State(problem, rows.n, model, o)
    path = problem.sweeps(state.p, *model, o, 1.5, 2)
    twin = rows.twin(model)
    for _ in range(2):
        twin.sweep(o, 1.5, rows.by_feature(model.used), problem.together)
    assert_allclose(path[2, 0], twin.b, rtol=0, atol=1e-9)
    assert_allclose(path[2, 1:], np.concatenate(twin.v)[model.used], rtol=0, atol=1e-9)
    sizes = problem.edges(state.p, *model, o, 1.0)[0]
    assert_allclose(sizes, np.sqrt((twin.edges()[0] ** 2).sum(axis=1)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_solution_is_that_of_numpy(seed):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng)
    o = random_penalty(rng, rows, smallest=1e-3)
    found = rows.solve(o, tol=1e-4)
    twin = rows.twin(Model.empty(rows.C))
    every = [np.arange(len(c.signs)) for c in twin.columns]
    for _ in range(100):
        twin.sweep(o, 2.0, every, [])
    assert abs(found.objective - twin.objective(o)) <= max(found.gap, twin.gap(o))


@pytest.mark.parametrize("seed", range(20))
def test_the_solution_is_clarabels(seed):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng)
    o = random_penalty(rng, rows, smallest=1e-3)
    found, best = rows.solve(o, tol=1e-5), oracle(rows, o)
    check_certificate(rows, o, found, best)
    # The oracle's point is not below the optimum, and nearly there.
    assert found.objective - best == pytest.approx(0.0, abs=1e-4 * found.objective)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_without_a_ridge_rules_a_hair_above_the_penalty_enter(load, alpha):
    """Else each could gain as much as if the whole loss were paid to it."""
    X, y = load(return_X_y=True)
    rows = rows_of(X, y)
    found = rows.solve(Penalty.of_alpha(alpha, 1.0, rows.n), tol=1e-3)
    assert found.status == "optimal"
    assert found.gap <= 1e-3 * min(1.0, 10.0 * found.objective)


def test_a_tight_tolerance_is_reached():
    """In some hundred rounds, as an extrapolation looks back on several."""
    found = many_rows(2000).solve(Penalty(1e-3, 1e-3, 1e-6), tol=1e-5)
    assert found.status == "optimal"
    assert len(found.history) < 300


@pytest.mark.parametrize("max_rules", [5, 20])
def test_the_status_tells_that_more_rules_would_help(max_rules):
    found = many_rows(2000).solve(Penalty(1e-4, 0.0, 1e-6), max_rules, tol=1e-3)
    assert found.status == "max_rules"


@pytest.mark.parametrize("seed", range(20))
def test_the_certificate_is_true_at_any_penalty_and_number_of_rules(seed):
    rng = np.random.default_rng(seed)
    for _ in range(2):
        rows = random_rows(rng, most=25)
        o, cap = random_penalty(rng, rows), int(rng.choice([1, 2, 5, UNLIMITED]))
        found = rows.solve(o, cap, tol=10.0 ** rng.uniform(-8, -1))
        assert len(found.model.used) <= cap
        assert found.status in {"optimal", "max_rules", "max_iter", "stalled"}
        assert found.model.v.any(axis=1).all()
        check_certificate(rows, o, found, oracle(rows, o))


@pytest.mark.slow
def test_no_certificate_of_thousands_is_false():
    """As many as TCBOOST_ATTACKS says."""
    for seed in range(int(os.environ.get("TCBOOST_ATTACKS", "300"))):
        rng = np.random.default_rng([77, seed])
        rows = random_rows(rng, most=20)
        o, cap = random_penalty(rng, rows), int(rng.choice([1, 3, UNLIMITED]))
        best = oracle(rows, o)
        start = random_model(rng, rows) if cap == UNLIMITED and rng.random() < 0.3 else None
        found = rows.solve(o, cap, start, tol=10.0 ** rng.uniform(-8, -1))
        exact = rows.twin(found.model).objective(o)
        assert exact - best <= found.gap, f"seed {seed}"
        assert found.objective == pytest.approx(exact, rel=1e-9, abs=1e-12), f"seed {seed}"


# ---------------------------------------------------------------- the same bits


def many_rows(n=6000):
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(n, 5)), 1)
    X[:, 1] = rng.integers(0, 12, n)
    X[rng.random(n) < 0.9, 2] = 0.0  # few rows to pass over
    X[rng.random(n) < 0.1, 3] = np.nan
    y = (X[:, 0] + np.nan_to_num(X[:, 3]) * (X[:, 1] > 5) + rng.normal(size=n) > 0) * 1
    y += 2 * (X[:, 2] > 0.5)
    return rows_of(X, y, rng.random(n), [False, True, False, False, False])


def test_the_same_bits_with_any_number_of_threads():
    rows, o = many_rows(), Penalty(1e-3, 1e-3, 1e-6)
    one = rows.solve(o, 60, tol=1e-4)
    assert len(one.model.used) > 10
    for n_threads in (2, 7):
        other = rows.solve(o, 60, n_threads=n_threads, tol=1e-4)
        for x, y in zip(one.model, other.model, strict=True):
            assert_array_equal(x, y)
        assert_array_equal(one.lengths, other.lengths)
        assert one.history == other.history


def test_rows_passed_over_or_not():
    rows, o = many_rows(2000), Penalty(1e-3, 1e-3, 1e-6)
    first = State(rows.problem(), rows.n, Model.empty(rows.C), o)
    other = State(rows.all_by_row(), rows.n, Model.empty(rows.C), o)
    assert_allclose(first.edges()[0], other.edges()[0], rtol=0, atol=1e-13)
    found, start = rows.solve(o, tol=1e-4), Model.empty(rows.C)
    same = solve(rows.all_by_row(), rows.n, start, o, UNLIMITED, tol=1e-4)
    assert found.status == same.status == "optimal"
    assert abs(found.objective - same.objective) <= max(found.gap, same.gap)


# ---------------------------------------------------------------- what ends it


def separable():
    x = np.arange(30.0)
    return rows_of(x[:, None], x // 10)


def one_row_a_class():
    return rows_of(np.arange(12.0).reshape(6, 2), np.arange(6))


def six_decades():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).round(1)
    return rows_of(X, rng.integers(0, 3, 60), 10.0 ** rng.uniform(-6, 0, 60))


def nothing_but_missing():
    return rows_of(np.full((10, 2), np.nan), np.arange(10) % 2, categorical=[True, False])


def constants():
    return rows_of(np.ones((10, 2)), np.arange(10) % 3, categorical=[True, False])


def levels_of_a_row_each():
    return rows_of(np.arange(20.0)[:, None], np.arange(20) % 3, categorical=[True])


def a_missing_value_and_one_other():
    return rows_of([[1.0], [1.0], [np.nan], [np.nan]], [0, 1, 1, 1])


def a_class_without_rows():
    return rows_of(np.arange(9.0)[:, None], np.arange(9) % 2, C=4)


HARD = [separable, one_row_a_class, six_decades, nothing_but_missing, constants]
HARD += [levels_of_a_row_each, a_missing_value_and_one_other, a_class_without_rows]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("l1", [1e-9, 1e-5, 1e-2, 10.0])
@pytest.mark.parametrize("make", HARD)
def test_it_ends_and_tells_the_truth(make, l1, share):
    rows = make()
    ridge = l1 * share / (1 - share)
    o = Penalty(l1, ridge, 1e-3 * (l1 + ridge))
    found = rows.solve(o, tol=1e-3)
    assert np.isfinite(found.model.b).all()
    assert np.isfinite(found.model.v).all()
    check_certificate(rows, o, found, oracle(rows, o))
    assert found.objective <= rows.twin(Model.empty(rows.C)).objective(o) + 1e-12
    if l1 == 10.0:
        assert found.status == "optimal"
        assert len(found.model.used) == 0


def test_a_model_far_away_is_a_start():
    """Its scores differ by thousands, and probabilities are no less than 1e-290."""
    rows, o = six_decades(), Penalty(1e-3, 1e-3, 1e-6)
    T = int(rows.table.first[-1])
    far = Model(np.array([3000.0, 0, -3000]), np.arange(T), np.full((T, 3), 50.0) * [1, -1, 0])
    found = rows.solve(o, start=far, tol=1e-3)
    assert found.status == "optimal"
    assert found.objective - rows.solve(o, tol=1e-6).objective <= found.gap


# ---------------------------------------------------------------- tables and measures


@pytest.mark.parametrize("seed", range(10))
def test_probabilities_and_measures(seed):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng)
    model = random_model(rng, rows, size=2.0)
    for problem in (rows.problem(), rows.all_by_row()):
        p = np.empty((rows.n, problem.stride))
        problem.probabilities(p, *model)
        twin = rows.twin(model)
        expected, F = np.exp(twin.log_probabilities()), twin.scores()
        assert_allclose(p[:, : rows.C], expected, rtol=1e-11)
        assert not p[:, rows.C :].any()
        o = Penalty(0.1, 0.2, 0.3)
        loss, objective, error, least, spread = problem.measures(p, *model, o)
        assert objective == pytest.approx(twin.objective(o), rel=1e-11)
        own = F[np.arange(rows.n), rows.y]
        F[np.arange(rows.n), rows.y] = -np.inf
        assert loss == pytest.approx(
            -rows.s @ np.log(expected[np.arange(rows.n), rows.y]), rel=1e-11
        )
        assert error == pytest.approx(rows.s @ (expected.argmax(axis=1) != rows.y), abs=1e-12)
        assert least == pytest.approx((own - F.max(axis=1)).min(), rel=1e-9, abs=1e-9)
        assert spread == pytest.approx(rows.s @ (2 * expected * (1 - expected)).max(axis=1))


# ---------------------------------------------------------------- bad input

CELLS = np.array([0, 1, 2, 1], dtype=np.uint16)
LABELS, WEIGHT = np.array([0, 1, 1, 0], dtype=np.int32), np.full(4, 0.25)
GOOD = (True, 4, True, CELLS, None, 0)
SOME = np.array([0, 2], dtype=np.uint32)


@pytest.mark.parametrize(
    ("column", "y", "weight", "n_classes"),
    [
        ((True, 2, False, CELLS, None, 0), LABELS, WEIGHT, 2),  # no such cell
        ((True, 0, False, CELLS, None, 0), LABELS, WEIGHT, 2),
        ((True, 65_537, False, CELLS, None, 0), LABELS, WEIGHT, 2),
        ((True, 1, True, CELLS * 0, None, 0), LABELS, WEIGHT, 2),  # none for values
        ((True, 4, True, CELLS[:3], None, 0), LABELS, WEIGHT, 2),
        ((True, 4, True, CELLS, SOME, 0), LABELS, WEIGHT, 2),
        ((True, 4, True, CELLS[:2], SOME, 4), LABELS, WEIGHT, 2),
        ((True, 4, True, CELLS[:2], SOME[::-1].copy(), 0), LABELS, WEIGHT, 2),
        ((True, 4, True, CELLS[:2], SOME * 0, 0), LABELS, WEIGHT, 2),  # a row twice
        ((True, 4, True, CELLS[:2], SOME + 2, 0), LABELS, WEIGHT, 2),
        (GOOD, LABELS[:3], WEIGHT, 2),
        (GOOD, LABELS + 1, WEIGHT, 2),
        (GOOD, LABELS - 1, WEIGHT, 2),
        (GOOD, LABELS, WEIGHT, 1),
        (GOOD, LABELS, WEIGHT * np.nan, 2),
        (GOOD, LABELS, WEIGHT - 0.5, 2),
        (GOOD, LABELS, WEIGHT * 0, 2),
        (GOOD, LABELS, WEIGHT * 1.5, 2),
        (GOOD, LABELS, np.array([np.inf, 0, 0, 0]), 2),
    ],
)
def test_bad_rows_are_refused(column, y, weight, n_classes):
    with pytest.raises(ValueError, match=r"."):
        VectorProblem([column], y, weight, n_classes, 1)
    VectorProblem([GOOD], LABELS, WEIGHT, 2, 1)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="rows"):
        VectorProblem([], LABELS[:0], WEIGHT[:0], 2, 1)


@pytest.mark.parametrize("used", [[1, 0], [0, 0], [5], [-1]])
def test_bad_rules_are_refused(used):
    problem = VectorProblem([GOOD], LABELS, WEIGHT, 2, 1)
    p, b, used = np.full((4, 2), 0.5), np.zeros(2), np.array(used)
    v = np.zeros((len(used), 2))
    o = Penalty(0.1, 0.0, 0.1)
    with pytest.raises(ValueError, match="rule"):
        problem.edges(p, b, used, v, o, 1.0)
    with pytest.raises(ValueError, match="rule"):
        problem.worthwhile(np.zeros(2), used, 0.0, 0.0)
    with pytest.raises(ValueError, match="rule"):
        problem.probabilities(p, b, used, v)
    with pytest.raises(ValueError, match="rule"):
        problem.sweeps(p, b, used, v, o, 2.0, 1)


@pytest.mark.parametrize(
    ("p", "b", "v"),
    [((3, 2), 2, (1, 2)), ((4, 3), 2, (1, 2)), ((4, 2), 3, (1, 2)), ((4, 2), 2, (2, 2))],
)
def test_wrong_shapes_are_refused(p, b, v):
    problem = VectorProblem([GOOD], LABELS, WEIGHT, 2, 1)
    p, b, v, used = np.full(p, 0.5), np.zeros(b), np.zeros(v), np.array([0])
    with pytest.raises(ValueError, match=r"."):
        problem.probabilities(p, b, used, v)
    with pytest.raises(ValueError, match=r"."):
        problem.sweeps(p, b, used, v, Penalty(0.1, 0.0, 0.1), 2.0, 1)
