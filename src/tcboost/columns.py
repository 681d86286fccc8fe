"""Step (2) of Algorithm 3: which column of the problem to add next.

Four kinds of column: one hypothesis for each bit of a fixed code (the MOs), one that needs no
code, or one hypothesis with a code column drawn at random (the ECCs), or with the code that
suits it best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .coding import draw_code
from .oracles import Column, Oracle, Prices
from .oracles.stump import CONSTANT

Vector = NDArray[np.float64]

# Drawn codes that price too low before the exactly best code is taken instead (or, where the
# oracle is not exact and every draw costs a fit, before the run ends).
_MAX_DRAWS, _MAX_FITS = 256, 16


class Priced(NamedTuple):
    """The outcome of pricing, in units of the integer dual weights.

    The first of `columns` has the edge `edge`; there is none if no edge is above the floor.
    `bound` is the largest edge of the whole class of columns, infinite if the oracle is not
    exact.
    """

    columns: tuple[Column, ...]
    edge: float
    bound: float


class Wanted(NamedTuple):
    """What new columns must be like.

    Their edges must be above `floor`. An edge that is better by no more than `slack` is no
    better: the constant hypothesis is taken instead, if it has a code of its own. Rows that
    weigh next to nothing would otherwise choose a feature, and so decide for all new rows like
    them. Columns with a hypothesis for every bit are wanted up to a `limit`. `taken` are those
    that there are.
    """

    floor: float
    slack: float = 0.0
    taken: Sequence[Column] = ()
    limit: int = 1


class Chooser(Protocol):
    """A way to choose columns, and the class of columns it chooses from."""

    hypothesis_class: str

    def choose(self, prices: Prices, wanted: Wanted) -> Priced:
        """The columns to add."""

    def measure(self, A: Vector) -> Vector:
        """What a hypothesis with ``A = V^T h`` must be the largest in to be used.

        A change of V changes it by no more than the sum of ``|V|``.
        """

    def edges(self, prices: Prices, columns: list[Column]) -> NDArray[Any]:
        """Edges of earlier columns."""


class _Coded:
    """Columns with a code, fixed or of their own, and so with one number as their edge.

    A weak learner that is fitted, not searched, or a code that is drawn may miss what was found
    at other dual weights: then the `known` columns of another run are candidates, too.
    """

    def __init__(self) -> None:
        self.known: list[Column] = []

    def measure(self, A: Vector) -> Vector:
        """The edge with the best code."""
        return np.abs(A).sum(axis=1, keepdims=True)

    def edges(self, prices: Prices, columns: list[Column]) -> NDArray[Any]:
        """Edges of earlier columns, as integers where these hold them."""
        parts = prices.edges(columns)
        if parts.shape[1] == 1:
            return parts[:, 0]
        return parts.sum(axis=1, dtype=float)  # of pairwise margins more than 64 bits hold


class FixedCode(_Coded):
    """One hypothesis for each bit of the coding matrix, equations (13) and (14)."""

    _each = " for every bit of the code"

    def __init__(self, oracle: Oracle) -> None:
        super().__init__()
        self._exact = oracle.exact
        self.hypothesis_class = oracle.hypothesis_class + self._each

    def choose(self, prices: Prices, wanted: Wanted) -> Priced:
        """The best hypothesis of each bit: their edges add up to the best of all tuples."""
        # More than one: on other features, bit by bit.
        found, *others = prices.ranked(wanted.limit) if self._exact else [prices.best(None)]
        if self.known and not self._exact:  # a bit may take a hypothesis of theirs
            known = [*self.known, *wanted.taken]
            parts = prices.edges(known)
            best = enumerate(parts.argmax(axis=0))
            again = [(known[j].hypotheses[k], float(parts[j, k])) for k, j in best]
            pairs = zip(found, again, strict=True)
            found = [max(pair, key=lambda one: one[1]) for pair in pairs]
        tuples = [zip(*bits, strict=True) for bits in (found, *others)]
        priced = [(float(sum(edges)), hypotheses) for hypotheses, edges in tuples]
        columns = tuple(Column(hs) for edge, hs in priced if edge > wanted.floor)
        edge = priced[0][0]
        return Priced(columns, edge, edge if self._exact else np.inf)

    def measure(self, A: Vector) -> Vector:
        """A column of the optimum has the best hypothesis of every bit."""
        return np.abs(A)


class Uncoded(FixedCode):
    """One hypothesis that tells all classes apart, as in SAMME."""

    _each = ""

    def choose(self, prices: Prices, wanted: Wanted) -> Priced:
        """Fitted again where it must price above others and does not, as codes are drawn."""
        for _ in range(_MAX_FITS if wanted.floor > 0 else 1):
            priced = super().choose(prices, wanted)
            if priced.columns:
                break
        return priced


class LearnedCode(_Coded):
    """One hypothesis with its best code, found together; needs an exact oracle."""

    def __init__(self, oracle: Oracle) -> None:
        super().__init__()
        if not oracle.exact:
            raise ValueError("coding='learned' needs weak_learner='stump'")
        self.hypothesis_class = f"{oracle.hypothesis_class} with all codes"

    def choose(self, prices: Prices, wanted: Wanted) -> Priced:
        """The best hypothesis and code."""
        h, code, edge = prices.learned()
        if wanted.slack > 0:  # else the constant is the first on a tie
            a = prices.constant
            constant = float(np.abs(a).sum())
            if constant > wanted.floor and edge - constant <= wanted.slack:
                signs = np.where(a >= 0, 1, -1).astype(np.int8)
                return Priced((Column((CONSTANT,), signs),), constant, edge)
        return Priced((Column((h,), code),) if edge > wanted.floor else (), edge, edge)


class RandomCode(_Coded):
    """One hypothesis with a random code column, as in AdaBoost.ECC, equations (21) and (22).

    The code is drawn from the columns of `codes`, or from all codes. One whose best edge is not
    above the floor is drawn again. The class is that of all codes that may be drawn: a bound
    over the drawn one alone would say nothing about the next draw.
    """

    def __init__(
        self,
        oracle: Oracle,
        n_classes: int,
        rng: np.random.RandomState,
        codes: NDArray[np.int8] | None = None,
    ) -> None:
        super().__init__()
        self._n_classes, self._rng, self._codes = n_classes, rng, codes
        which = "all codes" if codes is None else f"{codes.shape[1]} codes"
        self.hypothesis_class = f"{oracle.hypothesis_class} with {which}"
        self._learned = LearnedCode(oracle) if oracle.exact else None

    def choose(self, prices: Prices, wanted: Wanted) -> Priced:
        """The best hypothesis for a drawn code, or a known column that is better."""
        priced = self._drawn(prices, wanted)
        if self.known:
            edges = self.edges(prices, self.known)
            j = int(edges.argmax())
            if edges[j] > max(priced.edge, wanted.floor):
                return Priced((self.known[j],), float(edges[j]), priced.bound)
        return priced

    def _drawn(self, prices: Prices, wanted: Wanted) -> Priced:
        bound = self._bound(prices)
        if self._learned and bound <= wanted.floor:  # no code at all is above it
            return Priced((), bound, bound)
        for _ in range(_MAX_DRAWS if self._learned else _MAX_FITS):
            code = self._draw()
            ((h, edge),) = prices.best(code[:, None])
            if edge > wanted.floor:
                return Priced((Column((h,), code),), edge, bound)
        return self._best(prices, wanted) if self._learned else Priced((), edge, bound)

    def _draw(self) -> NDArray[np.int8]:
        if self._codes is None:
            return draw_code(self._n_classes, self._rng)
        return self._codes[:, self._rng.randint(self._codes.shape[1])]

    def _bound(self, prices: Prices) -> float:
        """The largest edge of all codes that may be drawn, where that can be told."""
        if self._learned is None:
            return np.inf
        if self._codes is None:
            return prices.largest()
        return max(edge for _, edge in prices.best(self._codes))

    def _best(self, prices: Prices, wanted: Wanted) -> Priced:
        """What has that edge."""
        if self._codes is None:
            assert self._learned
            return self._learned.choose(prices, Wanted(wanted.floor))
        found = zip(prices.best(self._codes), self._codes.T, strict=True)
        (h, edge), code = max(found, key=lambda one: one[0][1])
        return Priced((Column((h,), code),), edge, edge)

    def measure(self, A: Vector) -> Vector:
        """The edge with the best code that may be drawn."""
        if self._codes is None:
            return super().measure(A)
        return np.abs(A @ self._codes).max(axis=1, keepdims=True)
