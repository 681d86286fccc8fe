"""The model file: JSON of an `AdditiveModel` and its claim, with all that is checked of it.

It knows nothing of how models are fitted. What a file holds beside the form (parameters,
history, columns) passes through as plain values; `Node` checks those, too.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .additive import AdditiveModel, Axis, Level, Levels, Ordered, Term
from .claim import Claim, RowWeights
from .node import LISTED, MOST, WHOLE, ModelFileError, Node

Vector = NDArray[np.float64]

FORMAT, VERSION = "tcboost-model", 2
KNOWN = ("ordered", "levels", "pairs", "decode", "stumps", "products", "discriminants")
# What a text may hold beside `LISTED` lists and strings: no text of 64 MiB then takes 1 GB.
_ESCAPES, _COMMAS, _DEPTH = 10**6, 8 * 10**6, 16
_SCORES = 1 << 26  # of all cells together
_TERMS = 1 << 15
_KINDS = {"b": (bool,), "i": (int, str), "u": (int, str), "f": (int, float), "U": (str,)}
_LOSSES = "cross-entropy", "exponential", "logistic", "squared_hinge", "hinge"
_COLUMN_KINDS = "number", "levels", "order", "date", "duration"
_COLUMNS = "vectors", "codes", "listed codes", "bits"


class Refused:
    """Stands for a value that the parser must not take."""

    def __init__(self, why: str) -> None:
        self.why = why


def plain_number(x: float) -> Any:
    """A number as JSON has them; null is one that is not known."""
    if math.isfinite(x):
        return x
    return None if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"


def encoded(document: Any) -> bytes:
    """The text: what holds no more lists or objects is a line, else each entry begins one.

    Floats are the shortest decimals that read back to the same double.
    """
    # Half of a pair of surrogates is written as an escape: UTF-8 has none.
    return (_lines(document, 1) + "\n").encode("utf-8", "backslashreplace")


def _lines(value: Any, indent: int) -> str:
    inner = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list) and any(isinstance(x, dict | list) for x in inner):
        texts = [_lines(x, indent + 1) for x in inner]
        between = ",\n" + " " * indent
        if isinstance(value, list):
            return "[\n" + " " * indent + between.join(texts) + "]"
        pairs = zip(value, texts, strict=True)
        return "{" + between.join(f"{_lines(k, 0)}: {text}" for k, text in pairs) + "}"
    plain = lambda x: x.item()  # noqa: E731 - of NumPy
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain)


def parsed(content: bytes, max_bytes: int) -> Node:
    """The document of a file, of this format and version."""
    content = _unpacked(content, max_bytes)
    _check_size(content)
    refused: list[Refused] = []

    def refuse(why: str) -> Refused:
        refused.append(Refused(why))
        return refused[-1]

    def whole(text: str) -> int | Refused:
        value = int(text) if len(text) < 20 else WHOLE + 1
        return value if abs(value) <= WHOLE else refuse("an integer above 2^53")

    def real(text: str) -> float | Refused:
        value = float(text)
        return value if abs(value) <= MOST else refuse("not a finite number")

    def entries(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Refused:
        names = [name for name, _ in pairs]
        if len({*names}) == len(names):
            return dict(pairs)
        twice = next(name for name, n in Counter(names).items() if n > 1)
        return refuse(f"the key {twice!r} is there twice")

    try:
        text = content.decode("utf-8")
        del content  # the text may take four times as much
        value = json.loads(
            text,
            object_pairs_hook=entries,
            parse_float=real,
            parse_int=whole,
            parse_constant=lambda text: refuse("not a finite number"),
        )
    except ValueError as e:
        raise ModelFileError(f"/: not a tcboost model file, or damaged: {e}") from None
    if refused:
        place = next(_refused(Node(value)))
        raise place.fail(place.value.why)
    root = Node(value)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise root.fail(f"not a tcboost model file: its format is not {FORMAT!r}")
    by = f"tcboost {value.get('tcboost')!s:.20}, this is {version('tcboost')}"
    if root["version"].whole(1) != VERSION:
        why = f"of version {value['version']}, not {VERSION}, the one that is read; by {by}"
        raise root["version"].fail(why)
    for need in root["requires"].items():
        if need.text() not in KNOWN:
            raise need.fail(f"it takes a reader that knows {need.value!r}; by {by}")
    return root


def _unpacked(content: bytes, max_bytes: int) -> bytes:
    if content[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        raise ModelFileError(
            "/: an archive of version 1 (npz), which is no longer read: fit the model again"
        )
    if content[:2] == b"\x1f\x8b":
        unpack = zlib.decompressobj(31)
        try:
            content = unpack.decompress(content, max_bytes + 1)
        except zlib.error as e:
            raise ModelFileError(f"/: not a tcboost model file, or damaged: {e}") from None
        if len(content) <= max_bytes and (not unpack.eof or unpack.unused_data):
            raise ModelFileError("/: damaged: its gzip stream is not all of it")
    if len(content) > max_bytes:
        raise ModelFileError(
            f"/: it is or holds more than max_bytes={max_bytes}; if you trust it, load it with "
            "a larger max_bytes"
        )
    return content


def _check_size(content: bytes) -> None:
    """Whether it can be parsed in little memory: lists of nothing take 20 times their text."""

    def check(what: str, n: int, most: int) -> None:
        if n > most:
            raise ModelFileError(f"/: too large: {n} {what}, of at most {most}")

    check("backslashes", content.count(b"\\"), 2 * _ESCAPES)
    text = np.frombuffer(re.sub(rb"\\.", b"", content, flags=re.DOTALL), dtype=np.uint8)
    quotes = text == ord('"')
    check("strings", int(np.count_nonzero(quotes)) // 2, LISTED)
    outside = text[~np.logical_xor.accumulate(quotes)] if len(text) else text
    check("commas", int(np.count_nonzero(outside == ord(","))), _COMMAS)
    # [ and { differ in one bit, as ] and } do.
    opening, closing = ((outside | 32) == ord(bracket) for bracket in "{}")
    brackets = np.flatnonzero(opening | closing)
    check("brackets", len(brackets) // 2, LISTED)
    depth = np.cumsum(np.where(opening[brackets], 1, -1))
    check("lists in each other", int(depth.max(initial=0)), _DEPTH)


def _refused(node: Node) -> Iterator[Node]:
    """The places of what was refused."""
    if isinstance(node.value, Refused):
        yield node
        return
    inside = node.value.items() if isinstance(node.value, dict) else enumerate(node.value)
    for key, value in inside:
        if isinstance(value, dict | list | Refused):
            yield from _refused(node.child(key))


# ---------------------------------------------------------------- the form


def classes_entries(classes: NDArray[Any]) -> dict[str, Any]:
    """Classes; integers that are no doubles are strings of digits."""
    values = classes.tolist()
    kind = classes.dtype.kind
    if kind not in "biufUO" or (kind == "O" and not all(isinstance(v, str) for v in values)):
        raise ValueError("only numbers or strings can be saved as classes")
    if kind in "iu":
        values = [v if abs(v) <= WHOLE else str(v) for v in values]
    names = {"O": "object", "U": "str"}
    found = {"type": names.get(kind, classes.dtype.name), "values": values}
    if kind == "U" and classes.dtype != np.array(values).dtype:
        found["width"] = classes.dtype.itemsize // 4
    return found


def classes_of(root: Node) -> NDArray[Any]:
    """Two classes or more, in ascending order."""
    node = root["classes"]
    integers = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
    numbers = ["bool", "float16", "float32", "float64", *integers]
    name, values = node["type"].text("str", "object", *numbers), node["values"]
    kind = "U" if name in ("str", "object") else np.dtype(name).kind
    found = values.values(*_KINDS[kind])
    if kind == "f":
        high = float(np.finfo(name).max)
        found = values.numbers(None, low=-high, high=high).tolist()
    if kind in "iu":
        limits = np.iinfo(name)
        for k, one in enumerate(found):
            digits = isinstance(one, str) and re.fullmatch(r"-?[1-9]\d{15,19}", one)
            found[k] = number = int(one) if digits else one
            if isinstance(number, str) or not limits.min <= number <= limits.max:
                raise values.child(k).fail(f"must be of type {name}")
    if len(found) < 2 or not all(a < b for a, b in pairwise(found)):
        raise values.fail("must ascend, and be two or more")
    if name != "str":
        return np.array(found, dtype=name)
    width = node["width"].whole(1, 10**6) if node["width"].value is not None else 1
    width = max(width, *map(len, found))
    if width * len(found) > _SCORES:
        raise values.fail("strings are too long")
    classes = np.array(found, dtype=f"U{width}")
    if classes.tolist() != found:
        raise values.fail("must not end in a zero")
    return classes


def features_of(root: Node) -> dict[str, Any]:
    """How many there are, their names, and what columns of a frame they were."""
    node = root["features"]
    n = node["count"].whole(1, 2**31 - 1)
    names, kinds = node["names"], node["kinds"]
    return {
        "n_features": n,
        "feature_names": None
        if names.value is None
        else tuple(one.text() for one in names.items(n)),
        "kinds": None
        if kinds.value is None
        else tuple(one.text(*_COLUMN_KINDS) for one in kinds.items(n)),
    }


def needs(form: AdditiveModel) -> list[str]:
    """What a reader of its tables must know."""
    axes = [axis for term in form.terms for axis in term.axes]
    found = {
        "ordered": any(isinstance(axis, Ordered) for axis in axes),
        "levels": any(isinstance(axis, Levels) for axis in axes),
        "pairs": any(len(term.inputs) > 1 for term in form.terms),
        "decode": form.decode is not None,
    }
    return [name for name, needed in found.items() if needed]


def form_entries(form: AdditiveModel) -> dict[str, Any]:
    """The form, but for its classes, features and claim."""
    terms = [
        {
            "inputs": list(term.inputs),
            "axes": [_axis_entries(axis) for axis in term.axes],
            "weight": _plain(term.weight),
            "table": term.table.tolist(),
        }
        for term in form.terms
    ]
    return {
        "kind": "additive",
        "unit": form.unit,
        "link": form.link,
        "probability_scale": form.probability_scale,
        "size": form.size,
        "intercept": form.intercept.tolist(),
        "decode": _plain(form.decode),
        "terms": terms,
    }


def _axis_entries(axis: Axis) -> dict[str, Any]:
    if isinstance(axis, Ordered):
        return {
            "kind": "ordered",
            "cuts": axis.cuts.tolist(),
            "quantiles": _plain(axis.quantiles),
            "unit_of_values": axis.unit_of_values,
        }
    # Integers that a reader may refuse are written as the doubles that they stand for.
    large = [type(x) is int and abs(x) > WHOLE for x in axis.levels]
    levels = [float(x) if far else x for x, far in zip(axis.levels, large, strict=True)]
    return {"kind": "levels", "levels": levels}


def _plain(array: NDArray[Any] | None) -> Any:
    return None if array is None else array.tolist()


def form_of(root: Node) -> AdditiveModel | None:
    """The form of a document, with its claim; None if its model has no tables."""
    if root["model"]["kind"].text("additive", "columns") == "columns":
        return None
    form = _form(root["model"], classes=classes_of(root), **features_of(root))
    return form if root["claim"].value is None else replace(form, claim=_claim(root, form))


def _form(node: Node, classes: NDArray[Any], n_features: int, **about: Any) -> AdditiveModel:
    unit, scale = node["unit"].whole(-1074, 900), node["probability_scale"]
    intercept = node["intercept"].on_unit(unit, None)
    K, C = len(intercept), len(classes)
    decode = None if node["decode"].value is None else node["decode"].signs(C, K)
    if decode is None and K != C:
        raise node["intercept"].fail(f"must be a list of {C}, one for each class")
    if len(node["terms"].values(dict)) > _TERMS:
        raise node["terms"].fail(f"more than {_TERMS} terms")
    terms = tuple(_term(one, n_features, unit, K) for one in node["terms"].items())
    for k, (a, b) in enumerate(pairwise(terms)):
        if a.inputs >= b.inputs:
            raise node["terms"].child(k + 1)["inputs"].fail("terms must ascend by their inputs")
    if sum(t.table.size // K for t in terms) * C > _SCORES:
        raise node["terms"].fail(f"more than {_SCORES} scores")
    flat = (np.abs(t.table).reshape(-1, K).max(axis=0, initial=0.0) for t in terms)
    reach = sum(flat, np.abs(intercept))
    total = float(reach.max() if decode is None else reach.sum())
    if math.ldexp(total, -unit) >= WHOLE:
        raise node.fail(f"intercept and tables add up to 2^53 times 2^{unit}")
    return AdditiveModel(
        n_features=n_features,
        classes=classes,
        **about,
        terms=terms,
        intercept=intercept,
        decode=decode,
        unit=unit,
        probability_scale=None if scale.value is None else scale.number(0.0),
        link=node["link"].text("softmax"),
        size=node["size"].number(0.0),
    )


def _term(node: Node, n_features: int, unit: int, K: int) -> Term:
    inputs = node["inputs"].places(n_features, 1)
    if len(inputs) > 2:
        raise node["inputs"].fail("must be one or two")
    axes = tuple(_axis(one) for one in node["axes"].items(len(inputs)))
    shape = [axis.n_cells for axis in axes]
    weight = node["weight"]
    return Term(
        inputs,
        axes,
        node["table"].on_unit(unit, *shape, K),
        None if weight.value is None else weight.numbers(*shape, low=0.0),
    )


def _axis(node: Node) -> Axis:
    if node["kind"].text("ordered", "levels") == "ordered":
        unit, quantiles = node["unit_of_values"], node["quantiles"]
        return Ordered(
            node["cuts"].ascending(),
            None if unit.value is None else unit.text("date", "duration"),
            None if quantiles.value is None else quantiles.numbers(None),
        )
    return Levels(_levels(node["levels"]))


def _levels(node: Node) -> tuple[Level, ...]:
    levels = node.values(str, int, float, bool)
    if len({*levels}) < len(levels):
        raise node.fail("a level is there twice")
    return tuple(levels)


# ---------------------------------------------------------------- the claim


def claim_entries(claim: Claim | None) -> dict[str, Any] | None:
    """The claim of a form."""
    if claim is None:
        return None
    names = (
        *("loss", "margin", "columns", "theta", "penalty", "ridge", "intercept_ridge"),
        *("cuts", "categorical", "primal", "dual", "hypothesis_class", "unused_features"),
        *("class_weight", "n_rows", "n_held_out", "missing_right", "witness", "codes"),
        "orders",
    )
    return {name: _claimed(getattr(claim, name)) for name in names}


def _claimed(value: Any) -> Any:
    if isinstance(value, RowWeights):
        return {"place": value.place.tolist(), "weight": value.weight.tolist()}
    if isinstance(value, tuple):
        return [_claimed(one) for one in value]
    if isinstance(value, AdditiveModel):
        return form_entries(value)
    return value.tolist() if isinstance(value, np.ndarray) else value


def _claim(root: Node, form: AdditiveModel) -> Claim:
    node, D, C = root["claim"], form.n_features, len(form.classes)

    def maybe(name: str, read: Any, *shape: Any, **limits: Any) -> Any:
        one = node[name]
        return None if one.value is None else read(one, *shape, **limits)

    cuts = node["cuts"]
    right, jumps = node["missing_right"], list[Vector | None]()
    if right.value is not None:
        for one, term in zip(right.items(len(form.terms)), form.terms, strict=True):
            shape = form.unit, _n_cuts(term, form), form.n_outputs
            jumps.append(None if one.value is None else one.on_unit(*shape))
    return Claim(
        loss=node["loss"].text(*_LOSSES),
        margin=node["margin"].text("pairwise", "codeword"),
        columns=node["columns"].text(*_COLUMNS),
        theta=maybe("theta", Node.number, low=0.0),
        penalty=maybe("penalty", Node.number, low=0.0),
        ridge=node["ridge"].number(0.0),
        intercept_ridge=node["intercept_ridge"].number(0.0),
        cuts="all"
        if cuts.value == "all"
        else tuple(None if one.value is None else one.ascending() for one in cuts.items(D)),
        categorical=node["categorical"].places(D),
        primal=maybe("primal", Node.number),
        dual=maybe("dual", Node.number),
        hypothesis_class=node["hypothesis_class"].text(),
        unused_features=node["unused_features"].places(D),
        class_weight=maybe("class_weight", Node.numbers, C, low=0.0),
        n_rows=node["n_rows"].whole(),
        n_held_out=node["n_held_out"].whole(),
        missing_right=None if right.value is None else tuple(jumps),
        witness=maybe("witness", _witness, form),
        codes=maybe("codes", Node.signs, C, None),
        orders=maybe("orders", _orders, D) or (),
    )


def _n_cuts(term: Term, form: AdditiveModel) -> int:
    """Of one feature; levels in an order are cut where they change the table."""
    axis, table = term.axes[0], term.table
    if len(term.axes) > 1 or isinstance(axis, Ordered):
        return len(axis.cuts) if len(term.axes) == 1 and isinstance(axis, Ordered) else 0
    ordered = form.kinds is not None and form.kinds[term.inputs[0]] == "order"
    return int((table[2:-1] != table[1:-2]).any(axis=1).sum()) if ordered else 0


def _orders(node: Node, n_features: int) -> Any:
    pairs = [tuple(one.items(2)) for one in node.items()]
    return tuple((j.whole(0, n_features - 1), _levels(levels)) for j, levels in pairs)


def _witness(node: Node, form: AdditiveModel) -> AdditiveModel | RowWeights:
    if node["kind"].value is not None:
        node["kind"].text("additive")
        return _form(node, form.classes, form.n_features, feature_names=None)
    weight = node["weight"].numbers(None, low=0.0)
    return RowWeights(node["place"].wholes(len(weight), low=0, high=WHOLE), weight)


def document(
    about: Mapping[str, Any],
    model: dict[str, Any],
    requires: list[str],
    estimator: dict[str, Any] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """All of a file, for `encoded`: `about` names the classes and the features."""
    names, kinds = about["feature_names"], about["kinds"]
    return {
        "format": FORMAT,
        "version": VERSION,
        "requires": requires,
        "tcboost": version("tcboost"),
        "estimator": estimator,
        "classes": classes_entries(about["classes"]),
        "features": {
            "count": about["n_features"],
            "names": names and list(names),
            "kinds": kinds and list(kinds),
        },
        "model": model,
        **others,
    }
