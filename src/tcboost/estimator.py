"""How the estimators fit: validation, assembly. The algorithms are in `boosting`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.multiclass import check_classification_targets

from ._blas import one_blas_thread
from ._callbacks import CallbackSupportMixin, reported
from .boosting import HeldOut, Model, Run, Task
from .certificate import Certificate
from .claims import claim_within_budget
from .coding import coding_matrix, runs
from .columns import Chooser, FixedCode, LearnedCode, RandomCode
from .correctors import Corrector, LinearProgram, TotallyCorrective
from .ensemble import Ensemble
from .losses import LOSSES, SmoothLoss
from .model.additive import Axis
from .oracles import make_oracle
from .prediction import FittedClassifier, is_plain
from .rows.blocks import LocalRows, canonical_groups
from .theta import PAPER_SEARCH, Choice, Search, choose_theta, stagewise
from .validation import encoded, plain, read_table, read_weights

Vector = NDArray[np.float64]

_WEAK_LEARNERS = {"stump", "product", "lda"}
_CHOSEN = {"theta_choice_", "probability_scale_"}  # before the first round
_PATH_TOL = 3e-2  # of the fits that only serve to choose theta


def _labels(y: Any) -> bool:
    """Whether these are integers, with two rows a class or more, so that nothing is odd."""
    plain = type(y) is np.ndarray and y.dtype.kind in "iu" and y.ndim == 1
    return plain and 2 * len(np.unique(y)) <= len(y)


class WarmStart(NamedTuple):
    """What a later fit goes on from: a run, hashes of its problem, what was chosen for it."""

    key: dict[str, str]
    run: Run
    chosen: dict[str, Any]
    n_rounds: int


class BoostingClassifier(CallbackSupportMixin, FittedClassifier):
    """The base of the estimators in `named`, `relatives` and `thinning`.

    A subclass says which margin it has (`_pairwise`); it has `theta` and `tol` among its
    parameters unless it is `_stage_wise`.
    """

    coefficient: str = "error"
    variant: str = "samme"
    theta: float | str
    tol: float
    round_tol: float = 0.0
    max_iter: int
    max_bins: int | str | None
    random_state: Any
    verbose: int
    warm_start: bool
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int

    theta_choice_: Choice
    theta_: float
    certificate_: Certificate
    _run: WarmStart

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

    def _validate_params(self) -> None:
        """As scikit-learn does, but of numbers of NumPy its messages say np.float64(0.0)."""
        given = {k: plain(v) for k, v in self.get_params(deep=False).items()}
        rules = self._parameter_constraints
        validate_parameter_constraints(rules, given, caller_name=type(self).__name__)

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
        # All that is learned is learned by a copy, so that a fit that does not end well changes
        # nothing.
        new = copy(self)
        new.__dict__ = self._unlearned()
        rows = new._rows(X, y, sample_weight)
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        with one_blas_thread(), reported(self, **data) as report:

            def watch(run: Run) -> bool:
                return report(lambda: vars(copy(new)._keep(run)))

            if self.warm_start:
                run = new._go_on(rows, getattr(self, "_run", None), watch)
            else:
                run = new._begin(rows).boost(self.max_iter, watch=watch)
            new._keep(run)
            self.__dict__ = {**self._unlearned(), **vars(new)}
        return self

    def _unlearned(self) -> dict[str, Any]:
        """What an estimator has before it is fitted: parameters, and what callbacks keep."""
        learned = {"_run", "_model"}
        return {k: v for k, v in vars(self).items() if k[-1] != "_" and k not in learned}

    def _rows(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> LocalRows:
        """Validated data, in canonical order; sets `classes_`."""
        given, _ = self._read(X, y, sample_weight)
        with one_blas_thread():
            return LocalRows(*given, self.max_bins, self.n_jobs)

    def _weights_of_fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Vector, int, int]:
        """What the rows weigh in a fit, 0 if it holds them out; how many rows, and held out.

        Those held out are counted by their content.
        """
        (X, labels, weight), kept = copy(self)._read(X, y, sample_weight)
        found, n_held_out = np.zeros(len(kept)), 0
        if self.early_stopping:
            rows = LocalRows(X, labels, weight, 2, self.n_jobs)  # few bins are sooner made
            held = rows.held_out(self.validation_fraction)
            order, starts = canonical_groups(X, labels, weight, rows.n_threads)
            copies = np.diff(np.append(starts, len(order)))
            weight[order[np.repeat(held, copies)]] = 0.0
            n_held_out = int(held.sum())
        found[kept] = weight
        return found, len(X), n_held_out

    def _read(
        self, X: Any, y: Any, sample_weight: ArrayLike | None
    ) -> tuple[tuple[Vector, NDArray[np.intp], Vector], NDArray[np.bool_]]:
        """Rows of positive weight, their classes by number, and which they are."""
        if is_plain(X) and min(X.shape) > 1 and _labels(y) and len(X) == len(y):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
        else:
            X, y = read_table(self, X, y=y, ensure_min_samples=2)
            check_classification_targets(y)
        X = np.require(X, requirements="A")  # fields of a record may lie anywhere
        self._check_values(X)
        weight = read_weights(sample_weight, X)
        # A power of two changes no digit, so that integer weights stay exact.
        weight = np.ldexp(weight, -np.frexp(np.abs(weight).max())[1])
        if (weight < 0).any():
            raise ValueError("sample_weight must not be negative")
        kept = weight > 1e-300  # less would underflow, and weighs nothing
        self.classes_, labels = encoded(y[kept])
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only ({plain(self.classes_[0])!r}) among the rows of "
                "positive weight; a classifier needs at least two"
            )
        return (X if kept.all() else X[kept], labels, weight[kept]), kept

    def _go_on(
        self, rows: LocalRows, last: WarmStart | None, watch: Callable[[Run], bool]
    ) -> Run:
        """The run of the last fit with more rounds, or a first one, kept to be gone on with."""
        if last is None:
            run, key = self._begin(rows), self._key(rows)
        else:
            key = last.key
            changed = [name for name, now in self._key(rows).items() if key[name] != now]
            if changed:
                raise ValueError(
                    f"warm_start needs the same problem, but {', '.join(changed)} changed; "
                    "set warm_start=False to begin anew"
                )
            if self.max_iter < last.n_rounds:
                raise ValueError(
                    f"max_iter={self.max_iter} is less than the {last.n_rounds} rounds that "
                    "warm_start would go on from"
                )
            self.__dict__.update(last.chosen)
            run = last.run.copy()
            run.history.verbose = self.verbose
        if last is None or not run.over:
            run.boost(self.max_iter, pause=True, watch=watch)
        chosen = {k: v for k, v in vars(self).items() if k in _CHOSEN}
        n_rounds = max(len(run.columns), last.n_rounds if last else 0)
        self._run = WarmStart(key, run.paused or run, chosen, n_rounds)
        return run

    def _key(self, rows: LocalRows) -> dict[str, str]:
        """Hashes of what a warm start must find unchanged."""
        key = self.get_params(deep=False)
        for name in ("max_iter", "n_jobs", "verbose"):
            key.pop(name, None)
        key["X, y or sample_weight"] = rows.X, rows.y, rows.weight, self.classes_
        return {name: joblib.hash(value) for name, value in key.items()}

    def _begin(self, rows: LocalRows) -> Run:
        """A run without columns yet, its budget chosen."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        held_out = None
        if self.early_stopping:
            rows, others = rows.hold_out(self.validation_fraction)
            held_out = HeldOut(others, self.n_iter_no_change)
        per_margin = LOSSES[self.loss].log_odds or np.nan  # there are none then
        self.probability_scale_ = per_margin * self._margin(len(self.classes_)).per_score
        oc = self.coefficient == "pseudo-loss"
        if oc and not (self._grown and self.loss == "exponential"):
            raise ValueError(
                "coefficient='pseudo-loss' needs loss='exponential' and coding='random', "
                f"'runs' or 'learned', not {self.loss!r} and {self.coding!r}"
            )
        if self._stage_wise:
            task = self._task(rows, seed)
            corrector = task.stage_wise(oc or self.variant == "m2")
            return Run(task, corrector, self.verbose, held_out)
        theta = self.theta
        if theta in ("stagewise", "growing"):
            columns, sums = stagewise(self._task(rows, seed), self.max_iter)
            theta = sums[-1]
        elif theta == "cv":
            choice = self.theta_choice_ = self._choose_theta(rows, seed, PAPER_SEARCH)
            theta, self.probability_scale_ = choice.theta, choice.scale
        run = self._start(rows, seed, float(theta), self.tol, self.verbose, held_out)
        if self.theta == "growing":
            run.budgets = sums
            if isinstance(run.task.chooser, FixedCode | RandomCode):
                run.task.chooser.known = columns
        return run

    def _choose_theta(self, rows: LocalRows, seed: int, search: Search) -> Choice:
        tol = max(self.tol, _PATH_TOL)

        def start(part: LocalRows, theta: float) -> Run:
            return self._start(part, seed, theta, tol)

        n_classes = len(self.classes_)
        rule = start, self.max_iter, search, self.verbose
        return choose_theta(rows, n_classes, *rule, n_threads=self._at_once(rows))

    def _at_once(self, rows: LocalRows) -> int:
        """Folds may have a thread each where kernels do the work, not HiGHS or others' code.

        That would not know of scikit-learn's settings, which are of the caller's thread.
        """
        kernels = self.weak_learner in ("stump", "product") and self.loss != "hinge"
        return rows.n_threads if kernels else 1

    def _start(
        self,
        rows: LocalRows,
        seed: int,
        theta: float,
        tol: float,
        verbose: int = 0,
        held_out: HeldOut | None = None,
    ) -> Run:
        """A totally corrective run without columns yet."""
        task = self._task(rows, seed)
        margin, y, weight = task.margin, rows.y, rows.weight
        corrector: Corrector
        if isinstance(task.loss, SmoothLoss):
            corrector = TotallyCorrective(
                *(margin, y, weight, theta, tol, task.loss, rows.n_threads),
                round_tol=self.round_tol if task.oracle.exact else 0.0,  # else no gap is known
                # Not where it is open when the run will end.
                paced=isinstance(task.chooser, FixedCode) and held_out is None,
            )
        else:
            corrector = LinearProgram(margin, y, weight, theta, tol)
        return Run(task, corrector, verbose, held_out)

    def _task(self, rows: LocalRows, seed: int) -> Task:
        """The same seed gives the same code draws, for the stage-wise run behind theta too."""
        n_classes = len(self.classes_)
        searched = self._grown and self.coding == "learned"
        random = not searched or not isinstance(self.weak_learner, str)
        rng: Any = np.random.RandomState(seed) if random else None  # it takes 0.2 ms
        oracle = make_oracle(self.weak_learner, rows, rng)
        chooser: Chooser
        if not self._grown:
            chooser = FixedCode(oracle)
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
        elif self.coding is not None:
            codes = np.array([c.code for c in model.columns], dtype=np.int8)
            self.coding_matrix_ = codes.reshape(-1, len(self.classes_)).T
        self._model = self._with_form(run, model)
        if model.certificate.status == "stalled":
            warnings.warn(
                f"the fit made no more progress at a gap of {model.certificate.gap:.2g}, which "
                f"is above tol={run.corrector.tol:g}; the certificate takes that into account. "
                "A smaller theta or a larger tol would help.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _with_form(self, run: Run, model: Model) -> Ensemble:
        """The fitted model, as data where it is made of stumps."""
        rows = run.task.rows

        def weigh(j: int, axis: Axis) -> Vector:
            values = np.concatenate([[np.nan], rows.binning.cuts[j], [np.inf]])
            return np.bincount(axis.cells(values), rows.weights_of(j), axis.n_cells).astype(
                float
            )

        margin = self._margin(len(self.classes_), getattr(self, "coding_matrix_", None))
        plain = Ensemble(self.estimators_, model.w, margin)
        form = plain.additive(weigh, **self._about_form()) if run.task.oracle.exact else None
        if form is not None:
            form = replace(form, claim=claim_within_budget(run, model, form))
        return replace(plain, form=form)
