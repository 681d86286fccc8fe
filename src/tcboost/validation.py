"""What users give, as numbers; of what is none, the column, what it holds and what to do."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data

# The types of columns of pandas and polars that would be taken as numbers, or not at all.
_KINDS = {
    "categories": re.compile("categor|enum|dictionary", re.IGNORECASE),
    "dates or times": re.compile("date|time|duration|period", re.IGNORECASE),
}
_ENCODE = (
    "encode them, with sklearn.preprocessing.OneHotEncoder for one, or give a frame to "
    "TCBoostClassifier, which takes them"
)
_REMEDIES = {
    "categories": _ENCODE,
    "strings": _ENCODE,
    "dates or times": "give them as numbers, the days since the first for one",
    "lists": "each value must be one number",
}


_WHAT = dict.fromkeys((str, bytes), "strings") | dict.fromkeys(
    (list, tuple, np.ndarray), "lists"
)


def read_table(estimator: Any, X: Any, **options: Any) -> Any:
    """`validate_data` of scikit-learn for tables of numbers; with `y` X and y."""
    _refuse_kinds(X)
    y = options.get("y")
    try:
        found = validate_data(
            estimator, X, dtype=np.float64, ensure_all_finite=False, **options
        )
    except (TypeError, ValueError) as error:
        complaint = _complaint(X, str(error)) or _bad_label(y)
        if complaint is None:
            raise
        raise type(error)(complaint) from error
    if y is not None and found[1].dtype.kind in "OmM" and (complaint := _bad_label(found[1])):
        raise ValueError(complaint)
    return found


def read_weights(sample_weight: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of the rows, in an array of their own; ones if none are given."""
    if sample_weight is not None and not np.any(np.asarray(sample_weight)):
        raise ValueError("sample_weight is zero for every row")
    try:
        return _check_sample_weight(sample_weight, X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if "sample_weight" in str(error):
            raise
        raise ValueError("sample_weight must be an array of numbers, one a row") from error


def encoded(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes, and the place of each label among them."""
    if y.dtype.kind in "iu" and int(y.max()) - int(low := y.min()) < len(y):
        # Half the time of sorting, on covertype. What wraps around does so twice.
        places = (y.astype(np.uint64) - low.astype(np.uint64)).astype(np.intp)
        there = np.bincount(places) > 0
        return np.flatnonzero(there).astype(y.dtype) + low, (np.cumsum(there) - 1)[places]
    return np.unique(y, return_inverse=True)


def column_name(d: int, names: Any) -> str:
    """A column by its place, and by its name if there are names."""
    return f"column {d}" if names is None else f"column {d} ({plain(names[d])!r})"


def plain(value: Any) -> Any:
    """A scalar of NumPy as that of Python: it is printed as a person would write it."""
    return value.item() if isinstance(value, np.generic) else value


def _refuse_kinds(X: Any) -> None:
    """What NumPy would make numbers of, whatever they mean."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        raise ValueError(_of_column("X", "dates or times"))
    names = _names(X)
    for d, dtype in enumerate(getattr(X, "dtypes", ())):
        for what, pattern in _KINDS.items():
            if pattern.match(str(dtype)):
                raise ValueError(_of_column(f"{column_name(d, names)} of X", what))


def _of_column(where: str, what: str, such_as: str = "") -> str:
    return f"{where} holds {what}{such_as}: {_REMEDIES[what]}"


def _names(X: Any) -> Any:
    return getattr(X, "column_names", getattr(X, "columns", None))


def _complaint(X: Any, error: str) -> str | None:
    """What is wrong with the first column that is not made of numbers, if one is not."""
    if getattr(getattr(X, "dtype", None), "kind", None) == "c":
        return None
    with suppress(TypeError, ValueError):
        np.asarray(X, dtype=float)
        return None
    table = np.asarray(X, dtype=object)
    if table.ndim == 1 and len(table) and all(isinstance(row, list | tuple) for row in table):
        sizes = [len(row) for row in table]
        odd = next((i for i, size in enumerate(sizes) if size != sizes[0]), 0)
        return f"the rows of X differ in length: {sizes[0]} in row 0, {sizes[odd]} in row {odd}"
    if table.ndim != 2:
        return None
    for d, column in enumerate(table.T):
        try:
            column.astype(float)
        except (TypeError, ValueError):
            where = f"{column_name(d, _names(X))} of X"
            return _of_value(where, next(filter(_no_number, column.tolist())), error)
    return None


def _of_value(where: str, value: Any, error: str) -> str:
    what = _WHAT.get(type(value))
    if what is None and hasattr(value, "isoformat"):
        what = "dates or times"
    if what is None:
        return f"{where} holds {value!r}, which is no number: {error}"
    return _of_column(where, what, f", such as {value!r}")


def _no_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return True
    return False


def _bad_label(y: Any) -> str | None:
    """A label that is missing, or labels that have no order; there may be none."""
    if y is None:
        return None
    labels = np.ravel(np.asarray(y, dtype=object)).tolist()
    for i, label in enumerate(labels):
        if label is None or type(label).__name__ in ("NAType", "NaTType") or label != label:
            missing = "NaN" if isinstance(label, float) else str(label)
            return f"Input y contains {missing} in row {i}: leave out rows without a label"
    if len({isinstance(label, str) for label in labels}) == 2:
        return "Input y mixes strings with other labels: make all of them strings"
    return None
