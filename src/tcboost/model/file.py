"""The model file: an npz archive of plain arrays with a JSON header, and no pickle.

What it holds is the model (columns, coefficients, code, classes), its certificate, its
parameters and its history, but for the inner products and weights of the rounds, which grow
with the square of their number, and for `theta_choice_`. The header carries a format version; a
file of a later version is refused.
"""

from __future__ import annotations

import io
import json
import os
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..certificate import Certificate
from ..losses import LOSSES
from ..oracles import Column, Discriminant, Product, Stump
from .archive import TooLongError, read_array, read_members
from .checks import check_header, checked_arrays
from .replace import replace_file

_FORMAT, _VERSION = "tcboost-model", 1


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package, with stumps, products or discriminants.
    path : path-like
        Where to. An existing file is replaced in one piece or not at all, whoever else writes
        or reads it, and its mode stays. A link stays, too: the file it leads to is replaced.

    Notes
    -----
    The new file is made in the same folder. On Linux it has no name until it is whole;
    elsewhere, and on some file systems, a process that is killed may leave a file
    ``.tcboost-*.partial``, which can be deleted.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import tcboost
    >>> X, y = load_iris(return_X_y=True)
    >>> model = tcboost.AdaBoostMO(max_iter=5).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "iris.tcb"
    ...     tcboost.save(model, path)
    ...     again = tcboost.load(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    if not isinstance(getattr(model, "certificate_", None), Certificate):
        check_is_fitted(model)
        raise ValueError(f"model must be an estimator of this package, got {model!r}")
    arrays: dict[str, Any] = _columns_to_arrays(model.estimators_, model.coding is not None)
    arrays["w"], arrays["M"] = model.estimator_weights_, model.coding_matrix_
    arrays["classes"] = _plain(model.classes_, "classes")
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names"] = _plain(model.feature_names_in_, "feature names")
    for name, values in model.history_.items():
        if name not in ("inner_products", "weights"):
            arrays[f"history_{name}"] = values
    parameters = model.get_params(deep=False)
    if not isinstance(parameters["random_state"], int | np.integer):
        del parameters["random_state"]  # a generator has no plain form
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "tcboost": version("tcboost"),
        "estimator": type(model).__name__,
        "parameters": {
            k: v for k, v in parameters.items() if k not in ("coding", "class_weight")
        },
        # Pairs: the keys of an object could only be strings.
        "class_weight": list(model.class_weight.items())
        if isinstance(model.class_weight, dict)
        else model.class_weight,
        "coding": parameters["coding"] if isinstance(parameters["coding"], str) else None,
        "n_features": model.n_features_in_,
        "theta": model.theta_,
        "probability_scale": model.probability_scale_,
        "certificate": asdict(model.certificate_),
        "classes_are_objects": model.classes_.dtype == object,
    }
    arrays = checked_arrays(arrays, header, model._grown)  # what is written, can be read
    text = json.dumps(header, default=lambda value: value.item())
    check_header(json.loads(text))
    arrays["header"] = np.array(text)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    replace_file(path, content.getbuffer())


def load(path: str | os.PathLike[str], *, max_bytes: int = 64 << 20) -> Any:
    """Read a model written by `save`.

    Nothing in the file is executed, and nothing is used before it is checked.

    Parameters
    ----------
    path : path-like
        The file.
    max_bytes : int, default=67108864
        The most to read of the file, and the most that may come out of it, decompressed. The
        default, 64 MiB, is room for hundreds of thousands of stumps.

    Returns
    -------
    estimator
        A fitted estimator of the class that was saved; see `save` for an example.

    Raises
    ------
    ValueError
        If the file is no model, is damaged, is too long, or is of a later version.
    """
    with open(path, "rb") as file:
        content = file.read(max_bytes + 1)
    later = None
    try:
        if len(content) > max_bytes:
            raise TooLongError
        members = read_members(content, max_bytes)
        header = json.loads(str(read_array("header", members.pop("header", b""))))
        if not isinstance(header, dict) or header.get("format") != _FORMAT:
            raise ValueError(f"its header does not say that the format is {_FORMAT!r}")
        if not isinstance(header.get("version"), int):
            raise ValueError("version in its header is missing or of another type")
        if header["version"] > _VERSION:
            later = f"version {header['version']}, written by tcboost {header['tcboost']}"
        else:
            model = _from_arrays(header, {n: read_array(n, m) for n, m in members.items()})
    except TooLongError as e:
        raise ValueError(
            f"{path} is or holds more than max_bytes={max_bytes}; if you trust it, load it "
            "with a larger max_bytes"
        ) from e
    except Exception as e:  # whatever a damaged file does to zip, NumPy, JSON or us
        reason = (str(e) or type(e).__name__)[:300]
        raise ValueError(
            f"{path} is not a tcboost model file, or it is damaged: {reason}"
        ) from e
    if later:
        raise ValueError(
            f"{path} has the format {later}; this is tcboost {version('tcboost')}, which reads "
            f"versions up to {_VERSION}"
        )
    return model


def _from_arrays(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    """The estimator of a file's contents."""
    import tcboost  # the estimators import this package
    from tcboost.estimator import BoostingClassifier

    check_header(header)
    estimator = getattr(tcboost, header["estimator"], None)
    if not (isinstance(estimator, type) and issubclass(estimator, BoostingClassifier)):
        raise ValueError("its estimator is none of this package")
    coding = header["coding"] if header["coding"] is not None else arrays.get("M")
    model = estimator(coding=coding, **header["parameters"])
    if header["class_weight"] is not None:
        pairs = header["class_weight"]
        model.class_weight = dict(pairs) if isinstance(pairs, list) else pairs
    model._validate_params()
    arrays = checked_arrays(arrays, header, model._grown)
    model.classes_ = arrays["classes"]
    if header["classes_are_objects"]:
        model.classes_ = model.classes_.astype(object)
    model.coding_matrix_, model.estimator_weights_ = arrays["M"], arrays["w"]
    model.estimators_ = _columns_from_arrays(arrays, model._grown)
    model.n_iter_, model.n_features_in_ = len(arrays["w"]), header["n_features"]
    if "feature_names" in arrays:
        model.feature_names_in_ = arrays["feature_names"].astype(object)
    model.theta_ = header["theta"]
    model.probability_scale_ = header["probability_scale"]
    if LOSSES[model.loss].log_odds is not None and not 0 <= model.probability_scale_ < np.inf:
        raise ValueError("probability_scale in its header must be finite and not negative")
    proof = header["certificate"]
    unused = tuple(proof.pop("unused_features", ()))
    model.certificate_ = Certificate(**proof, unused_features=unused)
    prefix = "history_"
    model.history_ = {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}
    model._model = model._ensemble()
    return model


def _plain(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Values as an array that needs no pickle."""
    if values.dtype == object:
        if not all(isinstance(v, str) for v in values):
            raise ValueError(f"only numbers or strings can be saved as {what}")
        return values.astype(str)
    return values


def _columns_to_arrays(columns: list[Column], coded: bool) -> dict[str, NDArray[Any]]:
    hypotheses: list[list[Any]] = [list(c.hypotheses) for c in columns]
    kinds = {type(h) for row in hypotheses for h in row}
    if not coded or len(kinds) > 1 or not kinds <= {Stump, Product, Discriminant}:
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
    return {n: np.array([[values(h, n) for h in row] for row in hypotheses]) for n in names}


def _columns_from_arrays(arrays: dict[str, NDArray[Any]], grown: bool) -> list[Column]:
    columns = []
    for t in range(len(arrays["w"])):
        hypotheses = tuple(_hypothesis(arrays, (t, l)) for l in range(len(arrays["sign"][t])))
        coded = grown and arrays["w"].ndim == 1
        columns.append(Column(hypotheses, arrays["M"][:, t] if coded else None))
    return columns


def _hypothesis(arrays: dict[str, NDArray[Any]], place: tuple[int, int]) -> Any:
    sign, threshold = arrays["sign"][place].tolist(), arrays["threshold"][place].tolist()
    if "coef" in arrays:
        return Discriminant(arrays["coef"][place], threshold, sign)
    feature, missing = arrays["feature"][place].tolist(), arrays["missing_right"][place]
    if not isinstance(sign, list):
        return Stump(feature, threshold, sign, bool(missing))
    factors = zip(feature, threshold, sign, missing.tolist(), strict=True)
    return Product(tuple(Stump(*values) for values in factors))
