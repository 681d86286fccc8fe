"""A model as a module of JavaScript."""

from __future__ import annotations

import json
from typing import Any

from .common import Model, Path, content, finished, module

_MODULE = """\
// $about
// A row is an array of the values of the features; null, undefined and NaN are missing.

export const classes = $labels;
export const features = $names;
const SCALE = $scale;
const INTERCEPT = $intercept;
// By their places, the features of text, whose levels count by their places; any other is -1.
const LEVELS = $levels;
// Of each term the features, each with its cuts; and the scores of every class in each cell:
// missing values, then values with none, one, ... of the cuts below them. Of a couple these are
// the cells of the second feature, for each of the first.
const TERMS = [$terms];

function cellOf(value, levels, cuts) {
  if (value == null || Number.isNaN(value)) return 0;
  const x = levels ? levels.indexOf(value) : value;
  const below = cuts.findIndex((cut) => cut >= x);
  return 1 + (below < 0 ? cuts.length : below);
}

export function scores(row) {
  const sums = INTERCEPT.slice();
  for (const [axes, table] of TERMS) {
    let place = 0;
    for (const [feature, cuts] of axes) {
      place = place * (cuts.length + 2) + cellOf(row[feature], LEVELS[feature], cuts);
    }
    for (let c = 0; c < sums.length; c++) sums[c] += table[place][c];
  }
  return sums;
}

export function predict(row) {
  const found = scores(row);
  return classes[found.indexOf(Math.max(...found))];
}

export function probabilities(row) {
  if (SCALE === null) throw new Error("the loss of this model tells no probabilities");
  const found = scores(row), top = Math.max(...found);
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
    return finished(module(_MODULE, content(model), _literal), path)


def _literal(value: Any) -> str:
    """JSON of ASCII, of whose texts none ends a script in HTML; large integers are BigInt."""
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if type(value) is int and abs(value) > 2**53 - 1:
        return f"{value}n"
    return json.dumps(value).replace("<", "\\u003c")
