"""Coding matrices: distances, uniform draws, and every refusal."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from tcboost import coding
from tcboost.coding import (
    check_coding_matrix,
    coding_matrix,
    draw_code,
    ecoc,
    one_vs_rest,
    runs,
)

DENSE = [8, 9, 10, 12, 16, 26, 40]


def hamming(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True))


def row_distance(M):
    return min(hamming(a, b) for a, b in itertools.combinations(M.tolist(), 2))


def column_distance(M):
    """Least distance between columns, up to complement."""
    pairs = itertools.combinations(M.T.tolist(), 2)
    return min(min(hamming(a, b), len(a) - hamming(a, b)) for a, b in pairs)


def best_random(n_classes, n_columns, n_draws=10_000):
    """Largest least row distance among random matrices (Allwein et al., 2000)."""
    rng = np.random.default_rng(1)
    best = 0
    for _ in range(n_draws // 500):
        M = 2.0 * rng.integers(2, size=(500, n_classes, n_columns)).astype(np.float32) - 1
        agreement = M @ M.transpose(0, 2, 1)
        agreement[:, range(n_classes), range(n_classes)] = -n_columns
        best = max(best, int((n_columns - agreement.max(axis=(1, 2)).min()) / 2))
    return best


def plotkin(n_classes, n_columns):
    """Largest distance that Plotkin's bound allows so many codewords of that length."""

    def most_words(n, d):
        if d % 2:
            n, d = n + 1, d + 1
        if 2 * d > n:
            return 2 * (d // (2 * d - n))
        return 4 * d if 2 * d == n else math.inf

    return max(d for d in range(1, n_columns + 1) if most_words(n_columns, d) >= n_classes)


def as_splits(M):
    """Columns up to complement and order: class 0 on the -1 side, sorted."""
    return sorted(tuple(int(-column[0] * x) for x in column) for column in M.T)


def test_two_classes_are_one_problem():
    np.testing.assert_array_equal(ecoc(2), [[-1], [1]])
    np.testing.assert_array_equal(one_vs_rest(2), [[-1], [1]])


@pytest.mark.parametrize("C", range(3, 8))
def test_exhaustive_code_holds_each_split_once(C):
    M = ecoc(C)
    every = [(-1, *rest) for rest in itertools.product([-1, 1], repeat=C - 1) if 1 in rest]
    assert M.dtype == np.int8
    assert as_splits(M) == sorted(every)
    assert row_distance(M) == 2 ** (C - 2)


@pytest.mark.parametrize("C", range(3, 8))
def test_exhaustive_code_treats_classes_alike(C):
    M = ecoc(C)
    for c in range(C - 1):  # adjacent swaps generate all permutations
        order = np.arange(C)
        order[[c, c + 1]] = c + 1, c
        assert not np.array_equal(M[order], M)
        assert as_splits(M[order]) == as_splits(M)


@pytest.mark.parametrize("C", [2, 3, 4, 5, 6, 26])
def test_runs_are_all_circular_halves_once(C):
    half, M = (C + 1) // 2, runs(C)
    circle = [[1 if (c - start) % C < half else -1 for c in range(C)] for start in range(C)]
    assert as_splits(M) == sorted(set(map(tuple, as_splits(np.array(circle).T))))
    assert len(set(as_splits(M))) == M.shape[1] == (C if C % 2 else C // 2)
    np.testing.assert_array_equal(check_coding_matrix(M, C), M)  # all classes told apart


def test_three_classes_have_no_codes_but_runs():
    assert as_splits(runs(3)) == as_splits(ecoc(3))


@pytest.mark.parametrize("C", DENSE)
def test_dense_code_is_a_valid_code(C):
    M = ecoc(C)
    assert M.shape == (C, math.ceil(10 * math.log2(C)))
    assert M.dtype == np.int8
    np.testing.assert_array_equal(check_coding_matrix(M, C), M)
    assert column_distance(M) >= 1
    minority = np.minimum((M == 1).sum(axis=0), (M == -1).sum(axis=0))
    assert minority.min() >= C // 4


@pytest.mark.parametrize(("C", "rows", "columns"), [(10, 18, 2), (14, 20, 4), (26, 24, 8)])
def test_dense_code_has_these_distances(C, rows, columns):
    # The docstring gives those of 10 and 26; 14 needs the energy of the columns.
    assert row_distance(ecoc(C)) == rows
    assert column_distance(ecoc(C)) == columns


@pytest.mark.parametrize("C", [8, 10, 12, 16, 26])
def test_dense_code_meets_plotkins_bound(C):
    M = ecoc(C)
    assert row_distance(M) == plotkin(*M.shape)


@pytest.mark.parametrize("C", [8, 10, 12, 26])
def test_dense_code_beats_the_best_of_many_random_codes(C):
    M = ecoc(C)
    assert row_distance(M) > best_random(*M.shape)


def test_dense_code_for_many_classes():
    M = ecoc(200)
    assert M.shape == (200, 77)
    assert row_distance(M) >= 32
    assert column_distance(M) >= 80


@pytest.mark.parametrize("C", [2, 5, 8, 12])
def test_ecoc_is_a_function_of_the_number_of_classes(C):
    M = ecoc(C).copy()
    np.random.default_rng().random()
    ecoc.cache_clear()
    np.testing.assert_array_equal(ecoc(C), M)
    assert ecoc(C) is ecoc(C)


@pytest.mark.parametrize("C", [2, 5, 8])
def test_ecoc_is_read_only(C):
    with pytest.raises(ValueError, match="read-only"):
        ecoc(C)[0, 0] = 1


@pytest.mark.parametrize("transposed", [False, True])
def test_search_knows_the_change_of_energy_of_every_flip(transposed):
    rng = np.random.default_rng(3)
    X = 2.0 * rng.integers(2, size=(6, 9)) - 1
    X = X.T if transposed else X  # the search gives it a view of each kind
    n, p = X.shape
    energy = np.exp2(rng.integers(-5, 6, size=p + 1).astype(float))

    def total(X):
        return sum(energy[hamming(a, b)] for a, b in itertools.combinations(X.tolist(), 2))

    spread = coding._Spread(X, energy)
    for _ in range(20):
        i, l = int(rng.integers(n)), int(rng.integers(p))
        spread.before_flip(i, l)
        X[i, l] *= -1
    expected = np.empty_like(X)
    for i, l in np.ndindex(n, p):
        flipped = X.copy()
        flipped[i, l] *= -1
        expected[i, l] = total(flipped) - total(X)
    # Equal, not close: powers of 2 leave no rounding.
    np.testing.assert_array_equal(spread.changes(), expected)


@pytest.mark.parametrize("C", [3, 4, 11])
def test_one_vs_rest(C):
    M = one_vs_rest(C)
    assert M.dtype == np.int8
    for c, d in np.ndindex(C, C):
        assert M[c, d] == (1 if c == d else -1)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_draw_code_is_uniform_over_nonconstant_columns(make):
    rng = make(7)
    counts = dict.fromkeys(itertools.product([-1, 1], repeat=4), 0)
    for _ in range(14_000):
        m = draw_code(4, rng)
        counts[tuple(m.tolist())] += 1
    assert m.dtype == np.int8
    assert counts.pop((1, 1, 1, 1)) == 0
    assert counts.pop((-1, -1, -1, -1)) == 0
    assert chisquare(list(counts.values())).pvalue > 0.001


def test_draw_code_of_two_classes_has_both_signs():
    rng = np.random.default_rng(0)
    assert {tuple(draw_code(2, rng).tolist()) for _ in range(50)} == {(-1, 1), (1, -1)}


@pytest.mark.parametrize("make", [ecoc, one_vs_rest, lambda C: draw_code(C, None)])
@pytest.mark.parametrize("C", [1, 0])
def test_one_class_has_no_code(make, C):
    with pytest.raises(ValueError, match=f"at least 2 classes, got {C}"):
        make(C)


@pytest.mark.parametrize("dtype", [int, float, np.int8, np.float32])
def test_a_users_matrix_is_copied_to_int8(dtype):
    M = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, 1]], dtype=dtype)
    code = check_coding_matrix(M, 3)
    assert code.dtype == np.int8
    np.testing.assert_array_equal(code, M)
    M[0, 0] = -1
    assert code[0, 0] == 1


@pytest.mark.parametrize(
    ("M", "message"),
    [
        ([["1", "1"], ["1", "-1"], ["-1", "1"]], "coding must be a 2-D array of numbers.*<U2"),
        ([[True], [False], [True]], "coding must be a 2-D array of numbers.*bool"),
        ([[1, None], [1, -1], [-1, 1]], "coding must be a 2-D array of numbers.*object"),
        ([[1, 1], [1], [-1, 1]], "coding must be a 2-D array of numbers: .*inhomogeneous"),
        ([[1j], [1], [-1]], "coding must be a 2-D array of numbers.*complex"),
        ([1, -1, 1], r"coding must have shape \(3, n_columns\).*got \(3,\)"),
        (np.ones((3, 2, 2)), r"coding must have shape .*got \(3, 2, 2\)"),
        ([[1, 1], [1, -1]], r"coding must have shape .*got \(2, 2\)"),
        (np.ones((3, 0)), r"coding must have shape .*at least one column, got \(3, 0\)"),
        ([[1, 1], [1, 0], [-1, 1]], r"coding .*-1 and \+1 only, got 0 in row 1, column 1"),
        ([[1, 1], [1, -1], [np.nan, 1]], r"coding .* only, got nan in row 2, column 0"),
        ([[1, np.inf], [1, -1], [-1, 1]], r"coding .* only, got inf in row 0, column 1"),
        ([[1, 1.5], [1, -1], [-1, 1]], r"coding .* only, got 1.5 in row 0, column 1"),
        ([[1, 257], [1, -1], [-1, 1]], r"coding .* only, got 257 in row 0, column 1"),
        ([[1, -1], [1, 1], [1, -1]], "coding must have distinct rows, but 0 and 2 are equal"),
        (
            [[1, 1, -1], [1, -1, -1], [-1, 1, -1]],
            "coding must not have constant columns, but column 2 is",
        ),
    ],
)
def test_a_users_matrix_is_refused_with_the_reason(M, message):
    with pytest.raises(ValueError, match=message):
        check_coding_matrix(M, 3)
    with pytest.raises(ValueError, match=message):
        coding_matrix(M, 3)


def test_coding_matrix_by_name_or_value():
    assert coding_matrix("ecoc", 9) is ecoc(9)
    np.testing.assert_array_equal(coding_matrix("ovr", 5), one_vs_rest(5))
    np.testing.assert_array_equal(coding_matrix(((1,), (-1,)), 2), [[1], [-1]])


@pytest.mark.parametrize("wrong", ["ECOC", "random", "", None, 3, {"a": 1}, ecoc])
def test_unknown_coding_lists_the_choices(wrong):
    with pytest.raises(ValueError, match="coding must be 'ecoc', 'ovr' or an array") as caught:
        coding_matrix(wrong, 3)
    assert str(caught.value).endswith(f"got {wrong!r}")
