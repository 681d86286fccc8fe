"""Features as small integers: exact ranks, or weighted quantiles of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core import bins_of
from .in_threads import in_threads

Vector = NDArray[np.float64]

MISSING = 0  # the bin of NaN; values are in the bins 1, 2, ...
_MAX_RANKS = 65_535  # with the missing bin, what 16 bits hold
_MANY = 1 << 15  # rows from which on a thread takes less time than it saves


class Binning(NamedTuple):
    """Cuts between bins, ascending, for every feature.

    A value x lies in bin ``1 + (number of cuts below x)``, so ``bin > b`` on the training
    data and ``x > cuts[b - 1]`` on new data are the same question.
    """

    cuts: tuple[Vector, ...]
    exact: bool

    @property
    def n_bins(self) -> NDArray[np.int64]:
        """Bins of each feature, the missing one included."""
        return np.array([len(c) + 2 for c in self.cuts], dtype=np.int64)


def bin_features(
    blocks: Iterable[Vector], weight: Vector, max_bins: int | str | None, n_threads: int = 1
) -> tuple[Binning, list[NDArray[Any]]]:
    """Choose the cuts: between all distinct values, or `max_bins` weighted quantiles.

    ``"auto"`` is exact up to 65,535 distinct values of a feature and cuts that many quantiles
    beyond; ``None`` is always exact. With the bins of each feature. Features come in blocks
    (features, rows), each of which is done before the next one is asked for.
    """
    if max_bins is None:
        limit = len(weight) + 1
    else:
        limit = _MAX_RANKS if isinstance(max_bins, str) else int(max_bins)
    cut = partial(cut_feature, weight=weight, limit=limit)
    found: list[tuple[Vector, bool, NDArray[Any]]] = []
    n_threads = n_threads if len(weight) >= _MANY else 1
    for block in blocks:
        found += in_threads(cut, n_threads, block)
    cuts, exact, bins = zip(*found, strict=True)
    return Binning(cuts, all(exact)), list(bins)


def cut_feature(x: Vector, weight: Vector, limit: int) -> tuple[Vector, bool, NDArray[Any]]:
    """Of one feature the cuts, whether they are exact, and the bins."""
    ordered = np.sort(x)
    ordered = ordered[: np.searchsorted(ordered, np.nan)]  # NaN are the last
    first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    values = ordered[first]
    exact = len(values) <= limit
    if exact:
        cuts = _between(values[:-1], values[1:])
        bins = bins_of(cuts, x)
    else:
        # A value has as many values below it as its place; the first bin is that of NaN.
        places = bins_of(values, x)
        cumulated = np.cumsum(np.bincount(places, weights=weight)[1:])
        targets = cumulated[-1] * np.arange(1, limit) / limit
        # The nearest end of a value's mass; a hair lower, so that rounding decides no tie.
        between = (cumulated[:-2] + cumulated[1:-1]) / 2
        chosen = np.zeros(len(values), dtype=bool)
        chosen[np.searchsorted(between, targets * (1 - 1e-12))] = True
        ends = np.flatnonzero(chosen)
        cuts = _between(values[ends], values[ends + 1])
        bins = bins_of(cuts, np.append(np.nan, values)).take(places)  # sooner than those of x
    return cuts, exact, bins


def _between(low: Vector, high: Vector) -> Vector:
    """The middle of each two values, kept below the higher one."""
    middle = low / 2 + high / 2  # halves first: the sum may overflow
    return np.where((low <= middle) & (middle < high), middle, low)
