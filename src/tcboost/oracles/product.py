"""Products of decision stumps (Kegl and Busa-Fekete, 2009), fitted factor by factor."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..rows.blocks import LocalRows
from .base import Hypothesis, Vector
from .fitted import FittedOracle
from .stump import CONSTANT, Stump, StumpOracle

N_FACTORS = 3  # the constant stump is a factor, too: a product may have fewer


class Product(NamedTuple):
    """``h(x) = prod_k stump_k(x)``; a missing value is on one side of each of its stumps."""

    factors: tuple[Stump, ...]

    def predict(self, X: Vector) -> NDArray[np.int8]:
        """-1 or +1 for each row."""
        return np.prod([h.predict(X) for h in self.factors], axis=0, dtype=np.int8)


class ProductOracle(FittedOracle):
    """Products of stumps. Each factor is searched exactly, the product as a whole is not."""

    def __init__(self, rows: LocalRows) -> None:
        super().__init__(rows)
        self._stumps = StumpOracle(rows)
        self.hypothesis_class = f"products of {N_FACTORS} {self._stumps.hypothesis_class}"

    def best(self, V: NDArray[Any]) -> list[tuple[Hypothesis, float]]:
        """One product for each column v; its edge is at least that of the best stump.

        With all factors but one fixed the edge is ``sum_i (v_i prod_others(x_i)) stump(x_i)``,
        so the best stump for v times the others is the best factor. The first one is found
        beside constants, and no edge ever falls.
        """
        factors = [[CONSTANT] * N_FACTORS for _ in V.T]
        outputs = np.ones((N_FACTORS, *V.shape), dtype=np.int8)
        edges = V.sum(axis=0).astype(float)
        growing = True
        while growing:
            growing = False
            for k in range(N_FACTORS):
                others = outputs.prod(axis=0, dtype=np.int8) * outputs[k]  # +-1: twice is none
                found = self._stumps.price(self._rows, V * others).best(None)
                for l, (h, edge) in enumerate(found):
                    if edge > edges[l]:
                        factors[l][k], edges[l], growing = h, edge, True
                        outputs[k, :, l] = h.predict(self._rows.X)
        return [(Product(tuple(f)), float(e)) for f, e in zip(factors, edges, strict=True)]
