"""Folds are chosen by what rows hold: by class, steady, and copies of a row together."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from tcboost import TCBoostClassifier
from tcboost.folds import content_folds, splits
from tcboost.training import read_rows

DATA = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "digits": load_digits(return_X_y=True),
    "cancer": load_breast_cancer(return_X_y=True),
}
EACH = pytest.mark.parametrize("name", DATA)


def read(X, y, weight=None, **parameters):
    return read_rows(TCBoostClassifier(**parameters), X, y, weight)[0]


def folds(X, y, n_folds=5, **parameters):
    return content_folds(read(np.asarray(X, dtype=float), y, **parameters), n_folds)


def held_out(X, y, weight=None, cv=5):
    rows, kept = read_rows(TCBoostClassifier(), X, y, weight)
    return splits(rows, cv, kept)


def moved(one, other):
    """Share of rows that are in another fold."""
    return np.mean(one != other)


@EACH
@pytest.mark.parametrize("n_folds", [2, 3, 5, 10])
def test_folds_have_equal_shares_of_each_class(name, n_folds):
    X, y = DATA[name]
    found = folds(X, y, n_folds)
    counts = np.zeros((y.max() + 1, n_folds))
    np.add.at(counts, (y, found), 1)
    # Of digits few rows, of iris one, are copies.
    assert (np.abs(counts - counts.mean(axis=1, keepdims=True)) <= 2).all()
    assert np.ptp(counts.sum(axis=0)) <= 2 + len(counts)


def test_folds_are_balanced_where_classes_are_small():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(300), rng.integers(1, 9, 300))
    counts = np.bincount(folds(rng.normal(size=(len(y), 3)), y), minlength=5)
    assert counts.min() > 0.8 * counts.mean()
    assert counts.max() < 1.2 * counts.mean()


@EACH
def test_the_order_of_rows_and_columns_and_tiny_shifts_change_nothing(name):
    X, y = DATA[name]
    found, rng = folds(X, y), np.random.default_rng(0)
    for order in (rng.permutation(len(y)), np.arange(len(y))[::-1]):
        assert_array_equal(folds(X[order], y[order]), found[order])
    assert moved(folds(X[:, rng.permutation(X.shape[1])], y), found) <= 0.02
    for shift in (1e-9, -1e-9):
        assert moved(folds(X + shift, y), found) <= 0.02
        noise = shift * rng.random(X.shape) * (np.ptp(X, axis=0) > 0)
        assert moved(folds(X + noise, y), found) <= 0.05


@pytest.mark.parametrize("spread", [1.0, 2.0, 16.0, 100.0, 255.0, 1024.0])
def test_a_shift_of_whole_numbers_changes_nothing(spread):
    """Also where the range of a column is a power of two."""
    rng = np.random.default_rng(int(spread))
    X, y = rng.integers(0, spread + 1, (400, 5)) / 1.0, rng.integers(0, 2, 400)
    X[:2] = [[0.0] * 5, [spread] * 5]
    for shift in (1e-9, -1e-9):
        shifted = X.copy()
        shifted[:, 2] += shift
        assert moved(folds(shifted, y), folds(X, y)) <= 0.02
        shifted[:, 2] = X[:, 2] + shift * np.where(X[:, 2] == spread, 1.0, 0.0)
        assert moved(folds(shifted, y), folds(X, y)) <= 0.02


@EACH
def test_a_row_dropped_moves_few_others(name):
    X, y = DATA[name]
    found, rng = folds(X, y), np.random.default_rng(0)
    shares = []
    for row in rng.choice(len(y), 15, replace=False):
        others = np.arange(len(y)) != row
        shares.append(moved(folds(X[others], y[others]), found[others]))
    assert np.median(shares) <= 0.05


def test_steady_where_only_the_order_of_columns_tells_rows_apart():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 40, 500)
    for X in (np.eye(40)[level], rng.integers(0, 2, (500, 60)) / 1.0):
        y = (rng.random(500) < 0.2 + 0.6 * (level % 2)).astype(int)
        found = folds(X, y)
        assert np.bincount(found).min() >= 98
        ones = [X[found == k].sum(axis=1).mean() for k in range(5)]
        assert np.ptp(ones) < 2.5
        others = np.delete(np.arange(500), 77)
        assert moved(folds(X[others], y[others]), found[others]) <= 0.05
        assert moved(folds(X + np.eye(X.shape[1])[3] * 1e-9, y), found) <= 0.02


@EACH
@pytest.mark.parametrize("times", [2, 3, 5])
def test_copies_are_together(name, times):
    X, y = DATA[name]
    for rows in (np.repeat(np.arange(len(y)), times), np.tile(np.arange(len(y)), times)):
        found = folds(X[rows], y[rows])
        for k in range(5):
            assert set(rows[found == k]).isdisjoint(rows[found != k])
        # Rows that were equal to begin with aside they are where they were.
        once = np.zeros(len(y), dtype=int)
        once[rows] = found
        assert moved(once, folds(X, y)) <= 0.05


@EACH
def test_a_bootstrap_sample_has_no_row_on_both_sides(name):
    X, y = DATA[name]
    rows = np.random.default_rng(0).integers(0, len(y), len(y))
    found = folds(X[rows], y[rows])
    for k in range(5):
        assert set(rows[found == k]).isdisjoint(rows[found != k])
    assert np.bincount(found, minlength=5).min() > 0.1 * len(y)


@pytest.mark.parametrize("n_levels", [2, 20, 60])
def test_rows_of_a_category_are_spread(n_levels):
    """A level is seen in every fold that could: its rows are equal, but no copies."""
    rng = np.random.default_rng(n_levels)
    level = rng.integers(0, n_levels, 600)
    y = (rng.random(600) < rng.uniform(0.2, 0.8, n_levels)[level]).astype(int)
    X = level[:, None].astype(float)
    for data in (X, np.eye(n_levels)[level]):
        found = folds(data, y)
        for c in (0, 1):
            for k in range(n_levels):
                of_level = found[(level == k) & (y == c)]
                if len(of_level) > 20:
                    assert len(np.unique(of_level)) == 5
        rest = sum(len(np.unique(found[level == k])) > 1 for k in range(n_levels))
        assert rest >= 0.9 * len(np.unique(level))


def test_weights_are_not_rows():
    X, y = DATA["wine"]
    found = folds(X, y)
    for weight in (np.full(178, 1000.0), np.random.default_rng(0).uniform(1, 9, 178)):
        assert_array_equal(content_folds(read(X, y, weight), 5), found)
    kept = np.arange(178) % 4 > 0
    rows = read(X, y, kept.astype(float))
    assert_array_equal(content_folds(rows, 5), folds(X[kept], y[kept]))


@pytest.mark.parametrize(
    "values",
    [
        np.full(60, 1.7e308),
        np.full(60, np.nan),
        np.where(np.arange(60) % 2, 1.7e308, -1.7e308),
        np.arange(60) * 5e-324,
        np.arange(60) * 1e-300,
        np.where(np.arange(60) % 7, np.nan, 3.0),
        1e15 + np.arange(60) / 8,
    ],
)
def test_odd_columns_have_folds(values):
    y = np.arange(60) % 3
    for X in (values[:, None], np.column_stack([values, np.arange(60.0)])):
        found = folds(X, y)
        assert np.bincount(found, minlength=5).min() >= 9


def test_so_many_folds_as_hold_out_a_thousand_rows():
    rng = np.random.default_rng(0)
    for n, cv, expected in (
        (150, 5, 5),
        (1000, 5, 5),
        (1200, 5, 5),
        (2000, 5, 3),
        (10_000, 5, 1),
        (3000, 10, 4),
        (40, 20, 20),
    ):
        X, y = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
        found = held_out(X, y, cv=cv)
        assert len(found) == expected
        assert sum(held.sum() for _, held in found) >= min(n, 950)
        for fit, held in found:
            assert_array_equal(fit, ~held)
            assert abs(held.sum() - n / cv) <= 2


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_rows_have_folds_with_rows_on_both_sides(n):
    X = np.random.default_rng(n).normal(size=(n, 1))
    for fit, held in held_out(X, np.arange(n) % 2):
        assert fit.any()
        assert held.any()
    for X in (np.zeros((n, 1)), np.full((n, 1), np.nan)):
        assert len(held_out(X, np.arange(n) % 2)) > 1


def test_splits_count_rows_of_weight_zero():
    X, y = DATA["wine"]
    weight = (np.arange(178) % 3 > 0).astype(float)
    ((fit, held),) = held_out(X, y, weight, [(np.arange(0, 178, 2), np.arange(1, 178, 2))])
    places = np.flatnonzero(weight)
    assert_array_equal(fit, places % 2 == 0)
    assert_array_equal(held, places % 2 == 1)
