"""Random tables, classes and weights for the attacks, all of it by one number."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

SMALL = 24  # rows for which the problem of the whole class is solved


class Draw:
    """Choices that follow from one number."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, *options):
        return options[self.rng.integers(len(options))]

    def decades(self, low, high, size=None):
        """Of any order of magnitude."""
        return 10.0 ** self.rng.uniform(low, high, size)


def draw_table(draw, n):
    """Ties, constants, columns that are the same, any scale, missing values."""
    X = draw.rng.normal(size=(n, draw(1, 2) if n <= SMALL else draw(1, 2, 3, 6)))
    for d, x in enumerate(X.T):
        kind = draw("real", "ties", "ties", "constant", "same", "huge", "tiny", "close")
        if kind == "ties":
            x[:] = draw.rng.integers(0, draw(2, 3, 8), n)
        elif kind == "constant":
            x[:] = x[0]
        elif kind == "same":
            x[:] = X[:, d - 1] * draw(1, -1)
        elif kind == "close":  # neighbours among the doubles
            x[:] = 1.0 + np.spacing(1.0) * draw.rng.integers(0, 4, n)
        elif kind != "real":
            x *= {"huge": 1e307, "tiny": 1e-307}[kind]
        if draw(True, False, False):
            x[draw.rng.random(n) < draw(0.1, 0.5, 1.0)] = np.nan
    return X


def draw_data(draw):
    """A table, classes and weights; mostly few rows."""
    C, n = draw(2, 3, 4, 5), draw(*draw.rng.integers(5, 17, 17).tolist(), 60, 400, 2000)
    X, y = draw_table(draw, n), draw.rng.integers(0, C, n)
    if draw(True, False):  # something to learn
        y = np.where(draw.rng.random(n) < 0.7, np.argsort(np.argsort(X[:, 0])) * C // n, y)
    y[draw.rng.permutation(n)[:C]] = np.arange(C)
    if draw(True, False):  # rows that occur again, in their class or another
        again = draw.rng.integers(0, n, n // 2)
        X, y = np.vstack([X, X[again]]), np.r_[y, draw(y[again], np.roll(y[again], 1))]
    n = len(y)
    weight = draw(
        *(None, draw.rng.integers(1, 4, n), np.where(np.arange(n) % 7 == 0, 0.0, 0.3)),
        *(draw.rng.random(n) + 1e-3, draw.decades(-9, 9, n)),
    )
    return X, y, weight if weight is None or len({*y[weight > 0]}) == C else None


def fitted(model, *data):
    """The model, and the warnings of its fit."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ConvergenceWarning)
        return model.fit(*data), [str(w.message) for w in warned]
