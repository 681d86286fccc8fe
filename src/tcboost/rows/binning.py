"""Features as small integers: exact ranks, or weighted quantiles of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

MISSING = 0  # the bin of NaN; values are in the bins 1, 2, ...
_MAX_RANKS = 65_535  # with the missing bin, what 16 bits hold


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
    features: Iterable[Vector], weight: Vector, max_bins: int | str | None
) -> tuple[Binning, list[NDArray[Any]]]:
    """Choose the cuts: between all distinct values, or `max_bins` weighted quantiles.

    ``"auto"`` is exact up to 65,535 distinct values of a feature and cuts that many quantiles
    beyond; ``None`` is always exact. With the bins of each feature.
    """
    if max_bins is None:
        limit = len(weight) + 1
    else:
        limit = _MAX_RANKS if isinstance(max_bins, str) else int(max_bins)
    cuts, bins, exact = list[Vector](), list[NDArray[Any]](), True
    for x in features:
        ordered = np.sort(x)[: len(x) - np.count_nonzero(np.isnan(x))]  # NaN are the last
        first = np.ones(len(ordered), dtype=bool)
        np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
        values = ordered[first]
        if len(values) <= limit:
            cuts.append(_between(values[:-1], values[1:]))
        else:
            exact = False
            seen = ~np.isnan(x)
            place = np.searchsorted(values, x[seen])
            cumulated = np.cumsum(np.bincount(place, weights=weight[seen]))
            targets = cumulated[-1] * np.arange(1, limit) / limit
            # The nearest end of a value's mass; a hair lower, so that rounding decides no tie.
            between = (cumulated[:-2] + cumulated[1:-1]) / 2
            chosen = np.zeros(len(values), dtype=bool)
            chosen[np.searchsorted(between, targets * (1 - 1e-12))] = True
            ends = np.flatnonzero(chosen)
            cuts.append(_between(values[ends], values[ends + 1]))
        bins.append(bins_of(cuts[-1], x))
    return Binning(tuple(cuts), exact), bins


def bins_of(cuts: Vector, x: Vector) -> NDArray[Any]:
    """Bins of the values of a feature, in the smallest type that holds all of them."""
    bins = (1 + np.searchsorted(cuts, x)).astype(np.min_scalar_type(len(cuts) + 1))
    bins[np.isnan(x)] = MISSING
    return bins


def _between(low: Vector, high: Vector) -> Vector:
    """The middle of each two values, kept below the higher one."""
    middle = low / 2 + high / 2  # halves first: the sum may overflow
    return np.where((low <= middle) & (middle < high), middle, low)
