"""Products with the signs of hypotheses, where stumps on one feature form a chain."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .._core import chain_scores, chain_sums
from .base import Vector

_LONGEST = 65_535  # a place in a chain has 16 bits; a part of a chain is a chain


class Chains:
    """The signs H (rows, columns) of hypotheses: see ``cpp/chains.hpp``.

    `keys` are those of `StumpOracle.chains`; without them each hypothesis is a chain.
    """

    def __init__(
        self, H: NDArray[np.int8], keys: NDArray[np.int64] | None = None, n_threads: int = 1
    ) -> None:
        t, self._n_threads = H.shape[1], n_threads
        if keys is None:
            keys = np.arange(4 * t).reshape(t, 4)
        self._order = np.lexsort(keys.T[::-1])
        chain = keys[self._order, :3]
        first = np.flatnonzero(np.append(True, (chain[1:] != chain[:-1]).any(axis=1)))
        first = np.concatenate([np.arange(*ends, _LONGEST) for ends in pairwise([*first, t])])
        self._first = np.append(first, t).astype(np.int64)
        self._places = np.empty((len(H), len(first)), dtype=np.uint16, order="F")
        for g, members in enumerate(np.split(self._order, first[1:])):
            total = H.T[members].sum(axis=0, dtype=np.int64)  # of -1 and +1
            self._places[:, g] = (total + len(members)) // 2

    def scores(self, V: Vector) -> Vector:
        """``H V`` (rows, classes)."""
        V = V.take(self._order, axis=0)
        return chain_scores(self._places, self._first, V, self._n_threads)

    def pull(self, A: Vector) -> Vector:
        """``H' A`` (columns, classes)."""
        out = np.empty((len(self._order), A.shape[1]))
        A = np.ascontiguousarray(A)
        out[self._order] = chain_sums(self._places, self._first, A, self._n_threads)
        return out
