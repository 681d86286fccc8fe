"""The fitted additive model: columns, coefficients, and how scores follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..margins import Margin
from ..oracles import Column, Stump

Vector = NDArray[np.float64]

_CELLS = 1 << 22  # outputs held at a time


@dataclass(frozen=True)
class Ensemble:
    """``F(x) = sum_j w_j o_j(x)`` over the columns j, and the class scores of F."""

    columns: list[Column]
    w: Vector
    margin: Margin

    def scores(self, X: Vector) -> Vector:
        """Class scores (rows, classes), equations (1) and (2) of the paper."""
        return self.margin.scores(self.outputs(X))

    def outputs(self, X: Vector) -> Vector:
        """``F(x)`` for each row."""
        active = [(c, w) for c, w in zip(self.columns, self.w, strict=True) if np.any(w)]
        F = np.zeros((len(X), self.margin.n_outputs))
        if active and all(isinstance(h, Stump) for c, _ in active for h in c.hypotheses):
            self._add_stumps(X, active, F)
        else:
            for column, w in active:
                F += w * column.outputs(X)
        return F

    def _add_stumps(self, X: Vector, active: list[tuple[Column, Any]], F: Vector) -> None:
        """All stumps at once, some rows at a time."""
        stumps: list[list[Any]] = [list(c.hypotheses) for c, _ in active]
        feature = np.array([[h.feature for h in row] for row in stumps])
        threshold = np.array([[h.threshold for h in row] for row in stumps])
        missing = np.array([[h.missing_right for h in row] for row in stumps])
        sign = np.array([[h.sign for h in row] for row in stumps])
        if self.w.ndim == 2:  # a class vector for each stump
            mix = np.array([w for _, w in active])
        elif active[0][0].code is not None:
            mix = np.array([w * c.code for c, w in active])
        else:
            mix, sign = None, sign * np.array([[w] for _, w in active])
        has_missing = bool(np.isnan(X).any())
        step = max(1, _CELLS // feature.size)
        for i in range(0, len(X), step):
            x = X[i : i + step, feature]
            right = x > threshold
            if has_missing:
                right |= np.isnan(x) & missing
            signed = np.where(right, sign, -sign)  # (rows, columns, hypotheses)
            F[i : i + step] = signed.sum(axis=1) if mix is None else signed[:, :, 0] @ mix
