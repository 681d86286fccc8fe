"""What a model file holds of the paper's estimators: columns, coefficients and the code.

Not the inner products and weights of the rounds, which grow with the square of their
number, and not `theta_choice_`.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate
from ..coding import check_coding_matrix
from ..losses import LOSSES
from ..oracles import Column, Discriminant, Product, Stump
from .checks import INFINITE, MOST, SIGNS, Arrays, Entries, Kind, checked_arrays

_ENTRIES: Entries = {
    "coding": ((str, NoneType), None),
    "probability_scale": (float, None),  # NaN if there are no probabilities
}
_PROOF: Entries = {
    **dict.fromkeys(("primal", "dual", "gap", "theta"), (float, INFINITE)),
    **dict.fromkeys(("hypothesis_class", "loss", "status"), (str, None)),
    "unused_features": (tuple, None),
}
_WEIGHTS = (-1e300, 1e300)  # their sum is finite, too


def _entries_of(model: Any) -> dict[str, Any]:
    """The entries of the header that other models do not have, and the parameters."""
    parameters = model.get_params(deep=False)
    coding = parameters.pop("coding")
    if not isinstance(parameters["random_state"], int | np.integer):
        del parameters["random_state"]  # a generator has no plain form
    return {
        "parameters": parameters,
        "coding": coding if isinstance(coding, str) else None,
        "probability_scale": model.probability_scale_,
    }


def _arrays_of(model: Any) -> dict[str, Any]:
    """The arrays that other models do not have."""
    hypotheses: list[list[Any]] = [list(c.hypotheses) for c in model.estimators_]
    kinds = {type(h) for row in hypotheses for h in row}
    if model.coding is None or len(kinds) > 1 or not kinds <= {Stump, Product, Discriminant}:
        raise ValueError(
            "a model file holds stumps, their products or linear discriminants; a model whose "
            "weak_learner is another classifier can be pickled instead"
        )
    own = ["coef"] if kinds == {Discriminant} else ["feature", "missing_right"]

    def values(h: Any, name: str) -> Any:
        if isinstance(h, Product):
            return [values(factor, name) for factor in h.factors]
        return getattr(h, name)

    names = [*own, "threshold", "sign"]
    arrays = {n: np.array([[values(h, n) for h in row] for row in hypotheses]) for n in names}
    return arrays | {"w": model.estimator_weights_, "M": model.coding_matrix_}


def _unfitted(estimator: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    """An estimator with the parameters of the file."""
    coding = header["coding"] if header["coding"] is not None else arrays.get("M")
    return estimator(coding=coding, **header["parameters"])


def _checked(
    model: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]], common: Arrays
) -> dict[str, Any]:
    """The arrays, in the types to compute with.

    C classes, D features, T columns of B hypotheses, products of K stumps.
    """
    grown = model._grown
    cells = "TBK" if "sign" in arrays and arrays["sign"].ndim == 3 else "TB"
    rules: Arrays = common | {
        "w": ("f", "T", _WEIGHTS),
        "M": ("i", "CT" if grown else "CB", SIGNS),
        "sign": ("i", cells, SIGNS),
        "threshold": ("f", cells, INFINITE),
    }
    if "coef" in arrays:
        rules["coef"] = "f", "TBD", (-MOST, MOST)
    else:
        rules["feature"] = "i", cells, (0, header["n_features"] - 1)
        rules["missing_right"] = "b", cells, None
    # Each of its own length.
    rules |= {name: ("if", [name], None) for name in arrays if name.startswith("history_")}
    sizes = {"D": header["n_features"]} | ({"B": 1} if grown else {})
    arrays = checked_arrays(arrays, rules, sizes)
    if sizes.get("K", 1) < 1:
        raise ValueError("there are too few factors of a product")
    arrays["M"] = arrays["M"].astype(np.int8)
    if not grown:
        check_coding_matrix(arrays["M"], sizes["C"])
    return arrays


def _restore(model: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """What `fit` sets."""
    model.coding_matrix_, model.estimator_weights_ = arrays["M"], arrays["w"]
    model.n_iter_ = len(arrays["w"])
    model.estimators_ = [
        Column(
            tuple(_hypothesis(arrays, (t, l)) for l in range(arrays["sign"].shape[1])),
            arrays["M"][:, t] if model._grown else None,
        )
        for t in range(model.n_iter_)
    ]
    model.probability_scale_ = header["probability_scale"]
    if LOSSES[model.loss].log_odds is not None and not 0 <= model.probability_scale_ < np.inf:
        raise ValueError("probability_scale in its header must be finite and not negative")


def _hypothesis(arrays: dict[str, NDArray[Any]], place: tuple[int, int]) -> Any:
    sign, threshold = arrays["sign"][place].tolist(), arrays["threshold"][place].tolist()
    if "coef" in arrays:
        return Discriminant(arrays["coef"][place], threshold, sign)
    feature, missing = arrays["feature"][place].tolist(), arrays["missing_right"][place]
    if not isinstance(sign, list):
        return Stump(feature, threshold, sign, bool(missing))
    factors = zip(feature, threshold, sign, missing.tolist(), strict=True)
    return Product(tuple(Stump(*values) for values in factors))


PAPER = Kind(
    entries=_ENTRIES,
    certificate=Certificate,
    proof=_PROOF,
    entries_of=_entries_of,
    arrays_of=_arrays_of,
    unfitted=_unfitted,
    checked=_checked,
    restore=_restore,
)
