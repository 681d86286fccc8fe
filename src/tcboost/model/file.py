"""The model file: an npz archive of plain arrays with a JSON header, and no pickle.

What it holds is the model, its certificate, its parameters and its history; of which arrays it
is made is told in `paper_arrays` and `rule_arrays`. The header carries a format version; a file
of a later version is refused.
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

from .archive import TooLongError, read_array, read_members
from .checks import MOST, Arrays, Entries, Kind, check_entries, columns, table
from .paper_arrays import PAPER
from .replace import replace_file
from .rule_arrays import RULES

_FORMAT, _VERSION = "tcboost-model", 1
_ENTRIES: Entries = {  # of the header of any model
    "version": (int, (1, np.inf)),
    "tcboost": (str, None),
    "estimator": (str, None),
    "parameters": (dict, None),
    "n_features": (int, (1, 2**31 - 1)),
    "theta": (float, (0, MOST)),
    "certificate": (dict, None),
    "classes_are_objects": (bool, None),
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package, with rules, stumps, products or discriminants. A
        parameter that is an object (a splitter, a generator) comes back as its default.
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
    kind = _kind(type(model))
    check_is_fitted(model)
    if kind is None:
        raise ValueError(f"model must be an estimator of this package, got {model!r}")
    arrays = kind.arrays_of(model)
    arrays["classes"] = _plain(model.classes_, "classes")
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names"] = _plain(model.feature_names_in_, "feature names")
    # Lists hold an array for each round.
    history = {k: v for k, v in model.history_.items() if isinstance(v, np.ndarray)}
    arrays |= table("history", history)
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "tcboost": version("tcboost"),
        "estimator": type(model).__name__,
        **kind.entries_of(model),
        "n_features": model.n_features_in_,
        "theta": model.theta_,
        "certificate": asdict(model.certificate_),
        "classes_are_objects": model.classes_.dtype == object,
    }
    text = json.dumps(header, default=lambda value: value.item())
    _from_arrays(json.loads(text), arrays)  # what is written, can be read
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


def _kind(estimator: Any) -> Kind | None:
    """How models of this class are held, if it is one of ours."""
    from ..classifier import TCBoostClassifier  # the estimators import this package
    from ..estimator import BoostingClassifier

    for base, kind in (BoostingClassifier, PAPER), (TCBoostClassifier, RULES):
        if isinstance(estimator, type) and issubclass(estimator, base):
            return kind
    return None


def _from_arrays(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    """The estimator of a file's contents."""
    import tcboost

    check_entries(header, _ENTRIES)
    estimator: Any = getattr(tcboost, header["estimator"], None)
    kind = _kind(estimator)
    if kind is None:
        raise ValueError("its estimator is none of this package")
    check_entries(header, kind.entries)
    model: Any = kind.unfitted(estimator, header, arrays)
    model._validate_params()
    common: Arrays = {"classes": ("biufU", "C", None)}
    if "feature_names" in arrays:
        common["feature_names"] = "U", "D", None
    arrays = kind.checked(model, header, arrays, common)
    model.classes_ = arrays["classes"]
    if len(model.classes_) < 2 or not (model.classes_[:-1] < model.classes_[1:]).all():
        raise ValueError("classes must ascend, and be two or more")
    if header["classes_are_objects"]:
        model.classes_ = model.classes_.astype(object)
    model.n_features_in_, model.theta_ = header["n_features"], header["theta"]
    if "feature_names" in arrays:
        model.feature_names_in_ = arrays["feature_names"].astype(object)
    model.history_ = columns("history", arrays)
    model.certificate_ = _certificate(kind, header, arrays)
    kind.restore(model, header, arrays)
    model._ensemble()
    return model


def _certificate(kind: Kind, header: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The certificate; its lists are of features, by number or by name."""
    entries = header["certificate"].items()
    proof = kind.certificate(**{k: tuple(v) if isinstance(v, list) else v for k, v in entries})
    check_entries(vars(proof), kind.proof)
    names = set(arrays["feature_names"].tolist()) if "feature_names" in arrays else set()
    for name in (name for name, (types, _) in kind.proof.items() if types is tuple):
        for feature in getattr(proof, name):
            number = isinstance(feature, int) and 0 <= feature < header["n_features"]
            if not number and not (isinstance(feature, str) and feature in names):
                raise ValueError(f"{name} in its header must be features")
    return proof


def _plain(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Values as an array that needs no pickle."""
    if values.dtype == object:
        if not all(isinstance(v, str) for v in values):
            raise ValueError(f"only numbers or strings can be saved as {what}")
        return values.astype(str)
    return values
