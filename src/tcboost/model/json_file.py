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
from dataclasses import fields, replace
from importlib.metadata import version
from itertools import compress, pairwise
from typing import Any, NamedTuple

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
_CLASSES = {
    **dict.fromkeys(("str", "object"), (str,)),
    "bool": (bool,),
    **dict.fromkeys(("float16", "float32", "float64"), (int, float)),
    **{f"{sign}int{bits}": (int, str) for bits in (8, 16, 32, 64) for sign in ("", "u")},
}
_LOSSES = "cross-entropy", "exponential", "logistic", "squared_hinge", "hinge"
_COLUMN_KINDS = "number", "levels", "order", "date", "duration"
_COLUMNS = "vectors", "codes", "listed codes", "bits"


class Refused(NamedTuple):
    """Stands for a value that the parser must not take."""

    why: str


def plain_number(x: Any) -> Any:
    """A number as JSON has them; null is one that is not known. All else stays as it is."""
    if not isinstance(x, float) or math.isfinite(x):
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
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=np.generic.item)


def parsed(content: bytes, max_bytes: int) -> Node:
    """The document of a file, of this format and version."""
    content = _unpacked(content, max_bytes)
    _check_size(content)
    refused: list[Refused] = []

    def taken(value: Any, known: bool, why: str) -> Any:
        if not known:
            refused.append(Refused(why))
        return value if known else refused[-1]

    def whole(text: str) -> Any:
        value = int(text) if len(text) < 20 else WHOLE + 1
        return taken(value, abs(value) <= WHOLE, "an integer above 2^53")

    def real(text: str) -> Any:
        value = float(text)
        return taken(value, abs(value) <= MOST, "not a finite number")

    def entries(pairs: list[tuple[str, Any]]) -> Any:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        return taken(found, False, f"the key {twice!r} is there twice")

    try:
        text = content.decode("utf-8")
        del content  # the text may take four times as much
        numbers: Any = {"parse_float": real, "parse_int": whole, "parse_constant": real}
        value = json.loads(text, object_pairs_hook=entries, **numbers)
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


# ---------------------------------------------------------------- to a document

# The fields of an object, in the order of the file.
_FIELDS: dict[type, tuple[str, ...]] = {
    AdditiveModel: (
        *("unit", "link", "probability_scale", "size", "intercept", "decode", "terms"),
    ),
    Term: ("inputs", "axes", "weight", "table"),
    Ordered: ("cuts", "quantiles", "unit_of_values"),
    Levels: ("levels",),
    Claim: tuple(field.name for field in fields(Claim)),
    RowWeights: ("place", "weight"),
}
_CALLED = {AdditiveModel: "additive", Ordered: "ordered", Levels: "levels"}


def plain(value: Any) -> Any:
    """What JSON has for it: of a form all but its classes, features and claim."""
    if names := _FIELDS.get(type(value)):
        called = {"kind": _CALLED[type(value)]} if type(value) in _CALLED else {}
        return called | {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if type(value) is int and abs(value) > WHOLE:
        return float(value)  # the double that this level stands for; readers refuse the integer
    return value.tolist() if isinstance(value, np.ndarray) else value


def document(about: Mapping[str, Any], **entries: Any) -> dict[str, Any]:
    """All of a file, for `encoded`: `about` names the classes and the features."""
    names, kinds = plain(about["feature_names"]), plain(about["kinds"])
    return {
        "format": FORMAT,
        "version": VERSION,
        "requires": entries.pop("requires"),
        "tcboost": version("tcboost"),
        "estimator": entries.pop("estimator", None),
        "classes": _classes_entries(about["classes"]),
        "features": {"count": about["n_features"], "names": names, "kinds": kinds},
        **entries,
    }


def needs(form: AdditiveModel) -> list[str]:
    """What a reader of its tables must know."""
    axes = {type(axis) for term in form.terms for axis in term.axes}
    pairs = any(len(term.inputs) > 1 for term in form.terms)
    return [*compress(KNOWN, (Ordered in axes, Levels in axes, pairs, form.decode is not None))]


def _classes_entries(classes: NDArray[Any]) -> dict[str, Any]:
    """Classes; integers that are no doubles are strings of digits."""
    values, kind = classes.tolist(), classes.dtype.kind
    if kind not in "biufUO" or (kind == "O" and not all(isinstance(v, str) for v in values)):
        raise ValueError("only numbers or strings can be saved as classes")
    if kind in "iu":
        values = [v if abs(v) <= WHOLE else str(v) for v in values]
    found = {"type": "str" if kind == "U" else classes.dtype.name, "values": values}
    if kind == "U" and classes.dtype != np.array(values).dtype:
        found["width"] = classes.dtype.itemsize // 4
    return found


# ---------------------------------------------------------------- from a document


def _classes(node: Node) -> NDArray[Any]:
    """Two classes or more, in ascending order."""
    name, values = node["type"].text(*_CLASSES), node["values"]
    found = values.values(*_CLASSES[name])
    if "int" in name:
        digits = re.compile(r"-?[1-9]\d{15,19}").fullmatch
        found = [int(x) if isinstance(x, str) and digits(x) else x for x in found]
    if name == "str":
        width = max(node["width"].maybe(Node.whole, 1, 10**6) or 1, *map(len, found), 1)
        if width * len(found) > _SCORES:
            raise values.fail("strings are too long")
        name = f"U{width}"
    with np.errstate(over="ignore"), values.blamed(OverflowError, ValueError):
        classes = np.array(found, dtype=name)
    if classes.tolist() != found:  # strings of NumPy end before zeros
        raise values.fail(f"must be of type {name}")
    if len(found) < 2 or not all(a < b for a, b in pairwise(found)):
        raise values.fail("must ascend, and be two or more")
    return classes


def about_of(root: Node) -> dict[str, Any]:
    """Classes, how many features, their names, and what columns of a frame they were."""
    node = root["features"]
    n = node["count"].whole(1, 2**31 - 1)

    def texts(one: Node, *allowed: str) -> tuple[str, ...]:
        return tuple(text.text(*allowed) for text in one.items(n))

    names, kinds = node["names"].maybe(texts), node["kinds"].maybe(texts, *_COLUMN_KINDS)
    classes = _classes(root["classes"])
    return {"n_features": n, "feature_names": names, "kinds": kinds, "classes": classes}


def form_of(root: Node) -> AdditiveModel | None:
    """The form of a document, with its claim; None if its model has no tables."""
    if root["model"]["kind"].text("additive", "columns") == "columns":
        return None
    form = _form(root["model"], **about_of(root))
    return replace(form, claim=root["claim"].maybe(_claim, form))


def _form(node: Node, classes: NDArray[Any], n_features: int, **about: Any) -> AdditiveModel:
    node["kind"].text("additive")
    unit, C = node["unit"].whole(-1074, 900), len(classes)
    intercept = node["intercept"].on_unit(unit, None)
    K = len(intercept)
    decode = node["decode"].maybe(Node.signs, C, K)
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
        terms=terms,
        intercept=intercept,
        decode=decode,
        unit=unit,
        probability_scale=node["probability_scale"].maybe(Node.number, 0.0),
        link=node["link"].text("softmax"),
        size=node["size"].number(0.0),
        **about,
    )


def _term(node: Node, n_features: int, unit: int, K: int) -> Term:
    inputs = node["inputs"].places(n_features, 1)
    if len(inputs) > 2:
        raise node["inputs"].fail("must be one or two")
    axes = tuple(_axis(one) for one in node["axes"].items(len(inputs)))
    shape = [axis.n_cells for axis in axes]
    weight = node["weight"].maybe(Node.numbers, *shape, low=0.0)
    return Term(inputs, axes, node["table"].on_unit(unit, *shape, K), weight)


def _axis(node: Node) -> Axis:
    if node["kind"].text("ordered", "levels") == "levels":
        return Levels(_levels(node["levels"]))
    unit = node["unit_of_values"].maybe(Node.text, "date", "duration")
    quantiles = node["quantiles"].maybe(Node.numbers, None)
    return Ordered(node["cuts"].ascending(), unit, quantiles)


def _levels(node: Node) -> tuple[Level, ...]:
    levels = node.values(str, int, float, bool)
    if len({*levels}) < len(levels):
        raise node.fail("a level is there twice")
    return tuple(levels)


def _claim(node: Node, form: AdditiveModel) -> Claim:
    D, C = form.n_features, len(form.classes)
    return Claim(
        loss=node["loss"].text(*_LOSSES),
        margin=node["margin"].text("pairwise", "codeword"),
        columns=node["columns"].text(*_COLUMNS),
        theta=node["theta"].maybe(Node.number, 0.0),
        penalty=node["penalty"].maybe(Node.number, 0.0),
        ridge=node["ridge"].number(0.0),
        intercept_ridge=node["intercept_ridge"].number(0.0),
        cuts="all"
        if node["cuts"].value == "all"
        else tuple(one.maybe(Node.ascending) for one in node["cuts"].items(D)),
        categorical=node["categorical"].places(D),
        primal=node["primal"].maybe(Node.number),
        dual=node["dual"].maybe(Node.number),
        hypothesis_class=node["hypothesis_class"].text(),
        unused_features=node["unused_features"].places(D),
        class_weight=node["class_weight"].maybe(Node.numbers, C, low=0.0),
        n_rows=node["n_rows"].whole(),
        n_held_out=node["n_held_out"].whole(),
        missing_right=node["missing_right"].maybe(_missing_right, form),
        witness=node["witness"].maybe(_witness, form),
        codes=node["codes"].maybe(Node.signs, C, None),
        orders=node["orders"].maybe(_orders, D) or (),
    )


def _missing_right(node: Node, form: AdditiveModel) -> tuple[Vector | None, ...]:
    """For each cut of a term what rules have; levels in an order are cut where they change."""
    found = []
    for one, term in zip(node.items(len(form.terms)), form.terms, strict=True):
        axis, table, n = term.axes[0], term.table, 0
        if len(term.axes) == 1 and isinstance(axis, Ordered):
            n = len(axis.cuts)
        elif len(term.axes) == 1 and form.kinds and form.kinds[term.inputs[0]] == "order":
            n = int((table[2:-1] != table[1:-2]).any(axis=1).sum())
        found.append(one.maybe(Node.on_unit, form.unit, n, form.n_outputs))
    return tuple(found)


def _orders(node: Node, n_features: int) -> Any:
    pairs = [tuple(one.items(2)) for one in node.items()]
    return tuple((j.whole(0, n_features - 1), _levels(levels)) for j, levels in pairs)


def _witness(node: Node, form: AdditiveModel) -> AdditiveModel | RowWeights:
    if node["kind"].value is not None:
        return _form(node, form.classes, form.n_features, feature_names=None)
    weight = node["weight"].numbers(None, low=0.0)
    return RowWeights(node["place"].wholes(len(weight), low=0, high=WHOLE), weight)
