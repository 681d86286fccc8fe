"""Fitted weak learners: the best cut, Fisher's direction, any classifier."""

import itertools
import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from reference import kernels as ref
from tcboost import AdaBoostMO
from tcboost.oracles import Column, Discriminant, make_oracle
from tcboost.oracles.fitted import ClassifierOracle, Fitted, LDAOracle, best_cut
from tcboost.rows.blocks import LocalRows


def rows_of(X, weight=None):
    """Rows in canonical order, each of a class of its own, so that none are merged."""
    X = np.asarray(X, dtype=float)
    weight = np.ones(len(X)) if weight is None else weight
    return LocalRows(X, np.arange(len(X)), weight, "auto", 1)


def two_clouds(seed=0, n=40, n_features=3):
    """Correlated features of two overlapping classes, and their labels as signs."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(n_features, n_features)) + 2 * np.eye(n_features)
    v = np.where(np.arange(n) % 3 == 0, 1, -1)
    X = rng.normal(size=(n, n_features)) @ mixing + 0.7 * v[:, None]
    rows = rows_of(X)
    return rows, v[rows.y]


def assert_parallel(a, b, tol=1e-9):
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert abs(abs(cosine) - 1) < tol
    return math.copysign(1, cosine)


# ---------------------------------------------------------------- the cut


def assert_best_cut(p, v, resolution=0.0):
    threshold, sign = best_cut(p, v, resolution)
    assert isinstance(threshold, float)
    assert sign in (1, -1)
    h = np.where(p > threshold, sign, -sign)
    assert math.fsum(h * v) == ref.largest_cut(p, v, resolution)
    return threshold, sign


POINTS = st.lists(
    st.tuples(
        st.sampled_from(
            [0.0, -0.0, 1.0, 1 + 2**-52, 1 + 2**-51, 1.5, -3.0, 8e307, -8e307, 5e-324]
        ),
        st.integers(-8, 8),
    ),
    min_size=1,
    max_size=25,
)


@given(POINTS)
@settings(deadline=None, max_examples=150)
def test_best_cut_against_enumeration(points):
    p, v = (np.array(a, dtype=float) for a in zip(*points, strict=True))
    assert_best_cut(p, v)


@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(-8, 8)), min_size=1, max_size=25),
    st.sampled_from([0.5, 1.0, 2.5, 4.0]),
)
@settings(deadline=None, max_examples=100)
def test_best_cut_keeps_clear_of_rounding(points, resolution):
    p, v = (np.array(a, dtype=float) for a in zip(*points, strict=True))
    threshold, _ = assert_best_cut(p, v, resolution)
    if threshold > -math.inf:  # no value is nearer to the cut than half the resolution
        assert (np.abs(p - threshold) > resolution / 2).all()


@pytest.mark.parametrize("seed", range(5))
def test_best_cut_of_real_weights(seed):
    rng = np.random.default_rng(seed)
    p, v = rng.normal(size=40), rng.normal(size=40)
    threshold, sign = best_cut(p, v)
    edge = math.fsum(np.where(p > threshold, sign, -sign) * v)
    np.testing.assert_allclose(edge, float(ref.largest_cut(p, v)), rtol=1e-13)


def test_best_cut_by_hand():
    p = np.array([3.0, 1.0, 2.0, 4.0])
    assert best_cut(p, np.array([1.0, -1.0, -1.0, 1.0])) == (2.5, 1)
    assert best_cut(p, np.array([-1.0, 1.0, 1.0, -1.0])) == (2.5, -1)
    assert best_cut(p, np.array([1.0, 1.0, 1.0, 1.0])) == (-math.inf, 1)
    assert best_cut(p, np.array([-1.0, -1.0, -1.0, -1.0])) == (-math.inf, -1)
    assert best_cut(np.zeros(3), np.array([5.0, -1.0, -2.0])) == (-math.inf, 1)


def test_best_cut_between_adjacent_doubles():
    for low in (1.0, 1 + 2**-52):  # the middle is rounded down, or up
        p = np.array([np.nextafter(low, 2), low])
        assert best_cut(p, np.array([1.0, -1.0])) == (low, 1)


# ---------------------------------------------------------------- Fisher's discriminant


@pytest.mark.parametrize("seed", range(5))
def test_direction_is_that_of_scikit_learn(seed):
    rows, v = two_clouds(seed)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(rows.X, v)
    ours = LDAOracle(rows).fit(v.astype(float))
    assert assert_parallel(ours.coef, theirs.coef_[0]) == 1


@pytest.mark.parametrize("seed", range(5))
def test_direction_with_weights(seed):
    rows, v = two_clouds(seed)
    v = v * np.random.default_rng(seed).exponential(size=len(v))
    ours = LDAOracle(rows).fit(v)
    assert_parallel(ours.coef, ref.fisher_direction(rows.X, v))
    # The weights do matter.
    unweighted = ref.fisher_direction(rows.X, np.sign(v))
    assert not np.allclose(
        unweighted / np.linalg.norm(unweighted), ours.coef / np.linalg.norm(ours.coef), 1e-3
    )


def test_rows_of_weight_zero_have_no_part_in_the_direction():
    rows, v = two_clouds(0)
    rng = np.random.default_rng(0)
    v = np.where(rng.random(len(v)) < 0.3, 0.0, v * rng.exponential(size=len(v)))
    used = v != 0
    assert_parallel(LDAOracle(rows).fit(v).coef, ref.fisher_direction(rows.X[used], v[used]))


@pytest.mark.parametrize("seed", range(5))
def test_the_cut_along_the_direction_is_the_best(seed):
    rows, v = two_clouds(seed)
    v = v * np.random.default_rng(seed).integers(1, 9, size=len(v))
    ((h, edge),) = LDAOracle(rows).price(rows, v[:, None]).best(None)
    assert edge == ref.largest_cut(rows.X @ h.coef, v)
    assert edge == ref.edge(h.predict(rows.X), v)


@pytest.mark.parametrize("sample_weight", [False, True])
def test_scales_of_the_features_do_not_matter(sample_weight):
    rows, v = two_clouds(3)
    weight = np.random.default_rng(0).exponential(size=len(v)) if sample_weight else None
    h = LDAOracle(rows).fit(v.astype(float))
    scale = np.array([1e8, 1.0, 1e-8])
    scaled = rows_of(rows.X * scale, weight)
    g = LDAOracle(scaled).fit(v[scaled.y].astype(float))
    assert_parallel(g.coef * scale, h.coef)
    np.testing.assert_array_equal(g.predict(scaled.X), h.predict(rows.X)[scaled.y])


def singular_tables():
    rng = np.random.default_rng(7)
    n = 30
    x = rng.normal(size=(n, 2)) + 0.5 * (np.arange(n) % 2)[:, None]
    return {
        "duplicated": np.column_stack([x, x[:, 0]]),
        "duplicated, other scale": np.column_stack([x, 1e8 * x[:, 0]]),
        "sum of others": np.column_stack([x, x.sum(axis=1)]),
        "constant": np.column_stack([x, np.full(n, 0.1)]),
        "constants only": np.full((n, 2), 0.1),
        "zeros only": np.zeros((n, 2)),
        "wide": rng.normal(size=(8, 20)),
        "scales": x * [1e8, 1e-8],
        "far from zero": x + 1e9,
        "binary": (x > 0).astype(float),
        "a label": np.column_stack([x, np.arange(n) % 2]),
        "two rows": np.array([[1.0, 2.0], [3.0, 5.0]]),
        "equal rows": np.repeat([[1.0, 2.0], [3.0, 5.0]], 4, axis=0),
    }


@pytest.mark.parametrize("X", singular_tables().values(), ids=singular_tables())
def test_singular_scatter(X):
    rows = rows_of(X)
    V = np.random.default_rng(1).integers(-5, 6, size=(len(rows), 8))
    V[:2, :] = [[1], [-1]]  # both labels, always
    for (h, edge), v in zip(LDAOracle(rows).price(rows, V).best(None), V.T, strict=True):
        assert isinstance(h, Discriminant)
        assert np.isfinite(h.coef).all()
        assert h.threshold < math.inf  # and so not NaN
        assert edge == ref.edge(h.predict(rows.X), v)
        assert edge >= abs(v.sum()) >= 0  # never worse than a constant


def test_a_copy_of_a_feature_changes_nothing():
    rows, v = two_clouds(2)
    h = LDAOracle(rows).fit(v.astype(float))
    doubled = rows_of(rows.X[:, [0, 1, 2, 0]])
    g = LDAOracle(doubled).fit(v[doubled.y].astype(float))
    copied = np.array([g.coef[3], 0, 0])
    assert_parallel(g.coef[:3] + copied, h.coef)
    np.testing.assert_array_equal(g.predict(doubled.X), h.predict(rows.X)[doubled.y])


def test_classes_without_any_scatter_are_told_apart():
    rows = rows_of([[0.0, 0.0], [1.0, 1.0]])
    ((h, edge),) = LDAOracle(rows).price(rows, np.array([[3], [-2]])).best(None)
    assert edge == 5
    np.testing.assert_array_equal(h.predict(rows.X), [1, -1])


@pytest.mark.parametrize("sign", [1, -1])
def test_discriminant_predicts_on_both_sides(sign):
    h = Discriminant(np.array([2.0, -1.0]), 1.0, sign)
    X = np.array([[1, 1], [1, 0], [0, 0]])
    np.testing.assert_array_equal(h.predict(X), [-sign, sign, -sign])
    assert h.predict(X).dtype == np.int8
    constant = Discriminant(np.zeros(2), -math.inf, sign)
    np.testing.assert_array_equal(constant.predict(X), [sign] * 3)


# ---------------------------------------------------------------- prices by fitting


@pytest.mark.parametrize("weak_learner", ["lda", DecisionTreeClassifier(max_depth=1)])
@pytest.mark.parametrize("sign", [1, -1])
def test_one_label_gives_a_constant(weak_learner, sign):
    rows, _ = two_clouds()
    v = sign * (np.arange(len(rows)) % 3)
    oracle = make_oracle(weak_learner, rows, np.random.RandomState(0))
    ((h, edge),) = oracle.price(rows, v[:, None]).best(None)
    assert edge == np.abs(v).sum()
    assert (h.predict(rows.X) == sign).all()
    assert (h.predict(1e300 * rows.X) == sign).all()


def test_no_weight_at_all_is_an_edge_of_zero():
    rows, _ = two_clouds()
    ((_, edge),) = LDAOracle(rows).price(rows, np.zeros((len(rows), 1), np.int64)).best(None)
    assert edge == 0


class Contrary(ClassifierMixin, BaseEstimator):
    """Says the opposite of a tree."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.tree_ = DecisionTreeClassifier(max_depth=1, random_state=0)
        self.tree_.fit(X, y, sample_weight)
        return self

    def predict(self, X):
        return -self.tree_.predict(X)


def test_a_negative_edge_is_turned_round():
    rows, v = two_clouds()
    v = v * np.random.default_rng(0).integers(1, 9, size=len(v))
    rng = np.random.RandomState(0)
    tree = DecisionTreeClassifier(max_depth=1)
    ((h, edge),) = ClassifierOracle(rows, tree, rng).price(rows, v[:, None]).best(None)
    ((g, same),) = ClassifierOracle(rows, Contrary(), rng).price(rows, v[:, None]).best(None)
    assert h.sign == 1
    assert g.sign == -1
    assert edge == same > 0
    np.testing.assert_array_equal(g.predict(rows.X), h.predict(rows.X))
    assert edge == ref.edge(g.predict(rows.X), v)


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps what it is fitted with."""

    seen: ClassVar[list] = []

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        self.seen.append((X, y, sample_weight, self.random_state))
        return self

    def predict(self, X):
        return np.where(X[:, 0] > 0, 1, -1)


def test_what_a_classifier_is_given(monkeypatch):
    monkeypatch.setattr(Recorder, "seen", [])
    rows, _ = two_clouds()
    V = np.random.default_rng(0).integers(-3, 4, size=(len(rows), 2)) * 2**50
    estimator = Recorder()
    oracle = ClassifierOracle(rows, estimator, np.random.RandomState(0))
    found = oracle.price(rows, V).best(None)
    assert estimator.random_state is None  # it was cloned
    assert len(Recorder.seen) == 2
    for (X, y, weight, _), v, (h, edge) in zip(Recorder.seen, V.T, found, strict=True):
        used = v != 0
        np.testing.assert_array_equal(X, rows.X[used])
        np.testing.assert_array_equal(y, np.sign(v[used]))
        assert (weight > 0).all()
        np.testing.assert_allclose(weight / weight.sum(), np.abs(v[used]) / np.abs(v).sum())
        assert isinstance(h, Fitted)
        assert edge == abs(ref.edge(np.where(rows.X[:, 0] > 0, 1, -1), v))
    seeds = [seed for *_, seed in Recorder.seen]
    assert len(set(seeds)) == 2
    ClassifierOracle(rows, estimator, np.random.RandomState(0)).price(rows, V).best(None)
    assert [seed for *_, seed in Recorder.seen[2:]] == seeds


def test_combined_weights_and_edges_of_earlier_columns():
    rows, _ = two_clouds()
    V = np.random.default_rng(0).integers(-9, 10, size=(len(rows), 3))
    for weak_learner in ("lda", DecisionTreeClassifier(max_depth=2)):
        oracle = make_oracle(weak_learner, rows, np.random.RandomState(0))
        columns = []
        for code in itertools.product((1, -1), repeat=3):
            m = np.array(code, dtype=np.int8)
            prices = oracle.price(rows, V)
            ((h, edge),) = prices.best(m[:, None])
            assert edge == ref.edge(h.predict(rows.X), V @ m)
            columns.append(Column((h,), m))
            # One more column each time: outputs are kept, and kept in order.
            expected = [[int((V * c.outputs(rows.X)).sum())] for c in columns]
            assert prices.edges(columns).tolist() == expected
        other = np.roll(V, 1, axis=0)
        expected = [[int((other * c.outputs(rows.X)).sum())] for c in columns]
        assert oracle.price(rows, other).edges(columns).tolist() == expected


def test_they_claim_no_bound():
    rows, _ = two_clouds()
    rng = np.random.RandomState(0)
    lda = make_oracle("lda", rows, rng)
    tree = make_oracle(DecisionTreeClassifier(), rows, rng)
    assert isinstance(lda, LDAOracle)
    assert isinstance(tree, ClassifierOracle)
    assert not lda.exact
    assert not tree.exact
    assert "DecisionTreeClassifier" in tree.hypothesis_class
    with pytest.raises(NotImplementedError):
        lda.price(rows, np.ones((len(rows), 2), np.int64)).learned()


def test_a_classifier_without_sample_weight_is_refused():
    rows, _ = two_clouds()
    message = r"weak_learner KNeighborsClassifier\(\) must take sample_weight"
    with pytest.raises(ValueError, match=message):
        make_oracle(KNeighborsClassifier(), rows, np.random.RandomState(0))
    model = AdaBoostMO(weak_learner=KNeighborsClassifier())
    with pytest.raises(ValueError, match=message):
        model.fit(rows.X, np.arange(len(rows)) % 2)


@pytest.mark.parametrize("scale", [1e-280, 1e-200, 1e160, 2e307])
def test_the_scale_of_the_data_does_not_matter(scale):
    X, y = load_iris(return_X_y=True)
    near = AdaBoostMO(max_iter=3, weak_learner="lda").fit(X, y)
    far = AdaBoostMO(max_iter=3, weak_learner="lda").fit(X * scale, y)
    assert (far.predict(X * scale) == near.predict(X)).all()


def test_a_feature_that_is_the_class_is_used():
    """It has no scatter within the classes: the pseudo-inverse would not see it."""
    rng = np.random.default_rng(0)
    rows = rows_of(np.column_stack([rng.normal(size=(40, 2)), np.arange(40) % 2]))
    v = np.where(rows.X[:, 2] == 1, 1, -1)
    ((_, edge),) = LDAOracle(rows).price(rows, v[:, None]).best(None)
    assert edge == 40
