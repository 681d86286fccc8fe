"""Models of all kinds, fitted and made by hand, and rows that are at all their edges."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import tcboost
from tcboost.model import AdditiveModel, Levels, Ordered, Term

NASTY = ["'); DROP TABLE data; --", 'two\n"lines"\\', "grüß </script> */ ??/ \u2028"]
NAMES = ("select", 'a "b"', "line\nbreak", "")
UNIT = -40


def table(rng, *shape):
    return np.ldexp(rng.integers(-(2**42), 2**42, shape).astype(float), UNIT)


def by_hand(terms, classes, seed=0, n_features=None, decode=None, **about):
    """A model with random tables, on these (inputs, axes)."""
    rng = np.random.default_rng(seed)
    width = len(classes) if decode is None else decode.shape[1]
    terms = tuple(
        Term(inputs, axes, table(rng, *(axis.n_cells for axis in axes), width))
        for inputs, axes in terms
    )
    if n_features is None:
        n_features = 1 + max(j for term in terms for j in term.inputs)
    about = {"feature_names": None, "unit": UNIT, **about}
    intercept = table(rng, width)
    return AdditiveModel(
        n_features=n_features,
        classes=np.array(classes),
        terms=terms,
        intercept=intercept,
        decode=decode,
        **about,
    )


def cuts(rng, n):
    return Ordered(np.unique(rng.normal(size=n)))


def default():
    """Levels, missing values, labels and names with all that needs a quote."""
    X, y = load_iris(return_X_y=True)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    X[:, 3] = np.round(2 * X[:, 3])
    frame = pd.DataFrame(X, columns=["select", 'a "b"', "line\nbreak", "'"])
    model = tcboost.TCBoostClassifier(max_rules=15, categorical_features=[3])
    return model.fit(frame, np.array(NASTY)[y])


def columns():
    """Text, also of no use, levels in an order, dates and durations, with missing values."""
    rng = np.random.default_rng(8)
    n = 300
    colour, size = rng.choice([*"rgb"], n), rng.integers(3, size=n)
    wait, day = rng.integers(9, size=n), rng.integers(100, size=n)
    columns = {
        "colour": pd.Series(colour, dtype=object),
        "size": pd.Series(pd.Categorical.from_codes(size, ["S", "M", "L"], ordered=True)),
        "day": pd.Series(pd.Timestamp("2020-02-01") + pd.to_timedelta(day, unit="D")),
        "wait": pd.Series(pd.to_timedelta(wait, unit="h")),
        "length": pd.Series(rng.normal(size=n)),
    }
    X = pd.DataFrame({k: s.where(rng.random(n) > 0.1) for k, s in columns.items()})
    X.insert(0, "same", "s")
    return X, np.select([colour == "r", (size == 2) | (wait > 6), day > 60], [*"abc"], "d")


def frame():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the column of no use
        return tcboost.TCBoostClassifier(0.3).fit(*columns())


def stage_wise():
    return tcboost.AdaBoostMO(max_iter=20).fit(*load_iris(return_X_y=True))


def rounded():
    return stage_wise().additive_.rounded(2)


def drawn_codes():
    X, y = load_wine(return_X_y=True)
    return tcboost.MultiBoostECC(max_iter=15, random_state=0).fit(X, y - 2**62)


def mixture():
    X, y = load_wine(return_X_y=True)
    codes = np.array([[1, 1, -1, 1], [-1, 1, 1, 1], [1, -1, 1, -1]])
    return tcboost.MultiBoostECC(codes, 3.0, 15).fit(X, y + 0.0)


def hinge():
    """No probabilities."""
    return tcboost.MultiBoostHinge(theta=2.0, max_iter=10).fit(*load_iris(return_X_y=True))


def two_classes():
    X, y = load_breast_cancer(return_X_y=True)
    return tcboost.TCBoostClassifier(max_rules=40).fit(X, y == 1)


def couples():
    """Tables of two inputs, and the same inputs again alone, with other cuts."""
    rng = np.random.default_rng(1)
    a, b, other = cuts(rng, 7), cuts(rng, 40), cuts(rng, 3)
    levels = Levels((3, 0, 1.5, True))
    terms = [((0,), (a,)), ((0, 1), (other, b)), ((1, 2), (b, levels)), ((2,), (levels,))]
    about = {"feature_names": NAMES, "probability_scale": 300.0}  # some are e^-1000
    return by_hand(terms, NASTY, n_features=4, **about)


def text():
    """Levels of text, alone and in couples; not the same in all terms."""
    rng = np.random.default_rng(2)
    kinds, few, a = Levels((*NASTY, "red")), Levels(("green", "red")), cuts(rng, 20)
    terms = [
        ((0,), (kinds,)),
        ((0, 1), (few, a)),
        ((1,), (a,)),
        ((1, 3), (Levels((0, 1)), few)),
        ((2, 3), (Levels(()), few)),
        ((3,), (Levels(("", "red")),)),
    ]
    names = ("label", "a", "a_", "probabilities")
    return by_hand(terms, ["a", "b", "c", "d"], feature_names=names)


def constant():
    return by_hand([], ["x", "y"], n_features=3)


def one_cell():
    """Features of which only whether they are missing counts; and a tie of all classes."""
    model = by_hand([((1,), (Ordered(np.empty(0)),)), ((2,), (Levels(()),))], [1.5, 2.5, 3.5])
    return model


def ties():
    """Scores that are often the same."""
    rng = np.random.default_rng(3)
    terms = tuple(
        Term((j,), (cuts(rng, 3),), rng.integers(-1, 2, (5, 4)).astype(float)) for j in range(3)
    )
    return AdditiveModel(3, None, np.array([7, 8, 9, 11]), terms, np.zeros(4), unit=0)


def letters():
    rng = np.random.default_rng(4)
    terms = [((j,), (cuts(rng, 3 * j + 1),)) for j in range(16)]
    return by_hand(terms, [f"letter {k}" for k in range(27)])


def many_classes():
    rng = np.random.default_rng(5)
    return by_hand([((0,), (cuts(rng, 4),)), ((1,), (cuts(rng, 2),))], list(range(201)))


def many_terms():
    rng = np.random.default_rng(6)
    return by_hand([((j,), (cuts(rng, 2),)) for j in range(220)], ["no", "yes"])


def decoded():
    rng = np.random.default_rng(7)
    decode = rng.choice([-1, 1], (5, 7)).astype(np.int8)
    terms = [((0,), (cuts(rng, 20),)), ((0, 1), (cuts(rng, 2), cuts(rng, 3)))]
    return by_hand(terms, list("abcde"), decode=decode, probability_scale=0.3)


def extremes():
    """Cuts at the ends of the doubles."""
    tiny, huge = np.nextafter(0.0, 1.0), np.finfo(float).max
    values = [-huge, -1e300, -(2.0**70), -0.1, -tiny, 0.0, tiny, 1e-310, 0.1, 1 / 3]
    axis = Ordered(np.array([*values, 2.0**53 - 1, 2.0**53 + 2, 1.7e18, 1e300, huge]))
    levels = Levels((0, 1e300, tiny, -1e300, 0.1))
    return by_hand([((0,), (axis,)), ((1,), (levels,))], [True, False], seed=2)


MODELS = {
    f.__name__: cache(f)
    for f in (
        default,
        frame,
        stage_wise,
        rounded,
        drawn_codes,
        mixture,
        hinge,
        two_classes,
        couples,
        text,
        constant,
        one_cell,
        ties,
        letters,
        many_classes,
        many_terms,
        decoded,
        extremes,
    )
}


def edges(axes, kind):
    """Values at which something may happen: cuts with their neighbours, levels, and others."""
    if kind in ("date", "duration"):  # of microseconds
        at = [round(x + by, 6) for axis in axes for x in axis.cuts for by in (-1e-6, 0, 1e-6)]
        return [*at, 0.0, np.nan]
    levels = [x for axis in axes for x in getattr(axis, "levels", ())]
    if (not axes and kind == "levels") or any(isinstance(x, str) for x in levels):
        return [*levels, "unknown", "RED", "red ", None, np.nan]
    at = [x for axis in axes for x in getattr(axis, "cuts", getattr(axis, "levels", None))]
    at = np.array(at, dtype=float)
    with np.errstate(over="ignore"):
        near = np.concatenate([at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf)])
    return [*near.tolist(), np.nan, np.nan, 0.0, -0.0, 1e300, -1e300, np.inf, -np.inf]


def rows(form, n, seed=0):
    """Random rows, with every edge of every feature at least once."""
    rng = np.random.default_rng(seed)
    columns = []
    for j in range(form.n_features):
        axes = [
            axis for t in form.terms for i, axis in zip(t.inputs, t.axes, strict=True) if i == j
        ]
        all_edges = edges(axes, (form.kinds or [None] * form.n_features)[j])
        assert len(all_edges) <= n
        drawn = list(all_edges)
        if not isinstance(all_edges[0], str):
            centre = [x for x in all_edges if abs(x) < 1e100] or [0.0]
            drawn += rng.normal(np.mean(centre), 1 + np.std(centre), n // 2).tolist()
        places = rng.integers(0, len(drawn), max(n - len(drawn), 0))
        column = (drawn + [drawn[k] for k in places])[:n]
        columns.append([column[k] for k in rng.permutation(n)])
    numbers = all(not isinstance(x, str) for column in columns for x in column)
    X = np.empty((n, form.n_features), dtype=float if numbers else object)
    for j, column in enumerate(columns):
        X[:, j] = column
    return X
