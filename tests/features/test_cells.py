"""Columns as cells and rules, against naive code; levels, missing and odd values of users."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine

from tcboost import TCBoostClassifier
from tcboost.features import Rule, cell_table

IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)


def given(alpha=1.0, l1_ratio=0.5, **parameters):
    return TCBoostClassifier(alpha, l1_ratio, **parameters)


def answer(rule, x):
    """+1 or -1, as the rule reads."""
    if rule.threshold is None:
        yes = np.isnan(x) if np.isnan(rule.level) else x == rule.level
    else:
        yes = (x > rule.threshold) | (np.isnan(x) & rule.missing_right)
    return np.where(yes, 1.0, -1.0)


def scores(model, X):
    F = np.tile(model.intercept_, (len(X), 1))
    for rule, v in zip(model.rules_, model.coef_, strict=True):
        F += answer(rule, X[:, rule.feature])[:, None] * v
    return F


def assert_scores(model, X):
    F = scores(model, X)
    found = model.decision_function(X)
    assert_allclose(found, F if F.shape[1] > 2 else F[:, 1] - F[:, 0], atol=1e-9)


def columns(seed):
    """Numbers, whole ones, levels, each with and without missing values; and constants."""
    rng = np.random.default_rng(seed)
    n = 80
    X = np.column_stack(
        [
            *rng.normal(size=(2, n)),
            *rng.integers(-2, 3, (4, n)),
            np.ones(n),
            np.full(n, np.nan),
            np.where(rng.random(n) < 0.5, np.nan, 3.0),
        ]
    )
    for j in (1, 3, 5):
        X[rng.random(n) < 0.2, j] = np.nan
    return np.column_stack([X, X[:, 6:]])


CATEGORICAL = np.isin(np.arange(12), [4, 5, 9, 10, 11])


# ---------------------------------------------------------------- cells and rules


@pytest.mark.parametrize("max_bins", [2, 7, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_cells_rules_and_masses_are_what_they_say(max_bins, seed):
    X, rng = columns(seed), np.random.default_rng(seed)
    weight = rng.uniform(0.1, 1.0, len(X))
    weight /= weight.sum()
    order = rng.permutation(len(X))
    table = cell_table(X, order, weight, max_bins, CATEGORICAL, 1)
    all_rules = table.rules(np.arange(table.first[-1]))
    assert_array_equal(table.numbers(all_rules), np.arange(len(all_rules)))
    counts = [feature.n_rules for feature in table.features]
    assert_array_equal([rule.feature for rule in all_rules], np.repeat(range(12), counts))
    assert_array_equal([not feature.ordered for feature in table.features], CATEGORICAL)
    for rule in all_rules:
        x = X[order, rule.feature]
        if rule.threshold is not None and not np.isnan(x).any():
            right = weight[x > rule.threshold].sum()
            assert rule.missing_right == (right > 0.5) or right == pytest.approx(0.5)
    for j, (feature, cells) in enumerate(zip(table.features, table.cells, strict=True)):
        x = X[order, j]
        assert cells.dtype == np.uint16
        assert cells.max() < feature.n_cells
        assert_allclose(table.masses[j], np.bincount(cells, weight, feature.n_cells))
        assert_array_equal(feature.cells(x), cells)
        own = [rule for rule in all_rules if rule.feature == j]
        assert len(own) == feature.n_rules
        signs = np.array([answer(rule, x) for rule in own]).reshape(len(own), len(x))
        # A rule never parts a cell, and all rules together part all cells, or there is no rule.
        for cell in np.unique(cells):
            assert (np.ptp(signs[:, cells == cell], axis=1) == 0).all()
        n_patterns = len(np.unique(signs, axis=1).T) if len(own) else 1
        assert n_patterns == (len(np.unique(cells)) if len(own) else 1)
        assert (np.abs(signs.mean(axis=1)) < 1).all()  # none is a constant
        distinct = len(np.unique(x))
        if CATEGORICAL[j]:
            assert len(own) == (distinct if distinct > 1 else 0)
        elif not np.isnan(x).any():
            assert len(own) == min(distinct, max_bins) - 1


def test_the_nearest_rule_of_another_table():
    x = np.array([1.0, 2.0, 3.0, 4.0])[:, None]
    even = np.full(4, 0.25)

    def table(values, categorical=False):
        return cell_table(values, np.arange(4), even, 100, np.array([categorical]), 1)

    full, gaps = table(x), table(np.where(x == 4, np.nan, x))
    levels = table(np.where(x == 4, np.nan, x), True)
    assert_array_equal(
        full.numbers([Rule(0, 2.4, True), Rule(0, 99.0), Rule(0, -9.0)]), [1, 2, 0]
    )
    assert full.numbers([Rule(0, np.inf, True), Rule(0, level=2.0)]).tolist() == [-1, -1]
    found = gaps.numbers(
        [Rule(0, 1.5), Rule(0, 1.5, True), Rule(0, 2.4, True), Rule(0, np.inf)]
    )
    assert found.tolist() == [0, 1, 3, 4]
    wanted = [Rule(0, level=3.0), Rule(0, level=np.nan), Rule(0, level=2.5), Rule(0, 2.0)]
    assert levels.numbers(wanted).tolist() == [2, 3, -1, -1]
    assert full.numbers([]).tolist() == []
    wide = table(np.array([-1.7e308, -1.6e308, 1.6e308, 1.7e308])[:, None])
    assert wide.numbers([Rule(0, 1.65e308), Rule(0, -1.7e308)]).tolist() == [2, 0]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule(0, 0.8), "width > 0.8"),
        (Rule(0, 0.8, True), "width > 0.8 or missing"),
        (Rule(0, np.inf, True), "width is missing"),
        (Rule(0, level=3.0), "width is 3"),
        (Rule(0, level=12345678.0), "width is 12345678"),
        (Rule(0, level=0.25), "width is 0.25"),
        (Rule(0, level=np.nan), "width is missing"),
    ],
)
def test_a_rule_in_words(rule, words):
    assert rule.describe("width") == words


# ---------------------------------------------------------------- levels


def levels_and_classes(seed=0, n=300, n_levels=9):
    rng = np.random.default_rng(seed)
    level = rng.integers(0, n_levels, n)
    y = (rng.random(n) < rng.random(n_levels)[level]).astype(int) + (rng.random(n) < 0.1)
    return level.astype(float), rng.normal(size=n), y


def test_levels_are_the_model_of_one_hot_columns():
    level, x, y = levels_and_classes()
    hot = np.column_stack([np.eye(9)[level.astype(int)], x])
    by_levels = given(tol=1e-8, categorical_features=[0]).fit(np.column_stack([level, x]), y)
    by_columns = given(tol=1e-8).fit(hot, y)
    objectives = [m.certificate_.objective for m in (by_levels, by_columns)]
    assert objectives[0] == pytest.approx(objectives[1], abs=2e-7)
    assert_allclose(
        by_levels.predict_proba(np.column_stack([level, x])),
        by_columns.predict_proba(hot),
        atol=1e-3,
    )


def test_names_of_levels_do_not_matter():
    level, x, y = levels_and_classes()
    names = np.array([-3.5, 1e9, 0.0, 7.0, np.nan, 1e-9, -1e300, 0.1, 4.0])
    one, other = np.column_stack([level, x]), np.column_stack([names[level.astype(int)], x])
    models = [given(tol=1e-8, categorical_features=[0]).fit(X, y) for X in (one, other)]
    assert_allclose(models[0].predict_proba(one), models[1].predict_proba(other), atol=1e-3)
    rules = [r for r in models[1].rules_ if r.level is not None]
    assert {r.level for r in rules if r.level == r.level} <= set(names)
    for model, X in zip(models, (one, other), strict=True):
        assert_scores(model, X)


def test_what_a_mask_and_places_are():
    level, x, y = levels_and_classes()
    X = np.column_stack([x, level, x > 0, level % 3])
    forms = [[1, 3], np.array([3, 1]), (1, 3, 3), [False, True, False, True], pd.Series([1, 3])]
    models = [given(categorical_features=form).fit(X, y) for form in forms]
    for model in models:
        assert repr(model.rules_) == repr(models[0].rules_)
        assert {r.feature for r in model.rules_ if r.level is not None} == {1, 3}
    none = [given(categorical_features=form).fit(X, y) for form in (None, [], [False] * 4)]
    assert all(r.level is None for model in none for r in model.rules_)


@pytest.mark.parametrize(
    ("form", "match"),
    [
        ([-1], "column -1"),
        ([0, 4], "column 4, which is not among the 4 of X, 0 to 3"),
        (["a"], "places of columns, a mask of all 4, names of columns of a frame"),
        ([True, False], "mask of all 4"),
        ([0.5], "places"),
        ([[0]], "places"),
        ("a", "categorical_features"),
    ],
)
def test_what_is_no_mask_and_no_place(form, match):
    with pytest.raises(ValueError, match=match):
        given(categorical_features=form).fit(*IRIS)


def test_levels_that_were_not_seen_and_missing_ones():
    level, x, y = levels_and_classes()
    X = np.column_stack([level, x])
    model = given(categorical_features=[0]).fit(X, y)
    new = np.array([[99.0, 0.3], [0.5, 0.3], [np.nan, 0.3], [-1e300, 0.3], [1e300, 0.3]])
    assert_scores(model, np.vstack([new, X]))
    assert len(np.unique(model.predict_proba(new), axis=0)) == 1
    X[::5, 0] = np.nan  # now missing is a level of its own
    y[::5] = 2
    model = given(categorical_features=[0]).fit(X, y)
    assert_scores(model, np.vstack([new, X]))
    p = model.predict_proba(new)
    assert p[2, 2] > 0.8 > p[0, 2]
    assert any(rule.describe("a") == "a is missing" for rule in model.rules_)


def test_more_levels_than_there_may_be():
    n = 65_600
    X = np.column_stack([np.zeros(n), np.arange(n)])
    y = np.arange(n) % 2
    frame = pd.DataFrame(X, columns=["a", "zip"])
    with pytest.raises(ValueError, match=r"column 1 \('zip'\) has 65600 levels; at most 65535"):
        given(categorical_features=[1]).fit(frame, y)
    with pytest.raises(ValueError, match="column 1 has 65600 levels"):
        given(categorical_features=[1]).fit(X, y)
    few = given(40.0, categorical_features=[1]).fit(X[:65_535], y[:65_535])
    assert few.certificate_.status == "optimal"


# ---------------------------------------------------------------- missing and odd values


def test_missing_values_go_where_they_belong():
    """To either side of a cut, or apart from both."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=400)
    gone = rng.random(400) < 0.3
    X = np.where(gone, np.nan, x)[:, None]
    for y in ((x > 0.5) | gone, (x > 0.5) & ~gone, gone, np.where(gone, 2, x > 0.5)):
        model = given(0.1).fit(X, y.astype(int))
        assert_scores(model, X)
        assert model.score(X, y.astype(int)) > 0.99
        assert_scores(given(0.1, 0.01, max_bins=3).fit(X, y.astype(int)), X)


def test_a_missing_value_where_none_was_in_training_goes_with_the_larger_side():
    X = np.arange(10.0)[:, None]
    model = given(0.01, max_rules=1).fit(X, X[:, 0] > 6)
    (rule,) = model.rules_
    assert not rule.missing_right
    gone = np.array([[np.nan]])
    assert_array_equal(model.predict_proba(gone), model.predict_proba([[0.0]]))
    model = given(0.01, max_rules=1).fit(X, X[:, 0] > 2)
    assert_array_equal(model.predict_proba(gone), model.predict_proba([[9.0]]))


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-320, -1.0])
def test_the_scale_of_a_column_does_not_matter(scale):
    X, y = IRIS
    plain, scaled = given(0.5, tol=1e-6).fit(X, y), given(0.5, tol=1e-6).fit(X * scale, y)
    assert_allclose(scaled.predict_proba(X * scale), plain.predict_proba(X), atol=2e-3)
    assert np.isfinite(TCBoostClassifier().fit(X * scale, y).predict_proba(X * scale)).all()


def test_columns_that_tell_nothing_change_nothing():
    X, y = IRIS
    odd = np.column_stack([np.full(150, np.nan), X, np.zeros(150), np.full(150, 1.7e308)])
    plain, model = given().fit(X, y), given(categorical_features=[0]).fit(odd, y)
    assert_array_equal(model.predict_proba(odd), plain.predict_proba(X))
    assert_array_equal(model.feature_importances_[[0, 5, 6]], 0.0)
    assert {0, 5, 6} <= set(model.certificate_.features_not_needed)
    odd[:] = 7.0  # at prediction anything may stand there
    odd[:, 1:5] = X
    assert_array_equal(model.predict_proba(odd), plain.predict_proba(X))


@pytest.mark.parametrize("parameters", [{}, {"alpha": 1.0}, {"categorical_features": [0]}])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0], [1.0]], [0, 1]),
        ([[0.0], [0.0]], [0, 1]),
        ([[np.nan], [np.nan]], [0, 1]),
        ([[np.nan], [1.0], [1.0]], [0, 1, 1]),
        (np.arange(6.0)[:, None] // 2, [0, 0, 1, 1, 2, 2]),
        (np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) // 2),
        ([[-1.7e308], [1.7e308], [0.0], [-0.0]], [0, 1, 2, 2]),
        (np.zeros((50, 1)), np.arange(50) % 5),
    ],
)
def test_tables_that_are_hardly_any(X, y, parameters):
    X = np.asarray(X)
    model = TCBoostClassifier(**parameters).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert_scores(model, X)
    assert model.certificate_.status == "optimal"


def test_infinity_is_named():
    frame = pd.DataFrame(WINE[0][:, :3], columns=["a", "b", "c"])
    frame.loc[7, "b"] = -np.inf
    with pytest.raises(ValueError, match=r"infinity in column 1 \('b'\)"):
        given().fit(frame, WINE[1])
    model = given().fit(frame.replace(-np.inf, 0.0), WINE[1])
    with pytest.raises(ValueError, match=r"infinity in column 1 \('b'\)"):
        model.predict(frame)
    with pytest.raises(ValueError, match="0 sample"):
        given().fit(WINE[0][:0], WINE[1][:0])
