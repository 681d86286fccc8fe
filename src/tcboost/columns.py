"""Step (2) of Algorithm 3: which column of the problem to add next.

Four kinds of column: one hypothesis for each bit of a fixed code (the MOs), one hypothesis with
a code column drawn at random (the ECCs), with the code that suits it best, or with a class
vector that stays free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .coding import draw_code
from .oracles import Column, Oracle, Prices, Stump

Vector = NDArray[np.float64]

# Drawn codes that price too low before the exactly best code is taken instead (or, where the
# oracle is not exact and every draw costs a fit, before the run ends).
_MAX_DRAWS, _MAX_FITS = 256, 16
_CONSTANT = Stump(0, -np.inf, 1, True, 0)


@dataclass(frozen=True)
class Priced:
    """The outcome of pricing, in units of the integer dual weights.

    `column` has the edge `edge`, and is None if no edge is above the floor; `bound` is the
    largest edge of the whole class of columns, infinite if the oracle is not exact.
    """

    column: Column | None
    edge: float
    bound: float


class Chooser(Protocol):
    """A way to choose columns, and the class of columns it chooses from."""

    hypothesis_class: str

    def choose(self, prices: Prices, floor: float, slack: float = 0.0) -> Priced:
        """A column whose edge is above `floor`, if there is one.

        An edge that is better by no more than `slack` is no better: the constant hypothesis is
        taken instead, if it has a code of its own. Rows that weigh next to nothing would
        otherwise choose a feature, and so decide for all new rows like them.
        """

    def edges(self, prices: Prices, columns: list[Column]) -> Vector:
        """Edges of earlier columns: numbers, or class vectors whose lengths they are."""


class _Coded:
    """Columns with a code, fixed or of their own, and so with one number as their edge."""

    def edges(self, prices: Prices, columns: list[Column]) -> Vector:
        """Edges of earlier columns."""
        return prices.edges(columns)


class FixedCode(_Coded):
    """One hypothesis for each bit of the coding matrix, equations (13) and (14)."""

    def __init__(self, oracle: Oracle) -> None:
        self._exact = oracle.exact
        self.hypothesis_class = f"{oracle.hypothesis_class} for every bit of the code"

    def choose(self, prices: Prices, floor: float, slack: float = 0.0) -> Priced:
        """The best hypothesis of each bit: their edges add up to the best of all tuples."""
        hypotheses, edges = zip(*prices.best(None), strict=True)
        edge = float(sum(edges))
        column = Column(hypotheses) if edge > floor else None
        return Priced(column, edge, edge if self._exact else np.inf)


class LearnedCode(_Coded):
    """One hypothesis with its best code, found together; needs an exact oracle."""

    def __init__(self, oracle: Oracle) -> None:
        if not oracle.exact:
            raise ValueError("coding='learned' needs weak_learner='stump'")
        self.hypothesis_class = f"{oracle.hypothesis_class} with all codes"

    def choose(self, prices: Prices, floor: float, slack: float = 0.0) -> Priced:
        """The best hypothesis and code."""
        h, code, edge = prices.learned()
        a = prices.vectors([Column((_CONSTANT,))])[0]
        constant = float(np.abs(a).sum())
        if constant > floor and edge - constant <= slack:
            signs = np.where(a >= 0, 1, -1).astype(np.int8)
            return Priced(Column((_CONSTANT,), signs), constant, edge)
        return Priced(Column((h,), code) if edge > floor else None, edge, edge)


class RandomCode(_Coded):
    """One hypothesis with a random code column, as in AdaBoost.ECC, equations (21) and (22).

    A drawn code whose best edge is not above the floor is drawn again. The class is that of
    all codes: a bound over the drawn one alone would say nothing about the next draw.
    """

    def __init__(self, oracle: Oracle, n_classes: int, rng: np.random.RandomState) -> None:
        self._n_classes, self._rng = n_classes, rng
        self.hypothesis_class = f"{oracle.hypothesis_class} with all codes"
        self._learned = LearnedCode(oracle) if oracle.exact else None

    def choose(self, prices: Prices, floor: float, slack: float = 0.0) -> Priced:
        """The best hypothesis for a drawn code."""
        best = self._learned.choose(prices, floor) if self._learned else None
        if best is not None and best.column is None:
            return best  # no code at all is above the floor
        bound = best.bound if best else np.inf
        for _ in range(_MAX_DRAWS if best else _MAX_FITS):
            code = draw_code(self._n_classes, self._rng)
            ((h, edge),) = prices.best(code[:, None])
            if edge > floor:
                return Priced(Column((h,), code), edge, bound)
        return best or Priced(None, edge, bound)


class VectorCode:
    """One hypothesis with a class vector that stays free; needs an exact oracle."""

    def __init__(self, oracle: Oracle) -> None:
        if not oracle.exact:
            raise ValueError("coding='vector' needs weak_learner='stump'")
        self.hypothesis_class = f"{oracle.hypothesis_class} with class vectors"

    def choose(self, prices: Prices, floor: float, slack: float = 0.0) -> Priced:
        """The hypothesis whose class vector would have the longest gradient."""
        h, edge = prices.vector()
        constant = float(np.linalg.norm(prices.vectors([Column((_CONSTANT,))])))
        if constant > floor and edge - constant <= slack:
            return Priced(Column((_CONSTANT,)), constant, edge)
        return Priced(Column((h,)) if edge > floor else None, edge, edge)

    def edges(self, prices: Prices, columns: list[Column]) -> Vector:
        """Gradients by the class vectors."""
        return prices.vectors(columns)
