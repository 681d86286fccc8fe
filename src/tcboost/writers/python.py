"""A model as a module of Python, for its standard library alone."""

from __future__ import annotations

from .common import Model, Path, content, finished, module

_MODULE = '''"""$about

`row` is a sequence of the values of the features; None and NaN are missing.
"""

from bisect import bisect_left
from math import exp

CLASSES = $labels
FEATURES = $names
SCALE = $scale
INTERCEPT = $intercept
# By their places, the features of text, whose levels count by their places; any other is -1.
LEVELS = $levels
# Of each term the features, each with its cuts; and the scores of every class in each cell:
# missing values, then values with none, one, ... of the cuts below them. Of a couple these are
# the cells of the second feature, for each of the first.
TERMS = [$terms]


def scores(row):
    """The score of every class."""
    sums = INTERCEPT
    for axes, table in TERMS:
        place = 0
        for feature, cuts in axes:
            place *= len(cuts) + 2
            value = row[feature]
            if value is None or value != value:
                continue
            if feature in LEVELS:
                levels = LEVELS[feature]
                value = levels.index(value) if value in levels else -1
            place += 1 + bisect_left(cuts, value)
        sums = [s + t for s, t in zip(sums, table[place])]
    return list(sums)


def predict(row):
    """The class of the largest score, the first on a tie."""
    found = scores(row)
    return CLASSES[found.index(max(found))]


def probabilities(row):
    """The probability of every class."""
    if SCALE is None:
        raise ValueError("the loss of this model tells no probabilities")
    found = scores(row)
    top = max(found)
    powers = [exp(SCALE * (s - top)) for s in found]
    total = sum(powers)
    return [p / total for p in powers]
'''


def to_python(model: Model, path: Path = None) -> str:
    """The model as the text of a Python module that imports the standard library alone.

    It has ``predict(row)``, the label, ``scores(row)`` and ``probabilities(row)``, lists in the
    order of `classes_`. The scores are those of the model, bit for bit. None and NaN are
    missing values. Dates and durations of a frame are given in seconds, of dates since 1970.
    Where the loss tells no probabilities, asking for them is a ValueError.

    Parameters
    ----------
    model : estimator or AdditiveModel
        What to write; estimators must be fitted, and have tables.
    path : str or path-like, default=None
        Where to write it as well.

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import tcboost
    >>> X, y = load_iris(return_X_y=True)
    >>> module = {}
    >>> exec(tcboost.to_python(tcboost.AdaBoostMO(max_iter=10).fit(X, y)), module)
    >>> module["predict"]([5.1, 3.5, 1.4, None])
    0
    """
    return finished(module(_MODULE, content(model), ascii), path)
