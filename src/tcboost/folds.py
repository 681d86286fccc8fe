"""Which rows are held out to choose a penalty: by their content, not by where they stand."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .training import Places, TrainingRows, Vector

Mask = NDArray[np.bool_]

_FOLDS = 5
_ENOUGH = 1000  # rows held out: of many rows, fewer folds than there are tell enough
_ODD = 0.618
_GRID = 12  # bits of a value that count, of the range of its column


def splits(
    rows: TrainingRows, cv: int | Iterable[Any] | None, kept: Mask
) -> list[tuple[Mask, Mask]]:
    """Rows to fit to and rows held out; of a number of folds no more than many rows need.

    Splits are of all rows that were given, of which `rows` are those `kept`.
    """
    if cv is None or isinstance(cv, int | Integral):
        n_folds = _FOLDS if cv is None else int(cv)
        units = int(rows.units.sum())
        fold = content_folds(rows, n_folds)
        held = [fold == k for k in range(min(n_folds, -(-_ENOUGH * n_folds // units)))]
        return [(~one, one) for one in held if 0 < np.count_nonzero(one) < len(one)]
    found = []
    for pair in cv:
        fit, held_out = (np.zeros(len(kept), dtype=bool) for _ in range(2))
        for mask, places in zip((fit, held_out), pair, strict=True):
            mask[places] = True
        found.append((fit[kept], held_out[kept]))
    if not found or not all(mask.any() for pair in found for mask in pair):
        raise ValueError("cv needs splits, each with rows to fit to and rows held out")
    return found


def content_folds(rows: TrainingRows, n_folds: int) -> NDArray[np.intp]:
    """A fold for each row given, stratified by class.

    The rows of a class are cut into blocks by a hash that small changes of a value do not
    change, so that a row more or less, another order of rows, mostly of columns, or a tiny
    shift leave nearly all where they were. Copies of a row stay together.
    """
    n, starts, y = len(rows.labels), rows.starts, rows.y
    key, in_turn = _content_hashes(rows.X, rows.chosen)
    unit = np.repeat(np.arange(len(starts)), rows.units)  # of each place, the rows that differ
    order = np.lexsort((unit, in_turn[unit], key[unit], y[unit]))
    of_class, key, in_turn = (of[unit[order]] for of in (y, key, in_turn))
    alike = _runs(of_class, key)
    same = alike | _runs(of_class, in_turn)
    # Where the order of columns is all that tells rows apart, it has to.
    several = np.add.reduceat(same.astype(np.intp), np.flatnonzero(alike)) > 1
    key = np.where(several[np.cumsum(alike) - 1], in_turn, key)
    # A number of its own for each of those that are alike, then blocks of a class.
    copy = np.arange(len(order)) - np.flatnonzero(same)[np.cumsum(same) - 1]
    sort = np.lexsort((unit[order], _mixed(key + _mixed(copy)), of_class))
    order, of_class = order[sort], of_class[sort]
    first, size = np.searchsorted(of_class, of_class), np.bincount(y[unit])[of_class]
    fold = np.empty(len(order), dtype=np.intp)
    rank = np.arange(len(order)) - first
    fold[order] = (rank * n_folds // size + of_class) % n_folds
    of_row = np.empty(n, dtype=np.intp)
    of_row[rows.order] = np.repeat(fold, np.where(rows.together, rows.counts, 1)[unit])
    return of_row


def _runs(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Which places differ from the last one."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return new


def _mixed(x: NDArray[Any]) -> NDArray[np.uint64]:
    """Each number hashed."""
    h = x.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        h = (h ^ (h >> np.uint64(shift))) * np.uint64(factor)
    return h ^ (h >> np.uint64(31))


def _content_hashes(X: Vector, chosen: Places) -> NDArray[np.uint64]:
    """Of each row, whatever the order of its columns, and with it; values on a grid."""
    hashes = np.zeros((2, len(chosen)), dtype=np.uint64)
    for column, factor in zip(X.T, _mixed(np.arange(X.shape[1])), strict=True):
        x = column[chosen]
        there = ~np.isnan(x)
        step = 1.0
        if there.any():
            # The grid is that of all spreads between two that nobody writes down.
            spread = _ODD * (float(x[there].max()) / 2.0 - float(x[there].min()) / 2.0)
            step = 2.0 ** (max(int(np.frexp(spread)[1]), -1000) + 1 - _GRID)
        place = np.zeros(len(x), dtype=np.int64)
        # Not halfway between values that people write down.
        with np.errstate(over="ignore"):
            place[there] = np.floor(np.clip(x[there] / step + _ODD, -(2.0**62), 2.0**62))
        value = np.where(there, _mixed(place), np.uint64(1))
        hashes += value, value * factor
    return hashes
