"""The smooth restricted master of any loss of class scores, over a ball of coefficients.

Minimise ``loss(F)``, ``F = sum_j h_j(x) v_j`` over the class vectors v_j: free in direction
with ``sum_j norm2(v_j) <= theta`` (`GroupBall`), or multiples ``w_j >= 0`` of their codes with
``sum_j w_j <= theta`` (`CodeSimplex`).

Accelerated projected gradients with a step found by backtracking and with adaptive restart
(Beck and Teboulle 2009, O'Donoghue and Candes 2015). The duality gap
``theta max_j norm(g_j) - <W, g>`` comes with the gradient.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..losses import DualWeights, Loss
from ..margins import Margin
from ..oracles import Column
from .base import ColumnStore, Vector, lengths

# Of the class gap, and of the tolerance on it, what the restricted master may leave.
_SHARE = 0.3
_MAX_ITER, _POLISH_ITER = 50, 3000


class Ball(Protocol):
    """The feasible set: what coefficients W mean, and the geometry of their budget."""

    shape: tuple[int, ...]

    def add(self, column: Column) -> None:
        """Room for one more column."""

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget the other columns."""

    def vectors(self, W: Vector) -> Vector:
        """Class vectors (columns, classes) of the coefficients."""

    def pull(self, A: Vector) -> Vector:
        """The adjoint of `vectors`."""

    def project(self, W: Vector, theta: float) -> Vector:
        """The nearest point within the budget."""

    def largest(self, g: Vector) -> float:
        """The largest ``<W, g>`` of a budget of one."""


class GroupBall:
    """``sum_j norm2(v_j) <= theta``: a class vector for every hypothesis."""

    def __init__(self, n_classes: int) -> None:
        self.shape: tuple[int, ...] = (n_classes,)

    def add(self, column: Column) -> None:
        """Nothing to remember."""

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Nothing to forget."""

    def vectors(self, W: Vector) -> Vector:
        """The coefficients are the vectors."""
        return W

    def pull(self, A: Vector) -> Vector:
        """So is the adjoint."""
        return A

    def project(self, W: Vector, theta: float) -> Vector:
        """Shrink all lengths by one amount."""
        long = lengths(W)
        return W * (project_to_budget(long, theta) / np.maximum(long, 1e-300))[:, None]

    def largest(self, g: Vector) -> float:
        """The longest vector."""
        return float(lengths(g).max())


class CodeSimplex:
    """``w >= 0``, ``sum w <= theta``: a multiple of its code column for every hypothesis."""

    def __init__(self) -> None:
        self.shape: tuple[int, ...] = ()
        self._codes: list[NDArray[np.int8]] = []

    def add(self, column: Column) -> None:
        """Remember the code."""
        assert column.code is not None
        self._codes.append(column.code)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget their codes."""
        self._codes = [m for m, k in zip(self._codes, kept, strict=True) if k]

    def vectors(self, W: Vector) -> Vector:
        """``w_j m_j``."""
        return W[:, None] * np.array(self._codes)

    def pull(self, A: Vector) -> Vector:
        """``m_j . a_j``."""
        return (np.array(self._codes) * A).sum(axis=1)

    def project(self, W: Vector, theta: float) -> Vector:
        """Onto the simplex."""
        return project_to_budget(np.maximum(W, 0.0), theta)

    def largest(self, g: Vector) -> float:
        """The largest entry, or nothing."""
        return max(0.0, float(g.max()))


def project_to_budget(w: Vector, theta: float) -> Vector:
    """The nonnegative vector of sum at most theta that is nearest to a nonnegative w."""
    if w.sum() <= theta:
        return w
    ordered = np.sort(w)[::-1]
    excess = (np.cumsum(ordered) - theta) / np.arange(1, len(ordered) + 1)
    k = int(np.flatnonzero(ordered > excess)[-1])
    return np.maximum(w - excess[k], 0.0)


class BallCorrective:
    """All class vectors re-solved when a column is added: loosely at first, then polished."""

    def __init__(
        self,
        margin: Margin,
        y: NDArray[np.intp],
        weight: Vector,
        loss: Loss,
        ball: Ball,
        theta: float,
        tol: float,
    ) -> None:
        self._margin, self._y, self._weight = margin, y, weight
        self._loss, self._ball, self._theta, self._tol = loss, ball, theta, tol
        self.w: Vector = np.zeros((0, *ball.shape))
        self._F: Vector = np.zeros((len(y), margin.width + 1))
        self._H = ColumnStore(len(y), np.float64)
        self._steepness, self._gap, self._polished = 0.5, np.inf, False
        self.gap = 0.0  # of the restricted master

    @property
    def z(self) -> Vector:
        """Margins of the scores."""
        return self._margin.apply(self._F, self._y)

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
        self._theta = theta
        self.w = self._ball.project(self.w, theta)
        if len(self.w):
            self._solve(_SHARE * max(self._tol, self.gap), _MAX_ITER)

    def prune(self) -> NDArray[np.bool_]:
        """Forget columns without weight; return which were kept."""
        kept = lengths(self.w) > 0
        self._H.keep(kept)
        self._ball.keep(kept)
        self.w = self.w[kept]
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
        # Outputs are those of the hypothesis alone, or times the code.
        h = outputs[:, 0] if column.code is None else outputs[:, 0] * column.code[0]
        self._H.append(h)
        self._ball.add(column)
        self.w = np.concatenate([self.w, np.zeros((1, *self._ball.shape))])
        self._solve(_SHARE * max(self._tol, self._gap), _MAX_ITER)
        return True

    def polish(self) -> bool:
        """Solve the last master as tightly as the tolerance asks; False if it was."""
        if self._polished or self.gap <= _SHARE * self._tol or not len(self.w):
            return False
        self._solve(_SHARE * self._tol, _POLISH_ITER)
        self._polished = True
        return True

    def _solve(self, tol: float, max_iter: int) -> None:
        H, theta, ball = self._H.matrix, self._theta, self._ball
        self._polished = False
        W, F = self.w, _scores(H, ball.vectors(self.w))
        Z, FZ, momentum = W, F, 1.0
        for _ in range(max_iter):
            value, g, self.gap = self._slope(Z, FZ)
            if Z is W and self.gap <= tol:
                break
            while True:
                new = ball.project(Z + g / self._steepness, theta)
                step, F_new = new - Z, _scores(H, ball.vectors(new))
                new_value, _ = self._loss.on_scores(F_new, self._y, self._weight)
                model = value - float((g * step).sum())
                model += 0.5 * self._steepness * float((step * step).sum())
                if new_value <= model + 1e-13 * (1.0 + abs(value)):
                    break
                self._steepness *= 2.0
            self._steepness *= 0.95
            if self.gap <= tol or float(((Z - new) * (new - W)).sum()) > 0:
                momentum = 1.0  # restart, and look at the gap where the coefficients are
                Z, FZ = new, F_new
            else:
                following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
                share, momentum = (momentum - 1.0) / following, following
                Z, FZ = new + share * (new - W), F_new + share * (F_new - F)
            W, F = new, F_new
        else:  # out of iterations: the gap at hand is that of another point
            self.gap = self._slope(W, F)[2]
        self.w, self._F = W, F

    def _slope(self, W: Vector, F: Vector) -> tuple[float, Vector, float]:
        """Value, minus the gradient by the coefficients, and the restricted gap."""
        value, V = self._loss.on_scores(F, self._y, self._weight)
        g = self._ball.pull(self._H.matrix.T @ V)
        return value, g, self._theta * self._ball.largest(g) - float((W * g).sum())


def _scores(H: Vector, vectors: Vector) -> Vector:
    """``H @ vectors``, stored by columns: sums over the few classes are then fast."""
    return (vectors.T @ H.T).T
