"""Weak learners that tell all classes apart by themselves, as SAMME and AdaBoost.M1, M2 use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier

from ..rows.blocks import LocalRows
from .base import Hypothesis, Vector
from .fitted import ClassifierOracle


class OneHot(NamedTuple):
    """The class that a fitted classifier predicts: 1 there, 0 for the other classes."""

    classifier: Any
    n_classes: int

    def predict(self, X: Vector) -> NDArray[np.int8]:
        """A row of `n_classes` outputs for each row."""
        predicted = np.asarray(self.classifier.predict(X)).astype(np.intp)
        return np.eye(self.n_classes, dtype=np.int8)[predicted]


class MulticlassOracle(ClassifierOracle):
    """Any scikit-learn classifier that takes `sample_weight`, fitted to all classes at once."""

    def __init__(
        self, rows: LocalRows, estimator: Any, rng: np.random.RandomState, n_classes: int
    ) -> None:
        super().__init__(rows, estimator, rng)
        self._n_classes = n_classes
        self._asked: NDArray[Any] | None = None

    def best(self, V: NDArray[Any]) -> list[tuple[Hypothesis, float]]:
        """One hypothesis; when asked again, for the weights of a Bayesian bootstrap of V."""
        again, self._asked = V is self._asked, V
        h = self._fit(V * self._rng.exponential(size=(len(V), 1)) if again else V)
        return [(h, float((V * h.predict(self._rows.X)).sum()))]

    def _fit(self, V: NDArray[Any]) -> OneHot:
        """A hypothesis whose weighted error is small where ``sum_i V[i, h(x_i)]`` is large.

        Each row is there once for every class, weighted by what the class is worth more than
        the least: that sum is then the weight that h gets right, plus a constant. Where all
        wrong classes are worth the same (SAMME, AdaBoost.M1) only the true one is left.
        """
        worth = V - V.min(axis=1, keepdims=True)
        rows, classes = np.nonzero(worth)
        one = (classes == classes[0]).all()  # not every classifier can be fitted to that
        classifier = DummyClassifier() if one else self._clone()
        weight = worth[rows, classes] / float(worth.max())
        classifier.fit(self._rows.X[rows], classes, sample_weight=weight)
        return OneHot(classifier, self._n_classes)
