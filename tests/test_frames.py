"""Frames: what their columns are, in fit and at prediction, whatever the library."""

from __future__ import annotations

import datetime
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from tcboost import AdaBoostMO, TCBoostClassifier

RNG = np.random.RandomState(0)
N = 240
COLOUR = np.array(["red", "green", "blue", "grey"])[RNG.randint(4, size=N)]
SIZE = np.array(["small", "medium", "large"])[RNG.randint(3, size=N)]
LENGTH, COUNT = RNG.randn(N).round(1), RNG.randint(5, size=N)
DAY = np.datetime64("2020-02-01") + RNG.randint(100, size=N)
Y = np.select(
    [COLOUR == "red", (SIZE == "large") | (LENGTH > 1), np.datetime64("2020-04-10") < DAY],
    ["stop", "wait", "late"],
    "go",
)
MISSING = RNG.rand(N) < 0.1


def given(alpha=1.0, l1_ratio=0.5, **parameters):
    return TCBoostClassifier(alpha, l1_ratio, **parameters)


def in_pandas(arrow=False):
    frame = pd.DataFrame(
        {
            "colour": pd.Series(COLOUR, dtype=object).where(~MISSING, None),
            "size": pd.Categorical(SIZE, ["small", "medium", "large"], ordered=True),
            "length": pd.Series(LENGTH).where(~MISSING),
            "count": pd.array(np.where(MISSING, None, COUNT), dtype="Int64"),
            "new": COUNT > 2,
            "day": pd.to_datetime(DAY),
            "waited": pd.to_timedelta(COUNT, unit="h"),
        }
    )
    if arrow:
        types = {"colour": pd.ArrowDtype(pa.string()), "length": pd.ArrowDtype(pa.float64())}
        frame = frame.astype({**types, "count": pd.ArrowDtype(pa.int16())})
    return frame


def in_polars(kind=pl.String):
    return pl.DataFrame(
        {
            "colour": pl.Series(COLOUR.tolist()).cast(kind).set(pl.Series(MISSING), None),
            "size": pl.Series(SIZE.tolist(), dtype=pl.Enum(["small", "medium", "large"])),
            "length": pl.Series(LENGTH).set(pl.Series(MISSING), None),
            "count": pl.Series(COUNT).set(pl.Series(MISSING), None),
            "new": COUNT > 2,
            "day": DAY.astype("datetime64[D]"),
            "waited": pl.Series([datetime.timedelta(hours=int(c)) for c in COUNT]),
        }
    )


FRAMES = {
    "pandas": in_pandas(),
    "pandas, arrow": in_pandas(arrow=True),
    "pandas, category": in_pandas().astype({"colour": "category"}),
    "polars": in_polars(),
    "polars, categorical": in_polars(pl.Categorical),
}
LABELS = {
    "series": pd.Series(Y),
    "categorical": pd.Series(pd.Categorical(Y)),
    "polars": pl.Series(Y.tolist()),
    "list": Y.tolist(),
}


@pytest.mark.parametrize("name", FRAMES)
def test_the_same_values_make_the_same_model(name):
    frame = FRAMES[name]
    one, other = given().fit(FRAMES["pandas"], Y), given().fit(frame, Y)
    assert repr(one.rules_) == repr(other.rules_)
    expected = one.predict_proba(FRAMES["pandas"])
    for model in (one, other):
        for again in FRAMES.values():
            np.testing.assert_array_equal(model.predict_proba(again), expected)
    assert one.score(frame, Y) > 0.9


def test_arrow_tables():
    """Which tell no order of categories."""
    frame = in_pandas().drop(columns="size")
    table = pa.Table.from_pandas(frame)
    models = [given().fit(X, Y) for X in (frame, table)]
    np.testing.assert_array_equal(
        models[0].predict_proba(table), models[1].predict_proba(frame)
    )


@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_any_kind(labels):
    model = given().fit(FRAMES["pandas"], LABELS[labels])
    assert model.classes_.tolist() == ["go", "late", "stop", "wait"]


def test_it_is_the_model_of_numbers():
    """By one-hot columns; an order, dates and durations are cut like numbers."""
    frame = in_pandas()
    places = frame["size"].cat.codes.to_numpy(float)
    colour = [frame.colour == c for c in sorted(set(COLOUR))]
    hours = frame.waited.dt.total_seconds() / 3600
    days = (frame.day - frame.day.min()).dt.days
    rest = [places, frame.length, frame["count"].astype(float), frame.new, days, hours]
    one_hot = np.column_stack([*colour, frame.colour.isna(), *rest]).astype(float)
    tight = {"tol": 1e-9, "max_bins": 1000}
    p = given(**tight).fit(frame, Y).predict_proba(frame)
    expected = given(**tight).fit(one_hot, Y).predict_proba(one_hot)
    np.testing.assert_allclose(p, expected, atol=1e-4)


def test_rules_are_in_words():
    model = given(0.2).fit(in_pandas(), Y)
    words = {r.describe(model.feature_names_in_[r.feature]) for r in model.rules_}
    assert "colour is red" in words
    assert words & {"size > medium", "size > medium or missing"}
    assert any(w.startswith("day > 2020-04-") for w in words)
    assert not any("level" in w for w in words)
    axes = {form.inputs[0]: form.axes[0] for form in model.additive_.terms}
    assert set(axes[0].levels) <= {*COLOUR}
    assert axes[1].levels == ("small", "medium", "large")
    assert axes[5].unit_of_values == "date"
    assert model.additive_.kinds == (
        *("levels", "order", "number", "number", "number", "date", "duration"),
    )


def test_the_form_takes_values_as_they_are():
    frame = in_pandas()[["colour", "size", "length"]]
    model = given(0.2).fit(frame, Y)
    values = frame.astype(object).to_numpy()
    np.testing.assert_array_equal(
        model.additive_.scores(values), model.decision_function(frame)
    )


def test_levels_never_seen_and_columns_all_missing():
    frame = in_pandas()
    model = given(0.2).fit(frame, Y)
    colour = frame.assign(colour="violet")
    none = frame.assign(colour=None)
    assert np.isfinite(model.predict_proba(none)).all()
    assert model.predict_proba(colour).shape == (N, 4)
    order = frame.assign(size=pd.Categorical(["huge"] * N, ["huge"], ordered=True))
    assert model.predict_proba(order).shape == (N, 4)
    for name in frame.columns:
        empty = in_polars().with_columns(pl.lit(None).alias(name))
        assert np.isfinite(model.predict_proba(empty)).all()
    full = given(0.2).fit(frame.drop(columns="colour").assign(c=COLOUR), Y)  # none missing
    unseen = frame.drop(columns="colour")
    np.testing.assert_array_equal(
        full.predict_proba(unseen.assign(c="violet")), full.predict_proba(unseen.assign(c=None))
    )


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda f: f.assign(colour=1.0), r"column 0 \('colour'\) holds numbers, but held cat"),
        (
            lambda f: f.assign(length="x"),
            r"\('length'\) holds categories, but held num",
        ),
        (lambda f: f.assign(day=1), r"column 5 \('day'\) holds numbers, but held dates in fit"),
        (lambda f: f.assign(length=[[1]] * N), r"column 2 \('length'\) has the type .*\[1\]"),
        (lambda f: f.drop(columns="new"), "missing:\n- new"),
        (lambda f: f.assign(more=1), "unseen at fit time:\n- more"),
        (lambda f: f[f.columns[::-1]], "same order"),
        (lambda f: f.assign(length=np.inf), r"infinity in column 2 \('length'\)"),
    ],
)
def test_what_does_not_match_is_named(change, match):
    model = given().fit(in_pandas(), Y)
    with pytest.raises(ValueError, match=match):
        model.predict(change(in_pandas()))


def test_a_column_that_only_tells_what_is_missing():
    colour = pd.Series(np.where(RNG.rand(N) < 0.5, "red", "blue")).where(RNG.rand(N) < 0.6)
    frame = pd.DataFrame({"colour": colour, "length": LENGTH})
    y = colour.isna().astype(int)
    model = given(20.0, 1.0).fit(frame, y)
    assert {r.describe("colour") for r in model.rules_} == {"colour is missing"}
    assert model.score(frame, y) == 1.0
    mixed = pd.DataFrame({"a": pd.Categorical([3 if missing else "x" for missing in y])})
    model = given(20.0, 1.0).fit(mixed, y)
    assert model.score(mixed, y) == 1.0


def test_coefficients_of_a_frame_changed_by_hand():
    frame = in_pandas()
    model = given(0.2).fit(frame, Y)
    before = model.decision_function(frame)
    model.coef_, model.intercept_ = 2.0 * model.coef_, 2.0 * model.intercept_
    for _ in range(2):
        np.testing.assert_allclose(model.decision_function(frame), 2.0 * before, atol=1e-12)


def test_columns_by_name():
    frame = pd.DataFrame({"a": LENGTH, "b": COUNT, "c": COLOUR})
    model = given(0.2, categorical_features=["b", "c"]).fit(frame, Y)
    kinds = {r.feature: r.level for r in model.rules_ if r.threshold is None}
    assert {1, 2} == {*kinds}
    assert isinstance(kinds[1], float)
    with pytest.raises(ValueError, match="'d', which is no column of X"):
        given(categorical_features=["d"]).fit(frame, Y)
    for chosen in (["b"], None, []):
        with pytest.raises(ValueError, match=r"\('c'\) holds categories, but is not among"):
            given(categorical_features=chosen).fit(frame, Y)


def test_numbers_as_categories_are_their_own_levels():
    codes = pd.DataFrame({"a": LENGTH, "b": pd.Categorical(COUNT)})
    one = given(0.2).fit(codes, Y)
    other = given(0.2, categorical_features=[1]).fit(np.column_stack([LENGTH, COUNT]), Y)
    np.testing.assert_array_equal(
        one.predict_proba(codes), other.predict_proba(np.column_stack([LENGTH, COUNT]))
    )


def test_columns_of_no_use_are_told_once():
    frame = in_pandas().assign(id=[f"row {i}" for i in range(N)], same=1)
    with pytest.warns(UserWarning, match=r"'id'\) has another level.*'same'\) has the same"):
        given().fit(frame, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given().fit(in_pandas(), Y)


def test_in_the_company_of_scikit_learn():
    frame = in_pandas()
    fill = ColumnTransformer(
        [("fill", SimpleImputer(), ["length"])], remainder="passthrough"
    ).set_output(transform="pandas")
    assert cross_val_score(make_pipeline(fill, given()), frame, Y, cv=3).mean() > 0.8
    model = given().fit(frame, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert repr(clone(model).fit(frame, Y).rules_) == repr(model.rules_)


def test_the_order_of_rows_and_weights():
    frame, order = in_pandas(), RNG.permutation(N)
    weight = RNG.randint(3, size=N)
    one = given().fit(frame, Y, weight)
    moved = given().fit(frame.iloc[order], Y[order], weight[order])
    many = given().fit(frame.loc[frame.index.repeat(weight)], np.repeat(Y, weight))
    p = one.predict_proba(frame)
    np.testing.assert_array_equal(moved.predict_proba(frame), p)
    np.testing.assert_array_equal(many.predict_proba(frame), p)


def test_a_warm_start_knows_levels_by_their_names():
    frame = in_pandas()
    model = given(3.0, warm_start=True, tol=1e-7).fit(
        frame[COLOUR != "blue"], Y[COLOUR != "blue"]
    )
    model.set_params(alpha=0.5).fit(frame, Y)
    anew = given(0.5, tol=1e-7).fit(frame, Y)
    np.testing.assert_allclose(model.predict_proba(frame), anew.predict_proba(frame), atol=1e-3)


def test_those_of_the_paper_say_what_to_do():
    with pytest.raises(ValueError, match=r"'size'.*OneHotEncoder.*TCBoostClassifier"):
        AdaBoostMO().fit(in_pandas(), Y)
