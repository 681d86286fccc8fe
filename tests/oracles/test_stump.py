"""The stump search against enumeration: ties, missing values, codes, constants."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reference import algorithms, kernels
from tcboost.coding import draw_code, ecoc
from tcboost.correctors.stagewise import Sums
from tcboost.margins import Codeword, Pairwise
from tcboost.oracles import Column, Stump, make_oracle
from tcboost.oracles.stump import StumpOracle
from tcboost.rows import blocks
from tcboost.rows.blocks import LocalRows


def rows_of(X, max_bins="auto", y=None):
    """Rows in canonical order. With distinct classes none are merged, however equal."""
    X = np.asarray(X, dtype=float)
    y = np.arange(len(X)) if y is None else y
    return LocalRows(X, np.asarray(y, dtype=np.intp), np.ones(len(X)), max_bins, 1)


def random_rows(seed, n=25, n_features=3, missing=0.0):
    """Features with many, few and two values."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=n), *(rng.integers(k, size=n) for k in (4, 2, 9)[: n_features - 1])]
    )
    X[rng.random(X.shape) < missing] = np.nan
    return rows_of(X)


def random_V(seed, n, width, largest=3):
    """Small integers tie often; see `test_weights_of_60_bits` for large ones."""
    return np.random.default_rng(seed).integers(-largest, largest + 1, size=(n, width))


def as_reference(stump):
    return algorithms.Stump(stump.feature, stump.threshold, stump.sign)


# ---------------------------------------------------------------- without missing values


@pytest.mark.parametrize("seed", range(8))
def test_best_is_the_first_best_of_the_enumeration(seed):
    rows = random_rows(seed)
    V = random_V(seed, len(rows), 4)
    found = StumpOracle(rows).price(rows, V).best(None)
    for (stump, edge), v in zip(found, V.T, strict=True):
        expected, expected_edge = algorithms.best_stump(rows.X, v)
        assert as_reference(stump) == expected
        assert edge == expected_edge


@pytest.mark.parametrize("seed", range(8))
def test_best_for_combined_weights(seed):
    rows = random_rows(seed)
    V = random_V(seed, len(rows), 4)
    W = np.random.default_rng(seed + 100).choice([-1, 1], size=(4, 3)).astype(np.int8)
    found = StumpOracle(rows).price(rows, V).best(W)
    assert len(found) == 3
    for (stump, edge), v in zip(found, (V @ W).T, strict=True):
        expected, expected_edge = algorithms.best_stump(rows.X, v)
        assert as_reference(stump) == expected
        assert edge == expected_edge


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n_classes", [2, 4])
def test_best_stump_and_code(seed, n_classes):
    rows = random_rows(seed, n=18)
    V = random_V(seed, len(rows), n_classes)
    stump, code, edge = StumpOracle(rows).price(rows, V).learned()
    expected_edge, expected, expected_code = algorithms.best_stump_and_code(rows.X, V)
    assert edge == expected_edge
    assert as_reference(stump) == expected
    assert code.dtype == np.int8
    np.testing.assert_array_equal(code, expected_code)


def test_a_class_that_does_not_matter_has_the_code_plus_one():
    rows = random_rows(0)
    V = random_V(0, len(rows), 3)
    V[:, 1] = 0
    stump, code, edge = StumpOracle(rows).price(rows, V).learned()
    expected_edge, expected, expected_code = algorithms.best_stump_and_code(rows.X, V)
    assert (edge, as_reference(stump)) == (expected_edge, expected)
    np.testing.assert_array_equal(code, expected_code)
    assert code[1] == 1


def test_the_constant_where_it_is_best():
    rows = random_rows(0)
    X = rows.X
    for sign in (1, -1):
        V = np.full((len(rows), 2), sign)
        for stump, edge in StumpOracle(rows).price(rows, V).best(None):
            assert edge == len(rows)
            assert (stump.threshold, stump.sign) == (-math.inf, sign)
            assert (stump.predict(X) == sign).all()
            # Constant everywhere, not on the training rows only.
            far = np.array([[-1e308] * 3, [1e308] * 3, [np.nan] * 3])
            assert (stump.predict(far) == sign).all()


def test_the_constant_when_no_feature_varies():
    rows = rows_of(np.column_stack([np.full(6, 3.0), np.full(6, np.nan)]))
    prices = StumpOracle(rows).price(rows, np.array([[1, -3]] * 6))
    (a, edge_a), (b, edge_b) = prices.best(None)
    assert (edge_a, a.threshold, a.sign) == (6, -math.inf, 1)
    assert (edge_b, b.threshold, b.sign) == (18, -math.inf, -1)
    stump, code, edge = prices.learned()
    assert edge == 24
    np.testing.assert_array_equal(code, [1, -1])
    assert stump.threshold == -math.inf


def test_zero_weights_price_at_zero():
    rows = random_rows(0)
    prices = StumpOracle(rows).price(rows, np.zeros((len(rows), 3), np.int64))
    assert [edge for _, edge in prices.best(None)] == [0, 0, 0]
    assert prices.learned()[2] == 0


# ---------------------------------------------------------------- with missing values


def assert_best(rows, V, prices):
    """Largest of all stumps, and true to what the stumps say on raw values."""
    for (stump, edge), v in zip(prices.best(None), V.T, strict=True):
        assert edge == kernels.largest_edge(rows.X, v)
        assert edge == kernels.edge(stump.predict(rows.X), v)
    stump, code, edge = prices.learned()
    assert edge == kernels.largest_coded_edge(rows.X, V)
    assert edge == sum(
        int(m) * kernels.edge(stump.predict(rows.X), v) for m, v in zip(code, V.T, strict=True)
    )


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_ranked_stumps_are_those_of_other_features(seed, missing):
    """In order of the best edge of each feature, the constant being one of its own."""
    rows = random_rows(seed, missing=missing)
    V = random_V(seed, len(rows), 3)
    prices = StumpOracle(rows).price(rows, V)
    n = rows.X.shape[1] + 1
    found = prices.ranked(n + 5)
    assert prices.ranked(2) == found[:2]
    assert prices.best(None) == found[0]
    for k, v in enumerate(V.T):
        alone = [abs(int(v.sum()))]
        for d in range(n - 1):
            every = np.arange(len(rows))
            part = LocalRows(rows.X[:, [d]], rows.y, rows.weight, None, 1, chosen=every)
            of_one = StumpOracle(part).price(part, v[:, None])
            alone.append(of_one.best_of_features(np.abs, 1)[0, 0])
        edges = [row[k][1] for row in found]
        assert edges == sorted((e for e in alone if e >= 0), reverse=True)
        for h, edge in (row[k] for row in found):
            assert edge == kernels.edge(h.predict(rows.X), v)


@pytest.mark.parametrize("missing", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_missing_values_take_the_better_side(seed, missing):
    rows = random_rows(seed, missing=missing)
    V = random_V(seed, len(rows), 3)
    assert_best(rows, V, StumpOracle(rows).price(rows, V))


def test_the_sides_of_the_missing_values():
    X = np.array([[1.0], [1.0], [2.0], [2.0], [np.nan]])
    rows = rows_of(X)
    nan = np.isnan(rows.X[:, 0])
    low = rows.X[:, 0] == 1
    oracle = StumpOracle(rows)

    def best(v):
        ((stump, edge),) = oracle.price(rows, v.astype(np.int64)[:, None]).best(None)
        assert edge == np.abs(v).sum()
        return stump

    left = best(np.where(low | nan, -1, 1))
    assert (left.threshold, left.sign, left.missing_right) == (1.5, 1, False)
    right = best(np.where(low, -1, 1))
    assert (right.threshold, right.sign, right.missing_right) == (1.5, 1, True)
    alone = best(np.where(nan, 1, -1))
    assert (alone.threshold, alone.sign, alone.missing_right) == (math.inf, 1, True)
    turned = best(np.where(nan, -1, 1))
    assert (turned.threshold, turned.sign, turned.missing_right) == (math.inf, -1, True)
    new = np.array([[-5.0], [1e308], [np.nan]])
    np.testing.assert_array_equal(left.predict(new), [-1, 1, -1])
    np.testing.assert_array_equal(right.predict(new), [-1, 1, 1])
    np.testing.assert_array_equal(alone.predict(new), [-1, -1, 1])
    np.testing.assert_array_equal(turned.predict(new), [1, 1, -1])


def test_missing_in_new_data_only_goes_to_the_larger_side():
    rows = rows_of([[1.0], [2.0], [3.0], [4.0]])
    oracle = StumpOracle(rows)
    sides = {}
    for cut in (1.5, 2.5, 3.5):
        v = np.where(cut < rows.X, 1, -1)
        ((stump, edge),) = oracle.price(rows, v).best(None)
        assert (edge, stump.threshold) == (4, cut)
        sides[cut] = stump.missing_right
    assert sides == {1.5: True, 2.5: False, 3.5: False}


VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.0, 2.5, -7.0, 1e308, np.nan])


@st.composite
def priced_tables(draw):
    n, D, C = draw(st.integers(1, 12)), draw(st.integers(1, 3)), draw(st.integers(2, 4))
    X = draw(st.lists(st.tuples(*[VALUES] * D), min_size=n, max_size=n))
    V = draw(st.lists(st.tuples(*[st.integers(-4, 4)] * C), min_size=n, max_size=n))
    return np.array(X).reshape(n, D), np.array(V).reshape(n, C)


@given(priced_tables(), st.integers(1, 5))
@example((np.array([[np.nan], [np.nan]]), np.array([[1, 2], [3, -4]])), 1)
@settings(deadline=None, max_examples=150)
def test_the_search_is_exact(table, block):
    X, V = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK", block)
        rows = rows_of(X)
        assert_best(rows, V, StumpOracle(rows).price(rows, V))


# ---------------------------------------------------------------- the table of edges


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("max_bins", ["auto", 3])
def test_every_candidate_says_on_raw_values_what_its_row_says(missing, max_bins):
    X = random_rows(1, missing=missing).X
    rows = rows_of(X, max_bins)
    V = random_V(2, len(rows), 3, largest=1000)
    oracle = StumpOracle(rows)
    prices = oracle.price(rows, V)
    table = prices._A
    assert len(table) == len(oracle._feature)
    seen = set()
    for j in range(len(table)):
        for sign in (1, -1):
            stump = oracle.stump(j, sign)
            assert stump.candidate == j
            h = stump.predict(rows.X)
            (found,) = oracle.predictions([Column((stump,))])
            assert h.dtype == found.dtype
            np.testing.assert_array_equal(found[:, 0], h)
            assert h.dtype == np.int8
            assert set(h.tolist()) <= {-1, 1}
            assert [kernels.edge(h, v) for v in V.T] == (sign * table[j]).tolist()
        seen.add((stump.feature, stump.threshold, stump.missing_right))
    assert len(seen) == len(table)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_edges_of_coded_columns(missing):
    rows = random_rows(5, missing=missing)
    oracle = StumpOracle(rows)
    columns = []
    for seed in range(6):
        stump, code, _ = oracle.price(rows, random_V(seed, len(rows), 4)).learned()
        columns.append(Column((stump,), code))
        ((stump, _),) = oracle.price(rows, random_V(seed, len(rows), 4)).best(-code[:, None])
        columns.append(Column((stump,), -code))
    V = random_V(99, len(rows), 4, largest=2**40)
    edges = oracle.price(rows, V).edges(columns)
    outputs = [c.outputs(rows.X) for c in columns]
    assert edges.tolist() == [[(V * o).sum()] for o in outputs]
    signs = oracle.predictions(columns)  # from bins; the others from values
    coded = [c.coded(H) for c, H in zip(columns, signs, strict=True)]
    np.testing.assert_array_equal(coded, outputs)
    assert len(np.unique(edges)) > 3


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_edges_of_columns_with_a_stump_for_each_bit(missing):
    rows = random_rows(6, missing=missing)
    oracle = StumpOracle(rows)
    columns = []
    for seed in range(6):
        found = oracle.price(rows, random_V(seed, len(rows), 4)).best(None)
        columns.append(Column(tuple(stump for stump, _ in found)))
    V = random_V(99, len(rows), 4, largest=2**40)
    prices = oracle.price(rows, V)
    outputs = [c.outputs(rows.X) for c in columns]
    assert prices.edges(columns).tolist() == [(V * o).sum(axis=0).tolist() for o in outputs]
    np.testing.assert_array_equal(oracle.predictions(columns), outputs)
    assert prices.edges(columns[2:3]).tolist() == prices.edges(columns)[2:3].tolist()
    best = prices.best(None)
    top = prices.edges([Column(tuple(stump for stump, _ in best))])
    assert top.tolist() == [[edge for _, edge in best]]
    assert (prices.edges(columns) <= top).all()


@pytest.mark.parametrize("coded", [True, False])
def test_edges_of_a_list_that_grows(coded):
    rows = random_rows(0)
    oracle, rng = StumpOracle(rows), np.random.default_rng(0)

    def column():
        stumps = [oracle.stump(int(j), 1) for j in rng.integers(oracle.starts[-1], size=3)]
        return Column((stumps[0],), draw_code(3, rng)) if coded else Column(tuple(stumps))

    def check(columns, seed):
        V = random_V(seed, len(rows), 3)
        prices = oracle.price(rows, V)
        outputs = (c.outputs(rows.X) for c in columns)
        expected = [int((V * o).sum()) for o in outputs]
        assert prices.edges(columns).sum(axis=1).tolist() == expected
        assert [prices.edge(c) for c in columns] == expected

    columns = [column()]
    for seed in range(4):
        check(columns, seed)
        columns += [column() for _ in range(seed)]
    check(columns, 4)
    other = [column() for _ in columns]  # of the same length
    check(other, 5)
    check(columns, 6)
    del columns[2:]
    check(columns, 7)


def test_weights_of_60_bits():
    rng = np.random.default_rng(0)
    rows = random_rows(7, n=30, missing=0.1)
    u = rng.multinomial(2**60, rng.dirichlet(np.full(len(rows), 0.5)))
    V = np.column_stack([u, -u, u * rng.choice([-1, 1], size=len(rows))])
    oracle = StumpOracle(rows)
    prices = oracle.price(rows, V)
    for (stump, edge), v in zip(prices.best(None), V.T, strict=True):
        exact = kernels.largest_edge(rows.X, v)
        assert edge == float(exact)
        assert kernels.edge(stump.predict(rows.X), v) == exact
    assert prices.best(None)[0][1] == 2.0**60


@given(priced_tables())
@example((np.array([[np.nan, 1.0]]), np.array([[1, -1]])))
@settings(deadline=None, max_examples=100)
def test_best_of_features(table):
    X, V = table
    rows = rows_of(X)
    oracle = StumpOracle(rows)
    prices, D = oracle.price(rows, V), X.shape[1]
    expected = np.full((D, V.shape[1]), -np.inf)
    for j in range(1, oracle.starts[-1]):
        stump = oracle.stump(j, 1)
        edges = [abs(kernels.edge(stump.predict(rows.X), v)) for v in V.T]
        expected[stump.feature] = np.maximum(expected[stump.feature], edges)
    np.testing.assert_array_equal(prices.best_of_features(np.abs, D), expected)
    varied = [len(np.unique(x)) > 1 for x in X.T]  # NaN is a value here
    np.testing.assert_array_equal(np.isfinite(expected[:, 0]), varied)


# ---------------------------------------------------------------- what it says of itself


def test_hypothesis_class_names_the_bins():
    X = np.arange(20.0)[:, None]
    assert StumpOracle(rows_of(X)).hypothesis_class == "stumps on exact ranks"
    assert StumpOracle(rows_of(X, 5)).hypothesis_class == "stumps on 5 bins"


def test_make_oracle():
    rows = random_rows(0)
    oracle = make_oracle("stump", rows, np.random.RandomState(0))
    assert isinstance(oracle, StumpOracle)
    assert oracle.exact


def test_stump_predicts_on_both_sides_of_its_threshold():
    stump = Stump(1, 0.5, -1, missing_right=False)
    X = np.array([[9, 0.5], [9, np.nextafter(0.5, 1)], [9, np.nan], [9, 0.4]])
    np.testing.assert_array_equal(stump.predict(X), [1, -1, 1, 1])


@pytest.mark.parametrize("seed", range(5))
def test_prices_tell_the_weights_on_the_margins(seed):
    """Of codes and codewords, against the margins themselves; to the last of 60 bits."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=40)
    rows = rows_of(rng.normal(size=(40, 3)), y=y)
    oracle, M = StumpOracle(rows), ecoc(4)
    for margin in (Pairwise(4), Codeword(M)):
        u = rng.integers(2**50, size=(40, margin.width))
        code = getattr(margin, "M", None)
        prices = oracle.price(rows, u, rows.y, M=code)
        if code is None:
            m = draw_code(4, rng)
            column = Column((prices.best(m[:, None])[0][0],), m)
        else:
            column = Column(tuple(h for h, _ in prices.best(None)))
        rho = margin.apply(column.coded(oracle.predictions([column])[0]), rows.y)
        wrong, right, neither, size = prices.weights_of(column, int(u.sum()))
        expected = Sums.of(u, rho)
        assert (wrong, right, neither, size, size) == expected
        assert wrong + right + neither == u.sum()


@pytest.mark.parametrize("max_bins", [8, None])
@pytest.mark.parametrize("several_blocks", [False, True])
def test_scores_of_many_stumps_at_once(max_bins, several_blocks, monkeypatch):
    """Every stump of the class, of both signs; with features that have cells in common."""
    if several_blocks:
        monkeypatch.setattr(blocks, "_BLOCK", 70)
    rng, n, C = np.random.default_rng(0), 200, 3
    X = np.column_stack([rng.normal(size=n), *(rng.integers(k, size=n) for k in (4, 2, 9))])
    X[rng.random(X.shape) < 0.1] = np.nan
    rows = rows_of(X, max_bins, y=np.arange(n) % C)
    oracle = StumpOracle(rows)
    columns = [Column((oracle.stump(j, s),)) for j in range(oracle.starts[-1]) for s in (-1, 1)]
    v = rng.normal(size=(len(columns), C))
    table, used = oracle.table_of(columns, v)
    F, first = np.zeros((len(rows), C)), rows.groups.first
    for block in rows.blocks:
        for g in used:
            F[block.rows] += table[first[g] + block.cells[:, g].astype(int), :C]
    expected = sum(H * a for H, a in zip(oracle.predictions(columns), v, strict=True))
    np.testing.assert_allclose(F, expected, rtol=0, atol=1e-12)
    table, used = oracle.table_of([], v[:0])
    assert not table.any()
    assert len(used) == 0
