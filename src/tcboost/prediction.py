"""What a fitted model says: scores, classes, probabilities, margins, and its stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from .coding import coding_matrix
from .ensemble import Ensemble
from .losses import LOSSES
from .margins import Codeword, Margin, Pairwise, PairwiseCode
from .model.additive import AdditiveModel
from .oracles import Column, Stump
from .rows.blocks import effective_n_jobs
from .validation import column_name, read_table

Vector = NDArray[np.float64]


def is_plain(X: Any) -> bool:
    """Whether scikit-learn would find nothing to convert; to look for names it takes 5 ms."""
    return type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2


def _has_probabilities(estimator: Any) -> bool:
    """Whether the loss tells probabilities; hinges only tell on which side a row is."""
    loss = getattr(estimator, "loss", None)  # without a choice of one it is cross-entropy
    if loss is not None and LOSSES[loss].log_odds is None:
        raise AttributeError(f"loss={loss!r} does not tell probabilities")
    return True


class Scores(Protocol):
    """A fitted model, for new rows."""

    def scores(self, X: Vector, n_threads: int = 1) -> Vector:
        """Of every class."""

    def best(self, X: Vector, n_threads: int = 1) -> NDArray[np.int64]:
        """The class of the largest score, the first on a tie."""


class ScoringClassifier(ClassifierMixin, BaseEstimator):
    """What an estimator says of new rows, from the scores of its model (`_ensemble`)."""

    n_jobs: int | None

    classes_: NDArray[Any]
    probability_scale_: float
    n_features_in_: int

    def decision_function(self, X: ArrayLike) -> Vector:
        """Class scores, the largest of which is the prediction.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes the score of the second less that of the first.
        """
        features = self._features(X)
        n_threads = effective_n_jobs(self.n_jobs)
        return self._signed(self._ensemble().scores(features, n_threads))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of the largest score, the first on a tie.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        features, n_threads = self._features(X), effective_n_jobs(self.n_jobs)
        return self.classes_[self._ensemble().best(features, n_threads)]

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> Vector:
        """Class probabilities, the largest of which is the prediction.

        They are the softmax of `probability_scale_` times the scores: what the scores say at
        the population minimiser of the loss, or a scale fitted out of fold, with a `theta` of
        "cv".

        Cross-entropy, and logistic loss of pairwise margins: the softmax of the scores.
        Pairwise exponential loss: that of twice the scores. Codewords: the log-odds of bit l
        are ``2 F_l`` (exponential) or ``F_l`` (logistic), and those of two classes the mean
        over the bits that tell them apart, which is the nearest to these bits in the sense
        of the sum of ``KL(p, bit)``. That is the softmax of the scores divided by the number of
        such bits, or by twice it. Hinges tell no probabilities, and have no such method.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(self.decision_function(X), softmax)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> Vector:
        """Logarithms of the class probabilities, finite where those underflow.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(self.decision_function(X), log_softmax)

    def _probabilities(self, scores: Vector, function: Callable[..., Vector]) -> Vector:
        """The softmax, or its logarithm, of scores as `decision_function` has them."""
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        p = function(self.probability_scale_ * scores, axis=1)
        # Rounding may make another class the equal of the one predicted.
        lost = np.flatnonzero(p.argmax(axis=1) != scores.argmax(axis=1))
        p[lost, scores[lost].argmax(axis=1)] = np.nextafter(p[lost].max(axis=1), np.inf)
        return p

    def margins(self, X: ArrayLike, y: ArrayLike) -> Vector:
        """Margins of labelled rows, as the paper plots them: for coefficients that sum to one.

        The smallest of a row is its margin, equations (17) and (23).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Classes, all of them seen in fit.

        Returns
        -------
        ndarray of shape (n_samples, n_margins)
            One a bit of the code (the MOs), one a class but its own, in ascending order, or
            a single one (SAMME).
        """
        features, y = self._features(X), column_or_1d(y)
        check_consistent_length(features, y)
        unseen = np.setdiff1d(y, self.classes_)
        if len(unseen):
            raise ValueError(f"y holds classes that were not seen in fit: {unseen.tolist()}")
        return self._paper_margins(features, np.searchsorted(self.classes_, y))

    def _features(self, X: Any) -> Vector:
        """Validated features of new rows."""
        if not self._as_in_fit(X):
            check_is_fitted(self)
            X = read_table(self, X, reset=False)
        X = np.require(X, requirements="A")  # fields of a record may lie anywhere
        self._check_values(X)
        return X

    def _as_in_fit(self, X: Any) -> bool:
        """Whether there is nothing to convert or to compare, which takes 0.1 ms to find out."""
        known = vars(self)
        return (
            is_plain(X)
            and len(X) > 0
            and X.shape[1] == known.get("n_features_in_")
            and "feature_names_in_" not in known
            and "classes_" in known
        )

    def _signed(self, scores: Vector) -> Vector:
        """Two classes have one score."""
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _ensemble(self) -> Scores:
        raise NotImplementedError

    def _about_form(self) -> dict[str, Any]:
        """What an `AdditiveModel` knows beside its tables."""
        names = getattr(self, "feature_names_in_", None)
        scale = self.probability_scale_
        return {
            "n_features": self.n_features_in_,
            "feature_names": None if names is None else tuple(map(str, names)),
            "classes": self.classes_,
            "probability_scale": None if np.isnan(scale) else scale,
        }

    def _paper_margins(self, X: Vector, y: NDArray[np.intp]) -> Vector:
        """Of rows of these classes, by their numbers; for coefficients that sum to one."""
        raise NotImplementedError

    def _check_values(self, X: Vector) -> None:
        """Infinity is never a value; NaN is one for some weak learners. Name the column."""
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(X.sum()):  # then all of them are
                return
        bad, what = np.isinf(X).any(axis=0), "infinity"
        remedy = "give finite numbers, or NaN for what is missing"
        if not bad.any() and not self._takes_missing():
            bad, what = np.isnan(X).any(axis=0), "NaN"
            remedy = (
                "only the weak learners 'stump' and 'product' can take it; fill it in, with "
                "sklearn.impute.SimpleImputer for one"
            )
        if bad.any():
            names = getattr(self, "feature_names_in_", None)
            where = column_name(int(np.flatnonzero(bad)[0]), names)
            raise ValueError(f"Input X contains {what} in {where}: {remedy}")

    def _takes_missing(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing()
        return tags


class FittedClassifier(ScoringClassifier):
    """The half of an estimator of the paper that comes after `fit`.

    A subclass says which margin it has (`_pairwise`), and whether it is `_stage_wise`.
    """

    _pairwise: ClassVar[bool] = True
    _stage_wise: ClassVar[bool] = False

    loss: str = "exponential"
    coding: Any
    weak_learner: Any

    estimators_: list[Column]
    estimator_weights_: Vector
    coding_matrix_: NDArray[Any]
    n_iter_: int
    history_: dict[str, Any]
    _model: Ensemble

    def staged_decision_function(self, X: ArrayLike) -> Iterator[Vector]:
        """Class scores of the model as it was after each round.

        A totally corrective round changes all coefficients, so that its model is not a part of
        the final one. The last stage is the final model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Yields
        ------
        ndarray, as of `decision_function`
        """
        features, margin = self._features(X), self._ensemble().margin
        for w in self._stages():
            yield self._signed(Ensemble(self.estimators_[: len(w)], w, margin).scores(features))

    def staged_predict(self, X: ArrayLike) -> Iterator[NDArray[Any]]:
        """Predictions of the model as it was after each round.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,)
        """
        for scores in self.staged_decision_function(X):
            best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
            yield self.classes_[best.astype(np.intp)]

    @available_if(_has_probabilities)
    def staged_predict_proba(self, X: ArrayLike) -> Iterator[Vector]:
        """Class probabilities of the model as it was after each round.

        All stages have the `probability_scale_` of the final model, which is the last stage.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
        """
        for scores in self.staged_decision_function(X):
            yield self._probabilities(scores, softmax)

    def _paper_margins(self, X: Vector, y: NDArray[np.intp]) -> Vector:
        model = self._ensemble()
        z = model.margin.apply(model.outputs(X), y)
        return z / max(float(model.w.sum()), 1e-300)

    @property
    def feature_importances_(self) -> Vector:
        """Share of each feature in the budget that is used; for stumps only."""
        check_is_fitted(self)
        if not isinstance(self.weak_learner, str) or self.weak_learner != "stump":
            raise AttributeError("feature_importances_ needs weak_learner='stump'")
        importances = np.zeros(self.n_features_in_)
        for column, share in zip(self.estimators_, self.estimator_weights_, strict=True):
            for h in column.hypotheses:
                if isinstance(h, Stump) and h.threshold > -np.inf:  # not a constant
                    importances[h.feature] += share
        return importances / max(float(importances.sum()), 1e-300)

    @property
    def additive_(self) -> AdditiveModel:
        """The fitted model as data: a table for each feature."""
        model = self._ensemble()
        form = model.form or model.additive(**self._about_form())
        if form is None:
            raise AttributeError(
                f"weak_learner={self.weak_learner!r} makes no tables of single features; "
                "additive_ needs weak_learner='stump'"
            )
        return form

    def _stages(self) -> list[Vector]:
        """Coefficients after each round; those of a stage-wise model are never revised."""
        if self._stage_wise:
            return [self.estimator_weights_[:t] for t in range(1, self.n_iter_ + 1)]
        if "weights" not in self.history_:
            raise ValueError("a model file holds the final coefficients only, not the stages")
        return [w for w in self.history_["weights"] if len(w) <= self.n_iter_]

    def _ensemble(self) -> Ensemble:
        """The fitted model; that of the fit itself, if it is, has its tables at hand."""
        check_is_fitted(self)
        model: Ensemble | None = getattr(self, "_model", None)
        columns, w = self.estimators_, self.estimator_weights_
        if model is None or model.columns is not columns or model.w is not w:
            margin = self._margin(len(self.classes_), getattr(self, "coding_matrix_", None))
            model = self._model = Ensemble(columns, w, margin)
        return model

    def _takes_missing(self) -> bool:
        return isinstance(self.weak_learner, str) and self.weak_learner != "lda"

    @property
    def _grown(self) -> bool:
        """Whether every column has a code of its own, or none; else M is fixed."""
        names = ("random", "runs", "learned")
        return self.coding is None or (isinstance(self.coding, str) and self.coding in names)

    def _margin(self, n_classes: int, M: NDArray[Any] | None = None) -> Margin:
        if self._grown:
            return Pairwise(n_classes)
        M = coding_matrix(self.coding, n_classes) if M is None else M
        return PairwiseCode(M) if self._pairwise else Codeword(M)
