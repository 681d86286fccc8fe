"""What a model file may hold: entries of a header, and arrays, are checked against tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Range = tuple[float, float] | None  # the least and the largest value
Entries = dict[str, tuple[Any, Range]]  # the types of each entry, its range
# The kinds of the dtype of each array, a letter for each axis, the range.
Arrays = dict[str, tuple[str, Sequence[str], Range]]

MOST = sys.float_info.max
INFINITE: Range = (-np.inf, np.inf)
SIGNS: Range = (-1, 1)
_TO_COMPUTE_WITH: dict[str, Any] = {"f": np.float64, "i": np.int64, "b": np.bool_}


@dataclass(frozen=True)
class Kind:
    """How models of one kind are held: entries, a certificate and arrays of their own."""

    entries: Entries
    certificate: type
    proof: Entries  # of the certificate
    # From a fitted model; among the entries are the `parameters`.
    entries_of: Callable[[Any], dict[str, Any]]
    arrays_of: Callable[[Any], dict[str, Any]]
    # From the class, the header and the arrays, with parameters that are not checked yet.
    unfitted: Callable[[type, dict[str, Any], dict[str, NDArray[Any]]], Any]
    # From that, the header, the arrays, and rules for those that all models have.
    checked: Callable[[Any, dict[str, Any], dict[str, Any], Arrays], dict[str, Any]]
    # Sets what `fit` sets, of arrays that are checked.
    restore: Callable[[Any, dict[str, Any], dict[str, Any]], None]


def check_entries(entries: Mapping[str, Any], rules: Entries) -> None:
    """ValueError if an entry is missing, of another type, or out of its range."""
    for name, (types, limits) in rules.items():
        value = entries.get(name)
        if not isinstance(value, types):
            raise ValueError(f"{name} in its header is missing or of another type")
        _check_range(f"{name} in its header", value, limits)


def checked_arrays(
    arrays: dict[str, NDArray[Any]], rules: Arrays, sizes: dict[str, int]
) -> dict[str, NDArray[Any]]:
    """The arrays in the types to compute with; ValueError if one is wrong, or too many.

    All axes with the same letter are equally long: those of `sizes` as it says, the others as
    in the first array that has them; `sizes` then has them all.
    """
    if odd := sorted(rules.keys() ^ arrays.keys()):
        raise ValueError(f"there are arrays too many or too few: {', '.join(odd)}")
    checked = {}
    for name, (kinds, axes, limits) in rules.items():
        array = arrays[name]
        shape = tuple(sizes.setdefault(a, n) for a, n in zip(axes, array.shape, strict=False))
        # Without columns an array is empty, and NumPy knows neither its dtype nor its axes.
        if array.shape != shape or (array.ndim != len(axes) and array.size):
            wanted = tuple(sizes.get(a, a) for a in axes)
            raise ValueError(f"{name} has the shape {array.shape}, not {wanted}")
        if array.dtype.kind not in kinds and array.size:
            raise ValueError(f"{name} is of the wrong dtype {array.dtype}")
        if array.ndim < len(axes):
            array = array.reshape([sizes.get(a, 0) for a in axes])
        array = array.astype(_TO_COMPUTE_WITH.get(kinds, array.dtype))
        _check_range(name, array, limits)
        if limits is SIGNS and not array.all():
            raise ValueError(f"{name} must be -1 or +1, but there is a 0")
        checked[name] = array
    return checked


def table(prefix: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a table as arrays with names of their own."""
    return {f"{prefix}_{name}": values for name, values in columns.items()}


def columns(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the table that was given this prefix."""
    start = f"{prefix}_"
    return {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}


def _check_range(name: str, value: Any, limits: Range) -> None:
    if limits is not None and not np.all((limits[0] <= value) & (value <= limits[1])):
        raise ValueError(f"{name} must be from {limits[0]:g} to {limits[1]:g}")
