"""Thinning: the trees of another ensemble, all their weights re-solved at once.

Problem (19) of the paper over the columns of a fitted ensemble. A column is what the ensemble
itself adds up, a vector o(x) of class scores: the vote of a tree (AdaBoost), its probabilities
(forests), the leaf values of one round of trees (boosters), or a base score, which LightGBM has
in its first round. Margins are pairwise, ``o_y - o_c``; the largest is scaled to 1, so that all
columns cost the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .certificate import certificate
from .correctors import MasterSolution, solve_master
from .estimator import BoostingClassifier
from .losses import LOSSES
from .margins import Pairwise

Vector = NDArray[np.float64]

_ROUNDING = 1e-6  # scores so small beside those of other columns may be rounding alone


@dataclass(frozen=True)
class Member:
    """A column: `tree`, the ensemble's own object, and how to read its class scores."""

    tree: Any
    read: Callable[[Any, Any], NDArray[Any]]
    scale: float = 1.0
    hypotheses = (None,)  # not stumps

    def outputs(self, X: Vector) -> Vector:
        """One a class; where two classes have one score, it is that of the second."""
        f = np.reshape(self.read(self.tree, X), (len(X), -1)).astype(float) / self.scale
        return f if f.shape[1] > 1 else np.column_stack([np.zeros(len(f)), f])


def _gradient_boosting(ensemble: Any, X: Vector) -> list[Member]:
    if ensemble.init not in (None, "zero"):
        raise ValueError(f"ensemble must have init=None or 'zero', not {ensemble.init!r}")
    rounds = [Member(trees, _leaf_values) for trees in ensemble.estimators_]
    whole = Member(ensemble, type(ensemble).decision_function).outputs(X[:1])
    fitted = ensemble.learning_rate * sum(member.outputs(X[:1]) for member in rounds)
    return [*rounds, _constant(whole - fitted)]


def _xgboost(ensemble: Any, X: Vector) -> list[Member]:
    if ensemble.booster not in (None, "gbtree"):
        raise ValueError(f"ensemble must have booster='gbtree', not {ensemble.booster!r}")
    booster, n_classes = ensemble.get_booster(), len(ensemble.classes_)
    n_rounds = getattr(ensemble, "best_iteration", booster.num_boosted_rounds() - 1) + 1
    read = partial(_margin, missing=ensemble.missing, width=n_classes if n_classes > 2 else 1)
    rounds = [Member(booster[t : t + 1], read) for t in range(n_rounds)]
    first = partial(type(ensemble).predict, output_margin=True, iteration_range=(0, 1))
    base = Member(ensemble, first).outputs(X[:1]) - rounds[0].outputs(X[:1])
    return [*rounds, _constant(base)]


def _lightgbm(ensemble: Any, X: Vector) -> list[Member]:
    booster, kind = ensemble.booster_, type(ensemble.booster_)
    rounds = range(ensemble.best_iteration_ or booster.current_iteration())
    parts = [kind(model_str=booster.model_to_string(1, start_iteration=t)) for t in rounds]
    return [Member(part, partial(kind.predict, raw_score=True)) for part in parts]


def _vote(tree: Any, X: Vector) -> NDArray[Any]:
    return tree.predict(X)[:, None] == tree.classes_


def _leaf_values(trees: Any, X: Vector) -> NDArray[Any]:
    return np.column_stack([tree.predict(X) for tree in trees])


def _margin(booster: Any, X: Vector, missing: float, width: int) -> NDArray[Any]:
    zero = np.zeros((len(X), width))  # in place of the base score
    return booster.inplace_predict(X, predict_type="margin", missing=missing, base_margin=zero)


def _constant(base: Vector) -> Member:
    return Member(DummyRegressor().fit(base, base), DummyRegressor.predict)


_READERS: dict[str, Callable[[Any, Vector], list[Member]]] = {  # by name: none is imported
    "sklearn.AdaBoostClassifier": lambda e, X: [Member(tree, _vote) for tree in e],
    "sklearn.ForestClassifier": lambda e, X: [Member(t, type(t).predict_proba) for t in e],
    "sklearn.GradientBoostingClassifier": _gradient_boosting,
    "xgboost.XGBClassifier": _xgboost,
    "lightgbm.LGBMClassifier": _lightgbm,
}


class Thinned(BoostingClassifier):
    """What `thin` returns, fitted for good: `fit` changes nothing, a clone is the model."""

    coding, weak_learner, max_bins, n_jobs = None, "tree", 2, None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Nothing to do."""
        return self

    def __sklearn_clone__(self) -> Self:
        return self

    def _check_values(self, X: Vector) -> None:
        assert_all_finite(X, allow_nan=self.takes_missing_, input_name="X")


class Thinning:
    """The restricted master whose columns are those of an ensemble, on given rows."""

    def __init__(self, ensemble: Any, X: Any, y: Any, sample_weight: Any = None) -> None:
        names = [f"{c.__module__.split('.')[0]}.{c.__name__}" for c in type(ensemble).__mro__]
        read = next((_READERS[name] for name in names if name in _READERS), None)
        if read is None:
            raise ValueError(f"ensemble must be one of {[*_READERS]}, got {ensemble!r}")
        check_is_fitted(ensemble)
        model = self._model = Thinned()
        model.takes_missing_ = get_tags(ensemble).input_tags.allow_nan
        rows = self.rows = model._rows(X, y, sample_weight)
        validate_data(ensemble, X, reset=False, skip_check_array=True)  # the features' names
        known = ensemble.classes_
        if isinstance(known, list):
            raise ValueError("ensemble must have one output, not several")
        if not set(known.tolist()) >= set(model.classes_.tolist()):
            raise ValueError(f"y has classes {model.classes_}, the ensemble only {known}")
        rows.y, model.classes_ = np.searchsorted(known, model.classes_)[rows.y], known
        self._members: Any = read(ensemble, rows.X)
        self._of, margin = f"the trees of {type(ensemble).__name__}", Pairwise(len(known))
        columns = [margin.apply(m.outputs(rows.X), rows.y).ravel() for m in self._members]
        self.P = np.stack(columns, axis=1)
        self._scales = np.abs(self.P).max(axis=0)
        self._scales[self._scales <= _ROUNDING * self._scales.max()] = np.inf  # never used
        self.P /= self._scales

    def solve(self, theta: float, weight: Vector) -> MasterSolution:
        """All coefficients at once, for rows of the given weights, to a gap below 1e-6."""
        s = np.repeat(weight, len(self.P) // len(weight)) * (len(weight) / len(self.P))
        return solve_master(self.P, theta, sample_weight=s, tol=5e-7)

    def model(self, theta: float, probability_scale: float = 2.0) -> Thinned:
        """The columns that have a coefficient, and the proof."""
        model, best = copy(self._model), self.solve(theta, self.rows.weight)
        kept = model.estimator_indices_ = np.flatnonzero(best.w)
        model.estimators_ = [replace(self._members[j], scale=self._scales[j]) for j in kept]
        model.estimator_weights_, model.n_iter_, model.history_ = best.w[kept], len(kept), {}
        model.theta_, model.probability_scale_ = theta, probability_scale
        loss, optimal = LOSSES["exponential"], best.gap <= 1e-6
        proof = certificate(best.log_loss, best.dual, theta, self._of, loss)
        model.certificate_ = replace(proof, status="optimal" if optimal else "stalled")
        if not optimal:
            warnings.warn(
                f"with theta={theta:g} double precision proves a gap of "
                f"{model.certificate_.gap:.2g} only, not 1e-6",
                ConvergenceWarning,
                stacklevel=3,
            )
        return model


def thin(ensemble: Any, X: Any, y: Any, theta: float, sample_weight: Any = None) -> Thinned:
    """Solve for all weights of a fitted ensemble's trees at once, so that few are left.

    Parameters
    ----------
    ensemble : fitted AdaBoost, forest, gradient boosting, XGBoost or LightGBM classifier
    X, y, sample_weight : array-like
        Rows, those that it was fitted to or better others, their classes and weights.
    theta : float
        The budget: the smaller, the fewer trees.

    Returns
    -------
    Thinned
        The `tree` of each of its `estimators_` is the ensemble's own, or of one round of it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> import tcboost
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> model = tcboost.thin(forest, X, y, theta=4.0)
    >>> len(model.estimators_) < 50, model.certificate_.gap <= 1e-6
    (True, True)
    """
    return Thinning(ensemble, X, y, sample_weight).model(theta)
