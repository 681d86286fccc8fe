"""The fitted columns and coefficients of the paper's estimators, and how scores follow."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._kept import kept_property
from .margins import Margin
from .model.additive import AdditiveModel
from .oracles import Column, Stump
from .step_functions import Steps, additive_model
from .words import Weigh

Vector = NDArray[np.float64]


_CELLS = 1 << 24  # of the tables: codes of many bits would need too many


@dataclass(frozen=True)
class Ensemble:
    """``F(x) = sum_j w_j o_j(x)`` over the columns j, and the class scores of F."""

    columns: list[Column]
    w: Vector
    margin: Margin
    form: AdditiveModel | None = None  # the canonical one, where it was made

    def scores(self, X: Vector, n_threads: int = 1) -> Vector:
        """Class scores (rows, classes), equations (1) and (2) of the paper."""
        if self.tables is not None:
            return self.tables.scores(X, n_threads)
        return self.margin.scores(self.outputs(X))

    def best(self, X: Vector, n_threads: int = 1) -> NDArray[np.int64]:
        """The class of the largest score, the first on a tie."""
        if self.tables is not None:
            return self.tables.best(X, n_threads)
        return self.scores(X).argmax(axis=1)

    def outputs(self, X: Vector) -> Vector:
        """``F(x)`` for each row."""
        if self.tables is not None:
            return self.tables.outputs(X)
        F = np.zeros((len(X), self.margin.n_outputs))
        for column, w in zip(*self._active, strict=True):
            F += w * column.outputs(X)
        return F

    @property
    def _active(self) -> tuple[list[Column], Vector]:
        """Columns with weight, and their coefficients."""
        used = self.w != 0
        return list(compress(self.columns, used)), self.w[used]

    @kept_property
    def tables(self) -> AdditiveModel | None:
        """The same as tables, if the columns are made of stumps and the tables fit."""
        if self.form is not None:
            return self.form
        return self.additive(n_features=0, feature_names=None, classes=np.zeros(0))

    @property
    def steps(self) -> tuple[Steps, Vector] | None:
        """The stumps side by side and their coefficients, if the columns are made of stumps."""
        (columns, w), width = self._active, self.margin.n_outputs
        stumps = [h for c in columns for h in c.hypotheses if isinstance(h, Stump)]
        n_hypotheses = sum(len(c.hypotheses) for c in columns)
        if len(stumps) * width > _CELLS or len(stumps) < n_hypotheses:
            return None
        if columns and columns[0].code is not None:
            vectors = w[:, None] * np.array([c.code for c in columns])
        else:  # a stump for each bit
            vectors = np.kron(w[:, None], np.eye(width)).astype(float)
        return Steps.of_stumps(stumps), vectors

    def additive(self, weigh: Weigh | None = None, **about: Any) -> AdditiveModel | None:
        """The same as tables; in canonical form with the weights of cells."""
        steps = self.steps
        if steps is None:
            return None
        code = getattr(self.margin, "M", None)
        about["size"] = float(self.w.sum())
        zero = np.zeros(self.margin.n_outputs)
        return additive_model(*steps, zero, weigh, code, **about)

    def __getstate__(self) -> dict[str, Any]:
        """Without the tables: they are made again where they are needed."""
        return {name: vars(self)[name] for name in ("columns", "w", "margin", "form")}
