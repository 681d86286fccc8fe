"""The training rows, in a canonical order and in fixed blocks.

Whatever boosting asks of the data is a sum over rows, or a value per row. `LocalRows` answers
from memory; a cluster answers the same two calls, `sum` and `map`, with its blocks elsewhere,
because a kernel sees one block at a time and integer sums are exact in any order.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from functools import reduce
from multiprocessing import current_process
from operator import add
from typing import Any, NamedTuple

import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from .._core import (
    chosen_values,
    hash_rows,
    look_up_and_sum,
    multiply_and_sum,
    prefix_sums,
    weigh_and_sum,
)
from .._kept import kept_property
from .binning import Binning, bin_features
from .groups import Groups, group_features

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]

_BLOCK = 1 << 20
_GROUPED = 1 << 8  # fewer rows are counted sooner than their features are grouped
_NO_MACHINE = 1 << 16  # has more cores
_TOGETHER = 8  # features cut at a time: in a row their values are a line of the cache


class Block(NamedTuple):
    """Consecutive rows: their cells, and which rows they are."""

    cells: NDArray[Any]
    rows: slice
    groups: Groups
    n_threads: int

    def prefix_sums(
        self,
        V: NDArray[np.int64],
        y: NDArray[np.intp] | None = None,
        M: NDArray[np.int8] | None = None,
    ) -> NDArray[np.int64]:
        """Kernel: sums of V by feature, cumulated over bins (``cpp/histogram.hpp``).

        With classes y it is the dual weights of pairwise margins, or with a code M of
        codeword margins, and V their adjoint, which is never held as a whole; of pairwise
        ones the sums of V by class come last.
        """
        V = np.ascontiguousarray(V)
        return prefix_sums(self.cells, V, y, M, self.groups.arrays(), self.n_threads)

    def weigh_and_sum(
        self,
        z: Vector,
        weight: Vector,
        y: NDArray[np.intp],
        M: NDArray[np.int8] | None,
    ) -> tuple[NDArray[np.int64], tuple[float, int, int, float]]:
        """The same of the dual weights at the margins z, which are never held as a whole.

        With what ``dual_integers`` tells of them.
        """
        z, arrays = np.ascontiguousarray(z), self.groups.arrays()
        return weigh_and_sum(z, weight, self.cells, y, M, arrays, self.n_threads)

    def multiply_and_sum(
        self,
        E: Vector,
        weight: Vector,
        y: NDArray[np.intp],
        step: tuple[float, NDArray[np.int8], tuple[int, int, bool, int]],
        bits: int,
    ) -> tuple[NDArray[np.int64], int, float, float]:
        """The same of weights that are kept as products (``cpp/products.hpp``)."""
        arrays = self.cells, y, self.groups.arrays()
        return multiply_and_sum(E, *step, weight, bits, *arrays, self.n_threads)

    def look_up_and_sum(
        self,
        weight: Vector,
        y: NDArray[np.intp],
        table: Vector,
        used: Integers,
        M: NDArray[np.int8],
        top: float,
        bits: int,
        tie: float,
    ) -> tuple[NDArray[np.int64], int, float, float]:
        """The same of weights at margins that are looked up (``cpp/looked_up.hpp``)."""
        rule, arrays = (used, table, y, M, weight, top, bits, tie), self.groups.arrays()
        return look_up_and_sum(self.cells, *rule, arrays, self.n_threads)


class LocalRows:
    """Rows in memory.

    Equal rows of equal class are merged, their weights added, and the rest is ordered by a
    hash of the content: a fit sees the same rows in the same order however the data were
    ordered, and however often all of them were repeated (to the last bit if the weights are
    integers, as they are without `sample_weight`).

    Bins are all that stumps need. Of the features themselves no copy is kept: they stay where
    they were given, and `X` gathers them for whoever asks. With `chosen`, y and weight are of
    these rows of X only, which are known to differ and to be in this order.
    """

    def __init__(
        self,
        X: Vector,
        y: NDArray[np.intp],
        weight: Vector,
        max_bins: int | str | None,
        n_jobs: int | None,
        chosen: NDArray[np.intp] | None = None,
    ) -> None:
        self.n_threads = effective_n_jobs(n_jobs)
        if chosen is None:
            order, starts = canonical_groups(X, y, weight, self.n_threads)
            chosen, weight = order[starts], np.add.reduceat(weight[order], starts)
            y = y[chosen]
        self._given, self._chosen, self.y = X, chosen, y
        self.n_given = len(X)
        self.weight: Vector = weight / exact_sum(weight)
        self._max_bins = max_bins
        self.binning: Binning
        threads = self.n_threads
        self.binning, bins = bin_features(self._features(), self.weight, max_bins, threads)
        apart = len(self) < _GROUPED
        cells, self.groups = group_features(bins, self.binning.n_bins, apart, threads)
        parts = [slice(i, i + _BLOCK) for i in range(0, len(cells), _BLOCK)]
        self.blocks = [
            Block(np.asfortranarray(cells[part]), part, self.groups, self.n_threads)
            for part in parts
        ]

    def _features(self) -> Iterator[Vector]:
        """Some features (features, rows) after the other, in the same room."""
        n_features = self._given.shape[1]
        room = np.empty((min(n_features, _TOGETHER), len(self)))
        for d in range(0, n_features, _TOGETHER):
            block = room[: n_features - d]
            chosen_values(self._given, self._chosen, d, block, self.n_threads)
            yield block

    def __len__(self) -> int:
        return len(self.y)

    @kept_property
    def X(self) -> Vector:
        """The features of the rows, in a copy that is kept."""
        return _one_nan(self._given[self._chosen])

    def weights_of(self, d: int) -> Vector:
        """The weight of each bin of a feature."""
        group, of = self.groups.group[d], self.groups.bins(d)
        cells = np.zeros(len(of))
        for block in self.blocks:
            weight = self.weight[block.rows]
            cells += np.bincount(block.cells[:, group], weight, len(of))
        return np.bincount(of, cells, int(self.binning.n_bins[d])).astype(float)

    def subset(self, chosen: NDArray[np.bool_], at_once: int = 1) -> LocalRows:
        """Some of the rows, in the same order, binned anew; so many such share the threads."""
        weight, kept = self.weight[chosen], self._chosen[chosen]
        n_threads = max(1, self.n_threads // at_once)
        return LocalRows(self._given, self.y[chosen], weight, self._max_bins, n_threads, kept)

    @property
    def group(self) -> NDArray[np.intp]:
        """The first of the rows that have the same features, for each row."""
        bits = self.X.view(np.uint64)  # canonical order: they are neighbours
        new = np.concatenate([[True], (bits[1:] != bits[:-1]).any(axis=1)])
        return np.flatnonzero(new)[np.cumsum(new) - 1]

    def hold_out(self, fraction: float) -> tuple[LocalRows, LocalRows]:
        """Split off a fraction of the rows of each class, rounded down, by their content."""
        held = self.held_out(fraction)
        return self.subset(~held), self.subset(held)

    def held_out(self, fraction: float) -> NDArray[np.bool_]:
        """Which of the rows these are."""
        held = np.zeros(len(self), dtype=bool)
        for c in np.unique(self.y):
            members = np.flatnonzero(self.y == c)
            held[members[np.diff(np.floor(fraction * np.arange(len(members) + 1))) > 0]] = True
        together = held[self.group]  # rows of other classes that look the same go along
        held = held if together.all() else together
        if not held.any():
            raise ValueError(
                f"validation_fraction={fraction} is less than one row of every class"
            )
        return held

    def sum(self, kernel: Callable[..., Any], *aligned: NDArray[Any]) -> Any:
        """Add up ``kernel(block, *values of its rows)`` over the blocks."""
        return reduce(add, self.map(kernel, *aligned))

    def map(self, kernel: Callable[..., Any], *aligned: NDArray[Any]) -> list[Any]:
        """``kernel(block, *values of its rows)`` for each block."""
        return [kernel(b, *(a[b.rows] for a in aligned)) for b in self.blocks]


def effective_n_jobs(n_jobs: int | None) -> int:
    """Threads to use: no more than there are cores that this process may use, all for -1.

    None means what joblib says, where it says something: the `n_jobs` of the context, or what a
    worker was given, which is one thread unless it is a process of loky. Else it means all.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; None means all cores")
    if n_jobs is not None and n_jobs > _NO_MACHINE:
        raise ValueError(
            f"n_jobs={n_jobs} is more cores than any machine has; None means all cores"
        )
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        cores = os.cpu_count() or 1
    if n_jobs is None:
        backend, n_jobs = get_active_backend()
        if n_jobs is None:
            n_jobs = _of_a_worker(backend.nesting_level or 0)
    return max(1, cores + 1 + n_jobs if n_jobs < 0 else min(n_jobs, cores))


def _of_a_worker(depth: int) -> int:
    """The threads of a worker of joblib, at a depth of 1 or more; -1 outside."""
    if depth <= 0:
        return -1
    given = os.environ.get("OMP_NUM_THREADS", "")  # joblib sets it for each process of loky
    loky = depth == 1 and current_process().name.startswith("Loky")
    return int(given) if loky and given.isdigit() else 1


def canonical_groups(
    X: Vector, y: NDArray[np.intp], weight: Vector, n_threads: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """An order of the rows that depends on their content only, and where its groups start."""
    first, second = hash_rows(X, n_threads)
    order = np.argsort(first)
    ordered = first[order]
    # The rest decides among those that have the same one: mostly they are the same row.
    same = np.concatenate([[False], ordered[1:] == ordered[:-1]])
    tied = same | np.append(same[1:], False)
    rows = np.sort(order[tied])
    keys = (key[rows] for key in (weight, y, second, first))
    order[tied] = rows[np.lexsort(tuple(keys))]
    # The content decides, not the hash: a collision would cost order, never correctness.
    alike = np.flatnonzero(same)
    for part in np.array_split(alike, 1 + len(alike) // _BLOCK):
        this, last = order[part], order[part - 1]
        bits, others = (_one_nan(X[rows]).view(np.uint64) for rows in (this, last))
        same[part] = (bits == others).all(axis=1) & (y[this] == y[last])
    return order, np.flatnonzero(~same)


def exact_sum(weight: Vector) -> float:
    """The sum, rounded once: it is the same in any order."""
    unit = float(weight.min())
    counts = weight / unit  # numbers of rows, mostly: they take a fifth of the time
    if math.frexp(unit)[0] == 0.5 and (counts == np.rint(counts)).all():
        total = float(counts.sum())
        if total < 2**53:
            return unit * total
    return math.fsum(weight.tolist())


def _one_nan(X: Vector) -> Vector:
    """A copy with one kind of NaN and one of zero."""
    return np.where(np.isnan(X), np.nan, X + 0.0)
