"""The paper's algorithms, each with the paper's defaults."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .estimator import BoostingClassifier
from .losses import SMOOTH

_CODE_MATRIX: dict[str, list[Any]] = {"coding": [StrOptions({"ecoc", "ovr"}), "array-like"]}
_ANY_CODE: dict[str, list[Any]] = {
    "coding": [StrOptions({"random", "runs", "learned", "ecoc", "ovr"}), "array-like"]
}
_LOSS: dict[str, list[Any]] = {"loss": [StrOptions(set(SMOOTH))]}
_BUDGET: dict[str, list[Any]] = {
    "theta": [
        StrOptions({"stagewise", "growing", "cv"}),
        Interval(Real, 0, np.inf, closed="neither"),
    ],
    "tol": [Interval(Real, 0, np.inf, closed="neither")],
}
_ROUNDS: dict[str, list[Any]] = {"round_tol": [Interval(Real, 0, np.inf, closed="left")]}


class AdaBoostMO(BoostingClassifier):
    """AdaBoost.MO, Algorithm 1 of the paper: stage-wise, with a predefined code.

    Each round adds one weak hypothesis for each of the L bits of the code, with one common
    coefficient, and thereby descends on ``sum_il exp(-M[y_i, l] F_l(x_i))``.

    Parameters
    ----------
    coding : {"ecoc", "ovr"} or array-like of shape (n_classes, L), default="ecoc"
        The coding matrix M of -1 and +1: error-correcting (exhaustive for up to 7 classes),
        one-versus-rest, or your own.
    max_iter : int, default=100
        The number of rounds T.
    loss : {"exponential", "logistic", "squared_hinge"}, default="exponential"
        The paper's loss of a margin, ``exp(-z)``, or ``log(1 + exp(-z))``, or
        ``max(0, 1 - z)^2 / 2``, which tells no probabilities.
    weak_learner : {"stump", "product", "lda"} or classifier, default="stump"
        Decision stumps, searched exactly; products of up to three of them, fitted factor by
        factor; Fisher's linear discriminant; or any scikit-learn classifier whose `fit` takes
        `sample_weight`, such as a tree, ``DecisionTreeClassifier(max_depth=2)``.
    max_bins : int, "auto" or None, default="auto"
        Bins of a feature for stumps. None is exact, "auto" exact up to 65,535 distinct values.
    random_state : int, RandomState instance or None, default=None
        Passed on to a weak learner that is random; stumps are not.
    n_jobs : int or None, default=None
        Threads, at most one a core; None means all cores, in workers of joblib what they were
        given, mostly one. The model does not depend on it.
    verbose : int, default=0
        1 prints the first rounds and every tenth, 2 every round.
    warm_start : bool, default=False
        Whether `fit` goes on from the last fit, to a larger `max_iter`.
    early_stopping : bool, default=False
        Whether to hold out rows and to keep the model of the round that is best on them. The
        certificate is then about the rows that are left.
    validation_fraction : float, default=0.1
        The share of the distinct rows of each class to hold out, chosen by their content.
    n_iter_no_change : int, default=10
        Stop when this many rounds have not lowered the loss of the rows held out.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    estimators_ : list of Column
        The columns: one hypothesis for each bit.
    estimator_weights_ : ndarray of shape (n_iter_,)
        Their coefficients.
    coding_matrix_ : ndarray of shape (n_classes, L)
        The code.
    theta_ : float
        The sum of the coefficients.
    probability_scale_ : float
        Probabilities are the softmax of this multiple of the scores.
    n_iter_ : int
        Rounds of the model.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each feature in the sum of the coefficients; with stumps only.
    certificate_ : Certificate
        `primal`, `dual`, `gap`, `theta`, `hypothesis_class`, `status`; a sentence when printed.
    history_ : dict
        Arrays with one entry a round: `loss` (``log mean exp(-margin)``), `train_error`,
        `min_margin` (normalised by the sum of the coefficients), `edge` (of the column added),
        `r` (the largest inner product of the dual weights with a column so far), `gap` (of the
        certificate), `n_active`; and two lists, of an array a round: `inner_products` (Fig. 1)
        and `weights` (the coefficients as they then were). With `early_stopping` there is also
        `validation_loss`, and all of them have entries for the rounds after the best, too.
    n_features_in_ : int
        Features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all of them were strings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tcboost import AdaBoostMO
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostMO(max_iter=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _pairwise = False
    _stage_wise = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostingClassifier._parameter_constraints,
        **_CODE_MATRIX,
        **_LOSS,
    }

    def __init__(
        self,
        coding: Any = "ecoc",
        max_iter: int = 100,
        *,
        loss: str = "exponential",
        weak_learner: Any = "stump",
        max_bins: int | str | None = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
    ) -> None:
        self._keep_arguments(locals())


class AdaBoostECC(BoostingClassifier):
    """AdaBoost.ECC, Algorithm 2 of the paper: stage-wise, with a code grown by columns.

    Each round draws a code column m, adds one weak hypothesis, and thereby descends on
    ``sum_i sum_{c != y_i} exp(-(F_{y_i}(x_i) - F_c(x_i)))``, ``F_c = sum_t w_t m_t[c] h_t``.

    Parameters
    ----------
    coding : {"random", "runs", "learned", "ecoc", "ovr"} or array-like, default="random"
        A code column drawn in each round, from all codes or from those with a run of half the
        classes on one side, which is what gives the paper's errors; or the one that together
        with its stump has the largest edge of all. With a coding matrix, as in `AdaBoostMO`,
        a round adds a hypothesis for each bit: the mixture of MO and ECC at the end of
        Sec. III-D.
    max_iter : int, default=100
        The number of rounds T.
    coefficient : {"error", "pseudo-loss"}, default="error"
        ``1/4 ln((1 - e) / e)`` with e the weighted error, or with the pseudo-loss, as in
        AdaBoost.OC: two classes that the code does not tell apart are half an error.
    random_state : int, RandomState instance or None, default=None
        Seed of the code draws.

    Notes
    -----
    The other parameters and the attributes are those of `AdaBoostMO`; `coding_matrix_` has a
    column for each round, unless it is given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tcboost import AdaBoostECC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostECC(max_iter=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _stage_wise = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostingClassifier._parameter_constraints,
        **_ANY_CODE,
        **_LOSS,
        "coefficient": [StrOptions({"error", "pseudo-loss"})],
    }

    def __init__(
        self,
        coding: Any = "random",
        max_iter: int = 100,
        *,
        loss: str = "exponential",
        coefficient: str = "error",
        weak_learner: Any = "stump",
        max_bins: int | str | None = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
    ) -> None:
        self._keep_arguments(locals())


class MultiBoostMO(BoostingClassifier):
    """MultiBoost.MO, Algorithm 3 of the paper with codeword margins: totally corrective.

    Solves, over all combinations of L-tuples of weak hypotheses,

        minimise    log sum_il exp(-M[y_i, l] F_l(x_i)),    F = sum_j w_j h_j
        subject to  w >= 0,  sum w <= theta

    by column generation: each round adds the most violated constraint of the dual and then
    re-solves all coefficients.

    Parameters
    ----------
    coding : {"ecoc", "ovr"} or array-like of shape (n_classes, L), default="ecoc"
        The coding matrix M of -1 and +1: error-correcting (exhaustive for up to 7 classes),
        one-versus-rest, or your own.
    theta : float, "stagewise", "growing" or "cv", default="stagewise"
        The budget of the coefficients. "stagewise" runs AdaBoost.MO first, for as many rounds,
        and takes the sum of its coefficients. "growing" ends with that sum, but round t has
        what AdaBoost.MO has spent after t rounds: with few rounds the loss is lower, since
        the first columns do not take it all; and where columns are drawn or fitted, not
        searched, a round may take a hypothesis of AdaBoost.MO's. "cv" takes the lowest error of
        a five-fold cross validation over the paper's 16 budgets, 2 to 200; `theta_choice_` has
        the table.
    max_iter : int, default=100
        The number of rounds T, at the most.
    tol : float, default=1e-4
        Stop when the certificate proves the training loss this close to optimal.
    round_tol : float, default=0.0
        With 0 every round is that of Algorithm 3: it adds one column, and all coefficients are
        solved to `tol` with all of theta. A looser one, say 0.03, is for speed: the
        coefficients of a round may then be so far from the best ones of its columns, in
        loss and at the most a tenth of the gap. The last ones are solved to `tol`, and so
        are those of up to 32 columns. Unless rounds are few for the budget, a round also has a
        part of theta only, which grows to all of it, and beyond 32 columns adds two at once:
        `n_iter_` and `max_iter` count columns, `history_` has an entry a round. That is not so
        with `early_stopping`. With other weak learners than stumps, whose gap is not known,
        `round_tol` changes nothing.
    random_state : int, RandomState instance or None, default=None
        Passed on to a weak learner that is random; stumps are not.

    Notes
    -----
    The other parameters and the attributes are those of `AdaBoostMO`; `theta_` is the budget.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tcboost import MultiBoostMO
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MultiBoostMO(max_iter=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _pairwise = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostingClassifier._parameter_constraints,
        **_CODE_MATRIX,
        **_LOSS,
        **_BUDGET,
        **_ROUNDS,
    }

    def __init__(
        self,
        coding: Any = "ecoc",
        theta: float | str = "stagewise",
        max_iter: int = 100,
        *,
        loss: str = "exponential",
        weak_learner: Any = "stump",
        max_bins: int | str | None = "auto",
        tol: float = 1e-4,
        round_tol: float = 0.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
    ) -> None:
        self._keep_arguments(locals())


class MultiBoostECC(BoostingClassifier):
    """MultiBoost.ECC, Algorithm 3 of the paper with pairwise margins: totally corrective.

    Solves, over all combinations of weak hypotheses h with code columns m,

        minimise    log sum_i sum_{c != y_i} exp(-(F_{y_i}(x_i) - F_c(x_i))),
                    F_c = sum_j w_j m_j[c] h_j
        subject to  w >= 0,  sum w <= theta

    by column generation. A drawn code that does not violate the dual is drawn again; after 256
    such draws in one round the exactly best code is taken.

    Parameters
    ----------
    coding : {"random", "runs", "learned", "ecoc", "ovr"} or array-like, default="random"
        A code column drawn in each round, from all codes or from those with a run of half the
        classes on one side, which is what gives the paper's errors; or the one that together
        with its stump has the largest edge of all. With a coding matrix, as in `MultiBoostMO`,
        a round adds a hypothesis for each bit: the mixture of MO and ECC at the end of
        Sec. III-D.
    theta : float, "stagewise", "growing" or "cv", default="stagewise"
        The budget of the coefficients. "stagewise" runs AdaBoost.ECC first, for as many rounds,
        and takes the sum of its coefficients. "growing" ends with that sum, but round t has
        what AdaBoost.ECC has spent after t rounds: with few rounds the loss is lower, since
        the first columns do not take it all; and where AdaBoost.ECC has a column of a larger
        edge than the one drawn, it takes that. "cv" takes the lowest error of a five-fold cross
        validation over the paper's 16 budgets, 2 to 200; `theta_choice_` has the table.
    max_iter : int, default=100
        The number of rounds T, at the most.
    tol : float, default=1e-4
        Stop when the certificate proves the training loss this close to optimal.
    round_tol : float, default=0.0
        With 0 every round is that of Algorithm 3: it adds one column, and all coefficients are
        solved to `tol`. A looser one, say 0.03, is for speed: the coefficients of a round may
        then be so far from the best ones of its columns, in loss and at the most a tenth
        of the gap. The last ones are solved to `tol`, and so are those of up to 32 columns.
        With a coding matrix there is more to it: see `MultiBoostMO`. With other weak learners
        than stumps, whose gap is not known, `round_tol` changes nothing.
    random_state : int, RandomState instance or None, default=None
        Seed of the code draws.

    Notes
    -----
    The other parameters and the attributes are those of `AdaBoostECC`; `theta_` is the budget.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tcboost import MultiBoostECC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MultiBoostECC(max_iter=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostingClassifier._parameter_constraints,
        **_ANY_CODE,
        **_LOSS,
        **_BUDGET,
        **_ROUNDS,
    }

    def __init__(
        self,
        coding: Any = "random",
        theta: float | str = "stagewise",
        max_iter: int = 100,
        *,
        loss: str = "exponential",
        weak_learner: Any = "stump",
        max_bins: int | str | None = "auto",
        tol: float = 1e-4,
        round_tol: float = 0.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
    ) -> None:
        self._keep_arguments(locals())


class MultiBoostHinge(BoostingClassifier):
    """Totally corrective boosting with the multiclass hinge loss, Sec. III-D of the paper.

    Solves, over all combinations of L-tuples of weak hypotheses,

        minimise    mean_i max(0, 1 - min_{c != y_i} (M[y_i] - M[c]) . F(x_i)),
                    F = sum_j w_j h_j
        subject to  w >= 0,  sum w <= theta

    by column generation. Each round solves a linear program in its dual (Theorem 3), by HiGHS.
    Many rows end with a margin of exactly 1, and few columns have a weight. There are no
    probabilities, and with two classes it is LPBoost.

    Parameters
    ----------
    coding : {"ecoc", "ovr"} or array-like of shape (n_classes, L), default="ecoc"
        The coding matrix M of -1 and +1, as in `MultiBoostMO`.
    theta : float, "stagewise", "growing" or "cv", default="stagewise"
        The budget of the coefficients. The hinge loss has no stage-wise algorithm: "stagewise"
        takes the sum of the coefficients of ``AdaBoostECC`` with the same code and as many
        rounds, whose margins are the same. "growing" and "cv" are as in `MultiBoostMO`.
    max_iter : int, default=100
        The number of rounds T, at the most.
    tol : float, default=1e-4
        Stop when the certificate proves the training loss this close to optimal.

    Notes
    -----
    The other parameters and the attributes are those of `MultiBoostMO`. Which of several
    optimal dual weights HiGHS finds decides the next column: a fit repeats bit for bit, but
    another version of HiGHS may take another way to the same loss.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tcboost import MultiBoostHinge
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MultiBoostHinge(max_iter=20).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    loss = "hinge"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostingClassifier._parameter_constraints,
        **_CODE_MATRIX,
        **_BUDGET,
    }

    def __init__(
        self,
        coding: Any = "ecoc",
        theta: float | str = "stagewise",
        max_iter: int = 100,
        *,
        weak_learner: Any = "stump",
        max_bins: int | str | None = "auto",
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
    ) -> None:
        self._keep_arguments(locals())
