"""Twin of ``cpp/class_vectors.hpp`` and what it includes: class vectors by features, in NumPy.

On matrices of signs: nothing is merged, nothing is kept between two steps, and no sum is an
integer. A feature is a matrix of signs, rules x cells, and the cell of each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcboost.class_vectors import Penalty

Array = NDArray[np.float64]

_CYCLES, _ENOUGH, _FARTHEST = 5, 0.01, 2.0  # of a small problem
_LEAST_CURVATURE, _HOLD = 1e-12, 1e6


def signs_by_cell(ordered: bool, n_cells: int, missing: bool) -> Array:
    """Of each rule of a feature."""
    cells = np.arange(n_cells)
    if not ordered:
        right = [cells == level for level in range(n_cells if n_cells > 1 else 0)]
    else:
        right = []
        for cut in range(n_cells - 2):
            right.append(cells > cut + 1)
            if missing:
                right.append((cells > cut + 1) | (cells == 0))
        if missing:
            right.append(cells == 0)
    return np.where(np.array(right).reshape(len(right), n_cells), 1.0, -1.0)


@dataclass
class Column:
    """A feature; `main` is the cell that a sweep leaves out, if there is one."""

    signs: Array  # rules x cells
    alone: bool  # whether the last rule is "missing"
    cells: NDArray[Any]
    main: int | None = None

    def by_cell(self, X: Array) -> Array:
        """Sums over the rows of a cell."""
        return np.eye(self.signs.shape[1])[self.cells].T @ X


def joint(columns: list[Column]) -> Column:
    """Features of one cut as one, whose cells are all combinations of their sides."""
    sides = [column.signs[0, column.cells] > 0 for column in columns]
    combinations = np.arange(2 ** len(columns))
    signs = [np.where(combinations >> k & 1, 1.0, -1.0) for k in range(len(columns))]
    return Column(np.array(signs), False, sum(side << k for k, side in enumerate(sides)))


@dataclass
class Twin:
    """Rows, and a model: the intercept and a class vector for every rule, in use or not."""

    columns: list[Column]
    y: NDArray[Any]
    s: Array
    b: Array
    v: list[Array]  # of each column, rules x classes

    @property
    def labels(self) -> Array:
        """A one for the class of each row."""
        return np.eye(len(self.b))[self.y]

    def scores(self) -> Array:
        """F = b + sum_t v_t h_t."""
        F = np.tile(self.b, (len(self.y), 1))
        for column, v in zip(self.columns, self.v, strict=True):
            F += (v.T @ column.signs)[:, column.cells].T
        return F

    def log_probabilities(self) -> Array:
        """Of each row and class."""
        F = self.scores()
        F = F - F.max(axis=1, keepdims=True)
        return F - np.log(np.exp(F).sum(axis=1, keepdims=True))

    def objective(self, o: Penalty) -> float:
        """What is minimised."""
        loss = -self.s @ self.log_probabilities()[np.arange(len(self.y)), self.y]
        return float(loss) + self.cost(o)

    def cost(self, o: Penalty) -> float:
        """Of the model, beside its loss."""
        v = np.concatenate(self.v)
        squares = o.ridge * (v * v).sum() + o.intercept * (self.b @ self.b)
        return float(o.l1 * np.linalg.norm(v, axis=1).sum() + squares / 2.0)

    def edges(self) -> tuple[Array, Array]:
        """Minus the gradient of the loss by every rule's vector, and by the intercept."""
        V = self.s[:, None] * (self.labels - np.exp(self.log_probabilities()))
        return np.concatenate([c.signs @ c.by_cell(V) for c in self.columns]), V.sum(axis=0)

    def gap(self, o: Penalty) -> float:
        """What any other model can be better by, at the most."""
        a, constant = self.edges()
        v = np.concatenate(self.v)
        over = np.maximum(np.sqrt((a * a).sum(axis=1)) - o.l1, 0.0)
        # A better model's lengths add up to no more than this.
        most = over.max(initial=0.0) * min(self.objective(o), np.log(len(self.b))) / o.l1
        if o.ridge > 0:
            most = min(most, over @ over / (2.0 * o.ridge))
        most += constant @ constant / (2.0 * o.intercept)
        gap = float(self.cost(o) - (v * a).sum() - self.b @ constant + most)
        return min(gap, self.objective(o))

    def sweep(
        self, o: Penalty, curvature: float, used: list[NDArray[Any]], together: list[list[int]]
    ) -> None:
        """Features with rules in use, or several together; those that leave out a cell last."""
        blocks: list[list[int]] = []
        for j in (j for j, rules in enumerate(used) if len(rules)):
            group = next((g for g in together if j in g), [j])
            block = [k for k in group if len(used[k])]
            if block not in blocks:
                blocks.append(block)
        blocks.sort(key=lambda block: self.columns[block[0]].main is not None)
        if not blocks or self.columns[blocks[0][0]].main is not None:
            rest = np.zeros(len(self.y), dtype=int)
            self._correct(Column(np.zeros((0, 1)), False, rest), np.zeros((0, len(self.b))),
                          o, curvature)  # fmt: skip
        for block in blocks:
            j = block[0]
            column, rules = self.columns[j], used[j]
            alone = column.alone and rules[-1] == len(column.signs) - 1
            part = Column(column.signs[rules], alone, column.cells, column.main)
            if len(block) > 1:
                part = joint([self.columns[k] for k in block])
            v = np.concatenate([self.v[k][used[k]] for k in block])
            v = self._correct(part, v, o, curvature)
            for k in block:
                self.v[k][used[k]], v = v[: len(used[k])], v[len(used[k]) :]

    def _correct(self, column: Column, v: Array, o: Penalty, curvature: float) -> Array:
        p = np.exp(self.log_probabilities())
        G = column.by_cell(self.s[:, None] * (p - self.labels))
        H = curvature * column.by_cell(self.s[:, None] * p * (1.0 - p))
        if column.main is not None:
            held = (column.signs == column.signs[:, [column.main]]).all(axis=0)
            G[held], H[held] = 0.0, 0.0
            H[column.main] = _HOLD * (H.sum(axis=0) + _LEAST_CURVATURE)
        steps, rise = small_problem(column.signs, G, H, self.b, v, o)
        if column.main is not None:
            rise = -(steps.T @ column.signs)[:, column.main]
        d = column.signs.T @ steps + rise
        # Above all cuts and missing: no value is, but it counts.
        nowhere = steps.sum(axis=0) + rise if column.alone else np.zeros(0)
        largest = max(np.abs(d).max(), np.abs(nowhere).max(initial=0.0))
        share = min(1.0, _FARTHEST / max(largest, 1e-300))
        self.b = self.b + share * rise
        return v + share * steps


def small_problem(
    signs: Array, G: Array, H: Array, b: Array, v: Array, o: Penalty
) -> tuple[Array, Array]:
    """min <G, d> + <H, d d> / 2 + penalties, d = rise + signs' steps; some cycles of it.

    A rule after the other, with one curvature for all classes; the level is at its best before
    and after each, and so its share of the curvature is gone.
    """
    steps, first = np.zeros_like(v), 0.0
    W = H.sum(axis=0) + o.intercept + 1e-300

    def best_rise() -> Array:
        return -((G + H * (signs.T @ steps)).sum(axis=0) + o.intercept * b) / W

    for cycle in range(_CYCLES):
        moved = 0.0
        for t, h in enumerate(signs):
            gradient = h @ (G + H * (signs.T @ steps + best_rise()))
            K = max(_LEAST_CURVATURE, (H.sum(axis=0) - (h @ H) ** 2 / W).max())
            old = v[t] + steps[t]
            z = K * old - gradient
            size = np.sqrt(z @ z)
            new = z * (1.0 - o.l1 / size) / (K + o.ridge) if size > o.l1 else np.zeros_like(z)
            steps[t] = new - v[t]
            moved += K * ((new - old) @ (new - old))
        if cycle == 0:
            first = moved
        if moved <= _ENOUGH * first:
            break
    return steps, best_rise()
