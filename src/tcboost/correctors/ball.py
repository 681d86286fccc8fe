"""The restricted master of a loss of class scores, over a ball of coefficients.

Minimise ``loss(F)``, ``F = sum_j h_j(x) v_j`` over the class vectors v_j: free in direction
with ``sum_j norm2(v_j) <= theta``, or multiples ``w_j >= 0`` of their codes with
``sum_j w_j <= theta``. By block coordinate descent, a hypothesis at a time
(``cpp/descent.hpp``); the duality gap ``theta max_j norm(g_j) - <W, g>`` says when to stop.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core import descend
from ..losses import DualWeights, Loss
from ..margins import Margin
from ..oracles import Column
from .base import ColumnStore, Vector, lengths
from .newton import newton_step

# Of the class gap, and of the tolerance on it, what the restricted master may leave.
_SHARE = 0.3
_SWEEPS, _POLISH = 2, 50


class BallCorrective:
    """All class vectors re-solved when a column is added: loosely at first, then polished."""

    def __init__(
        self,
        margin: Margin,
        y: NDArray[np.intp],
        weight: Vector,
        loss: Loss,
        coded: bool,
        theta: float,
        tol: float,
    ) -> None:
        self._margin, self._y = margin, y
        self._loss, self._coded, self._theta, self._tol = loss, coded, theta, tol
        n_classes = margin.width + 1
        self.w: Vector = np.zeros(0 if coded else (0, n_classes))
        # The kernel has the rows sorted by class, and the scores by class and row.
        self._order = np.argsort(y, kind="stable")
        self._start = np.searchsorted(y[self._order], np.arange(n_classes + 1)).astype(np.int64)
        self._weight, self._sorted_y = weight[self._order], y[self._order]
        self._F: Vector = np.zeros((n_classes, len(y)))
        self._H = ColumnStore(len(y), np.int8)
        self._codes = np.zeros((0, n_classes), dtype=np.int8)
        self._gap, self._polished = np.inf, False
        self.gap = 0.0  # of the restricted master

    @property
    def z(self) -> Vector:
        """Margins of the scores."""
        F = np.empty((len(self._y), len(self._F)))
        F[self._order] = self._F.T
        return self._margin.apply(F, self._y)

    @property
    def solved(self) -> bool:
        """Whether the last restricted master met its tolerance."""
        return not self._polished or self.gap <= _SHARE * self._tol

    @property
    def budget(self) -> float:
        """The parameter theta."""
        return self._theta

    def set_budget(self, theta: float) -> None:
        """Go on with another budget."""
        scale = min(1.0, theta / max(float(lengths(self.w).sum()), 1e-300))
        self._theta, self.w, self._F = theta, scale * self.w, scale * self._F
        if len(self.w):
            self._solve(_SHARE * max(self._tol, self.gap), 0)

    def prune(self) -> NDArray[np.bool_]:
        """Forget columns without weight; return which were kept."""
        kept = lengths(self.w) > 0
        self._H.keep(kept)
        self._codes, self.w = self._codes[kept], self.w[kept]
        return kept

    def floor(self, r: float) -> float:
        """A column must be better than the present ones."""
        return r + _SHARE * self._tol / self._theta if self._theta > 0 else np.inf

    def done(self, gap: float) -> bool:
        """Stop when the certificate is small."""
        self._gap = gap
        return gap <= self._tol

    def update(self, column: Column, outputs: NDArray[np.int8], dual: DualWeights) -> bool:
        """Add the column and re-solve, to a share of the gap that is left."""
        h = outputs[self._order, 0]
        code = np.ones(len(self._F), dtype=np.int8)
        if column.code is not None:  # outputs are those of the hypothesis times the code
            h, code = h * column.code[0], column.code
        self._H.append(h)
        self._codes = np.vstack([self._codes, code])
        self.w = np.concatenate([self.w, np.zeros((1, *self.w.shape[1:]))])
        self._solve(_SHARE * max(self._tol, self._gap), 0)
        return True

    def polish(self) -> bool:
        """Solve the last master as tightly as the tolerance asks; False if it was."""
        if self._polished or self.gap <= _SHARE * self._tol or not len(self.w):
            return False
        self._solve(_SHARE * self._tol, _POLISH)
        self._polished = True
        return True

    def _solve(self, tol: float, max_newton: int) -> None:
        """Sweeps, and while they leave too large a gap a Newton step and sweeps again."""
        self._polished = False
        self._descend(tol)
        for _ in range(max_newton):
            if self.gap <= tol:
                break
            w = newton_step(
                self._H.matrix,
                self._codes if self._coded else None,
                self.w,
                self._loss,
                self._sorted_y,
                self._weight,
                self._theta,
            )
            if w is not None:
                self.w = w
                self._F = self._scores()
            self._descend(tol)

    def _descend(self, tol: float) -> None:
        self.w, self._F = self.w.copy(), self._F.copy()
        self.gap, self.n_sweeps = descend(
            self._H.matrix,
            self._codes if self._coded else None,
            self._start,
            self._weight,
            self.w,
            self._F,
            self._theta,
            tol,
            _SWEEPS,
            self._loss.name == "log-loss",
        )

    def _scores(self) -> Vector:
        """Of the coefficients, without what rounding has piled up."""
        vectors = self.w[:, None] * self._codes if self._coded else self.w
        return np.ascontiguousarray(vectors.T @ self._H.matrix.T.astype(float))
