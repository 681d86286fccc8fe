"""The restricted master of a loss of class scores, over a ball of coefficients.

Minimise ``loss(F) + ridge / 2 |W|^2``, ``F = sum_j h_j(x) v_j`` over the class vectors v_j:
free in direction with ``sum_j norm2(v_j) <= theta``, or multiples ``w_j >= 0`` of their codes
with ``sum_j w_j <= theta``; or, instead of a theta, with a price for every unit of that sum. By
block coordinate descent, a hypothesis at a time (``cpp/descent.hpp``), and Newton steps where
that is not enough.

Of many rows a sample S is solved, with the gradient of all rows in place of its own: from
coefficients W0, whose gradient pricing tells anyway, ``loss_S(F) + <grad - grad_S, W - W0>``
instead of ``loss(F)``. It has the curvature of the sample, and so leaves a part of the gap (a
seventh, say, with 5,000 rows for 112 columns), but W0 stays where it is only if it is the best
of all rows. There is no pass over all rows and hypotheses: on covertype a column takes a 30th.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from .._core import descend, draft_vectors
from ..losses import DualWeights, Exponential, Multinomial, ScoreLoss
from ..margins import Margin
from ..oracles import Column, Oracle, Prices
from ..oracles.stump import StumpOracle, candidates_of
from .base import Budget, Columns, ColumnStore, Predictions, Seen, Vector, lengths
from .chains import Chains
from .newton import newton_step

# Of the class gap, and of the tolerance on it, what the restricted master may leave.
_SHARE = 0.3
_SWEEPS, _DRAFT_SWEEPS, _POLISH = 2, 6, 50
# Where sweeps leave more than so much of the class gap, most of what pricing finds is due to
# that, and a round takes up to so many Newton steps (pendigits, theta 122: 49 rounds instead of
# 93, in 0.72 of the time). From so many class vectors on, and with so many rows for each: of
# less, sweeps take next to no time.
_LOOSE, _NEWTON, _SEVERAL, _ROWS = 0.5, 3, 64, 8
# A round adds up to one column for so many present ones, until the gap is near its tolerance.
# On a sample the master is solved better, and so more columns at once cost nothing (covertype).
_BATCH, _BATCH_OF_MANY, _BATCH_OF_DRAFT, _NEAR = 8, 4, 3, 2.0
# More rows are many: with 20,000 of covertype a sample takes half the time, with 50,000 a
# quarter. Then the rows of a sample, at the least, and for each column.
_MANY, _SAMPLE, _A_COLUMN = 1 << 15, 1 << 12, 16
# With so few scores a round takes less time than the calls that it is made of.
_FEW = 1 << 13


class BallCorrective:
    """All class vectors re-solved when columns are added: loosely at first, then polished."""

    dual: DualWeights | None = None
    seen: Seen | None = None
    room = lead = 0

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
        oracle: Oracle | None = None,
    ) -> None:
        self._margin, self._y, self._n_threads = margin, y, n_threads
        self._all_weight, self._loss, self.tol = weight, loss, tol
        self.budget = budget
        n_classes = margin.width + 1
        self.w: Vector = np.zeros(0 if coded else (0, n_classes))
        self._codes = np.zeros((0, n_classes), dtype=np.int8) if coded else None
        self._gap, self._target = np.inf, 0.0
        self.gap = self._before = 0.0  # of the restricted master, and before it was polished
        self._oracle, self._columns = oracle, list[Column]()
        self._met: tuple[Vector, float, Vector] | None = None
        self._used, self._sums = 0.0, [0.0, 0.0]  # see `descend`
        self._by_class = np.argsort(y, kind="stable")
        many = isinstance(oracle, StumpOracle) and len(y) > _MANY
        self._take_rows(_SAMPLE if many else len(y))

    def _take_rows(self, size: int) -> None:
        """Solve on about so many rows, or on all where that would be half of them or more.

        Rows are in an order by their content, so that every k-th of a class is a sample. Small
        classes have a larger part in it, and their rows less weight.
        """
        y, n_classes = self._y, self._margin.width + 1
        # The kernel has the rows sorted by class, and the scores by class and row.
        order, weight = self._by_class, self._all_weight
        start = np.searchsorted(y[order], np.arange(n_classes + 1))
        self._size, self._sampled = size, 2 * size < len(y)
        if self._sampled:
            weight, parts = weight.copy(), []
            for members in np.split(order, start[1:-1]):
                share = max(size / len(y), size / (2 * n_classes * max(1, len(members))))
                count = int(np.ceil(min(1.0, share) * len(members)))
                part = members[np.arange(count) * len(members) // max(1, count)]
                weight[part] *= weight[members].sum() / max(weight[part].sum(), 1e-300)
                parts.append(part)
            order = np.concatenate(parts)
            start = np.cumsum([0, *map(len, parts)])
        self._order, self._start = order, start.astype(np.int64)
        self._weight, self._sorted_y = weight[order], y[order]
        self._linear: Vector | None = None
        self._polished = False
        self._F: Vector = np.zeros((n_classes, len(order)))
        self._H = ColumnStore(len(order), np.int8)
        for column in self._columns:
            assert self._oracle is not None
            self._H.append(self._oracle.predictions([column])[0][:, 0].take(order))
        if self._columns:
            self._F = np.ascontiguousarray(self._signs().scores(self._vectors).T)
        if not self._sampled:
            self.seen = None
            self._place = np.argsort(order)  # where the kernel has a row

    def _signs(self) -> Chains:
        """Those of all columns on the rows."""
        return Chains(self._H.matrix, self._keys, self._n_threads)

    @property
    def _keys(self) -> NDArray[np.int64] | None:
        """Which stumps form chains."""
        oracle = self._oracle
        return oracle.chains(self._columns) if isinstance(oracle, StumpOracle) else None

    @property
    def _vectors(self) -> Vector:
        """The class vectors."""
        return self.w if self._codes is None else self.w[:, None] * self._codes

    @property
    def z(self) -> Vector:
        """Margins of the scores."""
        if self._sampled:
            assert isinstance(self._oracle, StumpOracle)
            z, least, error = self._oracle.margins(self._columns, self._vectors)
            self.seen = Seen(least, error)
            return z
        return self._margin.apply(self._F.T, self._sorted_y).take(self._place, axis=0)

    @property
    def theta(self) -> float:
        """The budget, or with a price what is spent."""
        if self.budget.price == 0:
            return self.budget.theta
        return float(self.budget.sizes(self.w).sum()) if self._sampled else self._used

    @property
    def known(self) -> tuple[float, float] | None:
        """``ridge |W|^2`` and ``<W, minus the gradient>``, where all rows were looked at."""
        return None if self._sampled else (self._sums[0], self._sums[1])

    @property
    def slack(self) -> float:
        """What a master may leave is no better."""
        return 1e-2 * self.budget.price if self.budget.price > 0 else self.floor(0.0)

    def batch(self, draft: bool = False) -> int:
        """One near the end; before, several at once save two fifths of the time (pendigits)."""
        if self._codes is not None:  # then a round finds one column
            return 1
        least = len(self.w) // _BATCH_OF_DRAFT if draft else 1
        # With a price there is no end of columns that would help a little.
        if self.budget.price == 0 and self._gap <= _NEAR * self.tol:
            return max(1, least)
        many = self.budget.price > 0 or self._sampled
        return max(1, least, len(self.w) // (_BATCH_OF_MANY if many else _BATCH))

    def set_budget(self, budget: Budget) -> None:
        """Go on with another budget."""
        scale = min(1.0, budget.theta / max(float(budget.sizes(self.w).sum()), 1e-300))
        self.budget, self.w, self._F = budget, scale * self.w, scale * self._F
        self._met, self._polished = None, False
        if len(self.w) and not self._sampled:  # else when prices have told the gradient
            self._solve(_SHARE * max(self.tol, self.gap), 0)

    def prune(self) -> NDArray[np.bool_]:
        """Forget columns without weight; return which were kept."""
        kept = lengths(self.w) > 0
        if self.budget.intercept > 0:
            kept[:1] = True
        if kept.all():
            return kept
        self._H.keep(kept)
        self.w = self.w[kept]
        self._codes = None if self._codes is None else self._codes[kept]
        self._columns = list(compress(self._columns, kept.tolist()))
        return kept

    def floor(self, r: float) -> float:
        """A column must be better than the present ones, or worth the price."""
        if self.budget.price > 0:
            return self.budget.price
        theta = self.budget.theta
        return r + _SHARE * self.tol / theta if theta > 0 else np.inf

    def done(self, gap: float) -> bool:
        """Stop when the certificate is small."""
        self._gap = gap
        return gap <= self.tol

    def meet(self, loss: float, a: Vector) -> bool:
        """Take in the loss and the edges of all rows; False if a sample led astray.

        Then half of the step is taken back, and the next one has a sample twice as large.
        """
        if not self._sampled:
            return True
        w, budget = self.w, self.budget
        sizes, ridge = budget.sizes(w), budget.ridges(w)
        value = loss + float((ridge * w * w).sum()) / 2.0 + budget.price * float(sizes.sum())
        if self._met is not None and value > self._met[1] + 1e-3 * self.tol:
            last = np.zeros_like(w)
            last[: len(self._met[0])] = self._met[0]
            self.w = (w + last) / 2.0
            self._take_rows(2 * self._size)
            if len(self._order) == len(self._y):  # else known of w is what a sample told
                self._descend(_SHARE * self.tol)
            return False
        g, free = a - ridge * w, int(budget.intercept > 0)
        most = budget.theta if np.isfinite(budget.theta) else float(sizes.sum())
        edge = float(lengths(g[free:]).max(initial=0.0))
        self.gap = most * max(edge, budget.price) - float((w[free:] * g[free:]).sum())
        if free:
            self.gap += float((g[:1] ** 2).sum()) / (2.0 * budget.intercept)
        self._met = w, value, a
        return True

    def update(
        self, columns: Columns, predictions: Predictions, dual: DualWeights, prices: Prices
    ) -> bool:
        """Add the columns and re-solve, to a share of the gap that is left."""
        for column, H in zip(columns, predictions(), strict=True):
            self._H.append(H[:, 0].take(self._order))
            if self._codes is not None:
                assert column.code is not None
                self._codes = np.vstack([self._codes, column.code])
        old, self.w = self.w, np.zeros((len(self.w) + len(columns), *self.w.shape[1:]))
        self.w[: len(old)] = old
        self._columns += columns
        while self._sampled and self._size < _A_COLUMN * len(self.w):
            self._take_rows(2 * self._size)
        if self._sampled:
            self._see(columns, dual, prices)
        # With a price the gap of early rounds says little: it allows for any theta.
        gap = 0.0 if self.budget.price > 0 else self._gap
        t, n, tol = len(self.w), len(self._order), _SHARE * max(self.tol, gap)
        if self._sampled:
            self._solve(tol, 1)
        elif gap > 0 and self._codes is None and _SEVERAL <= t <= n / _ROWS:
            self._solve(tol, _NEWTON, _LOOSE * gap)
        else:
            self._solve(tol, 0)
        return True

    def draft(self, columns: list[Column], max_iter: int, share: float) -> list[Column] | None:
        """Make a draft in one call, and return its new columns; None if the rounds have to.

        The numbers are the same, but for the rounding of one sum; see ``cpp/draft.hpp``.
        """
        oracle, b, H = self._oracle, self.budget, self._H.matrix
        vectors = self._codes is None and isinstance(self._loss, Multinomial)
        few = not self._sampled and self._F.size <= _FEW
        priced = b.price > 0 and b.theta == np.inf
        if not (vectors and few and priced and isinstance(oracle, StumpOracle)):
            return None
        ends = self.tol, _SHARE, share, _SWEEPS, _DRAFT_SWEEPS
        most = min(max_iter, len(oracle))  # there are no more: a number that C++ can hold
        found, signs, w, (self.gap, self._used, *self._sums) = draft_vectors(
            *(oracle.arrays, self._y, self._all_weight, self._place, self._start, self._weight),
            F=self._F,
            taken=candidates_of(columns),
            H=H,
            W=self.w,
            told=(self.gap, self._used, *self._sums),
            rule=(b.price, b.ridge, b.intercept, *ends, most, _BATCH_OF_DRAFT),
            n_threads=self._n_threads,
        )
        for h in signs.reshape(-1, len(H)):
            self._H.append(h)
        self.w = w.reshape(-1, self.w.shape[1])
        new = [Column((oracle.stump(j, 1),)) for j in found]
        self._columns += new
        return new

    def polish(self, gap: float = 0.0, draft: bool = False) -> bool:
        """Solve the last master to the tolerance, or to a gap; False if that was the last try.

        On a sample that is one step towards it: the next one needs the gradient there.
        """
        tol = _SHARE * max(self.tol, gap)
        # Drafts at different prices are compared: they are polished though they are done.
        done = self._gap <= self.tol and not (draft and self.budget.price > 0)
        polished = self._polished and (self.budget.price > 0 or self._target <= tol)
        if self._sampled:
            self._target, polished = tol, False
        if done or polished or self.gap <= tol or not len(self.w):
            return False
        if self._sampled and self._polished and self.gap > 0.5 * self._before:
            self._take_rows(2 * self._size)
        if self._sampled:
            self._before = self.gap
            self._see()
            self._solve(max(0.5 * tol, 0.05 * self.gap), _POLISH)
        elif draft:  # without Newton steps
            self._descend(tol, _DRAFT_SWEEPS)
        else:
            self._solve(tol, _POLISH)
        self._target, self._polished = tol, True
        return self._sampled or not draft

    def _see(
        self,
        new: Sequence[Column] = (),
        dual: DualWeights | None = None,
        prices: Prices | None = None,
    ) -> None:
        """What the gradient of all rows has beyond that of a sample, of old and new columns."""
        assert self._met is not None
        a = self._met[2]
        if dual is not None and prices is not None:
            edges = prices.vectors if self._codes is None else prices.edges
            more = edges(list(new)) / float(dual.scale)
            a = np.concatenate([a, more if self._codes is None else more.sum(axis=1)])
        _, V = self._loss.on_scores(self._F.T, self._sorted_y, self._weight)
        g = self._signs().pull(V)
        self._linear = a - (g if self._codes is None else (self._codes * g).sum(axis=1))

    def _solve(self, tol: float, max_newton: int, loose: float = 0.0) -> None:
        """Sweeps, and while they leave too large a gap a Newton step and sweeps again."""
        self._polished = False
        codes = self._codes
        self._descend(tol)
        for _ in range(max_newton):
            if self.gap <= max(tol, loose):
                break
            H, y, weight, before = self._H.matrix, self._sorted_y, self._weight, self.gap
            step = newton_step(
                *(H, codes, self.w, self._loss, y, weight, self.budget, self._linear),
                *(self._keys, self._n_threads),
            )
            if step is not None:
                self.w, self._F = step.w, np.ascontiguousarray(step.F.T)
            self._descend(tol)
            if step is None and self.gap == before:  # nor would more of them
                break

    def _descend(self, tol: float, sweeps: int = _SWEEPS) -> None:
        self.w = self.w.copy()  # the run may have kept it; the scores change in place
        arrays = self._H.matrix, self._codes, self._start, self._weight, self.w, self._F
        b, exponential = self.budget, isinstance(self._loss, Exponential)
        costs = b.theta, b.price, b.ridge, b.intercept
        rule = tol, sweeps, exponential, self._n_threads
        self.gap, self._used, *self._sums = descend(*arrays, self._linear, *costs, *rule)
