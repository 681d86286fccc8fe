"""Tables with named columns, of any library that narwhals knows: kinds of columns, and numbers.

Numbers, truth values, dates and durations become numbers. A category becomes the place of its
level among those of the fit, or one beyond where it is none of them; missing values are NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .model.additive import AdditiveModel, Levels
from .validation import column_name

Vector = NDArray[np.float64]

NUMBER, LEVELS, ORDER, DATE, DURATION = "number", "levels", "order", "date", "duration"
_CALLED = {
    NUMBER: "numbers",
    LEVELS: "categories",
    ORDER: "categories in an order",
    DATE: "dates",
    DURATION: "durations",
}
_CATEGORIES = {LEVELS, ORDER}
_PER_SECOND = 1e6
_NO_LEVEL = float(np.finfo(np.float64).max)  # text where levels are numbers
_MIDNIGHT = datetime(1970, 1, 1)
_EPOCH = _MIDNIGHT.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Column:
    """What a column of a table is; dates are seconds since 1970, durations are seconds.

    `levels` are those of a category, ascending or in their own order. Of levels that are all
    numbers there are none here, since they stay what they are.
    """

    kind: str = NUMBER
    levels: tuple[Any, ...] = ()

    def holds(self, kind: str) -> bool:
        """Whether values of this kind can be in the column."""
        same = kind == self.kind or {kind, self.kind} <= _CATEGORIES
        return same or (kind == NUMBER and self.kind == LEVELS and not self.levels)


def as_frame(X: Any) -> Any:
    """The table as narwhals has it; None for arrays, lists and whatever else."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        return None


def read_columns(frame: Any, categorical: NDArray[np.bool_] | None) -> tuple[Column, ...]:
    """What each column is: by its type, or a category where it is said to be one."""
    found = []
    for j, kind in enumerate(_kinds(frame)):
        if categorical is not None:
            if kind in _CATEGORIES and not categorical[j]:
                raise ValueError(
                    f"{column_name(j, frame.columns)} holds {_CALLED[kind]}, but is not among "
                    "categorical_features: name it there, or set "
                    'categorical_features="from_dtype"'
                )
            kind = LEVELS if categorical[j] and kind != ORDER else kind
        levels: Iterable[Any] = ()
        if kind in _CATEGORIES:
            series = frame[:, j]
            if kind == ORDER:
                levels = series.dtype.categories
            elif not series.dtype.is_numeric():
                values = set(series.drop_nulls().unique().to_list())
                if any(isinstance(v, str) for v in values):
                    levels = sorted(values, key=lambda v: (isinstance(v, str), v))
        found.append(Column(kind, tuple(levels)))
    return tuple(found)


def numbers(frame: Any, columns: Sequence[Column], used: Iterable[int]) -> Vector:
    """The columns as numbers, those used; a ValueError names one that is of another kind."""
    kinds = _kinds(frame)
    X: Vector
    if all(kind == column.kind == NUMBER for kind, column in zip(kinds, columns, strict=True)):
        X = frame.to_numpy()
        if X.dtype.kind in "fiub":  # no missing values that are none of NumPy's
            return X.astype(np.float64, copy=False)
    X = np.full(frame.shape, np.nan, order="F")
    filled = set(used)
    for j, (kind, column) in enumerate(zip(kinds, columns, strict=True)):
        if column.holds(kind):
            if j in filled:
                X[:, j] = _values(frame[:, j], column)
        elif not frame[:, j].is_null().all():
            now, then = _CALLED[kind], _CALLED[column.kind]
            where = column_name(j, frame.columns)
            raise ValueError(f"{where} holds {now}, but held {then} in fit")
    return X


def columns_of(form: AdditiveModel) -> tuple[Column, ...]:
    """What the columns of the frame were, with the levels that the model knows."""
    assert form.kinds is not None
    columns = [Column(kind) for kind in form.kinds]
    for term in form.terms:
        for j, axis in zip(term.inputs, term.axes, strict=True):
            if isinstance(axis, Levels) and not axis.numeric:
                columns[j] = Column(columns[j].kind, axis.levels)
    return tuple(columns)


def read_as_in_fit(frame: Any, form: AdditiveModel) -> Vector:
    """New rows as numbers, levels by their places on the axes of the form."""
    return numbers(frame, columns_of(form), (j for term in form.terms for j in term.inputs))


def _values(series: Any, column: Column) -> Vector:
    """Of one column, whose kind is right."""
    dtype = series.dtype
    if column.levels:
        place = {level: float(k) for k, level in enumerate(column.levels)}
        beyond = float(len(place))
        places = np.array([place.get(value, beyond) for value in series.to_list()])
        if (places == beyond).any():
            places[series.is_null().to_numpy()] = np.nan
        return places
    if dtype.is_numeric() or dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy()
    if dtype == nw.Datetime or dtype == nw.Date:
        return series.dt.timestamp("us").cast(nw.Float64).to_numpy() / _PER_SECOND
    if dtype == nw.Duration:
        return series.dt.total_microseconds().cast(nw.Float64).to_numpy() / _PER_SECOND
    pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
    return np.array([np.nan if null else _number(value) for value, null in pairs])


def _kinds(frame: Any) -> list[str]:
    """What the columns are, by their types; where that is any object, by their values."""
    found = []
    for j, dtype in enumerate(frame.schema.values()):
        if dtype.is_numeric() or dtype == nw.Boolean:
            found.append(NUMBER)
        elif dtype == nw.Enum:
            found.append(ORDER)
        elif dtype == nw.Categorical or dtype == nw.String:
            found.append(LEVELS)
        elif dtype == nw.Date or dtype == nw.Datetime:
            found.append(DATE)
        elif dtype == nw.Duration or dtype == nw.Time:
            found.append(DURATION)
        else:
            found.append(_kind_of_objects(frame[:, j], column_name(j, frame.columns)))
    return found


def _kind_of_objects(series: Any, where: str) -> str:
    """What all the values of a column are."""
    values = [] if series.is_null().all() else series.drop_nulls().to_list()
    kinds = {_kind_of_object(v) for v in values} or {NUMBER}
    if len(kinds) == 1 and None not in kinds:
        return str(kinds.pop())
    odd = next((v for v in values if _kind_of_object(v) is None), values[0])
    raise ValueError(
        f"{where} has the type {series.dtype}, and holds {odd!r}: a column must hold numbers, "
        "strings, categories, dates or durations, and one kind of them"
    )


def _kind_of_object(value: Any) -> str | None:
    for types, kind in (
        (str, LEVELS),
        ((int, float, np.number, np.bool_), NUMBER),
        (date, DATE),  # and times of a day
        ((time, timedelta), DURATION),
    ):
        if isinstance(value, types):
            return kind
    return None


def _number(value: Any) -> float:
    """A value of no type of its own as a number."""
    if isinstance(value, str):
        return _NO_LEVEL
    if isinstance(value, time):
        value = datetime.combine(_MIDNIGHT, value) - _MIDNIGHT
    elif isinstance(value, datetime):
        value = value.replace(tzinfo=value.tzinfo or UTC) - _EPOCH
    elif isinstance(value, date):
        value = datetime.combine(value, time()) - _MIDNIGHT
    return value.total_seconds() if isinstance(value, timedelta) else float(value)
