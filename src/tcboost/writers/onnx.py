"""A model as ONNX: operators of the core domain, the protobuf written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.additive import Vector
from .common import Content, Model, Path, Table, content, finished

_OPSET, _IR = 17, 8
# Numbers of element types, and of the types of attributes.
_INT32, _INT64, _STRING, _BOOL, _DOUBLE = 6, 7, 8, 9, 11
_TYPES = {"i4": _INT32, "i8": _INT64, "O": _STRING, "b1": _BOOL, "f8": _DOUBLE}


def to_onnx(model: Model, path: Path = None) -> bytes:
    """The model as ONNX, of operators of the core domain alone, opset 17, all in double.

    The input ``X`` is rows x features in double, NaN missing. If any feature has levels of
    text, each feature is an input of its own instead, of shape (rows,) or (rows, 1), called as
    the feature is: those of text are strings, an empty one missing unless that is a level.
    Names that occur again, or that outputs have, get a ``_`` at the end. Levels of a frame that
    no term uses are text. Dates and durations are given in seconds, of dates since 1970.
    The outputs are ``label``, the labels themselves, and ``probabilities``, rows x classes,
    which is not there where the loss tells none.

    Parameters
    ----------
    model : estimator or AdditiveModel
        What to write; estimators must be fitted, and have tables.
    path : str or path-like, default=None
        Where to write it as well.

    Returns
    -------
    bytes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import tcboost
    >>> X, y = load_iris(return_X_y=True)
    >>> type(tcboost.to_onnx(tcboost.AdaBoostMO(max_iter=10).fit(X, y)))
    <class 'bytes'>
    """
    told = content(model)
    graph = _Graph(told)
    scores = graph.constant(told.intercept)
    for term in told.terms:
        scores = graph.node("Add", scores, graph.rows(term))
    dtype = {int: np.int64, str: np.object_}.get(type(told.labels[0]))
    labels: NDArray[Any] = np.array(told.labels, dtype=dtype)
    best = graph.node("ArgMax", scores, axis=1, keepdims=0)
    graph.node("Gather", graph.constant(labels), best, output="label", axis=0)
    outputs = [_value("label", _kind(labels), "rows")]
    if told.scale is not None:
        scaled = graph.node("Mul", scores, graph.constant(np.float64(told.scale)))
        graph.node("Softmax", scaled, output="probabilities", axis=1)
        outputs.append(_value("probabilities", _DOUBLE, "rows", len(told.labels)))
    fields: list[_Field] = [(1, node) for node in graph.nodes]
    fields += [(2, "tcboost"), (10, told.about), *((5, tensor) for tensor in graph.tensors)]
    fields += [*((11, value) for value in graph.inputs), *((12, value) for value in outputs)]
    opset = _message((1, ""), (2, _OPSET))
    whole = _message((1, _IR), (8, opset), (2, "tcboost"), (7, _message(*fields)))
    return finished(whole, path)


class _Graph:
    """Nodes and constants as they are made; a name is what they are known by."""

    def __init__(self, told: Content) -> None:
        self.told = told
        self.nodes: list[bytes] = []
        self.tensors: list[bytes] = []
        self.inputs = [_value("X", _DOUBLE, "rows", len(told.names))]
        names = ["X"]
        if told.texts:
            names, self.inputs = [], []
            for j, name in enumerate(told.names):
                while name in (*names, "label", "probabilities"):
                    name += "_"
                names.append(name)
                self.inputs.append(_value(name, _STRING if j in told.texts else _DOUBLE))
        self.names = names
        self.prefix = "/" * (1 + max(map(len, names)))  # of names that no input has
        self.columns = {j: self.column(j) for j in told.used()}

    def constant(self, value: Any) -> str:
        """The name of a new tensor."""
        array = np.asarray(value)
        name = f"{self.prefix}c{len(self.tensors)}"
        fields: list[_Field] = [(1, n) for n in array.shape]
        fields += [(2, _kind(array)), (8, name)]
        if array.dtype.kind == "O":
            fields += [(6, text) for text in array.ravel().tolist()]
        else:
            fields.append((9, array.astype(array.dtype.newbyteorder("<")).tobytes()))
        self.tensors.append(_message(*fields))
        return name

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: int) -> str:
        """The name of what a new node puts out, the third output of Unique."""
        name = output or f"{self.prefix}{len(self.nodes)}"
        outputs = (f"{name}/found", "", name) if kind == "Unique" else (name,)
        fields: list[_Field] = [(1, each) for each in inputs]
        fields += [(2, each) for each in outputs]
        fields += [(3, f"{self.prefix}{len(self.nodes)}"), (4, kind)]
        for key, value in attributes.items():
            fields.append((5, _message((1, key), (3, value), (20, 2))))
        self.nodes.append(_message(*fields))
        return name

    def column(self, j: int) -> str:
        """The values of a feature, rows x 1; levels are their places."""
        if not self.told.texts:
            return self.node("Gather", "X", self.constant(_whole(j)), axis=1)
        name = self.names[j]
        if j in self.told.texts:
            name = self.places(self.told.texts[j], name)
        return self.node("Reshape", name, self.constant(_whole(-1, 1)))

    def places(self, levels: list[str], name: str) -> str:
        """Of text: the place where it first occurs in the levels with the rows behind them."""
        known = levels if "" in levels else [*levels, ""]
        of = np.append(np.arange(len(known), dtype=np.float64), -1.0)
        of[len(levels) : -1] = np.nan
        column = self.node("Reshape", name, self.constant(_whole(-1)))
        both = self.node("Concat", self.constant(np.array(known, dtype=object)), column, axis=0)
        first = self.node("Unique", both, sorted=0)
        n, end = self.constant(_whole(len(known))), self.constant(_whole(2**63 - 1))
        place = self.node("Min", self.node("Slice", first, n, end), n)
        return self.node("Gather", self.constant(of), place, axis=0)

    def rows(self, term: Table) -> str:
        """Of each row what the table of a term has for its cell."""
        place = ""
        for j, cuts in zip(term.inputs, term.cuts, strict=True):
            cells = self.cells(self.columns[j], cuts)
            if place:
                size = self.constant(np.int32(len(cuts) + 2))
                cells = self.node("Add", self.node("Mul", place, size), cells)
            place = cells
        return self.node("Gather", self.constant(term.scores), place, axis=0)

    def cells(self, column: str, cuts: Vector) -> str:
        """How many cells begin at the values or below, the first of them at -inf.

        Nothing begins below NaN, which is in cell 0.
        """
        with np.errstate(over="ignore"):
            begin = np.append(-np.inf, np.nextafter(cuts, np.inf))
        begun = self.node("GreaterOrEqual", column, self.constant(begin))
        ones = self.node("Cast", begun, to=_INT32)
        return self.node("ReduceSum", ones, self.constant(_whole(1)), keepdims=0)


_Field = tuple[int, int | str | bytes]


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _message(*fields: _Field) -> bytes:
    """Fields by their numbers: integers, or text, bytes and other messages by their length."""
    found = []
    for number, value in fields:
        if isinstance(value, int):
            found.append(_varint(number << 3) + _varint(value))
        else:
            data = value.encode() if isinstance(value, str) else value
            found.append(_varint(number << 3 | 2) + _varint(len(data)) + data)
    return b"".join(found)


def _whole(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def _kind(array: NDArray[Any]) -> int:
    return _TYPES[array.dtype.str[1:]]


def _value(name: str, kind: int, *shape: int | str) -> bytes:
    """An input or output; of any shape if there is none."""
    sizes = [(1, _message((2 if isinstance(n, str) else 1, n))) for n in shape]
    sized = [(2, _message(*sizes))] if shape else []
    return _message((1, name), (2, _message((1, _message((1, kind), *sized)))))
