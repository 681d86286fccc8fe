"""The restricted master of a loss of class scores, over a ball of coefficients.

Minimise ``loss(F) + ridge / 2 |W|^2``, ``F = sum_j h_j(x) v_j`` over the class vectors v_j:
free in direction with ``sum_j norm2(v_j) <= theta``, or multiples ``w_j >= 0`` of their codes
with ``sum_j w_j <= theta``; or, instead of a theta, with a price for every unit of that sum. By
block coordinate descent, a hypothesis at a time (``cpp/descent.hpp``), and Newton steps where
that is not enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._core import descend
from ..losses import DualWeights, ScoreLoss
from ..margins import Margin
from ..oracles import Column, Prices
from .base import Budget, ColumnStore, Seen, Vector, lengths
from .newton import newton_step

# Of the class gap, and of the tolerance on it, what the restricted master may leave.
_SHARE = 0.3
_SWEEPS, _DRAFT_SWEEPS, _POLISH = 2, 6, 50
# A round adds up to one column for so many present ones, until the gap is near its tolerance.
_BATCH, _BATCH_AT_PRICE, _NEAR = 8, 4, 2.0


class BallCorrective:
    """All class vectors re-solved when columns are added: loosely at first, then polished."""

    dual: DualWeights | None = None
    seen: Seen | None = None

    def __init__(
        self,
        margin: Margin,
        y: NDArray[np.intp],
        weight: Vector,
        loss: ScoreLoss,
        coded: bool,
        budget: Budget,
        tol: float,
        n_threads: int = 1,
    ) -> None:
        self._margin, self._y, self._n_threads = margin, y, n_threads
        self._loss, self._tol = loss, tol
        self.budget = budget
        n_classes = margin.width + 1
        self.w: Vector = np.zeros(0 if coded else (0, n_classes))
        # The kernel has the rows sorted by class, and the scores by class and row.
        self._order = np.argsort(y, kind="stable")
        self._weight, self._sorted_y = weight[self._order], y[self._order]
        self._start = np.searchsorted(self._sorted_y, np.arange(n_classes + 1)).astype(np.int64)
        self._F: Vector = np.zeros((n_classes, len(y)))
        self._H = ColumnStore(len(y), np.int8)
        self._codes = np.zeros((0, n_classes), dtype=np.int8) if coded else None
        self._gap, self._target, self._polished = np.inf, 0.0, False
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
        return not self._polished or self.gap <= self._target

    @property
    def theta(self) -> float:
        """The budget, or with a price what is spent."""
        budget = self.budget
        return budget.theta if budget.price == 0 else float(budget.sizes(self.w).sum())

    @property
    def slack(self) -> float:
        """What a master may leave is no better."""
        return 1e-2 * self.budget.price if self.budget.price > 0 else self.floor(0.0)

    def batch(self) -> int:
        """One near the end; before, several at once save two fifths of the time (pendigits)."""
        if self.budget.price > 0:  # there is no end of columns that would help a little
            return max(1, len(self.w) // _BATCH_AT_PRICE)
        return 1 if self._gap <= _NEAR * self._tol else max(1, len(self.w) // _BATCH)

    def set_budget(self, budget: Budget) -> None:
        """Go on with another budget."""
        scale = min(1.0, budget.theta / max(float(budget.sizes(self.w).sum()), 1e-300))
        self.budget, self.w, self._F = budget, scale * self.w, scale * self._F
        if len(self.w):
            self._solve(_SHARE * max(self._tol, self.gap), 0)

    def prune(self) -> NDArray[np.bool_]:
        """Forget columns without weight; return which were kept."""
        kept = lengths(self.w) > 0
        if self.budget.intercept > 0:
            kept[:1] = True
        self._H.keep(kept)
        self.w = self.w[kept]
        self._codes = None if self._codes is None else self._codes[kept]
        return kept

    def floor(self, r: float) -> float:
        """A column must be better than the present ones, or worth the price."""
        if self.budget.price > 0:
            return self.budget.price
        theta = self.budget.theta
        return r + _SHARE * self._tol / theta if theta > 0 else np.inf

    def done(self, gap: float) -> bool:
        """Stop when the certificate is small."""
        self._gap = gap
        return gap <= self._tol

    def update(
        self,
        columns: Sequence[Column],
        predictions: Sequence[NDArray[np.int8]],
        dual: DualWeights,
        prices: Prices,
    ) -> bool:
        """Add the columns and re-solve, to a share of the gap that is left."""
        for column, H in zip(columns, predictions, strict=True):
            self._H.append(H[:, 0].take(self._order))
            if self._codes is not None:
                assert column.code is not None
                self._codes = np.vstack([self._codes, column.code])
        self.w = np.concatenate([self.w, np.zeros((len(columns), *self.w.shape[1:]))])
        # With a price the gap of early rounds says little: it allows for any theta.
        gap = 0.0 if self.budget.price > 0 else self._gap
        self._solve(_SHARE * max(self._tol, gap), 0)
        return True

    def polish(self, gap: float = 0.0, draft: bool = False) -> bool:
        """Solve the last master to the tolerance, or to a gap; False if it was."""
        tol = _SHARE * max(self._tol, gap)
        # Drafts at different prices are compared: they are polished though they are done.
        done = self._gap <= self._tol and not (draft and self.budget.price > 0)
        polished = self._polished and (self.budget.price > 0 or self._target <= tol)
        if done or polished or self.gap <= tol or not len(self.w):
            return False
        if draft:  # without Newton steps
            self._descend(tol, _DRAFT_SWEEPS)
        else:
            self._solve(tol, _POLISH)
        self._target, self._polished = tol, True
        return True

    def _solve(self, tol: float, max_newton: int) -> None:
        """Sweeps, and while they leave too large a gap a Newton step and sweeps again."""
        self._polished = False
        codes = self._codes
        self._descend(tol)
        for _ in range(max_newton):
            if self.gap <= tol:
                break
            H, y, weight, before = self._H.matrix, self._sorted_y, self._weight, self.gap
            w = newton_step(H, codes, self.w, self._loss, y, weight, self.budget)
            if w is not None:
                self.w = w
                vectors = w if codes is None else w[:, None] * codes
                self._F = np.ascontiguousarray(vectors.T @ H.T.astype(float))
            self._descend(tol)
            if w is None and self.gap == before:  # nor would more of them
                break

    def _descend(self, tol: float, sweeps: int = _SWEEPS) -> None:
        self.w = self.w.copy()  # the run may have kept it; the scores change in place
        arrays = self._H.matrix, self._codes, self._start, self._weight, self.w, self._F
        b, exponential = self.budget, self._loss.name == "log-loss"
        costs = b.theta, b.price, b.ridge, b.intercept
        self.gap = descend(*arrays, *costs, tol, sweeps, exponential, self._n_threads)
