"""The training rows of `TCBoostClassifier`: equal ones merged, in an order of their content."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ._kept import kept_property
from .features import CellTable, cell_table
from .frames import LEVELS, Column, as_frame, numbers, read_columns
from .rows.blocks import canonical_groups, effective_n_jobs, exact_sum
from .validation import column_name, encoded, plain, read_table, read_weights

Vector = NDArray[np.float64]
Places = NDArray[np.intp]
MOST_LEVELS = 65_535
# Groups of equal rows are copies, and not rows of few categories, if they are no larger, and if
# their classes are mixed less than this share of what chance would give.
_COPIES, _MIXED = 10, 0.1


@dataclass(frozen=True)
class TrainingRows:
    """Rows as they were given, an order of them, and where in it those begin that differ.

    Rows of the same features and class are merged, their weights added. The order is one of
    content, so that a fit sees the same rows in the same order however the data were ordered,
    and a weight of 2 is a row that occurs twice.
    """

    X: Vector
    labels: NDArray[np.intp]
    weight: Vector
    of_class: Vector  # a factor on the weights of the rows of each class
    categorical: NDArray[np.bool_]
    n_threads: int
    order: Places
    starts: Places
    columns: tuple[Column, ...] = ()  # of a frame what each of them is

    @classmethod
    def of(
        cls,
        X: Vector,
        labels: NDArray[np.intp],
        weight: Vector,
        of_class: Vector,
        categorical: NDArray[np.bool_],
        n_threads: int,
        columns: tuple[Column, ...] = (),
    ) -> TrainingRows:
        """In canonical order."""
        order, starts = canonical_groups(X, labels, weight, n_threads)
        about = of_class, categorical, n_threads
        return cls(X, labels, weight, *about, order, starts, columns)

    @property
    def chosen(self) -> Places:
        """One row of each that differ."""
        return self.order[self.starts]

    @property
    def y(self) -> NDArray[np.int32]:
        """Their classes."""
        return self.labels[self.chosen].astype(np.int32)

    @property
    def n_classes(self) -> int:
        """How many there are."""
        return len(self.of_class)

    @property
    def total(self) -> float:
        """The weight of all rows: alpha is worth so many."""
        return exact_sum(self.merged())

    def merged(self, some: NDArray[np.bool_] | None = None) -> Vector:
        """Weights of the rows that differ, or what some of those given add to them."""
        weight = self.weight[self.order]
        if some is not None:
            weight *= some[self.order]
        # Factors come last, so that copies with whole weights add up exactly.
        return np.add.reduceat(weight, self.starts) * self.of_class[self.y]

    @property
    def counts(self) -> Places:
        """How many of those given each row stands for."""
        return np.diff(np.append(self.starts, len(self.labels)))

    @kept_property
    def together(self) -> NDArray[np.bool_]:
        """Which of the rows that differ stand for copies of one row."""
        starts, counts, chosen = self.starts, self.counts, self.chosen
        if len(starts) == len(self.labels):
            return np.zeros(len(starts), dtype=bool)
        # Rows of the same features are neighbours, whatever their classes.
        new = np.zeros(len(chosen), dtype=bool)
        for column in self.X.T:
            x = column[chosen]
            new[1:] |= (x[1:] != x[:-1]) & ~(np.isnan(x[1:]) & np.isnan(x[:-1]))
        group = np.cumsum(new)
        sizes = np.bincount(group, counts)
        small = (sizes <= _COPIES)[group]
        pairs = float((sizes * (sizes - 1.0))[sizes <= _COPIES].sum())
        alike = float((counts * (counts - 1.0))[small].sum())
        share = np.bincount(self.labels, minlength=self.n_classes) / len(self.labels)
        chance = 1.0 - float(share @ share)
        return small & (pairs - alike < _MIXED * chance * pairs)

    @property
    def units(self) -> Places:
        """How many rows each is for folds: copies of a row are one."""
        return np.where(self.together, 1, self.counts)

    def table(self, max_bins: int) -> CellTable:
        """Their cells."""
        weight = self.merged() / self.total
        about = max_bins, self.categorical, self.n_threads
        return cell_table(self.X, self.chosen, weight, *about)


def read_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[TrainingRows, NDArray[np.bool_]]:
    """Validated rows of positive weight, and which of those given they are.

    Sets `classes_` and what scikit-learn has an estimator know of its input.
    """
    X, y, columns, categorical = _read_columns(estimator, X, y)
    check_classification_targets(y)
    X = np.require(X, requirements="A")  # fields of a record may lie anywhere
    estimator._check_values(X)
    given = read_weights(sample_weight, X)
    if not math.isfinite(math.fsum(given / len(given))) or given.max() > 1e300:
        raise ValueError("sample_weight is too large to be added up")
    factor = np.ones(len(given))
    if isinstance(estimator.class_weight, dict):
        factor = compute_sample_weight(estimator.class_weight, y)
    weight = given * factor
    if not np.isfinite(weight).all():
        named = {plain(c): plain(w) for c, w in estimator.class_weight.items()}
        raise ValueError(f"class_weight must be finite numbers: {named}")
    if (weight < 0).any():
        raise ValueError("sample_weight and class_weight must not be negative")
    kept = weight > 1e-200 * weight.max()  # less weighs nothing
    if not kept.any():
        raise ValueError("sample_weight and class_weight leave no row of positive weight")
    if not kept.all():
        X, y, given, factor = X[kept], y[kept], given[kept], factor[kept]
    estimator.classes_, labels = encoded(y)
    n_classes = len(estimator.classes_)
    if n_classes < 2:
        raise ValueError(
            f"y holds one class only ({plain(estimator.classes_[0])!r}) among the rows of "
            "positive weight; a classifier needs at least two"
        )
    of_class = factor[np.unique(labels, return_index=True)[1]]
    if isinstance(estimator.class_weight, str):
        # "balanced": a weight of 2 is two rows, here too.
        sums = np.array([exact_sum(given[labels == c]) for c in range(n_classes)])
        of_class = exact_sum(given) / n_classes / sums
    _check_levels(estimator, X, columns, categorical)
    n_threads = effective_n_jobs(estimator.n_jobs)
    about = of_class, categorical, n_threads, columns
    return TrainingRows.of(X, labels, given, *about), kept


def _read_columns(
    estimator: Any, X: Any, y: Any
) -> tuple[Vector, Any, tuple[Column, ...], NDArray[np.bool_]]:
    """A table and labels as arrays, what the columns of a frame are, which hold levels."""
    frame = as_frame(X)
    if frame is None:
        X, y = read_table(estimator, X, y=y, ensure_min_samples=2)
        return X, y, (), _categorical(estimator, X.shape[1], None)
    chosen = None
    if not _from_dtype(estimator.categorical_features):
        chosen = _categorical(estimator, len(frame.columns), frame.columns)
    columns = read_columns(frame, chosen)
    values, y = read_table(
        estimator, numbers(frame, columns, range(len(columns))), y=y, ensure_min_samples=2
    )
    validate_data(estimator, X, skip_check_array=True)  # the features' names
    return values, y, columns, np.array([column.kind == LEVELS for column in columns])


def _from_dtype(given: Any) -> bool:
    return isinstance(given, str) and given == "from_dtype"


def _categorical(estimator: Any, n: int, names: list[Any] | None) -> NDArray[np.bool_]:
    """Which of n columns are said to hold levels."""
    given = estimator.categorical_features
    mask = np.zeros(n, dtype=bool)
    chosen = np.asarray([] if given is None or _from_dtype(given) else given)
    if chosen.size == 0:
        return mask
    if chosen.dtype.kind in "OU" and names is not None and chosen.ndim == 1:
        for name in chosen.tolist():
            if name not in names:
                raise ValueError(
                    f"categorical_features has {name!r}, which is no column of X: {names}"
                )
            mask[names.index(name)] = True
        return mask
    if chosen.dtype == bool and chosen.shape == (n,):
        mask = chosen.copy()
    elif chosen.dtype.kind in "iu" and chosen.ndim == 1:
        outside = chosen[(chosen < 0) | (chosen >= n)]
        if len(outside):
            raise ValueError(
                f"categorical_features has column {outside[0]}, which is not among the {n} of "
                f"X, 0 to {n - 1}"
            )
        mask[chosen] = True
    else:
        raise ValueError(
            f"categorical_features must be places of columns, a mask of all {n}, names of "
            f'columns of a frame, or "from_dtype"; got {given!r}'
        )
    return mask


def _check_levels(
    estimator: Any, X: Vector, columns: tuple[Column, ...], categorical: NDArray[np.bool_]
) -> None:
    """No more levels than there is room for; tell of columns of a frame of no use."""
    names = getattr(estimator, "feature_names_in_", None)
    for j in np.flatnonzero(categorical).tolist():
        n_levels = len(np.unique(X[:, j]))
        if n_levels > MOST_LEVELS:
            raise ValueError(
                f"{column_name(j, names)} has {n_levels} levels; at most {MOST_LEVELS} "
                "are possible"
            )
    told = []
    for j, column in enumerate(columns):
        x = X[:, j]
        n_values = len(np.unique(x[~np.isnan(x)]))
        if n_values == len(x) and column.kind == LEVELS:
            told.append(f"{column_name(j, names)} has another level in each row")
        elif n_values == 0 or (n_values == 1 and not np.isnan(x).any()):
            told.append(f"{column_name(j, names)} has the same value in all rows")
    if told:
        warnings.warn(f"{'; '.join(told)}: such columns cannot help", UserWarning, stacklevel=6)
