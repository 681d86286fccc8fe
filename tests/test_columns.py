"""Which column is added: the floor, the redraws, the fallback, the bound."""

import itertools

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from tcboost import columns
from tcboost.coding import runs
from tcboost.columns import FixedCode, LearnedCode, RandomCode, Wanted
from tcboost.margins import Pairwise
from tcboost.oracles import Column, make_oracle
from tcboost.oracles.stump import CONSTANT
from tcboost.rows.blocks import LocalRows


def priced(seed=0, n_classes=4, n=40, weak_learner="stump"):
    """An oracle and its prices under random pairwise dual weights."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 3)), 1)
    y = np.arange(n) % n_classes
    X[:, 0] += y
    rows = LocalRows(X, y, np.ones(n), "auto", 1)
    oracle = make_oracle(weak_learner, rows, np.random.RandomState(0))
    u = rng.integers(2**40, size=(len(rows), n_classes - 1))
    V = Pairwise(n_classes).adjoint(u, rows.y)
    return rows, V, oracle, oracle.price(rows, V)


def all_codes(n_classes):
    codes = itertools.product((1, -1), repeat=n_classes)
    return [np.array(m, dtype=np.int8) for m in codes if len(set(m)) > 1]


def edge_of(column, rows, V):
    return int((V * column.outputs(rows.X)).sum())


def best_edges(prices, n_classes):
    """The best edge of every code that is not constant."""
    return [prices.best(m[:, None])[0][1] for m in all_codes(n_classes)]


@pytest.fixture
def draws(monkeypatch):
    """The codes drawn, in order; put codes in `script` to have these drawn instead."""

    class Draws(list):
        script = iter(())

    seen = Draws()
    original = columns.draw_code

    def draw(n_classes, rng):
        code = next(seen.script, None)
        seen.append(original(n_classes, rng) if code is None else code)
        return seen[-1]

    monkeypatch.setattr(columns, "draw_code", draw)
    return seen


# ---------------------------------------------------------------- a fixed code


@pytest.mark.parametrize("weak_learner", ["stump", "lda"])
def test_fixed_code_adds_up_the_edges(weak_learner):
    rows, V, oracle, prices = priced(weak_learner=weak_learner)
    best = prices.best(None)
    found = FixedCode(oracle).choose(prices, Wanted(0.0))
    assert found.edge == sum(edge for _, edge in best)
    assert found.edge == edge_of(found.columns[0], rows, V)
    assert found.columns[0].code is None
    assert len(found.columns[0].hypotheses) == V.shape[1]
    for h, (g, _) in zip(found.columns[0].hypotheses, best, strict=True):
        np.testing.assert_array_equal(h.predict(rows.X), g.predict(rows.X))
    assert found.bound == (found.edge if weak_learner == "stump" else np.inf)


def test_fixed_code_keeps_to_the_floor():
    *_, oracle, prices = priced()
    chooser = FixedCode(oracle)
    edge = chooser.choose(prices, Wanted(0.0)).edge
    assert chooser.choose(prices, Wanted(edge - 1)).columns
    for floor in (edge, edge + 1, np.inf):
        found = chooser.choose(prices, Wanted(floor))
        assert found.columns == ()
        assert found.edge == found.bound == edge


@pytest.mark.parametrize("learner", ["lda", DecisionTreeClassifier(max_depth=2)])
def test_a_bit_takes_a_known_hypothesis_again_where_it_is_better(learner):
    """Against the best of all tuples of what is known and what is fitted."""
    rows, V, oracle, prices = priced(weak_learner=learner, n=40)
    rng = np.random.default_rng(0)
    others = [(V * rng.exponential(size=(len(V), 1))).astype(np.int64) for _ in range(8)]
    seen = [Column(tuple(h for h, _ in oracle.price(rows, W).best(None))) for W in others]
    chooser = FixedCode(oracle)
    plain = chooser.choose(prices, Wanted(0.0))
    chooser.known = seen[:2]
    found = chooser.choose(prices, Wanted(0.0, taken=seen[2:]))
    candidates = [plain.columns[0], *seen]
    parts = np.array([(V * c.outputs(rows.X)).sum(axis=0) for c in candidates])
    assert found.edge == parts.max(axis=0).sum() == edge_of(found.columns[0], rows, V)
    assert found.edge > plain.edge  # so something was taken again
    assert found.bound == np.inf
    assert chooser.choose(prices, Wanted(found.edge, taken=seen[2:])).columns == ()


# ---------------------------------------------------------------- the learned code


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_learned_code_is_the_best_of_all(seed, n_classes):
    rows, V, oracle, prices = priced(seed, n_classes)
    found = LearnedCode(oracle).choose(prices, Wanted(0.0))
    assert found.edge == found.bound == edge_of(found.columns[0], rows, V)
    edges = best_edges(prices, n_classes)
    assert found.bound == max(edges)
    assert (found.bound >= np.array(edges)).all()
    assert len(set(found.columns[0].code.tolist())) == 2


def test_learned_code_keeps_to_the_floor():
    *_, oracle, prices = priced()
    chooser = LearnedCode(oracle)
    best = chooser.choose(prices, Wanted(0.0))
    assert chooser.choose(prices, Wanted(best.edge - 1)).columns
    for floor in (best.edge, best.edge + 1, np.inf):
        found = chooser.choose(prices, Wanted(floor))
        assert found.columns == ()
        assert found.bound == best.bound


def test_learned_code_needs_an_exact_oracle():
    *_, oracle, _ = priced(weak_learner="lda")
    with pytest.raises(ValueError, match=r"coding='learned' needs weak_learner='stump'"):
        LearnedCode(oracle)


# ---------------------------------------------------------------- random codes


def test_the_first_draw_is_taken_if_it_will_do(draws):
    rows, V, oracle, prices = priced()
    found = RandomCode(oracle, 4, np.random.RandomState(0)).choose(prices, Wanted(0.0))
    assert len(draws) == 1
    np.testing.assert_array_equal(found.columns[0].code, draws[0])
    ((h, edge),) = prices.best(draws[0][:, None])
    assert found.edge == edge == edge_of(found.columns[0], rows, V)
    assert found.columns[0].hypotheses == (h,)
    assert found.bound == LearnedCode(oracle).choose(prices, Wanted(0.0)).edge


def test_draws_follow_the_seed():
    *_, oracle, prices = priced(n_classes=6)

    def codes(seed):
        chooser = RandomCode(oracle, 6, np.random.RandomState(seed))
        return [chooser.choose(prices, Wanted(0.0)).columns[0].code.tolist() for _ in range(8)]

    assert codes(0) == codes(0)
    assert codes(0) != codes(1)
    assert len({tuple(c) for c in codes(0)}) > 3


def test_a_code_below_the_floor_is_drawn_again(draws):
    *_, oracle, prices = priced()
    codes = all_codes(4)
    edges = np.array(best_edges(prices, 4))
    order = edges.argsort()
    low, high = codes[order[0]], codes[order[-1]]
    assert edges.min() < edges.max()
    draws.script = iter([low, low, -low, high, low])
    chooser = RandomCode(oracle, 4, np.random.RandomState(0))
    found = chooser.choose(prices, Wanted(edges.min()))  # not above the floor is not enough
    assert len(draws) == 4
    np.testing.assert_array_equal(found.columns[0].code, high)
    assert found.edge == found.bound == edges.max()


@pytest.mark.parametrize("seed", range(5))
def test_no_column_is_at_or_below_the_floor(seed):
    rows, V, oracle, prices = priced(seed)
    chooser = RandomCode(oracle, 4, np.random.RandomState(seed))
    edges = sorted(set(best_edges(prices, 4)))
    taken = 0
    for floor in [0.0, *edges, edges[-1] + 1]:
        found = chooser.choose(prices, Wanted(floor))
        assert found.bound == edges[-1]
        if floor >= edges[-1]:
            assert found.columns == ()
        else:
            taken += 1
            assert found.edge == edge_of(found.columns[0], rows, V)
            assert floor < found.edge <= found.bound
    assert taken == len(edges)


def test_nothing_is_drawn_where_no_code_is_above_the_floor(draws):
    *_, oracle, prices = priced()
    best = LearnedCode(oracle).choose(prices, Wanted(0.0)).edge
    found = RandomCode(oracle, 4, np.random.RandomState(0)).choose(prices, Wanted(best))
    assert found.columns == ()
    assert found.bound == found.edge == best
    assert draws == []


def test_the_best_code_when_the_draws_are_used_up(draws):
    rows, V, oracle, prices = priced()
    codes = all_codes(4)
    poor = codes[int(np.argmin(best_edges(prices, 4)))]
    draws.script = itertools.repeat(poor)
    best = LearnedCode(oracle).choose(prices, Wanted(0.0))
    found = RandomCode(oracle, 4, np.random.RandomState(0)).choose(
        prices, Wanted(best.edge - 1)
    )
    assert len(draws) == columns._MAX_DRAWS
    assert found.edge == found.bound == best.edge
    assert edge_of(found.columns[0], rows, V) == best.edge
    np.testing.assert_array_equal(found.columns[0].code, best.columns[0].code)


def test_the_best_code_among_more_than_can_be_drawn(draws):
    # 12 classes have 4094 codes; a floor just under the best edge leaves one pair of them.
    rows, V, oracle, prices = priced(n_classes=12, n=60)
    best = LearnedCode(oracle).choose(prices, Wanted(0.0))
    found = RandomCode(oracle, 12, np.random.RandomState(0)).choose(
        prices, Wanted(best.edge - 1)
    )
    assert len(draws) == columns._MAX_DRAWS
    assert len({tuple(m) for m in draws}) > 200
    assert found.edge == best.edge == edge_of(found.columns[0], rows, V)


def test_two_classes_have_one_code_up_to_its_sign(draws):
    rows, V, oracle, prices = priced(n_classes=2)
    best = LearnedCode(oracle).choose(prices, Wanted(0.0))
    found = RandomCode(oracle, 2, np.random.RandomState(0)).choose(
        prices, Wanted(best.edge - 1)
    )
    assert len(draws) == 1
    assert found.edge == best.edge == edge_of(found.columns[0], rows, V)


@pytest.mark.parametrize("seed", range(5))
def test_codes_may_be_drawn_from_some_only(seed):
    rows, V, oracle, prices = priced(seed, n_classes=6)
    codes = runs(6)[[0, 3, 1, 4, 2, 5]]
    edges = [edge for _, edge in prices.best(codes)]
    every = LearnedCode(oracle).choose(prices, Wanted(0.0)).edge
    assert max(edges) < every  # so that the bound of all codes is seen to be another
    chooser = RandomCode(oracle, 6, np.random.RandomState(seed), codes)
    met = set()
    for floor in [0.0] * 20 + sorted(edges):
        found = chooser.choose(prices, Wanted(floor))
        assert found.bound == max(edges)
        if floor >= max(edges):
            assert found.columns == ()
        else:
            assert floor < found.edge == edge_of(found.columns[0], rows, V)
            assert found.columns[0].code.tolist() in codes.T.tolist()
            met.add(tuple(found.columns[0].code))
    assert len(met) == 3


@pytest.mark.parametrize("learner", ["stump", "lda"])
def test_a_known_column_is_taken_where_no_drawn_one_is_better(draws, learner):
    rows, V, oracle, prices = priced(weak_learner=learner)
    codes = all_codes(4)
    edges = np.array(best_edges(prices, 4))
    high = codes[int(edges.argmax())]
    ((h, _),) = prices.best(high[:, None])
    low = codes[int(edges.argmin())]
    chooser = RandomCode(oracle, 4, np.random.RandomState(0))
    chooser.known = [Column((CONSTANT,), low), Column((h,), high)]
    draws.script = iter([low, low, high])
    assert chooser.choose(prices, Wanted(0.0)).columns == (chooser.known[1],)
    found = chooser.choose(prices, Wanted(0.0, taken=chooser.known))
    assert found.edge == edges.max() == edge_of(found.columns[0], rows, V)
    chooser.known.pop()
    found = chooser.choose(prices, Wanted(0.0))  # better than what is known
    assert found.edge == edges.max()
    assert chooser.choose(prices, Wanted(edges.max())).columns == ()


def test_a_feature_is_measured_by_the_codes_that_may_be_drawn():
    *_, oracle, _ = priced(n_classes=6)
    A = np.random.RandomState(0).randn(7, 6)
    chooser = RandomCode(oracle, 6, np.random.RandomState(0), runs(6))
    brute = [[max(abs(a @ code) for code in runs(6).T)] for a in A]
    np.testing.assert_allclose(chooser.measure(A), brute, rtol=1e-12)


# ---------------------------------------------------------------- without a bound


def test_fitted_hypotheses_have_no_bound(draws):
    rows, V, oracle, prices = priced(weak_learner="lda")
    chooser = RandomCode(oracle, 4, np.random.RandomState(0))
    found = chooser.choose(prices, Wanted(0.0))
    assert len(draws) == 1
    assert found.bound == np.inf
    assert found.edge == edge_of(found.columns[0], rows, V) > 0


def test_fitted_hypotheses_are_tried_a_few_times(draws):
    *_, oracle, prices = priced(weak_learner="lda")
    chooser = RandomCode(oracle, 4, np.random.RandomState(0))
    found = chooser.choose(prices, Wanted(np.inf))
    assert len(draws) == columns._MAX_FITS < columns._MAX_DRAWS
    assert found.columns == ()
    assert found.bound == np.inf
    ((_, edge),) = prices.best(draws[-1][:, None])
    assert found.edge == edge


def test_what_the_choosers_say_they_choose_from():
    *_, stumps, _ = priced()
    *_, discriminants, _ = priced(weak_learner="lda")
    rng = np.random.RandomState(0)
    for chooser, oracle, kind in [
        (FixedCode(stumps), stumps, "bit"),
        (FixedCode(discriminants), discriminants, "bit"),
        (LearnedCode(stumps), stumps, "all codes"),
        (RandomCode(stumps, 4, rng), stumps, "all codes"),
        (RandomCode(discriminants, 4, rng), discriminants, "all codes"),
        (RandomCode(discriminants, 4, rng, runs(4)), discriminants, "2 codes"),
    ]:
        assert chooser.hypothesis_class.startswith(oracle.hypothesis_class)
        assert kind in chooser.hypothesis_class
