"""What a model file holds of `TCBoostClassifier`: rules, class vectors and what was tried."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import SolvedCertificate
from ..features import Rule
from .checks import INFINITE, MOST, Arrays, Entries, Kind, checked_arrays, columns, table

_ENTRIES: Entries = {
    "alpha": (float, (0, MOST)),
    "l1_ratio": (float, (0, 1)),
    "n_iter": (int, (0, 2**31 - 1)),
}
_PROOF: Entries = {
    **dict.fromkeys(("status", "models"), (str, None)),
    **dict.fromkeys(("train_log_loss", "objective", "lower_bound", "gap"), (float, INFINITE)),
    "cv_log_loss": (float, None),  # NaN if nothing was to be chosen
    **dict.fromkeys(("n_folds", "n_rules", "max_rules"), (int, (0, MOST))),
    "features_not_needed": (tuple, None),
}
_SCORES = (-1e150, 1e150)  # the squares of their sums are finite, too


def _entries_of(model: Any) -> dict[str, Any]:
    """The entries of the header that other models do not have, and the parameters."""
    parameters = model.get_params(deep=False)
    if not isinstance(parameters["cv"], int | np.integer | None):
        del parameters["cv"]  # a splitter has no plain form
    if parameters["categorical_features"] is not None:
        chosen = np.asarray(parameters["categorical_features"])
        parameters["categorical_features"] = chosen.tolist()
    if isinstance(parameters["class_weight"], dict):
        # Pairs: the keys of an object could only be strings.
        parameters["class_weight"] = list(parameters["class_weight"].items())
    return {
        "parameters": parameters,
        "alpha": model.alpha_,
        "l1_ratio": model.l1_ratio_,
        "n_iter": model.n_iter_,
    }


def _arrays_of(model: Any) -> dict[str, Any]:
    """The arrays that other models do not have.

    A rule asks for a threshold or, where `is_level`, for a level; `value` is which.
    """
    rules = model.rules_
    value = [rule.level if rule.threshold is None else rule.threshold for rule in rules]
    return {
        "feature": np.array([rule.feature for rule in rules], dtype=np.int64),
        "is_level": np.array([rule.threshold is None for rule in rules], dtype=bool),
        "value": np.array(value, dtype=np.float64),
        "missing_right": np.array([rule.missing_right for rule in rules], dtype=bool),
        "coef": model.coef_,
        "intercept": model.intercept_,
        **table("cv_results", model.cv_results_),
    }


def _unfitted(estimator: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    """An estimator with the parameters of the file."""
    model = estimator(**header["parameters"])
    if isinstance(model.class_weight, list):
        model.class_weight = dict(model.class_weight)
    return model


def _checked(
    model: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]], common: Arrays
) -> dict[str, Any]:
    """The arrays, in the types to compute with.

    C classes, D features, T rules, R rounds, S settings that were tried.
    """
    rules: Arrays = common | {
        "feature": ("i", "T", (0, header["n_features"] - 1)),
        "is_level": ("b", "T", None),
        "value": ("f", "T", None),
        "missing_right": ("b", "T", None),
        "coef": ("f", "TC", _SCORES),
        "intercept": ("f", "C", _SCORES),
    }
    rules |= {name: ("if", "R", None) for name in arrays if name.startswith("history_")}
    rules |= {name: ("bf", "S", None) for name in arrays if name.startswith("cv_results_")}
    sizes = {"D": header["n_features"], "R": header["n_iter"]}
    arrays = checked_arrays(arrays, rules, sizes)
    # Missing values are a level, and a threshold that no number exceeds asks for them.
    odd = np.where(arrays["is_level"], np.isinf(arrays["value"]), ~(arrays["value"] >= -MOST))
    if odd.any():
        raise ValueError("value must be finite, or inf for a threshold and NaN for a level")
    return arrays


def _restore(model: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """What `fit` sets."""
    names = "feature", "is_level", "value", "missing_right"
    model.rules_ = [
        Rule(feature, level=value) if is_level else Rule(feature, value, missing_right)
        for feature, is_level, value, missing_right in zip(
            *(arrays[name].tolist() for name in names), strict=True
        )
    ]
    model.coef_, model.intercept_ = arrays["coef"], arrays["intercept"]
    model.alpha_, model.l1_ratio_ = header["alpha"], header["l1_ratio"]
    model.n_rules_, model.n_iter_ = len(model.rules_), header["n_iter"]
    model.cv_results_ = columns("cv_results", arrays)


RULES = Kind(
    entries=_ENTRIES,
    certificate=SolvedCertificate,
    proof=_PROOF,
    entries_of=_entries_of,
    arrays_of=_arrays_of,
    unfitted=_unfitted,
    checked=_checked,
    restore=_restore,
)
