"""What the estimators share: validation, assembly. The algorithms are in `boosting`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import cache, partial
from importlib.machinery import EXTENSION_SUFFIXES
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from threadpoolctl import ThreadpoolController

from ._callbacks import CallbackSupportMixin, reported
from .boosting import HeldOut, Run, Task
from .certificate import Certificate
from .coding import coding_matrix, runs
from .columns import Chooser, FixedCode, LearnedCode, RandomCode, VectorCode
from .correctors import (
    BallCorrective,
    Budget,
    Corrector,
    LinearProgram,
    StageWise,
    TotallyCorrective,
    lengths,
)
from .losses import LOSSES, ScoreLoss, SmoothLoss
from .margins import Codeword, Margin, Pairwise, PairwiseCode
from .model.ensemble import Ensemble
from .oracles import Column, Stump, make_oracle
from .rows.blocks import LocalRows, effective_n_jobs
from .theta import (
    PAPER_SEARCH,
    STYLES,
    Choice,
    Search,
    Style,
    approach,
    choose_level,
    choose_theta,
    stagewise,
)

Vector = NDArray[np.float64]

_WEAK_LEARNERS = {"stump", "product", "lda"}
_PATH_TOL = 3e-2  # of the fits that only serve to choose theta


class _Libraries(ThreadpoolController):
    """The BLAS of NumPy and SciPy, there from the start; sought once, for 2 to 5 ms.

    Modules of Python are no libraries: to leave them out saves two thirds of the time.
    """

    def _make_controller_from_path(self, filepath: str) -> None:
        if not filepath.endswith(EXTENSION_SUFFIXES[0]):
            super()._make_controller_from_path(filepath)


_libraries = cache(_Libraries)


def _plain(X: Any) -> bool:
    """Whether scikit-learn would find nothing to convert; to look for names it takes 5 ms."""
    return type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2


def _labels(y: Any) -> bool:
    """Whether these are integers, with two rows a class or more, so that nothing is odd."""
    plain = type(y) is np.ndarray and y.dtype.kind in "iu" and y.ndim == 1
    return plain and 2 * len(np.unique(y)) <= len(y)


def _has_probabilities(estimator: Any) -> bool:
    """Whether the loss tells probabilities; hinges only tell on which side a row is."""
    if LOSSES[estimator.loss].log_odds is None:
        raise AttributeError(f"loss={estimator.loss!r} does not tell probabilities")
    return True


class BoostingClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """The base of `classifier.TCBoostClassifier` and of the paper's estimators in `named`.

    A subclass says which margin it has (`_pairwise`); it has `theta` and `tol` among its
    parameters unless it is `_stage_wise`.
    """

    _pairwise: ClassVar[bool] = True
    _stage_wise: ClassVar[bool] = False

    loss: str = "exponential"
    ridge: float | str = 0.0
    coefficient: str = "error"
    variant: str = "samme"
    class_weight: Any = None
    coding: Any
    theta: float | str
    tol: float
    max_iter: int
    weak_learner: Any
    max_bins: int | str | None
    random_state: Any
    n_jobs: int | None
    verbose: int
    warm_start: bool
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int

    classes_: NDArray[Any]
    estimators_: list[Column]
    estimator_weights_: Vector
    coding_matrix_: NDArray[Any]
    theta_choice_: Choice
    probability_scale_: float
    theta_: float
    n_iter_: int
    n_features_in_: int
    certificate_: Certificate
    history_: dict[str, Any]
    _run: tuple[dict[str, Any], Run]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "weak_learner": [StrOptions(_WEAK_LEARNERS), HasMethods(["fit", "predict"])],
        "max_bins": [StrOptions({"auto"}), None, Interval(Integral, 2, 65_535, closed="both")],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    }

    def _keep_arguments(self, arguments: dict[str, Any]) -> None:
        """Those of the constructor, each under its own name, as scikit-learn asks."""
        self.__dict__.update({k: v for k, v in arguments.items() if k != "self"})

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model and certify it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN stands for a missing value, which stumps and their products can take.
        y : array-like of shape (n_samples,)
            The classes, two or more.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative. A weight of 2 is a row that occurs twice, 0 a row that is not there.

        Returns
        -------
        self
        """
        rows = self._rows(X, y, sample_weight)
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        with self._one_blas_thread(), reported(self, **data) as report:

            def watch(run: Run) -> bool:
                return report(lambda: vars(copy(self)._keep(run)))

            if self.warm_start:
                run = self._go_on(rows, watch)
            else:
                self.__dict__.pop("_run", None)
                run = self._begin(rows).boost(self.max_iter, watch=watch)
            self._keep(run)
        return self

    @staticmethod
    def _one_blas_thread() -> Any:
        """One thread in the linear algebra, so that a result never depends on their number."""
        return _libraries().limit(limits=1, user_api="blas")

    def _rows(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> LocalRows:
        """Validated data, in canonical order; sets `classes_`."""
        if _plain(X) and min(X.shape) > 1 and _labels(y) and len(X) == len(y):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
        else:
            X, y = validate_data(
                self, X, y, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=2
            )
            check_classification_targets(y)
        self._check_values(X)
        if sample_weight is not None and not np.any(np.asarray(sample_weight)):
            raise ValueError("sample_weight is zero for every row")
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        raw = weight
        # A power of two changes no digit, so that integer weights stay exact.
        weight = np.ldexp(weight, -np.frexp(np.abs(weight).max())[1])
        if isinstance(self.class_weight, dict):
            weight *= compute_sample_weight(self.class_weight, y)
            if not np.isfinite(weight).all():
                raise ValueError(f"class_weight must be finite numbers: {self.class_weight}")
        if (weight < 0).any():
            raise ValueError("sample_weight and class_weight must not be negative")
        kept = weight > 1e-300  # less would underflow, and weighs nothing
        self.classes_, labels = np.unique(y[kept], return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only ({self.classes_[0]!r}) among the rows of positive "
                "weight; a classifier needs at least two"
            )
        weight = weight[kept]
        if self.class_weight == "balanced":  # a weight of 2 is two rows, here too
            weight /= np.bincount(labels, weight)[labels]
        raw = raw[kept]  # the weights of classes make no more and no fewer rows
        counts = raw.max() <= 2**53 and (raw == np.rint(raw)).all()
        even = raw / raw.max()
        X = X if kept.all() else X[kept]
        with self._one_blas_thread():
            size = float(raw.sum()) if counts else float(even.sum() ** 2 / (even @ even))
            return LocalRows(X, labels, weight, self.max_bins, self.n_jobs, size)

    def _go_on(self, rows: LocalRows, watch: Callable[[Run], bool]) -> Run:
        """The run of the last fit with more rounds, or a first one, kept to be gone on with."""
        theta = getattr(self, "theta", 0.0)
        if isinstance(theta, str):
            raise ValueError(
                f"warm_start needs a theta that does not depend on max_iter: a number, not "
                f"{theta!r}"
            )
        if hasattr(self, "_run"):
            key, run = self._run
            changed = [name for name, now in self._key(rows).items() if key[name] != now]
            if changed:
                raise ValueError(
                    f"warm_start needs the same problem, but {', '.join(changed)} changed"
                )
            if self.max_iter < len(run.columns):
                raise ValueError(
                    f"max_iter={self.max_iter} is less than the {len(run.columns)} rounds that "
                    "warm_start would go on from"
                )
            del self._run  # should this fit not end well
            run.history.verbose = self.verbose
        else:
            run = self._begin(rows)
            key = self._key(rows)
        if not run.over:
            run.boost(self.max_iter, pause=True, watch=watch)
        self._run = key, run.paused or run
        return run

    def _key(self, rows: LocalRows) -> dict[str, Any]:
        """Hashes of what a warm start must find unchanged."""
        key = self.get_params(deep=False)
        for name in ("max_iter", "n_jobs", "verbose"):
            key.pop(name, None)
        key["X, y or sample_weight"] = rows.X, rows.y, rows.weight, self.classes_
        return {name: joblib.hash(value) for name, value in key.items()}

    def _begin(self, rows: LocalRows) -> Run:
        """A run without columns yet, its budget chosen."""
        if hasattr(self, "theta_choice_"):
            del self.theta_choice_
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        held_out = None
        if self.early_stopping:
            rows, others = rows.hold_out(self.validation_fraction)
            held_out = HeldOut(others, self.n_iter_no_change)
        per_margin = LOSSES[self.loss].log_odds or np.nan  # there are none then
        self.probability_scale_ = per_margin * self._margin(len(self.classes_)).per_score
        given = not isinstance(self.ridge, str) and self.ridge > 0
        if given and self.coding != "vector":
            raise ValueError(f"ridge={self.ridge} needs coding='vector', not {self.coding!r}")
        oc = self.coefficient == "pseudo-loss"
        if oc and not (self._grown and self.loss == "exponential"):
            raise ValueError(
                "coefficient='pseudo-loss' needs loss='exponential' and coding='random', "
                f"'runs' or 'learned', not {self.loss!r} and {self.coding!r}"
            )
        if self._stage_wise:
            task = self._task(rows, seed)
            assert isinstance(task.loss, SmoothLoss)
            pseudo_loss = oc or self.variant == "m2"
            corrector = StageWise(
                task.margin, rows.y, rows.weight, task.loss, pseudo_loss, rows.n_threads
            )
            return Run(task, corrector, self.verbose, held_out)
        theta = self.theta
        if theta in ("stagewise", "growing"):
            columns, sums = stagewise(self._task(rows, seed), self.max_iter)
            theta = sums[-1]
        elif theta == "auto" and self.loss == "multinomial":
            choice = self.theta_choice_ = self._choose_level(rows, seed)
            self.probability_scale_ = choice.scale
            style = choice.styles[choice.best]
            rows = rows.coarser(style.max_bins)
            first = self._priced(style, choice.first, rows.size)
            run = self._start(rows, seed, first, self.tol, self.verbose, held_out)
            return approach(run, choice, partial(self._priced, style), self.max_iter)
        elif isinstance(theta, str):
            search = PAPER_SEARCH if theta == "cv" else Search()
            choice = self.theta_choice_ = self._choose_theta(rows, seed, search)
            theta, self.probability_scale_ = choice.theta, choice.scale
        budget = self._budget(float(theta))
        run = self._start(rows, seed, budget, self.tol, self.verbose, held_out)
        if self.theta == "growing":
            run.budgets = sums
            if isinstance(run.task.chooser, FixedCode | RandomCode):
                run.task.chooser.known = columns
        return run

    def _choose_theta(self, rows: LocalRows, seed: int, search: Search) -> Choice:
        tol = max(self.tol, _PATH_TOL)

        def start(part: LocalRows, theta: float) -> Run:
            return self._start(part, seed, self._budget(theta), tol)

        n_classes = len(self.classes_)
        return choose_theta(rows, n_classes, start, self.max_iter, search, self.verbose)

    def _choose_level(self, rows: LocalRows, seed: int) -> Choice:
        def start(part: LocalRows, style: Style) -> Run:
            return self._start(part, seed, self._priced(style, 1.0, part.size), self.tol)

        free = self.coding == "vector" and isinstance(self.ridge, str)
        styles = STYLES if free else STYLES[:1]
        n_classes, priced = len(self.classes_), self._priced
        return choose_level(rows, n_classes, start, priced, self.max_iter, styles, self.verbose)

    def _budget(self, theta: float) -> Budget:
        """Without a ridge unless one is asked for."""
        return Budget(theta, ridge=0.0 if isinstance(self.ridge, str) else float(self.ridge))

    def _priced(self, style: Style, level: float, n_rows: float) -> Budget:
        """With its ridge, another one, or none for coefficients that are no vectors."""
        budget = style.budget(level, n_rows)
        if self.coding != "vector":
            return replace(budget, ridge=0.0, intercept=0.0)
        return budget if isinstance(self.ridge, str) else replace(budget, ridge=self.ridge)

    def _start(
        self,
        rows: LocalRows,
        seed: int,
        budget: Budget,
        tol: float,
        verbose: int = 0,
        held_out: HeldOut | None = None,
    ) -> Run:
        """A totally corrective run without columns yet."""
        task = self._task(rows, seed)
        margin, y, weight = task.margin, rows.y, rows.weight
        corrector: Corrector
        vector = isinstance(self.coding, str) and self.coding == "vector"
        if vector or self.loss == "multinomial":
            if not isinstance(task.loss, ScoreLoss):
                raise ValueError(f"loss={self.loss!r} needs coding='learned' or 'random'")
            corrector = BallCorrective(
                margin, y, weight, task.loss, not vector, budget, tol, rows.n_threads
            )
        elif isinstance(task.loss, SmoothLoss):
            corrector = TotallyCorrective(
                margin, y, weight, budget.theta, tol, task.loss, rows.n_threads
            )
        else:
            corrector = LinearProgram(margin, y, weight, budget.theta, tol)
        return Run(task, corrector, verbose, held_out)

    @property
    def _grown(self) -> bool:
        """Whether every column has a code of its own, or none; else M is fixed."""
        names = ("random", "runs", "learned", "vector")
        return self.coding is None or (isinstance(self.coding, str) and self.coding in names)

    def _margin(self, n_classes: int, M: NDArray[Any] | None = None) -> Margin:
        if self._grown:
            return Pairwise(n_classes)
        M = coding_matrix(self.coding, n_classes) if M is None else M
        return PairwiseCode(M) if self._pairwise else Codeword(M)

    def _task(self, rows: LocalRows, seed: int) -> Task:
        """The same seed gives the same code draws, for the stage-wise run behind theta too."""
        n_classes = len(self.classes_)
        searched = self._grown and self.coding in ("learned", "vector")
        random = not searched or not isinstance(self.weak_learner, str)
        rng: Any = np.random.RandomState(seed) if random else None  # it takes 0.2 ms
        oracle = make_oracle(self.weak_learner, rows, rng)
        chooser: Chooser
        if not self._grown:
            chooser = FixedCode(oracle)
        elif self.coding == "vector":
            chooser = VectorCode(oracle)
        elif self.coding == "learned":
            chooser = LearnedCode(oracle)
        else:
            codes = runs(n_classes) if self.coding == "runs" else None
            chooser = RandomCode(oracle, n_classes, rng, codes)
        return Task(rows, self._margin(n_classes), LOSSES[self.loss], oracle, chooser)

    def _keep(self, run: Run) -> Self:
        model = run.model()
        self.estimators_, self.estimator_weights_ = list(model.columns), model.w
        self.theta_, self.certificate_ = model.theta, model.certificate
        self.n_iter_ = len(model.columns)
        self.history_ = run.history.arrays()
        if not self._grown:
            self.coding_matrix_ = coding_matrix(self.coding, len(self.classes_))
        elif model.w.ndim == 2:
            self.coding_matrix_ = model.w.T
        elif self.coding is not None:
            codes = np.array([c.code for c in model.columns], dtype=np.int8)
            self.coding_matrix_ = codes.reshape(-1, len(self.classes_)).T
        self._model = self._ensemble()
        if not run.corrector.solved and not run.corrector.done(run.certificate.gap):
            warnings.warn(
                "the restricted master was not solved to the tolerance; the certificate, with "
                f"a gap of {run.certificate.gap:.2g}, takes that into account. A smaller theta "
                "or a larger tol would help.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

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
        "auto" or "cv".

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
        return self._probabilities(X, softmax)

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
        return self._probabilities(X, log_softmax)

    def _probabilities(self, X: ArrayLike, function: Callable[..., Vector]) -> Vector:
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        p = function(self.probability_scale_ * scores, axis=1)
        # Rounding may make another class the equal of the one predicted.
        lost = np.flatnonzero(p.argmax(axis=1) != scores.argmax(axis=1))
        p[lost, scores[lost].argmax(axis=1)] = np.nextafter(p[lost].max(axis=1), np.inf)
        return p

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
        model = self._ensemble()
        z = model.margin.apply(model.outputs(features), np.searchsorted(self.classes_, y))
        return z / max(float(lengths(model.w).sum()), 1e-300)

    @property
    def feature_importances_(self) -> Vector:
        """Share of each feature in the budget that is used; for stumps only."""
        check_is_fitted(self)
        if not isinstance(self.weak_learner, str) or self.weak_learner != "stump":
            raise AttributeError("feature_importances_ needs weak_learner='stump'")
        importances = np.zeros(self.n_features_in_)
        shares = lengths(self.estimator_weights_)
        for column, share in zip(self.estimators_, shares, strict=True):
            for h in column.hypotheses:
                if isinstance(h, Stump) and h.threshold > -np.inf:  # not a constant
                    importances[h.feature] += share
        return importances / max(float(importances.sum()), 1e-300)

    def _features(self, X: Any) -> Vector:
        """Validated features of new rows."""
        if not self._as_in_fit(X):
            check_is_fitted(self)
            X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=False)
        self._check_values(X)
        return X

    def _as_in_fit(self, X: Any) -> bool:
        """Whether there is nothing to convert or to compare, which takes 0.1 ms to find out."""
        known = vars(self)
        return (
            _plain(X)
            and len(X) > 0
            and X.shape[1] == known.get("n_features_in_")
            and "feature_names_in_" not in known
            and "estimators_" in known
        )

    def _signed(self, scores: Vector) -> Vector:
        """Two classes have one score."""
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _stages(self) -> list[Vector]:
        """Coefficients after each round; those of a stage-wise model are never revised."""
        if self._stage_wise:
            return [self.estimator_weights_[:t] for t in range(1, self.n_iter_ + 1)]
        if "weights" not in self.history_:
            raise ValueError("a model file holds the final coefficients only, not the stages")
        return [w for w in self.history_["weights"] if len(w) <= self.n_iter_]

    def _ensemble(self) -> Ensemble:
        """The fitted model; that of the fit itself, if it is, has its tables at hand."""
        model: Ensemble | None = getattr(self, "_model", None)
        columns, w = self.estimators_, self.estimator_weights_
        if model is None or model.columns is not columns or model.w is not w:
            margin = self._margin(len(self.classes_), getattr(self, "coding_matrix_", None))
            model = Ensemble(columns, w, margin)
        return model

    def _check_values(self, X: Vector) -> None:
        """Infinity is never a value; NaN is one for stumps only. Name the column."""
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(X.sum()):  # then all of them are
                return
        bad, what = np.isinf(X).any(axis=0), "infinity"
        if not bad.any() and not self._takes_missing():
            bad = np.isnan(X).any(axis=0)
            what = "NaN, which only the weak learners 'stump' and 'product' can take,"
        if bad.any():
            d = int(np.flatnonzero(bad)[0])
            names = getattr(self, "feature_names_in_", None)
            name = f" ({names[d]!r})" if names is not None else ""
            raise ValueError(f"Input X contains {what} in column {d}{name}")

    def _takes_missing(self) -> bool:
        return isinstance(self.weak_learner, str) and self.weak_learner != "lda"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing()
        return tags
