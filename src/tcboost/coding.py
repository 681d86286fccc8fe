"""Coding matrices: classes as codewords in {-1,+1} (Section II of the paper).

Row c of a coding matrix M is the codeword of class c, and column l is the binary problem
that bit l solves. Rows far apart let some bits err, and columns far apart, from each other
and from each other's complements, keep bits from erring together (Dietterich and Bakiri,
1995).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["check_coding_matrix", "coding_matrix", "draw_code", "ecoc", "one_vs_rest", "runs"]


@lru_cache
def ecoc(n_classes: int) -> NDArray[np.int8]:
    """Error-correcting output code for `n_classes` classes.

    Up to 7 classes it is the exhaustive code: each of the 2^(C-1) - 1 ways to split the
    classes in two, once. From 8 classes on it is a dense code of ceil(10 log2(C)) columns
    (the length of Allwein et al., 2000), found by a search: starting from random balanced
    columns, flip one entry at a time, always the one that most lowers an energy which
    doubles (in a second run: quadruples) with each bit that two rows, or two columns up to
    complement, come closer. A flipped entry then rests for a few steps, so that the search
    leaves local minima. The best matrix met is kept: distinct columns first, then the
    largest least distance between rows, then between columns, then the fewest row pairs at
    the least distance.

    The least row distance is 18 for 10 classes (34 columns) and 24 for 26 classes (48
    columns). Both meet Plotkin's bound: no code of that size does better. The best of
    10,000 random matrices has about 14 and 17. Columns differ, up to complement, in at least
    2 of 10 and 8 of 26 classes. The search takes about a second for 200 classes and several for
    1000.

    Parameters
    ----------
    n_classes : int
        Number of classes C, at least 2.

    Returns
    -------
    ndarray of shape (n_classes, n_columns), int8
        Entries -1 and +1. A function of `n_classes` only; cached, therefore read-only.

    Examples
    --------
    >>> ecoc(3)
    array([[-1, -1, -1],
           [ 1, -1,  1],
           [-1,  1,  1]], dtype=int8)
    >>> ecoc(10).shape
    (10, 34)
    """
    _check_n_classes(n_classes)
    # A split and its complement are one problem, so class 0 is always on the -1 side.
    if n_classes <= 7:
        splits = np.arange(1, 2 ** (n_classes - 1))
        bits = (splits << 1) >> np.arange(n_classes)[:, None] & 1
        M = (2 * bits - 1).astype(np.int8)
    else:
        M = _dense_code(n_classes, math.ceil(10 * math.log2(n_classes)))
    M.flags.writeable = False
    return M


def one_vs_rest(n_classes: int) -> NDArray[np.int8]:
    """One column per class: +1 for that class, -1 for all others.

    With two classes the two columns are complements, one problem, and one is kept.

    Parameters
    ----------
    n_classes : int
        Number of classes C, at least 2.

    Returns
    -------
    ndarray of shape (n_classes, n_classes), or (2, 1), int8
        Entries -1 and +1.

    Examples
    --------
    >>> one_vs_rest(3)
    array([[ 1, -1, -1],
           [-1,  1, -1],
           [-1, -1,  1]], dtype=int8)
    """
    _check_n_classes(n_classes)
    M = 2 * np.eye(n_classes, dtype=np.int8) - np.int8(1)
    return M[:, 1:] if n_classes == 2 else M


def draw_code(
    n_classes: int, rng: np.random.Generator | np.random.RandomState
) -> NDArray[np.int8]:
    """Draw one code column, uniformly among those that are not constant.

    A constant column puts all classes on one side: it is no problem to learn, and its
    pairwise margins are zero.

    Parameters
    ----------
    n_classes : int
        Number of classes C, at least 2.
    rng : numpy.random.Generator or RandomState
        Source of randomness.

    Returns
    -------
    ndarray of shape (n_classes,), int8
        Entries -1 and +1, both present.

    Examples
    --------
    >>> m = draw_code(5, np.random.default_rng(0))
    >>> m.shape, sorted(set(m.tolist()))
    ((5,), [-1, 1])
    """
    _check_n_classes(n_classes)
    while True:
        positive = rng.random(n_classes) < 0.5
        if 0 < np.count_nonzero(positive) < n_classes:
            return 2 * positive.view(np.int8) - np.int8(1)


def runs(n_classes: int) -> NDArray[np.int8]:
    """Codes with half of the classes, rounded up, on the +1 side: a run of them, in a circle.

    The paper does not say how its random codes are drawn. Drawn from these they give its
    errors (see `docs/differences.md`); for three classes they are all the codes there are.

    Parameters
    ----------
    n_classes : int
        Number of classes C, at least 2.

    Returns
    -------
    ndarray of shape (n_classes, n_columns), int8
        A column for each way to split the classes so: C, or C / 2 if C is even.

    Examples
    --------
    >>> runs(4)
    array([[ 1, -1],
           [ 1,  1],
           [-1,  1],
           [-1, -1]], dtype=int8)
    """
    _check_n_classes(n_classes)
    first = np.where(np.arange(n_classes) < (n_classes + 1) // 2, 1, -1).astype(np.int8)
    n_columns = n_classes if n_classes % 2 else n_classes // 2
    return np.stack([np.roll(first, shift) for shift in range(n_columns)], axis=1)


def check_coding_matrix(M: ArrayLike, n_classes: int) -> NDArray[np.int8]:
    """Validate a user's coding matrix.

    Parameters
    ----------
    M : array-like of shape (n_classes, n_columns)
        Entries -1 and +1; rows distinct, no column constant. Repeated columns are allowed:
        they give a problem more weight.
    n_classes : int
        Number of classes C, at least 2.

    Returns
    -------
    ndarray of shape (n_classes, n_columns), int8
        A copy of `M`.

    Raises
    ------
    ValueError
        If `M` is not such a matrix; the message says where.

    Examples
    --------
    >>> check_coding_matrix([[1, 1], [1, -1], [-1, 1]], 3).dtype
    dtype('int8')
    >>> check_coding_matrix([[1, 1], [0, -1], [-1, 1]], 3)
    Traceback (most recent call last):
        ...
    ValueError: coding must have entries -1 and +1 only, got 0 in row 1, column 0
    """
    _check_n_classes(n_classes)
    try:
        A = np.asarray(M)
    except ValueError as error:
        raise ValueError(f"coding must be a 2-D array of numbers: {error}") from error
    if A.dtype.kind not in "iuf":
        raise ValueError(f"coding must be a 2-D array of numbers, got dtype {A.dtype}")
    if A.ndim != 2 or A.shape[0] != n_classes or A.shape[1] == 0:
        raise ValueError(
            f"coding must have shape ({n_classes}, n_columns), one row per class and at "
            f"least one column, got {A.shape}"
        )
    wrong = np.argwhere(np.abs(A) != 1)  # NaN is not 1 either
    if len(wrong):
        c, l = wrong[0]
        raise ValueError(
            f"coding must have entries -1 and +1 only, got {A[c, l]} in row {c}, column {l}"
        )
    first: dict[bytes, int] = {}
    code = A.astype(np.int8)
    for c, row in enumerate(code):
        other = first.setdefault(row.tobytes(), c)
        if other != c:
            raise ValueError(f"coding must have distinct rows, but {other} and {c} are equal")
    constant = np.flatnonzero((code == code[0]).all(axis=0))
    if len(constant):
        raise ValueError(f"coding must not have constant columns, but column {constant[0]} is")
    return code


def coding_matrix(coding: str | ArrayLike, n_classes: int) -> NDArray[np.int8]:
    """Coding matrix by name, or the user's own after a check.

    Parameters
    ----------
    coding : {"ecoc", "ovr"} or array-like of shape (n_classes, n_columns)
        See `ecoc`, `one_vs_rest` and `check_coding_matrix`.
    n_classes : int
        Number of classes C, at least 2.

    Returns
    -------
    ndarray of shape (n_classes, n_columns), int8
        Entries -1 and +1; read-only for ``"ecoc"``.

    Examples
    --------
    >>> coding_matrix("ovr", 4).shape
    (4, 4)
    >>> coding_matrix([[-1], [1]], 2)
    array([[-1],
           [ 1]], dtype=int8)
    """
    if isinstance(coding, str):
        if coding == "ecoc":
            return ecoc(n_classes)
        if coding == "ovr":
            return one_vs_rest(n_classes)
    elif isinstance(coding, Sequence) or hasattr(coding, "__array__"):
        return check_coding_matrix(coding, n_classes)
    raise ValueError(
        "coding must be 'ecoc', 'ovr' or an array of shape (n_classes, n_columns), "
        f"got {coding!r}"
    )


def _check_n_classes(n_classes: int) -> None:
    if n_classes < 2:
        raise ValueError(f"a code needs at least 2 classes, got {n_classes}")


class _Spread:
    """Energy of the pairs of rows of X, and the change that each single flip would make.

    The energy is the sum of ``energy[distance]`` over pairs. A flip of X[i, l] moves the
    distance of i and j by s = X[i, l] X[j, l], and the pair's energy by bend + slope s: for
    all flips at once that is one matrix product, kept up to date in O(size of X) per flip.
    """

    def __init__(self, X: NDArray[np.float64], energy: NDArray[np.float64]) -> None:
        n_bits = X.shape[1]
        around = np.pad(energy, 1, mode="edge")
        # One entry more, zero, for the pair of a row with itself.
        self.bend = np.append((around[2:] + around[:-2]) / 2 - energy, 0.0)
        self.slope = np.append((around[2:] - around[:-2]) / 2, 0.0)
        self.X = X
        self.distance = ((n_bits - X @ X.T) / 2).astype(np.intp)
        np.fill_diagonal(self.distance, n_bits + 1)
        self.bends: NDArray[np.float64] = self.bend[self.distance].sum(axis=1)
        self.slopes: NDArray[np.float64] = self.slope[self.distance] @ X

    def changes(self) -> NDArray[np.float64]:
        """Change of energy for the flip of each entry of X."""
        return self.bends[:, None] + self.X * self.slopes

    def before_flip(self, i: int, l: int) -> None:
        """Account for the flip of X[i, l], which the caller makes next."""
        X, old = self.X, self.distance[i]
        new = old + (X[i, l] * X[:, l]).astype(np.intp)
        new[i] = old[i]
        slope = self.slope[new]
        step = slope - self.slope[old]
        self.slopes[i] += step @ X
        self.slopes += np.outer(step, X[i])
        self.slopes[:, l] -= 2 * X[i, l] * slope
        self.bends += self.bend[new] - self.bend[old]
        self.bends[i] = self.bend[new].sum()
        self.distance[i] = self.distance[:, i] = new


def _energy(excess: NDArray[np.intp], steepness: int) -> NDArray[np.float64]:
    # Powers of 2 in a window of 36 bits: their sums are exact in doubles, in any order, so
    # that the search takes the same path on every machine.
    return np.ldexp(1.0, np.clip(steepness * excess, -8, 28).astype(np.intc))


def _dense_code(C: int, L: int) -> NDArray[np.int8]:
    """Search for a (C, L) code with distant rows and columns; see `ecoc`."""
    rng = np.random.default_rng(0)
    n_steps = min(500 + 15 * C, 4000, 4 * 10**9 // C**2)  # a step costs about C^2
    # From distance to distance up to complement; the last entry is for a column and itself.
    apart = np.append(np.minimum(np.arange(C + 1), np.arange(C, -1, -1)), C + 1)
    best, best_M = (False, 0, 0, 0), np.empty((C, L))
    # The steep energy is the better one for tens of classes and too steep for hundreds.
    for steepness in (1, 2) if C < 200 else (1,):
        halves = np.tile(np.arange(C)[:, None] < C // 2, L)
        M = np.where(rng.permuted(halves, axis=0), -1.0, 1.0)
        # A column of ones, never flipped, keeps the others from being constant.
        M = np.hstack([np.ones((C, 1)), M])
        rows = _Spread(M, _energy(L // 2 - np.arange(L + 2), steepness))
        # 2 is about the best that columns can do for 8 to 12 classes; beyond, it is easy.
        cols = _Spread(M.T, _energy(2 - apart[:-1], steepness))
        rests_until = np.zeros(M.shape, dtype=np.intp)
        rests_until[:, 0] = n_steps
        for step in range(n_steps):
            changes = rows.changes() + cols.changes().T
            changes[rests_until > step] = np.inf
            c, l = divmod(int(changes.argmin()), L + 1)
            rows.before_flip(c, l)
            cols.before_flip(l, c)
            M[c, l] *= -1
            rests_until[c, l] = step + 10 + rng.integers(10)
            row = int(rows.distance.min())
            if row >= best[1] or not best[0]:
                col = int(apart[cols.distance].min())
                pairs = int(np.count_nonzero(rows.distance == row))
                score = (col > 0, row, col, -pairs)
                if score > best:
                    best, best_M = score, M[:, 1:].copy()
    return best_M.astype(np.int8)
