"""Weak learners that are fitted rather than searched: Fisher's discriminant, any classifier.

Nobody knows how good the best hypothesis of such a class is, so they give no bound: the
certificate of a fit with them is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from ..rows.blocks import LocalRows
from .base import Column, Hypothesis, Prices, Vector


class Discriminant(NamedTuple):
    """``sign`` where ``x . coef > threshold``, else ``-sign``; constant if that is ``-inf``."""

    coef: Vector
    threshold: float
    sign: int

    def predict(self, X: Vector) -> NDArray[np.int8]:
        """-1 or +1 for each row."""
        return np.where(X @ self.coef > self.threshold, self.sign, -self.sign).astype(np.int8)


class Fitted(NamedTuple):
    """The predictions of a fitted classifier of -1 and +1, times `sign`."""

    classifier: Any
    sign: int

    def predict(self, X: Vector) -> NDArray[np.int8]:
        """-1 or +1 for each row."""
        return (self.sign * np.asarray(self.classifier.predict(X))).astype(np.int8)


class FittedOracle:
    """What they have in common: no bound, and one fit for each column of weights."""

    exact = False

    def __init__(self, rows: LocalRows) -> None:
        self._rows = rows
        # Outputs of the columns chosen so far; holding a column keeps its id its own.
        self._predictions: dict[int, tuple[Column, NDArray[np.int8]]] = {}

    def price(self, rows: LocalRows, V: NDArray[np.int64]) -> FittedPrices:
        """Prepare to fit one hypothesis for each column of weights."""
        return FittedPrices(self, V)

    def fit(self, v: Vector) -> Any:
        """A hypothesis for the labels sign(v) and the weights |v|; both signs occur."""
        raise NotImplementedError

    def best(self, V: NDArray[Any]) -> list[tuple[Hypothesis, float]]:
        """One hypothesis for each column, turned round if its edge is negative; their edges."""
        return [self._best_of(v) for v in V.T]

    def _best_of(self, v: NDArray[np.int64]) -> tuple[Hypothesis, float]:
        X = self._rows.X
        if not ((v > 0).any() and (v < 0).any()):  # one label only: a constant hypothesis
            sign = 1 if v.sum() >= 0 else -1
            return Discriminant(np.zeros(X.shape[1]), -np.inf, sign), float(abs(v.sum()))
        h = self.fit(v / float(np.abs(v).max()))
        edge = int(v @ h.predict(X).astype(np.int64))
        return (h if edge >= 0 else h._replace(sign=-h.sign)), float(abs(edge))

    def predictions(self, columns: Sequence[Column]) -> list[NDArray[np.int8]]:
        """Predictions on the rows; a column is evaluated once."""
        for column in columns:
            known, _ = self._predictions.get(id(column), (None, None))
            if known is not column:  # an id from before pickling may be that of another now
                self._predictions[id(column)] = column, column.predictions(self._rows.X)
        return [self._predictions[id(column)][1] for column in columns]


class LDAOracle(FittedOracle):
    """Fisher's linear discriminant, weighted, cut where the weighted error is least."""

    hypothesis_class = "linear discriminants"

    def __init__(self, rows: LocalRows) -> None:
        super().__init__(rows)
        # Powers of two first: exact, and the squares can neither overflow nor underflow.
        unit = np.ldexp(1.0, np.frexp(np.abs(rows.X).max(axis=0))[1] - 1)
        Y = rows.X / unit
        mean = rows.weight @ Y
        scale = np.sqrt(rows.weight @ (Y - mean) ** 2)
        scale[scale == 0] = 1.0
        self._scale = scale * unit
        self._Z = (Y - mean) / scale  # scales that differ by 1e8 would hide a singularity

    def fit(self, v: Vector) -> Discriminant:
        """Fisher's direction, then the best cut along it."""
        Z, positive, weight = self._Z, v > 0, np.abs(v)
        means = [np.average(Z[p], axis=0, weights=weight[p]) for p in (positive, v < 0)]
        centred = Z - np.where(positive[:, None], means[0], means[1])
        scatter = centred.T @ (centred * weight[:, None]) / weight.sum()
        # The ridge is small beside the unit variance of Z. It is felt only where the scatter is
        # singular, and there favours directions in which the classes differ without any.
        scatter[np.diag_indices_from(scatter)] += 1e-8
        coef = solve(scatter, means[0] - means[1], assume_a="pos") / self._scale
        X = self._rows.X
        # What rounding may do to a projection; a cut must not depend on it.
        resolution = (
            (len(coef) + 8) * np.finfo(float).eps * float((np.abs(X) @ np.abs(coef)).max())
        )
        threshold, sign = best_cut(X @ coef, v, resolution)
        return Discriminant(coef, threshold, sign)


class ClassifierOracle(FittedOracle):
    """Any scikit-learn classifier that takes `sample_weight`."""

    def __init__(self, rows: LocalRows, estimator: Any, rng: np.random.RandomState) -> None:
        super().__init__(rows)
        if isinstance(estimator, type) or not is_classifier(estimator):
            raise ValueError(f"weak_learner must be a classifier, got {estimator!r}")
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"weak_learner {estimator!r} must take sample_weight in its fit method"
            )
        self._estimator, self._rng = estimator, rng
        self.hypothesis_class = f"hypotheses of {type(estimator).__name__}"

    def fit(self, v: Vector) -> Fitted:
        """A clone, fitted to the rows of positive weight."""
        classifier, used = self._clone(), v != 0
        classifier.fit(
            self._rows.X[used], np.where(v[used] > 0, 1, -1), sample_weight=np.abs(v[used])
        )
        return Fitted(classifier, 1)

    def _clone(self) -> Any:
        classifier = clone(self._estimator)
        if "random_state" in classifier.get_params(deep=False):
            classifier.set_params(random_state=int(self._rng.randint(2**31 - 1)))
        return classifier


class FittedPrices(Prices):
    """Prices by fitting: the edge is that of the fitted hypothesis, with no claim beyond it."""

    def __init__(self, oracle: FittedOracle, V: NDArray[np.int64]) -> None:
        self._oracle, self._V = oracle, V

    def best(self, W: NDArray[Any] | None) -> list[tuple[Hypothesis, float]]:
        """Hypotheses fitted to V, or to combinations of its columns."""
        return self._oracle.best(self._V if W is None else self._V @ W.astype(np.int64))

    def edges(self, columns: list[Column]) -> NDArray[np.int64]:
        """Edges of earlier columns, from their outputs on the rows."""
        found = zip(columns, self._oracle.predictions(columns), strict=True)
        parts = np.array([(self._V * c.coded(H)).sum(axis=0) for c, H in found])
        single = len(columns[0].hypotheses) == 1
        return parts.sum(axis=1, keepdims=True) if single else parts


def best_cut(projection: Vector, v: Vector, resolution: float = 0.0) -> tuple[float, int]:
    """Threshold and sign of the largest ``sum v_i h_i``, h being +1 above the threshold.

    No cut is made between values that differ by no more than `resolution`.
    """
    order = np.argsort(projection, kind="stable")
    p = projection[order]
    above = v.sum() - np.concatenate([[0.0], np.cumsum(v[order])])  # of rows k, k + 1, ...
    edge = (2 * above - v.sum())[:-1]
    possible = np.concatenate([[True], np.diff(p) > resolution])
    k = int(np.argmax(np.where(possible, np.abs(edge), -1.0)))
    sign = 1 if edge[k] >= 0 else -1
    if k == 0:  # a constant hypothesis
        return -np.inf, sign
    middle = p[k - 1] / 2 + p[k] / 2
    return float(middle if p[k - 1] <= middle < p[k] else p[k - 1]), sign
