"""TCBoostClassifier, the one obvious class."""

from __future__ import annotations

import math
import warnings
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from ._blas import one_blas_thread
from ._callbacks import CallbackSupportMixin, reported
from .certificate import SolvedCertificate
from .choice import Search, Tried, bins_for, choose, fit_at
from .claims import claim_at_penalty, missing_right
from .class_vectors import Model, Solution, lengths
from .features import CellTable, Rule
from .folds import splits
from .frames import Column, as_frame, columns_of, read_as_in_fit
from .margins import Pairwise
from .model.additive import AdditiveModel, Axis, cell_weights, on_unit
from .model.claim import Claim
from .prediction import ScoringClassifier, Vector
from .progress import Progress
from .step_functions import Steps, additive_model
from .training import TrainingRows, read_rows
from .words import in_words, rule_by_places, rule_in_words

_WORTH_A_WARNING = 0.01  # of the objective: a gap that leaves much open, if the fit gave up


class TCBoostClassifier(CallbackSupportMixin, ScoringClassifier):
    """Boosting of small rules that needs no tuning and proves how good it is.

    The model is a sum of rules. A rule asks a question about one feature, "petal width > 0.8"
    or "colour is red", and adds its class vector to the scores of the classes where the answer
    is yes, and subtracts it where it is no. Probabilities are the softmax of the scores. `fit`
    finds the rules and their class vectors v_t, and an intercept b, that minimise

        sum_i s_i log_loss_i
        + alpha * (l1_ratio * sum_t |v_t| + (1 - l1_ratio) / 2 * sum_t |v_t|^2)

    over all rules of all features, where s_i is the weight of row i and |v| the length of a
    vector; the intercept has a penalty of its own, of next to nothing. It is the problem of an
    elastic net, and as there a larger `l1_ratio` leaves fewer rules. `certificate_` says how
    far at most the model is from the best one.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty, in rows: twice as many rows make the same alpha weigh half as
        much. "auto" chooses it by cross validation.
    l1_ratio : float or "auto", default="auto"
        Share of the penalty that removes rules, above 0 and up to 1: large values make few
        steps, small ones smooth curves. "auto" chooses between 0.5 and 0.01.
    max_rules : int, default=450
        Rules that the model may have.
    max_bins : int or "auto", default="auto"
        Bins of a numeric feature. "auto": 32 for curves (l1_ratio below 0.1), else 1023.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns whose values are levels of a category: a rule is then one level against all
        others, and a missing value is a level of its own. "from_dtype" takes those of a frame
        that hold strings or categories; categories in an order (an ordered `category` of
        pandas, `Enum` of polars) are cut in their order. Otherwise names of a frame's columns,
        places, or a mask; of an array none is taken if none is named.
    cv : int, splitter, iterable or None, default=5
        Folds, a splitter of scikit-learn or splits, behind "auto"; None means 5. Of many rows
        not all folds of an int are tried. A splitter that wants groups gets them by metadata
        routing.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply those of the rows; "balanced" gives all classes
        the same total weight.
    tol : float, default=1e-3
        Stop when the training objective is proved to be this close to the best, or to ten times
        this share of it where that is closer.
    max_seconds : float or None, default=None
        Limit of the time of a whole fit, the choice of alpha included: the best setting solved
        in half of it, and what is left for the last model, which stops at the end of the round
        that reaches the limit and is certified with the gap that it has. Such a fit depends on
        the clock, so that two of them may differ.
    warm_start : bool, default=False
        Whether `fit` goes on from the last model: with more rules, or another alpha.
    n_jobs : int or None, default=None
        Threads, at most one a core; None means all cores, in workers of joblib what they were
        given, mostly one. The model does not depend on it.
    verbose : int, default=0
        1 tells what is tried and how far the fit is, on a terminal in a live line.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    alpha_, l1_ratio_ : float
        What was chosen. Given as parameters they make the same model.
    rules_ : list of Rule
        The rules: their feature, and the threshold or the level that they ask for.
    coef_ : ndarray of shape (n_rules_, n_classes)
        Their class vectors.
    intercept_ : ndarray of shape (n_classes,)
        The scores of the classes before any rule.
    n_rules_, n_iter_ : int
        Rules of the model; rounds that it took.
    theta_ : float
        The sum of the lengths of all class vectors, which is the paper's budget.
    certificate_ : SolvedCertificate
        What is proved of the model; in words when printed.
    cv_results_ : dict
        What was tried, a table with a line for each setting, and which was `chosen`. Empty
        where nothing was to be chosen.
    history_ : dict
        Arrays with an entry for each round of the final fit: `objective`, `gap`, `train_error`,
        `n_rules`, `min_margin`.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each feature in `theta_`.
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
    >>> model.certificate_.status
    'optimal'
    """

    probability_scale_ = 1.0  # the scores are what they say

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, np.inf, closed="neither")],
        "l1_ratio": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="right")],
        "max_rules": [Interval(Integral, 1, None, closed="left")],
        "max_bins": [StrOptions({"auto"}), Interval(Integral, 2, 65_534, closed="both")],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "cv": ["cv_object"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "tol": [Interval(Real, 0, np.inf, closed="neither")],
        "warm_start": ["boolean"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    certificate_: SolvedCertificate
    rules_: list[Rule]
    coef_: Vector
    intercept_: Vector
    theta_: float
    history_: dict[str, Vector]
    cv_results_: dict[str, NDArray[Any]]

    def __init__(
        self,
        alpha: float | str = "auto",
        l1_ratio: float | str = "auto",
        max_rules: int = 450,
        *,
        max_bins: int | str = "auto",
        categorical_features: ArrayLike | str | None = "from_dtype",
        cv: Any = 5,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_seconds: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.max_rules = max_rules
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.cv = cv
        self.class_weight = class_weight
        self.tol = tol
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Choose alpha and l1_ratio if they are to be chosen, fit the model and certify it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN stands for a missing value.
        y : array-like of shape (n_samples,)
            The classes, two or more.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative. A weight of 2 is a row that occurs twice, 0 a row that is not there;
            but folds are made of rows as they are given.
        **params : dict
            With metadata routing: what the splitter `cv` asks for, as groups.

        Returns
        -------
        self
        """
        progress = Progress(self.verbose, self.max_seconds)
        _raise_for_params(params, self, "fit")
        routed: dict[str, Any] = {}
        if _routing_enabled() and params:
            routed = process_routing(self, "fit", **params).splitter.split
        new = copy(self)  # a fit that does not end well changes nothing
        new.__dict__ = {k: v for k, v in vars(self).items() if k[-1] != "_"}
        rows, kept = read_rows(new, X, y, sample_weight)
        last = self if self.warm_start and hasattr(self, "rules_") else None
        if last:
            new._check_last(last)
        cv = self.cv.split(X, y, **routed) if hasattr(self.cv, "split") else self.cv
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        with one_blas_thread(), reported(self, **data) as report:
            new._fit(rows, cv, kept, last, report, progress)
            self.__dict__ = {k: v for k, v in vars(self).items() if k[-1] != "_"} | vars(new)
        return self

    def _fit(
        self,
        rows: TrainingRows,
        cv: Any,
        kept: NDArray[np.bool_],
        last: TCBoostClassifier | None,
        report: Any,
        progress: Progress,
    ) -> None:
        last_table: list[CellTable] = []  # of many rows one is enough

        def table(l1_ratio: float) -> CellTable:
            bins = bins_for(l1_ratio, self.max_bins)
            if not any(one.is_cut_into(bins) for one in last_table):
                last_table.clear()
                last_table.append(rows.table(bins))
            return last_table[0]

        search = None
        if isinstance(self.alpha, str) or isinstance(self.l1_ratio, str):
            search = Search(rows, splits(rows, cv, kept), self.max_rules, progress)
            chosen = choose(search, self.alpha, self.l1_ratio, table)
        else:
            chosen = Tried(
                float(self.alpha), float(self.l1_ratio), math.nan, math.nan, math.nan
            )
        self.alpha_, self.l1_ratio_ = chosen.alpha, chosen.l1_ratio
        cells = table(self.l1_ratio_)
        start = self._start(last, cells, rows.columns) if last else None

        def state(found: Solution) -> dict[str, Any]:
            stopped = copy(self)
            stopped._set_fitted(found, rows, cells, chosen, search)
            return stopped.__dict__

        def watch(found: Solution) -> bool:
            progress.now("final fit", found)
            return bool(report(lambda: state(found))) or progress.is_over()

        found = fit_at(
            rows, cells, self.alpha_, self.l1_ratio_, self.max_rules, self.tol, start, watch
        )
        if found.status == "stopped early" and progress.is_over():
            found = replace(found, status="time")
        progress.tell(
            f"final fit: {len(found.model.used)} rules, log loss {found.loss:.4f}, gap "
            f"{found.gap:.2g}, {found.status}, {progress.seconds:.0f} s"
        )
        self._set_fitted(found, rows, cells, chosen, search)

    def _check_last(self, last: TCBoostClassifier) -> None:
        """Whether the last model can be gone on from."""
        if not np.array_equal(last.classes_, self.classes_):
            raise ValueError(
                "warm_start needs the classes of the last fit; set warm_start=False to begin "
                "anew"
            )
        if last.n_features_in_ != self.n_features_in_:
            raise ValueError(
                f"warm_start needs the {last.n_features_in_} features of the last fit, not "
                f"{self.n_features_in_}; set warm_start=False to begin anew"
            )
        if last.n_rules_ > self.max_rules:
            raise ValueError(
                f"max_rules={self.max_rules} is less than the {last.n_rules_} rules that "
                "warm_start would go on from"
            )

    def _start(
        self, last: TCBoostClassifier, cells: CellTable, columns: tuple[Column, ...]
    ) -> Model:
        """The last model, with the nearest rules that there are now."""
        rules = last.rules_
        if columns:
            rules = [rule_by_places(rule, columns[rule.feature]) for rule in rules]
        numbers = cells.numbers(rules)
        found = numbers >= 0
        used, place = np.unique(numbers[found], return_inverse=True)
        v = np.zeros((len(used), len(self.classes_)))
        np.add.at(v, place, last.coef_[found])
        return Model(last.intercept_.copy(), used, v)

    def _set_fitted(
        self,
        found: Solution,
        rows: TrainingRows,
        cells: CellTable,
        chosen: Tried,
        search: Search | None,
    ) -> None:
        b, used, v = found.model
        self.rules_ = cells.rules(used)
        self.n_rules_, self.n_iter_ = len(used), len(found.history)
        self.theta_ = float(lengths(v).sum())
        keys = found.history[0].keys()
        self.history_ = {k: np.array([one[k] for one in found.history]) for k in keys}
        self.cv_results_ = search.results(chosen) if search else {}
        names = getattr(self, "feature_names_in_", None)
        # A gap that is as large as the objective may have been larger.
        near = math.sqrt(found.gap) if found.gap < found.objective else 1e300
        unused = cells.largest(found.lengths) + near < found.penalty.l1
        lower_bound = max(0.0, found.objective - found.gap)
        self.certificate_ = SolvedCertificate(
            status=found.status,
            train_log_loss=found.loss,
            cv_log_loss=chosen.log_loss,
            n_folds=len(search.splits) if search else 0,
            objective=found.objective,
            lower_bound=lower_bound,
            gap=found.objective - lower_bound,
            n_rules=len(used),
            max_rules=self.max_rules,
            models=cells.describe(),
            features_not_needed=tuple(
                int(j) if names is None else str(names[j]) for j in np.flatnonzero(unused)
            ),
        )
        claim = claim_at_penalty(found, self.certificate_, rows, cells, unused)
        self._set_form(b, v, claim, cells, rows.columns)
        gap, objective = self.certificate_.gap, found.objective
        if found.status in ("stalled", "max_iter") and gap > _WORTH_A_WARNING * objective:
            warnings.warn(
                f"the fit ended ({found.status}) with a gap of {gap:.2g}, more than a percent "
                f"of the objective {objective:.2g}; the certificate takes that into account. A "
                "larger alpha would help.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _set_form(
        self,
        b: Vector,
        v: Vector,
        claim: Claim,
        cells: CellTable,
        columns: tuple[Column, ...],
    ) -> None:
        """The model as data, coefficients as it has them, levels by their names."""

        def weigh(j: int, axis: Axis) -> Vector:
            values = cells.features[j].representatives
            return cell_weights(axis, values, cells.masses[j])

        form = additive_model(Steps.of_rules(self.rules_), v, b, weigh, **self._about_form())
        self.coef_, self.intercept_ = on_unit(v, form.unit), on_unit(b, form.unit)
        right = missing_right(form.terms, Steps.of_rules(self.rules_), self.coef_)
        form = replace(form, claim=replace(claim, missing_right=right))
        if columns:
            form = in_words(form, columns, weigh)
            self.rules_ = [rule_in_words(rule, columns[rule.feature]) for rule in self.rules_]
        self._model = self.coef_, form

    @property
    def additive_(self) -> AdditiveModel:
        """The fitted model as data: a table for each feature."""
        return self._ensemble()

    @property
    def feature_importances_(self) -> Vector:
        """Share of each feature in the sum of the lengths of all class vectors."""
        check_is_fitted(self)
        feature = np.array([rule.feature for rule in self.rules_], dtype=np.intp)
        shares = np.bincount(feature, lengths(self.coef_), self.n_features_in_)
        return shares / max(float(shares.sum()), 1e-300)

    def get_metadata_routing(self) -> Any:
        """What `fit` passes on to the splitter.

        Returns
        -------
        MetadataRouter
        """
        splitter = self.cv if hasattr(self.cv, "split") else None
        router = MetadataRouter(owner=self).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="split")
        return router.add(splitter=splitter, method_mapping=mapping) if splitter else router

    def _weights_of_fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Vector, int, int]:
        """What the rows weigh in a fit, but for the factors of classes; how many they are.

        None is held out.
        """
        rows, kept = read_rows(copy(self), X, y, sample_weight)
        found = np.zeros(len(kept))
        found[kept] = rows.weight
        return found, len(rows.labels), 0

    def _about_form(self) -> dict[str, Any]:
        return {**super()._about_form(), "size": self.theta_}

    def _ensemble(self) -> AdditiveModel:
        """The fitted model; where `coef_` was changed by hand, one without a claim."""
        check_is_fitted(self)
        coef, form = vars(self).get("_model", (None, None))
        if form is None or coef is not self.coef_:
            columns = columns_of(form) if form and form.kinds else ()
            rules = [
                rule_by_places(r, columns[r.feature]) if columns else r for r in self.rules_
            ]
            steps, about = Steps.of_rules(rules), self._about_form()
            form = additive_model(steps, self.coef_, self.intercept_, **about)
            form = in_words(form, columns) if columns else form
            self._model = self.coef_, form
        return form

    def _features(self, X: Any) -> Vector:
        """Validated features of new rows, levels of a frame by their places in the form."""
        frame = as_frame(X)
        form: AdditiveModel | None = vars(self).get("_model", (None, None))[1]
        if frame is None or form is None or form.kinds is None:
            return super()._features(X)
        validate_data(self, X, reset=False, skip_check_array=True)  # the features' names
        values = read_as_in_fit(frame, form)
        self._check_values(values)
        return values

    def _paper_margins(self, X: Vector, y: NDArray[np.intp]) -> Vector:
        z = Pairwise(len(self.classes_)).apply(self._ensemble().scores(X), y)
        return z / max(self.theta_, 1e-300)
