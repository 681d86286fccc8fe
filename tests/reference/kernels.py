"""Naive twins of the kernels and searches: plain loops, exact arithmetic, no cleverness."""

from __future__ import annotations

import itertools
import math
import struct
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from .algorithms import Array, Ints, thresholds


def prefix_sums(
    bins: npt.NDArray[np.unsignedinteger], V: Ints, offset: Ints
) -> list[list[int]]:
    """Row offset[d] + b holds the sum of V over the rows with 1 <= bins[i, d] <= b.

    Row offset[d] holds the sum over bin 0, the missing values.
    """
    n, n_features = bins.shape
    out = []
    for d in range(n_features):
        for b in range(int(offset[d + 1] - offset[d])):
            total = [0] * V.shape[1]
            for i in range(n):
                x = int(bins[i, d])
                if (x == 0) if b == 0 else (1 <= x <= b):
                    total = [t + int(v) for t, v in zip(total, V[i], strict=True)]
            out.append(total)
    return out


def stump_signs(cells: Ints, bins: Ints, cut: int, missing_right: bool, sign: int) -> list[int]:
    """What a stump says of each row, by the bin of its cell; in bin 0 values are missing."""
    right = [b > cut or (missing_right and b == 0) for b in bins.tolist()]
    return [sign if right[c] else -sign for c in cells.tolist()]


def stump_edges(
    sums: Ints, left: Ints, missing: Ints, rows: tuple[int, int]
) -> list[list[int]]:
    """The total less twice the sums on the left of each stump; a row below zero is none."""
    out, total = [], sums[rows[0]] + sums[rows[1]]
    for on_it in zip(left.tolist(), missing.tolist(), strict=True):
        on_left = [sum(int(sums[r, k]) for r in on_it if r >= 0) for k in range(len(total))]
        out.append([int(t) - 2 * x for t, x in zip(total, on_left, strict=True)])
    return out


def column_edges(A: Ints, places: list[int], signs: list[int]) -> list[list[int]]:
    """Of columns with one row of A and a code, or with a row for each column of A."""
    width = A.shape[1]
    codes = [signs[i : i + width] for i in range(0, len(signs), width)]
    if len(places) == len(codes):
        pairs = zip(places, codes, strict=True)
        return [[sum(m * int(a) for m, a in zip(c, A[j], strict=True))] for j, c in pairs]
    edges = [
        s * int(A[j, i % width]) for i, (j, s) in enumerate(zip(places, signs, strict=True))
    ]
    return [edges[i : i + width] for i in range(0, len(edges), width)]


def largest(A: Ints, codes: Ints | None) -> list[tuple[int, int]]:
    """For each code the first row of A whose product with it is the largest, and that.

    Without codes for the best code of each row.
    """
    if codes is None:
        edges = [[sum(abs(int(a)) for a in row) for row in A]]
    else:
        edges = (A @ codes.astype(np.int64)).T.tolist()
    best = (max(range(len(e)), key=lambda j: (abs(e[j]), -j)) for e in edges)
    return [(j, e[j]) for j, e in zip(best, edges, strict=True)]


def largest_of_parts(A: Ints, starts: Ints, limit: int) -> list[list[tuple[int, int]]]:
    """For each column the best row of each part, the best of these first."""
    columns = []
    for column in A.T.tolist():
        parts = (range(*part) for part in itertools.pairwise(starts.tolist()))
        rows = [max(part, key=lambda j: (abs(column[j]), -j)) for part in parts]
        rows.sort(key=lambda j: (-abs(column[j]), j))
        columns.append([(j, column[j]) for j in rows[:limit]])
    return [list(found) for found in zip(*columns, strict=True)]


def row_hash(row: Array, seed: int) -> int:
    """Multiply and shift after every value; there is one NaN and one zero."""
    h, whole = seed, 2**64
    for x in row.tolist():
        x = math.nan if x != x else x + 0.0
        h ^= struct.unpack("<Q", struct.pack("<d", x))[0]
        h = h * 0xFF51AFD7ED558CCD % whole
        h ^= h >> 32
        h = h * 0xC4CEB9FE1A85EC53 % whole
        h ^= h >> 29
    return h


def bins_of(cuts: Array, x: Array) -> list[int]:
    """1 + the number of cuts below each value; 0 for NaN."""
    return [0 if v != v else 1 + sum(c < v for c in cuts.tolist()) for v in x.tolist()]


def join_cells(cells: Ints, bins: Ints) -> tuple[list[int], list[tuple[int, int]]]:
    """The number of each row's pair among those that occur, in order, and the pairs."""
    rows = list(zip(cells.tolist(), bins.tolist(), strict=True))
    pairs = sorted(set(rows))
    return [pairs.index(row) for row in rows], pairs


def ranks(x: Array) -> list[int]:
    """The place of each value among the distinct ones, from 1; 0 for NaN."""
    distinct = sorted({v for v in x.tolist() if v == v})
    return [0 if v != v else 1 + distinct.index(v) for v in x.tolist()]


def quantile_ends(x: Array, weight: Ints, n_bins: int) -> list[int]:
    """The ranks after which a bin ends, in fractions: integer weights only.

    Bin k ends after the value whose cumulated weight is nearest to k / n_bins of the total,
    the lower one if two are; never after the last value, which has no cut above it.
    """
    rank = ranks(x)
    mass = [Fraction(0)] * max(rank)
    for r, w in zip(rank, weight.tolist(), strict=True):
        if r > 0:
            mass[r - 1] += Fraction(w)
    cumulated = list(itertools.accumulate(mass))
    ends = set()
    for k in range(1, n_bins):
        target = cumulated[-1] * Fraction(k, n_bins)
        ends.add(1 + min(range(len(mass) - 1), key=lambda j: abs(cumulated[j] - target)))
    return sorted(ends)


@dataclass(frozen=True)
class MissingStump:
    """h(x) = +1 if x_feature > threshold, or if it is NaN and goes right; else -1."""

    feature: int
    threshold: float
    missing_right: bool

    def predict(self, X: Array) -> Ints:
        values = X[:, self.feature].tolist()
        right = [self.missing_right if v != v else v > self.threshold for v in values]
        return np.array([1 if r else -1 for r in right])


def all_missing_stumps(X: Array) -> list[MissingStump]:
    """Every stump of sign +1, with the missing values on either side."""
    stumps = []
    for d in range(X.shape[1]):
        x = X[:, d]
        cuts = [*thresholds(x[~np.isnan(x)]), math.inf]
        stumps += [MissingStump(d, t, side) for t in cuts for side in (False, True)]
    return stumps


def largest_edge(X: Array, v: Ints) -> int:
    """The largest abs(sum_i v_i h(x_i)) over all stumps."""
    return max(abs(edge(h.predict(X), v)) for h in all_missing_stumps(X))


def largest_coded_edge(X: Array, V: Ints) -> int:
    """The largest sum_ic V_ic m_c h(x_i) over all stumps and all 2^C codes m."""
    best = 0
    for h in all_missing_stumps(X):
        a = [edge(h.predict(X), V[:, c]) for c in range(V.shape[1])]
        for m in itertools.product((1, -1), repeat=len(a)):
            best = max(best, sum(x * y for x, y in zip(m, a, strict=True)))
    return best


def edge(h: Ints, v: Ints) -> int:
    """sum_i v_i h_i, in unbounded integers."""
    return sum(int(a) * int(b) for a, b in zip(h.tolist(), v.tolist(), strict=True))


def largest_cut(p: Array, v: Array, resolution: float = 0.0) -> Fraction:
    """The largest abs(sum_i v_i h_i), h_i = +1 where p_i is above a cut, -1 below it.

    The cuts are the constant one and those between neighbours further apart than resolution.
    """
    exact = [Fraction(x) for x in v.tolist()]
    values = p.tolist()
    best = abs(sum(exact))
    for low, high in itertools.pairwise(sorted(values)):
        if high - low > resolution:
            signed = (w if x >= high else -w for x, w in zip(values, exact, strict=True))
            best = max(best, abs(sum(signed)))
    return best


def fisher_direction(X: Array, v: Array) -> Array:
    """The inverse of the pooled scatter times the difference of the means, weighted by abs(v).

    Positive v is the one class, negative v the other.
    """
    D = X.shape[1]
    means = []
    for sign in (1, -1):
        rows = [i for i in range(len(v)) if sign * v[i] > 0]
        total = math.fsum(abs(v[i]) for i in rows)
        means.append([math.fsum(abs(v[i]) * X[i, d] for i in rows) / total for d in range(D)])
    centred = np.array([X[i] - means[0 if v[i] > 0 else 1] for i in range(len(v))])
    scatter = np.empty((D, D))
    for a in range(D):
        for b in range(D):
            scatter[a, b] = math.fsum(np.abs(v) * centred[:, a] * centred[:, b])
    return np.linalg.solve(scatter, np.subtract(*means))


def table_scores(
    X: Array, feature: Ints, start: Ints, cuts: Array, table: Array, base: Array, width: int
) -> list[list[float]]:
    """A row of the table for each feature: of NaN, or by the number of cuts below the value."""
    out = []
    for x in X.tolist():
        F, first = base[:width].tolist(), 0
        for d, a, b in zip(feature.tolist(), start[:-1], start[1:], strict=True):
            below = sum(c < x[d] for c in cuts[a:b].tolist())
            row = table[first + (0 if x[d] != x[d] else 1 + below)].tolist()
            F = [f + t for f, t in zip(F, row, strict=False)]
            first += 2 + int(b - a)
        out.append(F)
    return out


def pairwise_adjoint(u: Ints, y: Ints) -> list[list[int]]:
    """V[i, y_i] is the sum of u[i], the other classes in turn have minus an entry of it."""
    out = []
    for row, own in zip(u.tolist(), y.tolist(), strict=True):
        v = [-x for x in row]
        v.insert(own, sum(row))
        out.append(v)
    return out


def sums_by_class(u: Ints, y: Ints) -> list[list[int]]:
    """Of V, for every class, one more than there are columns of u."""
    out = [[0] * (u.shape[1] + 1) for _ in range(u.shape[1] + 1)]
    for row, own in zip(pairwise_adjoint(u, y), y.tolist(), strict=True):
        out[own] = [a + b for a, b in zip(out[own], row, strict=True)]
    return out


def pairwise_margins(outputs: Ints, y: Ints) -> list[list[int]]:
    """o_y - o_c for every class c but y."""
    return [
        [o[own] - x for c, x in enumerate(o) if c != own]
        for o, own in zip(outputs.tolist(), y.tolist(), strict=True)
    ]


def pairwise_wrong(z: Array, y: Ints) -> list[bool]:
    """Where a class scores higher, or as high and comes first."""
    out = []
    for row, own in zip(z.tolist(), y.tolist(), strict=True):
        others = [c for c in range(len(row) + 1) if c != own]
        out.append(any(m < 0 or (m == 0 and c < own) for m, c in zip(row, others, strict=True)))
    return out


def log_loss_weights(z: Array, weight: Array) -> tuple[Array, float]:
    """weight_i exp(-z_ik) / K, normalised, and the logarithm of the sum."""
    K = z.shape[1]
    x = [[math.log(s / K) - m for m in row] for s, row in zip(weight, z.tolist(), strict=True)]
    top = max(map(max, x))
    e = [[math.exp(v - top) for v in row] for row in x]
    total = math.fsum(v for row in e for v in row)
    return np.array(e) / total, top + math.log(total)


def looked_up(cells, used, first, table, M, y):
    """Codeword margins of scores that are sums of table rows, and which rows are wrong."""
    n_classes, width = M.shape
    z, wrong = [], []
    for row, own in zip(cells.tolist(), y.tolist(), strict=True):
        F = [sum(table[first[g] + row[g], k] for g in used) for k in range(width)]
        scores = [sum(int(M[c, k]) * F[k] for k in range(width)) for c in range(n_classes)]
        z.append([int(M[own, k]) * F[k] for k in range(width)])
        wrong.append(scores.index(max(scores)) != own)
    return np.array(z, dtype=float), np.array(wrong)


def multiplied(
    E: Array, coefficient: float, code: Ints, signs: Ints, y: Ints, weight: Array, bits: int
) -> tuple[Array, list[list[int]], float]:
    """``exp(-z)`` after a round, in integers without the own class; the wrong rows."""
    E, u, wrong = E.copy(), [], 0.0
    n_classes = len(code)
    for i, own in enumerate(y.tolist()):
        u.append([])
        is_wrong = False
        for c in range(n_classes):
            E[i, c] *= math.exp(-coefficient * int(signs[i]) * (int(code[own]) - int(code[c])))
            if c != own:
                u[i].append(round(Fraction(weight[i] * 2.0**bits * E[i, c])))
                is_wrong |= E[i, c] > (1 - 1e-12 if c < own else 1 + 1e-12)
        wrong += weight[i] if is_wrong else 0.0
    return E, u, wrong
