"""What a model file may hold: each entry of its header, and each array, before it is used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..coding import check_coding_matrix

Range = tuple[float, float] | None  # the least and the largest value

_MOST, _INFINITE = sys.float_info.max, (-np.inf, np.inf)
_OPTIONAL = (str, NoneType)
# The types and ranges of what is in a header, and of what is in its certificate.
_HEADER: dict[str, tuple[Any, Range]] = {
    "version": (int, (1, np.inf)),
    "tcboost": (str, None),
    "estimator": (str, None),
    "parameters": (dict, None),
    "class_weight": ((*_OPTIONAL, list), None),
    "coding": (_OPTIONAL, None),
    "n_features": (int, (1, 2**31 - 1)),
    "theta": (float, (0, _MOST)),
    "probability_scale": (float, None),  # NaN if there are no probabilities
    "certificate": (dict, None),
    "classes_are_objects": (bool, None),
}
_CERTIFICATE: dict[str, tuple[Any, Range]] = {
    **dict.fromkeys(("primal", "dual", "gap", "theta"), (float, _INFINITE)),
    **dict.fromkeys(("hypothesis_class", "loss", "status"), (str, None)),
    "unused_features": (list, None),
}
_LATER: dict[str, Any] = {"status": "", "unused_features": []}  # not in the first files


def check_header(header: dict[str, Any]) -> None:
    """ValueError if an entry is missing, of another type, or out of its range."""
    for entries, rules in (header, _HEADER), (header.get("certificate", {}), _CERTIFICATE):
        for name, (types, limits) in rules.items():
            value = entries.get(name, _LATER.get(name))
            if not isinstance(value, types):
                raise ValueError(f"{name} in its header is missing or of another type")
            _check_range(f"{name} in its header", value, limits)
    unused = header["certificate"].get("unused_features", ())
    if not all(isinstance(d, int) and 0 <= d < header["n_features"] for d in unused):
        raise ValueError("unused_features in its header must be numbers of features")


def checked_arrays(
    arrays: dict[str, NDArray[Any]], header: dict[str, Any], grown: bool
) -> dict[str, Any]:
    """The arrays of a model, in the types to compute with; ValueError if one is wrong.

    A code M is fixed or has `grown` with the columns, whose class vectors it then may hold.
    Shapes are in letters: C classes, D features, T columns of B hypotheses, products of K
    stumps. All axes with the same letter are equally long.
    """
    n_features, vectors = header["n_features"], header["coding"] == "vector"
    cells = "TBK" if "sign" in arrays and arrays["sign"].ndim == 3 else "TB"
    weights: Range = (-1e300, 1e300)  # their sum is finite, too
    signs: Range = (-1, 1)
    # The kinds of the dtype, the shape, the range.
    rules: dict[str, tuple[str, Sequence[str], Range]] = {
        "classes": ("biufU", "C", None),
        "w": ("f", "TC" if vectors else "T", weights),
        "M": ("f", "CT", weights) if vectors else ("i", "CT" if grown else "CB", signs),
        "sign": ("i", cells, signs),
        "threshold": ("f", cells, _INFINITE),
    }
    if "coef" in arrays:
        rules["coef"] = "f", "TBD", (-_MOST, _MOST)
    else:
        rules["feature"] = "i", cells, (0, n_features - 1)
        rules["missing_right"] = "b", cells, None
    if "feature_names" in arrays:
        rules["feature_names"] = "U", "D", None
    rules |= {name: ("if", [name], None) for name in arrays if name.startswith("history_")}
    if odd := sorted(rules.keys() ^ arrays.keys()):
        raise ValueError(f"there are arrays too many or too few: {', '.join(odd)}")
    sizes = {"D": n_features} | ({"B": 1} if grown else {})
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
        if kinds in ("f", "i"):
            array = array.astype(np.float64 if kinds == "f" else np.int64)
        _check_range(name, array, limits)
        if limits is signs and not array.all():
            raise ValueError(f"{name} must be -1 or +1, but there is a 0")
        checked[name] = array
    if sizes["C"] < 2 or sizes.get("K", 1) < 1:
        raise ValueError("there are too few classes, or factors of a product")
    if not (arrays["classes"][:-1] < arrays["classes"][1:]).all():
        raise ValueError("classes must ascend")
    if not vectors:
        checked["M"] = checked["M"].astype(np.int8)
    if not vectors and not grown:
        check_coding_matrix(checked["M"], sizes["C"])
    return checked


def _check_range(name: str, value: Any, limits: Range) -> None:
    if limits is not None and not np.all((limits[0] <= value) & (value <= limits[1])):
        raise ValueError(f"{name} must be from {limits[0]:g} to {limits[1]:g}")
