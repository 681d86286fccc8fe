"""Fits to frames are verified as given: text, orders, dates, durations, missing values."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tcboost import TCBoostClassifier, verify

GRADES = ["low", "middle", "high", "never seen"]
LIBRARIES = ["pandas", "polars", "pyarrow"]


def values(n=120):
    """Columns of every kind, with None where a value is missing, and three classes."""
    rng = np.random.default_rng(0)
    start = dt.datetime(2020, 1, 1)
    hours = rng.integers(0, 900, n).tolist()
    grade, colour = rng.integers(0, 3, n), rng.integers(0, 3, n)
    columns = {
        "colour": [["red", "green", "1"][k] for k in colour],
        "grade": [GRADES[k] for k in grade],
        "when": [start + dt.timedelta(hours=h, microseconds=h) for h in hours],
        "day": [(start + dt.timedelta(days=h % 30)).date() for h in hours],
        "took": [dt.timedelta(minutes=7 * (h % 40), microseconds=h) for h in hours],
        "count": rng.integers(0, 9, n).tolist(),
        "size": rng.normal(size=n).tolist(),
        "yes": (rng.random(n) < 0.5).tolist(),
    }
    y = (grade + (colour == 1) + (np.array(hours) > 450) + (columns["size"] > np.ones(n))) % 3
    for column in columns.values():
        for i in np.flatnonzero(rng.random(n) < 0.15):
            column[i] = None
    return columns, y


def frame(library, columns):
    if library == "pandas":
        made = pd.DataFrame(columns)
        made["grade"] = pd.Categorical(columns["grade"], GRADES, ordered=True)
        made["when"] = pd.to_datetime(made["when"]).dt.tz_localize("Europe/Oslo")
        made["took"] = pd.to_timedelta(made["took"])
        return made.astype({"count": "Int64", "yes": "boolean", "colour": "category"})
    made = pl.DataFrame(columns, schema_overrides={"grade": pl.Enum(GRADES)})
    return made if library == "polars" else made.to_arrow()


def rows(made, order):
    return made.take(order) if isinstance(made, pa.Table) else made[order.tolist()]


@pytest.mark.parametrize("max_bins", [None, 5])
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("l1_ratio", [0.01, 1.0])
def test_fits_to_frames_are_verified(library, l1_ratio, max_bins):
    columns, y = values()
    X = frame(library, columns)
    options = {} if max_bins is None else {"max_bins": max_bins}
    model = TCBoostClassifier(alpha=0.5, l1_ratio=l1_ratio, **options).fit(X, y)
    claim = model.additive_.claim
    for given in (model, model.additive_):
        found = verify(given, X, y)
        assert found, str(found)
        assert found.loss == pytest.approx(claim.primal, rel=1e-12)
        assert found.gap <= claim.primal - claim.dual + 1e-8
    order = np.random.default_rng(1).permutation(len(y))
    X = X.iloc[order] if library == "pandas" else rows(X, order)
    assert verify(model, X, y[order])
    assert verify(model.additive_.rounded(2), X, y[order])
    other = y[order]
    other[0] = (other[0] + 1) % 3
    assert not verify(model, X, other)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["colour", "grade", "when", "day", "took", "count"])
def test_another_value_is_another_loss(library, name):
    columns, y = values()
    model = TCBoostClassifier(alpha=0.1, l1_ratio=0.01).fit(frame(library, columns), y)
    form = model.additive_
    assert any(form.feature_names[t.inputs[0]] == name for t in form.terms)
    column = columns[name]
    known = sorted({v for v in column if v is not None})
    columns[name] = [known[-1] if v == known[0] else v for v in column]
    found = verify(model, frame(library, columns), y)
    assert not found
    assert "the loss is" in found.problems[0]


def test_frames_and_numbers_say_the_same():
    """Seconds and places by hand, levels as numbers."""
    columns, y = values()
    X = frame("pandas", columns)
    model = TCBoostClassifier(alpha=0.5, l1_ratio=0.01).fit(X, y)
    start = dt.datetime(1970, 1, 1)
    place = {None: np.nan, **{g: k for k, g in enumerate(GRADES)}}
    seconds = {
        "when": lambda v: (v - start).total_seconds(),
        "day": lambda v: (dt.datetime(v.year, v.month, v.day) - start).total_seconds(),
        "took": dt.timedelta.total_seconds,
        "colour": ["1", "green", "red"].index,
    }
    plain = np.column_stack(
        [
            [place[v] for v in column]
            if name == "grade"
            else [np.nan if v is None else float(seconds.get(name, float)(v)) for v in column]
            for name, column in columns.items()
        ]
    )
    same = TCBoostClassifier(alpha=0.5, l1_ratio=0.01, categorical_features=[0]).fit(plain, y)
    found, other = verify(model, X, y), verify(same, plain, y)
    assert found.loss == pytest.approx(other.loss, rel=1e-9)
    assert found.bound == pytest.approx(other.bound, rel=1e-9)
    assert found.gap_all_thresholds == pytest.approx(other.gap_all_thresholds, rel=1e-6)


def test_orders_that_are_not_the_claimed_ones():
    columns, y = values()
    X = frame("polars", columns)
    form = TCBoostClassifier(alpha=0.1, l1_ratio=0.01).fit(X, y).additive_
    ((j, levels),) = form.claim.orders
    term = next(t for t in form.terms if t.inputs == (j,))

    def claiming(order):
        return replace(form, claim=replace(form.claim, orders=((j, order),)))

    swapped = levels[1], levels[0], *levels[2:]
    assert not verify(claiming(swapped), X, y)
    with pytest.raises(ValueError, match="feature 1"):
        verify(claiming(levels[1:]), X, y)
    table = term.table.copy()
    table[-1] += 0.25  # of levels that are none of them
    terms = tuple(replace(t, table=table) if t is term else t for t in form.terms)
    with pytest.raises(ValueError, match="feature 1"):
        verify(replace(form, terms=terms), X, y)
    named_twice = replace(form.claim, categorical=(*form.claim.categorical, j))
    with pytest.raises(ValueError, match="orders"):
        verify(replace(form, claim=named_twice), X, y)


def test_text_among_numbers():
    columns, y = values()
    X = frame("pandas", columns)
    form = TCBoostClassifier(alpha=0.1, l1_ratio=0.01).fit(X, y).additive_
    X["size"] = [*columns["size"][:-1], "large"]
    with pytest.raises(ValueError, match="feature 6 must hold numbers"):
        verify(form, X, y)
