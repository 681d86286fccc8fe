"""What goes into `verify` and comes out of it: a verdict, claims that make sense, and rows.

No number is recomputed here: those that a verdict speaks of come from `verify`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .model.additive import AdditiveModel, Levels, Ordered, Term
from .model.claim import Claim

Vector = NDArray[np.float64]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_LOSSES = {
    "cross-entropy": "cross-entropy",
    "exponential": "logarithm of the exponential loss",
    "logistic": "logistic loss",
    "squared_hinge": "squared hinge loss",
    "hinge": "hinge loss",
}
_COLUMNS = {
    "vectors": "any class vectors",
    "codes": "any codes",
    "listed codes": "codes from a list",
    "bits": "a rule for every bit of the code",
}


@dataclass(frozen=True)
class Verification:
    """What was found; true as a condition if all that was claimed is proved.

    Attributes
    ----------
    verified : bool
        Whether it is. If not, the claim may still be true.
    loss, bound : float
        What the training loss is, with its penalties, and what no model of the claimed class
        can be below.
    gap, gap_all_thresholds : float
        Their difference; and what it is if rules may cut between any two values of the rows.
    budget : float
        What the coefficients sum to; where codes are from a list, if they may be any.
    problems : tuple of str
        The statements that were not proved.
    """

    verified: bool
    loss: float
    bound: float
    gap: float
    gap_all_thresholds: float
    budget: float
    problems: tuple[str, ...]
    _found: str = field(repr=False)

    def __bool__(self) -> bool:
        return self.verified

    def __str__(self) -> str:
        verdict = "Verified" if self.verified else "Not verified: " + "; ".join(self.problems)
        return f"{verdict}. {self._found}"


def in_words(claim: Claim, n_rows: int, figures: tuple[float, ...], log_loss: float) -> str:
    """What was found, and about which class."""
    loss, bound, gap, everywhere, budget = figures
    if claim.penalty is None:
        within = f"coefficients that sum to at most {claim.theta:.6g}"
    else:
        within = (
            f"penalties of {claim.penalty:.3g} |v| + {claim.ridge / 2:.3g} |v|^2, and "
            f"{claim.intercept_ridge / 2:.3g} |b|^2 for the intercept"
        )
    cuts = "any cuts" if claim.cuts == "all" else "the claimed cuts"
    listed = " if codes may be any" if claim.columns == "listed codes" else ""
    return (
        f"On {n_rows} rows the {_LOSSES[claim.loss]} is {loss:.8g} with {within}. No model of "
        f"rules on one feature, with {cuts} and {_COLUMNS[claim.columns]}, is below "
        f"{bound:.8g}: a gap of {gap:.3g}, or of {everywhere:.3g} over all thresholds. "
        f"Coefficients sum to {budget:.6g}{listed}; the log loss of the unscaled probabilities "
        f"is {log_loss:.6g}."
    )


# ---------------------------------------------------------------- claims


def form_of(model: Any) -> AdditiveModel:
    """The model as data, with a claim and tables that make sense."""
    try:
        form = model if isinstance(model, AdditiveModel) else model.additive_
    except AttributeError as error:
        raise ValueError(f"nothing can be verified: {error}") from error
    if form.claim is None:
        raise ValueError("the model makes no claim: it was not fitted, or has changed since")
    if not tables_fit(form, form):
        raise ValueError("no bound is known for what is claimed as terms")
    return form


def tables_fit(model: AdditiveModel, form: AdditiveModel) -> bool:
    """Whether a model is one of the same features and outputs, and of finite numbers."""
    if model.n_outputs != form.n_outputs or not np.isfinite(model.intercept).all():
        return False
    return all(
        np.shape(t.table) == (*(axis.n_cells for axis in t.axes), form.n_outputs)
        and np.isfinite(t.table).all()
        and all(0 <= j < form.n_features for j in t.inputs)
        and all(ascending(getattr(axis, "cuts", None)) for axis in t.axes)
        for t in model.terms
    )


def ascending(cuts: Any) -> bool:
    """Where there are any."""
    return cuts is None or bool((np.diff(cuts) > 0).all())


def claim_of(form: AdditiveModel) -> Claim:
    """What the model claims, if it is one of the claims that there is a bound for."""
    claim, K, n_classes = form.claim, form.n_outputs, len(form.classes)
    assert claim is not None
    at_penalty, factor = claim.penalty is not None, claim.class_weight
    positive = (claim.penalty, claim.intercept_ridge) if at_penalty else ()
    coded = form.decode is not None and claim.loss not in ("hinge", "cross-entropy")
    jumps = [(term.axes[0].n_cells - 2, K) for term in form.terms]
    right = claim.missing_right or (None,) * len(jumps)
    for name, known in {
        "loss": claim.loss in _LOSSES,
        "columns": claim.columns in _COLUMNS,
        "margin": claim.margin == "pairwise" or (claim.margin == "codeword" and coded),
        "budget": (claim.theta is None) == at_penalty
        and all(0 <= x < math.inf for x in (claim.ridge, claim.theta or 0.0))
        and all(x is not None and 0 < x < math.inf for x in positive),
        "loss and columns at a penalty": not at_penalty
        or (claim.loss, claim.columns) == ("cross-entropy", "vectors"),
        "codes": claim.columns != "listed codes" or np.shape(np.array(claim.codes))[:1] == (K,),
        "class_weight": factor is None
        or (np.shape(factor) == (n_classes,) and all(0 < x < math.inf for x in factor)),
        "orders": not dict(claim.orders).keys() & {*claim.categorical},
        "cuts": claim.cuts == "all" or len(claim.cuts) == form.n_features,
        "missing_right": len(right) == len(jumps)
        and all(
            R is None or np.shape(R) == jump for R, jump in zip(right, jumps, strict=False)
        ),
    }.items():
        if not known:
            raise ValueError(f"no bound is known for what is claimed as {name}")
    for j, cuts in enumerate(() if claim.cuts == "all" else claim.cuts):
        if not ascending(cuts):
            raise ValueError(f"the claimed cuts of feature {j} do not ascend")
    return claim


def outside(form: AdditiveModel) -> Iterator[str]:
    """What of the model is not of the class that it claims to be of, or not exact."""
    claim, unit = form.claim, 2.0**form.unit
    assert claim is not None
    ridge = claim.ridge or claim.intercept_ridge
    if claim.theta is not None and ridge:
        yield f"no bound is known for a ridge of {ridge:.17g} within a budget, but for one of 0"
    decode = np.eye(form.n_outputs) if form.decode is None else form.decode
    tables = [form.intercept[None], *(t.table.reshape(-1, form.n_outputs) for t in form.terms)]
    sizes = (max(np.abs(T).max(), np.abs(T @ decode.T).max()) for T in tables)
    if sum(sizes) >= 2.0**53 * unit or any(np.fmod(T, unit).any() for T in tables):
        yield f"tables are no multiples of 2^{form.unit} that add up exactly"
    for term in form.terms:
        j, axis = term.inputs[0], term.axes[0]
        if len(term.inputs) > 1:
            yield f"no bound is known for models of couples of features, such as {term.inputs}"
        elif isinstance(axis, Levels) != (j in claim.categorical):
            yield f"feature {j} is one of levels in the model or in the claim, but not in both"
        elif isinstance(axis, Ordered) and not isinstance(claim.cuts, str):
            cuts = claim.cuts[j]
            listed = np.empty(0) if cuts is None else cuts
            between = j in dict(claim.orders)  # places, the last one below being the cut
            strange = np.setdiff1d(axis.cuts, np.floor(listed) if between else listed)
            if len(strange):
                yield f"feature {j} is cut at {strange[0]}, which is not among the claimed cuts"


def unproved(
    claim: Claim, loss: float, gap: float, budget: float, unused: set[int]
) -> Iterator[str]:
    """Statements that do not follow from the numbers found, with both numbers."""
    if not math.isfinite(gap):
        yield f"the bound is not finite: the gap found is {gap}"
    primal = loss if claim.primal is None else claim.primal
    if not abs(loss - primal) <= 1e-12 * (1.0 + abs(loss)):
        yield f"the loss is {loss:.17g}, not {primal:.17g}"
    if claim.dual is not None and not gap <= primal - claim.dual + min(
        1e-9 * (1.0 + abs(loss)), 1e-8
    ):
        yield f"the gap found is {gap:.17g}, the claimed one is {primal - claim.dual:.17g}"
    numbers = claim.primal is not None or claim.dual is not None
    if claim.theta is not None and numbers and not budget <= claim.theta * (1.0 + 1e-9):
        yield f"the coefficients sum to {budget:.17g}, more than theta, {claim.theta:.17g}"
    if not unused >= {*claim.unused_features}:
        yield (
            f"features claimed to be unused are {[*claim.unused_features]}, but only "
            f"{sorted(unused)} are found to be"
        )


# ---------------------------------------------------------------- rows


def read(
    model: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[AdditiveModel, tuple[Vector, NDArray[np.intp], Vector], int, list[str]]:
    """The model; features, classes and weights of the rows that count; how many they are.

    The model and the features are in numbers. Last what is not as claimed.
    """
    form = form_of(model)
    values, y, weight = rows_of(form, X, y, sample_weight)
    form, values = in_numbers(form, values)
    claim, n_rows, n_held_out = claim_of(form), int(np.count_nonzero(weight)), 0
    if not isinstance(model, AdditiveModel):
        weight, n_rows, n_held_out = model._weights_of_fit(X, y, weight)
    elif claim.n_held_out:
        raise ValueError(
            f"{claim.n_held_out} of the rows only said when to stop, and a model alone does "
            "not know which: give the estimator"
        )
    strange = [*outside(form)]
    if n_rows != claim.n_rows:
        strange.append(f"there are {n_rows} rows of positive weight, not {claim.n_rows}")
    if n_held_out != claim.n_held_out:
        strange.append(
            f"there are {n_held_out} different rows held out, not {claim.n_held_out}"
        )
    kept = weight > 0
    if not kept.all():
        values, y, weight = values[kept], y[kept], weight[kept]
    return form, (values, places(form, y), weight), n_rows, strange


def rows_of(
    form: AdditiveModel, X: Any, y: Any, sample_weight: Any
) -> tuple[NDArray[Any], NDArray[Any], Vector]:
    """Features, classes and weights, as arrays of the same length."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    if hasattr(X, "column_names"):  # pyarrow's, whose arrays lose what is missing in categories
        X = np.array([column.to_pylist() for column in X.columns], dtype=object).T
    X, y = np.asarray(X), np.asarray(y)
    if names is not None and form.feature_names not in (None, tuple(map(str, names))):
        raise ValueError(f"the features of X are not those of the model: {form.feature_names}")
    if X.ndim != 2 or X.shape[1] != form.n_features or len(X) < 2:
        raise ValueError(
            f"X must have two rows or more and {form.n_features} features; its shape is "
            f"{X.shape}"
        )
    weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    for name, array in (("y", y), ("sample_weight", weight)):
        if array.shape != (len(X),):
            raise ValueError(f"X has {len(X)} rows, but the shape of {name} is {array.shape}")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError("sample_weight must be finite, not negative, and not always zero")
    return X, y, weight


def places(form: AdditiveModel, y: NDArray[Any]) -> NDArray[np.intp]:
    """The classes by their numbers."""
    number = {label: k for k, label in enumerate(form.classes.tolist())}
    for label in y.tolist():
        if label not in number:
            raise ValueError(f"y holds {label!r}, which is not among the classes {[*number]}")
    return np.array([number[label] for label in y.tolist()], dtype=np.intp)


def in_numbers(form: AdditiveModel, given: NDArray[Any]) -> tuple[AdditiveModel, Vector]:
    """The model, and rows, in which each level is a number: of those in an order its place.

    Any level that an order does not have is as a missing value.
    """
    claim = form.claim
    assert claim is not None
    orders = {j: {level: k for k, level in enumerate(levels)} for j, levels in claim.orders}
    axes = [(j, a) for t in form.terms for j, a in zip(t.inputs, t.axes, strict=True)]
    of_levels = {*claim.categorical, *(j for j, axis in axes if isinstance(axis, Levels))}
    number: dict[int, dict[Any, int]] = {j: {} for j in of_levels} | orders
    terms = tuple(_in_numbers(term, number, orders) for term in form.terms)
    X = given
    if number or X.dtype != np.float64:
        X = np.empty(given.shape)
        for j in range(form.n_features):
            X[:, j] = _column(given[:, j], j, number.get(j), j in orders)
    for j in range(form.n_features):
        if np.isinf(X[:, j]).any():
            raise ValueError(f"X contains infinity in column {j}")
    return replace(form, terms=terms), X


def _in_numbers(
    term: Term, number: dict[int, dict[Any, int]], orders: dict[int, dict[Any, int]]
) -> Term:
    """A term, of numbered levels.

    Of levels in an order it becomes one over places, with the cuts k that its table changes
    at: k and what is before it are below.
    """
    j, axis, T = term.inputs[0], term.axes[0], term.table
    if j in orders and isinstance(axis, Levels):
        cell = {level: k for k, level in enumerate(axis.levels, 1)}
        if not cell.keys() <= orders[j].keys() or (T[0] != T[-1]).any():
            raise ValueError(f"levels of feature {j} are not those of the claimed order")
        T = T[[0, *(cell.get(level, 0) for level in orders[j])]]
        cuts = np.flatnonzero((T[2:] != T[1:-1]).any(axis=1))
        return Term((j,), (Ordered(cuts.astype(np.float64)),), T[[0, 1, *(cuts + 2)]])
    axes = tuple(
        Levels(tuple(number[j].setdefault(level, len(number[j])) for level in axis.levels))
        if isinstance(axis, Levels)
        else axis
        for j, axis in zip(term.inputs, term.axes, strict=True)
    )
    return replace(term, axes=axes)


def _column(x: NDArray[Any], j: int, number: dict[Any, int] | None, ordered: bool) -> Vector:
    """A feature as numbers; levels that have none yet get one, but for those in an order."""
    if x.dtype.kind in "mM":  # as dates and durations of Python
        x = x.astype(f"{x.dtype.kind}8[us]").astype(object)
    if number is None:
        try:
            with suppress(TypeError):
                return x.astype(np.float64)
            return np.array([float(_plain(v)) for v in x.tolist()])
        except (TypeError, ValueError) as error:
            raise ValueError(f"feature {j} must hold numbers: {error}") from error
    return np.array(
        [
            number.get(v, np.nan) if ordered or v != v else number.setdefault(v, len(number))
            for v in map(_plain, x.tolist())
        ]
    )


def _plain(v: Any) -> Any:
    """Text as it is, all else as a number; dates are seconds since 1970, durations seconds."""
    same = v == v
    if v is None or not isinstance(same, bool | np.bool_) or not same:  # pd.NA says neither
        return np.nan
    if isinstance(v, time):
        v = datetime.combine(_EPOCH, v)
    elif isinstance(v, date) and not isinstance(v, datetime):
        v = datetime.combine(v, time())
    if isinstance(v, datetime):
        v = v.replace(tzinfo=v.tzinfo or UTC) - _EPOCH
    if isinstance(v, timedelta):
        return v // timedelta(microseconds=1) / 1e6
    return v if isinstance(v, str) else float(v)
