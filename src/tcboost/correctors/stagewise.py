"""The stage-wise coefficients of Algorithms 1 and 2, and of other smooth losses."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core import minimise_along
from ..losses import SMOOTH, DualWeights, Exponential, SmoothLoss
from ..margins import Margin
from ..oracles import Column, Prices
from .base import Columns, Predictions, Vector
from .looked_up import LookedUp
from .products import Products


class StageWise:
    """One coefficient a round, never revised; runs for all its rounds.

    The paper does not say what happens at a weighted error of 0. Here an error counts as at
    least half of what the lightest margin weighs at the start, ``1 / (2 N K)`` without sample
    weights, and at least 1e-10. At 1/2 or above (SAMME: 1 - 1/C) the run ends: no gain is left.

    Where there is no formula, with margins of several sizes or with another loss, the
    coefficient is the exact minimum along the column, as in the paper's two algorithms.

    For many rows their dual weights are `kept` in another way than by margins.
    """

    dual: DualWeights | None = None
    room = lead = 0
    slack, tol = 0.0, -math.inf  # every difference counts, and no gap is small enough

    def __init__(
        self,
        margin: Margin,
        y: NDArray[np.intp],
        weight: Vector,
        loss: SmoothLoss = SMOOTH["exponential"],
        pseudo_loss: bool = False,
        n_threads: int = 1,
        kept: Products | LookedUp | None = None,
    ) -> None:
        self._n_threads, self.kept = n_threads, kept
        self._margin, self._y, self._loss, self._pseudo_loss = margin, y, loss, pseudo_loss
        self._weight = weight
        self.w: Vector = np.zeros(0)
        self.theta = 0.0  # the sum of the coefficients so far, the paper's simple choice of it
        self._z: Vector | None = None if kept else np.zeros((len(y), margin.width))
        self.smallest_error = max(float(weight.min()) / (2 * margin.width), 1e-10)

    @property
    def z(self) -> Vector:
        """Margins under w."""
        if self._z is None:
            assert self.kept
            return self.kept.margins()
        return self._z

    def batch(self) -> int:
        """One column a round."""
        return 1

    def floor(self, r: float) -> float:
        """Any column better than guessing will do; u is in floats where there is no formula."""
        return 0.0 if isinstance(self._loss, Exponential) else 1e-15

    def done(self, gap: float) -> bool:
        """Algorithms 1 and 2 have no stopping rule."""
        return False

    def update(
        self, columns: Columns, predictions: Predictions, dual: DualWeights, prices: Prices
    ) -> bool:
        """Add the column with its coefficient; the others stay."""
        column = columns[0]

        def margins() -> NDArray[Any]:
            (signs,) = predictions()
            return self._margin.apply(column.coded(signs), self._y, self._n_threads)

        # Where u is not held prices tell the weights on its margins.
        rho = None if dual.u is None else margins()
        coefficient = self._coefficient(prices, column, dual, rho)
        if coefficient is None:
            return False
        if self.kept and not self.kept.move(coefficient, column):
            self._z, self.kept = self.z, None
        if self._z is not None:
            self._z += coefficient * (margins() if rho is None else rho)
        self.w = np.concatenate([self.w, [coefficient]])
        self.theta = float(self.w.sum())
        return True

    def polish(self, gap: float = 0.0) -> bool:
        """Nothing is ever revised."""
        return False

    def _coefficient(
        self, prices: Prices, column: Column, dual: DualWeights, rho: NDArray[Any] | None = None
    ) -> float | None:
        """From prices where they tell the weights on the margins, else from the margins rho."""
        if dual.u is None:
            of_prices = prices.weights_of(column, dual.scale)  # all that count have one size
            sums = Sums(*of_prices, of_prices[-1])
        else:
            assert rho is not None
            sums = Sums.of(dual.u, rho)
            formula = sums.smallest == sums.largest or self._margin.against != 1.0
            if not (formula and isinstance(self._loss, Exponential)):
                return self._along(rho.ravel().astype(float), sums.smallest)
        against, pseudo_loss = self._margin.against, self._pseudo_loss
        return stagewise_coefficient(sums, self.smallest_error, against, pseudo_loss)

    def _along(self, rho: Vector, size: float) -> float | None:
        """The minimum along rho, no farther than the smallest error allows by the formula."""
        loss, z, e = self._loss, self.z.ravel(), self.smallest_error
        s = np.repeat(self._weight / self._margin.width, self._margin.width)
        if not float(loss.on_margins(s)(z).u @ rho) > 0:
            return None
        t_max = float(np.log((1 - e) / e) / ((loss.log_odds or 1.0) * size))
        return minimise_along(s, loss.on_margins, loss.centred, z, rho, t_max)


class Sums(NamedTuple):
    """The dual weights on the negative, positive and zero margins rho of a column.

    And the smallest and largest of the ``|rho|`` that are not zero; not in order, if none is.
    """

    wrong: int
    right: int
    neither: int
    smallest: float
    largest: float

    @classmethod
    def of(cls, u: NDArray[np.int64], rho: NDArray[Any]) -> Sums:
        """From the margins."""
        wrong, right, neither = (int(u[part].sum()) for part in (rho < 0, rho > 0, rho == 0))
        sizes = np.abs(rho[rho != 0]).astype(float)
        smallest, largest = float(sizes.min(initial=np.inf)), float(sizes.max(initial=0.0))
        return cls(wrong, right, neither, smallest, largest)


def stagewise_coefficient(
    sums: Sums, smallest_error: float, against: float = 1.0, pseudo_loss: bool = False
) -> float | None:
    """The coefficient of a column, by the dual weights on its margins rho.

    Algorithm 1, steps c and d: all margins are -1 or +1 and ``w = 1/2 ln((1 - e) / e)``.
    Algorithm 2, steps c to g: margins are -2, 0 or +2, the mislabel distribution d lives where
    they are not 0, and ``w = 1/4 ln((1 - e) / e)``. SAMME: margins are ``-1/(C-1)`` or 1 and
    ``w = (1 - 1/C) ln((C-1) (1 - e) / e)``. All are ``ln((1 - e) / (b e)) / ((1 + b) max rho)``
    with e the share of the weight on negative margins, b (`against`) times as large as others.

    The pseudo-loss of AdaBoost.OC and M2 in the place of e is ``(1 - D) / 2``, D being the mean
    margin over the largest: ``w = 1/4 ln((1 + D) / (1 - D))``, or 1/2 of M2, is never larger.
    """
    wrong, right = sums.wrong, sums.right
    if pseudo_loss:
        wrong, right = 2 * wrong + sums.neither, 2 * right + sums.neither
    if against * wrong >= right:
        return None
    error = max(wrong / (wrong + right), smallest_error)
    odds = (1 - error) / error / against
    if odds <= 1:
        return None
    return float(np.log(odds) / ((1 + against) * sums.largest))
