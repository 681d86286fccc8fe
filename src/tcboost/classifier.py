"""TCBoostClassifier, the one obvious class."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .estimator import BoostingClassifier
from .losses import SMOOTH


class TCBoostClassifier(BoostingClassifier):
    """Totally corrective boosting of decision stumps that needs no tuning.

    Solves, over all stumps h_j and class vectors v_j,

        minimise    loss(F) + ridge / 2 sum_j norm2(v_j)^2,    F(x) = sum_j v_j h_j(x)
        subject to  sum_j norm2(v_j) <= theta

    by column generation: each round adds the stumps whose class vectors have the steepest
    descent of all, and re-solves every class vector. The model is additive: a table a feature.
    The certificate bounds how much any other such model could improve on its training loss.

    By default theta is not given but follows from a price r for each unit of the sum, which is
    the same problem: r is the multiplier of the theta that is then in use. Price and ridge are
    worth so many rows, how many is chosen by cross validation, in two styles: steps, few and
    anywhere, for as much price as ridge, and curves, many small steps between 32 quantiles, for
    a ridge a hundred times the price. The class vector of the constant hypothesis is then free:
    it has no price and a thousandth of the ridge.

    Parameters
    ----------
    loss : {"multinomial", "exponential", "logistic", "squared_hinge"}, default="multinomial"
        Cross-entropy, or the paper's exponential loss of pairwise margins (its logarithm). With
        codes, learned or drawn, also the logistic loss and the squared hinge of these margins.
    coding : {"vector", "learned", "random"}, default="vector"
        What a stump says about the classes: a vector that is re-solved in every round, or a
        multiple of a code in {-1, +1}, found together with the stump or drawn.
    theta : float, "auto" or "cv", default="auto"
        The budget. "auto" has a price instead, cross-validated (with other losses than
        cross-entropy it cross-validates theta, along a path of growing budgets). "cv" takes the
        lowest error of five folds over the paper's 16 budgets.
    max_iter : int, default=450
        Stumps, at the most; the constant counts as one. A round adds up to an eighth of those
        there are, with a price or many rows a quarter, and one at the end.
    weak_learner : "stump"
        Only stumps can be searched exactly; see `MultiBoostECC` for other weak learners.
    max_bins : int, "auto" or None, default=1023
        Bins of a feature, at the most. None is exact, "auto" exact up to 65,535 distinct
        values. Curves have 32.
    ridge : float or "auto", default="auto"
        Weight of the squares of the class vectors, which spreads the budget over stumps that
        say about the same; for ``coding="vector"`` only. "auto" goes with the price, and is
        none where there is no price. With a number there are no curves.
    tol : float, default=1e-3
        Stop when the certificate proves the training loss this close to optimal.
    random_state : int, RandomState instance or None, default=None
        Seed of the code draws; only used with ``coding="random"``.
    n_jobs : int or None, default=None
        Threads, at most one a core; None means all cores, in workers of joblib what they were
        given, mostly one. The model does not depend on it.
    verbose : int, default=0
        1 prints what is tried for theta, the first rounds and every tenth, 2 every round.
    warm_start : bool, default=False
        Whether `fit` goes on from the last one, to a larger `max_iter`; what was chosen stays.
    early_stopping : bool, default=False
        Whether to hold out rows and to keep the model of the round that is best on them. The
        certificate is then about the rows that are left.
    validation_fraction : float, default=0.1
        The share of the distinct rows of each class to hold out, chosen by their content.
    n_iter_no_change : int, default=10
        Stop when this many rounds have not lowered the loss of the rows held out.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply those of the rows; "balanced" gives all classes
        the same total weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    estimators_ : list of Column
        The stumps.
    estimator_weights_ : ndarray of shape (n_iter_, n_classes) or (n_iter_,)
        Their class vectors, or the multiples of their codes.
    theta_ : float
        The budget used; a free constant takes nothing of it.
    theta_choice_ : Choice
        With ``theta="auto"`` or "cv": what was tried, with out-of-fold losses and errors.
    probability_scale_ : float
        Probabilities are the softmax of this multiple of the scores; fitted out of fold unless
        `theta` is a number.
    n_iter_ : int
        Stumps of the model.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each feature in the budget that is used.
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `theta`, `hypothesis_class`, `status`; a sentence when printed.
    history_ : dict
        Arrays with one entry a round, as in `AdaBoostMO`; with a price, of the rounds at the
        chosen one only, and the first of them starts with the stumps found before.
    n_features_in_ : int
        Features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all of them were strings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tcboost import TCBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TCBoostClassifier().fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> int(model.predict_proba(X[:1]).argmax())
    0
    """

    round_tol = 0.03  # of rounds with codes and the paper's losses
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostingClassifier._parameter_constraints,
        "loss": [StrOptions({"multinomial", *SMOOTH})],
        "coding": [StrOptions({"vector", "learned", "random"})],
        "theta": [StrOptions({"auto", "cv"}), Interval(Real, 0, np.inf, closed="neither")],
        "ridge": [StrOptions({"auto"}), Interval(Real, 0, np.inf, closed="left")],
        "tol": [Interval(Real, 0, np.inf, closed="neither")],
        "weak_learner": [StrOptions({"stump"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        loss: str = "multinomial",
        coding: str = "vector",
        theta: float | str = "auto",
        max_iter: int = 450,
        *,
        weak_learner: str = "stump",
        max_bins: int | str | None = 1023,
        ridge: float | str = "auto",
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        class_weight: Any = None,
    ) -> None:
        self._keep_arguments(locals())
