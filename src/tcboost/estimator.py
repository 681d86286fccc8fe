"""How the estimators fit: validation, assembly. The algorithms are in `boosting`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from copy import copy
from functools import partial
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
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from ._blas import one_blas_thread
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
    TotallyCorrective,
)
from .losses import LOSSES, SCORED, SmoothLoss
from .oracles import make_oracle
from .prediction import FittedClassifier, is_plain
from .rows.blocks import LocalRows, exact_sum
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
from .validation import plain, read_table, read_weights

Vector = NDArray[np.float64]

_WEAK_LEARNERS = {"stump", "product", "lda"}
_CHOSEN = {"theta_choice_", "probability_scale_"}  # before the first round
_PATH_TOL = 3e-2  # of the fits that only serve to choose theta


def _labels(y: Any) -> bool:
    """Whether these are integers, with two rows a class or more, so that nothing is odd."""
    plain = type(y) is np.ndarray and y.dtype.kind in "iu" and y.ndim == 1
    return plain and 2 * len(np.unique(y)) <= len(y)


def _encoded(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes, and the place of each label among them."""
    if y.dtype.kind in "iu" and int(y.max()) - int(low := y.min()) < len(y):
        # Half the time of sorting, on covertype. What wraps around does so twice.
        places = (y.astype(np.uint64) - low.astype(np.uint64)).astype(np.intp)
        there = np.bincount(places) > 0
        return np.flatnonzero(there).astype(y.dtype) + low, (np.cumsum(there) - 1)[places]
    return np.unique(y, return_inverse=True)


class WarmStart(NamedTuple):
    """What a later fit goes on from: a run, hashes of its problem, what was chosen for it."""

    key: dict[str, str]
    run: Run
    chosen: dict[str, Any]
    n_rounds: int


class BoostingClassifier(CallbackSupportMixin, FittedClassifier):
    """The base of `TCBoostClassifier` and of those in `named`, `relatives` and `thinning`.

    A subclass says which margin it has (`_pairwise`); it has `theta` and `tol` among its
    parameters unless it is `_stage_wise`.
    """

    ridge: float | str = 0.0
    coefficient: str = "error"
    variant: str = "samme"
    class_weight: Any = None
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
        if is_plain(X) and min(X.shape) > 1 and _labels(y) and len(X) == len(y):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
        else:
            X, y = read_table(self, X, y=y, ensure_min_samples=2)
            check_classification_targets(y)
        X = np.require(X, requirements="A")  # fields of a record may lie anywhere
        self._check_values(X)
        raw = weight = read_weights(sample_weight, X)
        # A power of two changes no digit, so that integer weights stay exact.
        weight = np.ldexp(weight, -np.frexp(np.abs(weight).max())[1])
        if isinstance(self.class_weight, dict):
            weight *= compute_sample_weight(self.class_weight, y)
            if not np.isfinite(weight).all():
                given = {plain(c): plain(w) for c, w in self.class_weight.items()}
                raise ValueError(f"class_weight must be finite numbers: {given}")
        if (weight < 0).any():
            raise ValueError("sample_weight and class_weight must not be negative")
        kept = weight > 1e-300  # less would underflow, and weighs nothing
        if not kept.any():
            raise ValueError("sample_weight and class_weight leave no row of positive weight")
        self.classes_, labels = _encoded(y[kept])
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only ({plain(self.classes_[0])!r}) among the rows of "
                "positive weight; a classifier needs at least two"
            )
        weight = weight[kept]
        if self.class_weight == "balanced":  # a weight of 2 is two rows, here too
            order = np.lexsort(
                (weight, labels)
            )  # sums of a class do not depend on that of rows
            starts = np.searchsorted(labels[order], np.arange(len(self.classes_)))
            weight /= np.add.reduceat(weight[order], starts)[labels]
        raw = raw[kept]  # the weights of classes make no more and no fewer rows
        counts = raw.max() <= 2**53 and (raw == np.rint(raw)).all()
        even = raw / raw.max()
        size = exact_sum(raw) if counts else math.fsum(even) ** 2 / math.fsum(even * even)
        X = X if kept.all() else X[kept]
        with one_blas_thread():
            return LocalRows(X, labels, weight, self.max_bins, self.n_jobs, size)

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
            corrector = task.stage_wise(oc or self.variant == "m2")
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
        rule = start, self.max_iter, search, self.verbose
        return choose_theta(rows, n_classes, *rule, n_threads=self._at_once(rows))

    def _choose_level(self, rows: LocalRows, seed: int) -> Choice:
        def start(part: LocalRows, style: Style) -> Run:
            return self._start(part, seed, self._priced(style, 1.0, part.size), self.tol)

        free = self.coding == "vector" and isinstance(self.ridge, str)
        styles = STYLES if free else STYLES[:1]
        n_classes = len(self.classes_)
        rule = start, self._priced, self.max_iter, styles, self.verbose
        return choose_level(rows, n_classes, *rule, n_threads=self._at_once(rows))

    def _at_once(self, rows: LocalRows) -> int:
        """Folds may have a thread each where kernels do the work, not HiGHS or others' code.

        That would not know of scikit-learn's settings, which are of the caller's thread.
        """
        kernels = self.weak_learner in ("stump", "product") and self.loss != "hinge"
        return rows.n_threads if kernels else 1

    def _budget(self, theta: float) -> Budget:
        """Without a ridge unless one is asked for."""
        return Budget(theta, ridge=0.0 if isinstance(self.ridge, str) else float(self.ridge))

    def _priced(self, style: Style, level: float, n_rows: float) -> Budget:
        """With its ridge, another one, or none for coefficients that are no vectors."""
        budget = style.budget(level, n_rows)
        if self.coding != "vector":
            return budget._replace(ridge=0.0, intercept=0.0)
        return budget if isinstance(self.ridge, str) else budget._replace(ridge=self.ridge)

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
            if self.loss not in SCORED:
                raise ValueError(f"loss={self.loss!r} needs coding='learned' or 'random'")
            loss = SCORED[self.loss]
            corrector = BallCorrective(
                *(margin, y, weight, loss, not vector, budget, tol, rows.n_threads),
                task.oracle,
            )
        elif isinstance(task.loss, SmoothLoss):
            corrector = TotallyCorrective(
                *(margin, y, weight, budget.theta, tol, task.loss, rows.n_threads),
                round_tol=self.round_tol if task.oracle.exact else 0.0,  # else no gap is known
                # Not where it is open when the run will end.
                paced=isinstance(task.chooser, FixedCode) and held_out is None,
            )
        else:
            corrector = LinearProgram(margin, y, weight, budget.theta, tol)
        return Run(task, corrector, verbose, held_out)

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
        if model.certificate.status == "stalled":
            warnings.warn(
                f"the fit made no more progress at a gap of {model.certificate.gap:.2g}, which "
                f"is above tol={run.corrector.tol:g}; the certificate takes that into account. "
                "A smaller theta or a larger tol would help.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self
