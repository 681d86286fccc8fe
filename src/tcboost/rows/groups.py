"""Features with few bins, counted together: the cells of a group are combinations of bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _core

if TYPE_CHECKING:
    from .._core import GroupArrays

_CELLS = 256  # of a group of several features, at the most: what 8 bits hold


@dataclass(frozen=True)
class Groups:
    """Which features are counted together, and the bins of the cells (``cpp/histogram.hpp``).

    The cells of group g are the rows ``first[g]`` to ``first[g + 1]`` of a table, the bins of
    feature d the rows ``offset[d]`` to ``offset[d + 1]`` of another. `place` has, feature by
    feature, the bin of each cell of the feature's group; those of d start at ``start[d]``.
    """

    first: NDArray[np.int64]
    group: NDArray[np.int64]
    place: NDArray[np.int32]
    offset: NDArray[np.int64]
    start: NDArray[np.int64]

    def arrays(self) -> GroupArrays:
        """For kernels."""
        return self.first, self.group, self.place, self.offset

    def bins(self, d: int) -> NDArray[np.int32]:
        """Of feature d, the bin of each cell of its group."""
        return self.place[self.start[d] : self.start[d + 1]]


def group_features(
    bins: Sequence[NDArray[Any]],
    n_bins: NDArray[np.int64],
    apart: bool = False,
    n_threads: int = 1,
) -> tuple[NDArray[Any], Groups]:
    """The cells of all rows (rows, groups), by columns, and what they mean, from their bins.

    A feature joins the last group as long as few combinations of bins occur, those with few
    bins first. It is exact: one-hot features make as many cells as there were categories. Or
    all stay apart.
    """
    members: list[list[int]] = []
    cells: list[NDArray[Any]] = []
    places: dict[int, NDArray[Any]] = {}
    n_cells: list[int] = []
    for d in np.argsort(n_bins, kind="stable").tolist():
        n, bin_of = int(n_bins[d]), bins[d]
        if members and not apart and n_cells[-1] * n <= _CELLS * _CELLS:
            joined = join_cells(cells[-1], n_cells[-1], bin_of, n, _CELLS, n_threads)
            if joined is not None:
                joint, cell, places[d] = joined
                cells[-1], n_cells[-1] = joint.astype(np.uint8), len(cell)
                for member in members[-1]:
                    places[member] = places[member][cell]
                members[-1].append(d)
                continue
        members.append([d])
        cells.append(bin_of)
        places[d] = np.arange(n)
        n_cells.append(n)
    D = len(n_bins)
    group = np.empty(D, dtype=np.int64)
    for g, features in enumerate(members):
        group[features] = g
    place = np.concatenate([places[d] for d in range(D)]).astype(np.int32)
    counts = n_cells, n_bins.tolist(), [len(places[d]) for d in range(D)]
    first, offset, start = (np.array([0, *accumulate(n)], dtype=np.int64) for n in counts)
    return np.array(cells).T, Groups(first, group, place, offset, start)


def join_cells(
    cells: NDArray[Any],
    n_cells: int,
    bins: NDArray[Any],
    n_bins: int,
    most: int,
    n_threads: int,
) -> tuple[NDArray[np.int32], NDArray[np.intp], NDArray[np.intp]] | None:
    """Number the pairs of a cell and a bin that occur: of each row, and the two of each pair.

    They are in order. None if there are more than `most`.
    """
    joined = _core.join_cells(cells, n_cells, bins, n_bins, most, n_threads)
    if joined is None:
        return None
    number, pairs = joined
    return number, pairs // n_bins, pairs % n_bins
