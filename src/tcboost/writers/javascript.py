"""A model as a module of JavaScript."""

from __future__ import annotations

import json
from typing import Any

from ..model.additive import Axis, Level, Ordered
from .common import Content, Model, Path, Scores, content, finished

_MODULE = """\
// %(about)s
// A row is an array of the values of the features; null, undefined and NaN are missing.

export const classes = %(labels)s;
export const features = %(names)s;
const SCALE = %(scale)s;
const INTERCEPT = %(intercept)s;
// Of each term the features, each with its cuts or with the cells of its levels; and the scores
// of every class in each cell: missing values, intervals or levels, any other level.
const TERMS = [%(terms)s];

function cellOf(value, cells, other) {
  if (value === null || value === undefined || Number.isNaN(value)) return 0;
  if (typeof value === "boolean") value = Number(value);
  if (cells instanceof Map) return cells.get(value) ?? other;
  let low = 0, high = cells.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cells[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low + 1;
}

export function scores(row) {
  const sums = INTERCEPT.slice();
  for (const [axes, rows] of TERMS) {
    let table = rows;
    for (const [feature, cells] of axes) {
      table = table[cellOf(row[feature], cells, table.length - 1)];
    }
    for (let c = 0; c < sums.length; c++) sums[c] += table[c];
  }
  return sums;
}

export function predict(row) {
  const found = scores(row);
  return classes[found.indexOf(found.reduce((a, b) => (b > a ? b : a)))];
}

export function probabilities(row) {
  if (SCALE === null) throw new Error("the loss of this model tells no probabilities");
  const found = scores(row), top = found.reduce((a, b) => (b > a ? b : a));
  const powers = found.map((s) => Math.exp(SCALE * (s - top)));
  const total = powers.reduce((a, b) => a + b);
  return powers.map((p) => p / total);
}
"""


def to_javascript(model: Model, path: Path = None) -> str:
    """The model as the text of an ES module.

    It exports ``predict(row)``, the label, ``scores(row)`` and ``probabilities(row)``, arrays
    in the order of ``classes``, and ``features``, their names. The scores are those of the
    model, bit for bit. null, undefined and NaN are missing values. Dates and durations of a
    frame are given in seconds, of dates since 1970. Integer labels that no number of JavaScript
    is are of type BigInt. Where the loss tells no probabilities, asking for them throws an
    error. The text can stand inside of HTML.

    Parameters
    ----------
    model : estimator or AdditiveModel
        What to write; estimators must be fitted, and have tables.
    path : str or path-like, default=None
        Where to write it as well, as ``model.mjs``.

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import tcboost
    >>> X, y = load_iris(return_X_y=True)
    >>> text = tcboost.to_javascript(tcboost.AdaBoostMO(max_iter=10).fit(X, y))
    >>> "export function predict(row)" in text
    True
    """
    told = content(model)
    text = _MODULE % {
        "about": told.about(),
        "labels": f"[{', '.join(map(_label, told.labels))}]",
        "names": _literal(told.names),
        "scale": _literal(told.scale),
        "intercept": _literal(told.intercept.tolist()),
        "terms": "".join(_term(told, term) for term in told.terms),
    }
    return finished(text, path)


def _literal(value: Any) -> str:
    """JSON of ASCII, of whose texts none ends a script in HTML."""
    return json.dumps(value).replace("<", "\\u003c")


def _label(label: Level) -> str:
    large = type(label) is int and abs(label) > 2**53 - 1
    return _literal(label) + "n" * large


def _term(told: Content, term: Scores) -> str:
    pairs = zip(term.inputs, term.axes, strict=True)
    axes = ", ".join(f"[{j}, {_cells(axis, j in told.texts)}]" for j, axis in pairs)
    rows = ",\n    ".join(map(_literal, term.table.tolist()))
    return f"\n  [[{axes}], [\n    {rows}\n  ]],"


def _cells(axis: Axis, text: bool) -> str:
    if isinstance(axis, Ordered):
        return _literal(axis.cuts.tolist())
    levels = axis.levels if text else map(float, axis.levels)
    return f"new Map({_literal([(level, k + 1) for k, level in enumerate(levels)])})"
