"""Files of models of frames; the oracle is the model that was fitted to the frame."""

import json
from importlib.resources import files

import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pytest
from test_form_file import assert_same
from test_load import changed, refused
from test_rule_file import assert_same_model

import tcboost

SCHEMA = json.loads((files("tcboost.model") / "schema.json").read_text())
N = 200
SIZES = ["small", "medium", "large", "huge"]


def values(seed=0):
    """Columns of all kinds, some values missing; and the classes."""
    draw = np.random.default_rng(seed)
    colour = draw.choice(["red", "\u96ea", 'a "b"', "Infinity"], N).astype(object)
    size, length = draw.integers(3, size=N), draw.normal(size=N).round(1)
    day, hours = draw.integers(100, size=N), draw.integers(9, size=N)
    y = np.select(
        [colour == "red", (size == 2) | (length > 1), day > 60, hours > 4], [3, 2, 1, 0]
    )
    colour[draw.random(N) < 0.1], length[draw.random(N) < 0.1] = None, np.nan
    return colour, size, length, day, hours, draw.random(N) < 0.1, np.array(list("abcd"))[y]


def frames(seed=0):
    """The same in pandas and in polars."""
    colour, size, length, day, hours, missing, y = values(seed)
    sizes, days = np.array(SIZES)[size], np.datetime64("2020-02-01") + day
    in_pandas = pd.DataFrame(
        {
            "colour": pd.Series(colour, dtype=object),
            "size": pd.Categorical(np.where(missing, None, sizes), SIZES, ordered=True),
            "length": length,
            "day": pd.Series(pd.to_datetime(days)).where(~missing),
            "waited": pd.to_timedelta(hours, unit="h"),
            "rank": pd.Categorical(hours % 3, ordered=True, categories=[2, 0, 1]),
        }
    )
    gone = pl.Series(missing)
    in_polars = pl.DataFrame(
        {
            "colour": pl.Series(colour.tolist()),
            "size": pl.Series(sizes.tolist(), dtype=pl.Enum(SIZES)).set(gone, None),
            "length": pl.Series(length).fill_nan(None),
            "day": pl.Series(days.astype("datetime64[us]")).set(gone, None),
            "waited": pl.Series(hours * np.timedelta64(3_600_000_000, "us")),
        }
    )
    return in_pandas, in_polars, y


def through_file(model, tmp_path, **options):
    """What comes back, which makes the same bytes again, as the schema has them."""
    path, other = tmp_path / "model.json", tmp_path / "again.json"
    tcboost.save(model, path, **options)
    again = tcboost.load(path)
    tcboost.save(again, other, **options)
    assert other.read_bytes() == path.read_bytes()
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(path.read_bytes()))
    return again


@pytest.mark.parametrize("claim", [True, False])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 20.0])
def test_round_trip(alpha, claim, tmp_path):
    for seed in range(3):
        in_pandas, in_polars, y = frames(seed)
        in_pandas = in_pandas.drop(columns="rank")
        for frame in (in_pandas, in_polars):
            model = tcboost.TCBoostClassifier(alpha, 0.5).fit(frame, y)
            again = through_file(model, tmp_path, claim=claim)
            for new in (in_pandas, in_polars, frames(9)[1]):
                assert_same_model(model, again, new)
            if claim:
                assert_same(again.additive_, model.additive_)
            document = json.loads((tmp_path / "model.json").read_bytes())
            kinds = ["levels", "order", "number", "date", "duration"]
            assert document["features"]["kinds"] == kinds
            axes = {axis["kind"] for t in document["model"]["terms"] for axis in t["axes"]}
            assert {*document["requires"]} == axes
            if claim:
                assert "rules" not in document
                assert document["claim"]["orders"] == [[1, SIZES]]


def test_levels_in_an_order_may_be_numbers(tmp_path):
    frame, _, y = frames()
    model = tcboost.TCBoostClassifier(0.1, 0.5).fit(frame, y)
    again = through_file(model, tmp_path)
    assert_same_model(model, again, frame)
    assert any(rule.feature == 5 for rule in again.rules_)
    assert_same(again.additive_, model.additive_)


def test_levels_may_be_text_and_numbers(tmp_path):
    draw = np.random.default_rng(0)
    codes = draw.integers(4, size=N)
    frame = pd.DataFrame({"a": pd.Categorical([("x", 1, "y", 2.5)[c] for c in codes])})
    model = tcboost.TCBoostClassifier(0.1, 0.5).fit(frame, codes)
    assert {type(rule.level) for rule in model.rules_} > {str}
    assert_same_model(model, through_file(model, tmp_path), frame)


def test_a_form_alone(tmp_path):
    frame, _, y = frames()
    form = tcboost.TCBoostClassifier(0.1, 0.5).fit(frame, y).additive_
    assert_same(through_file(form, tmp_path), form)
    assert_same(through_file(form.rounded(1), tmp_path), form.rounded(1))


def test_rules_that_tables_do_not_tell(tmp_path):
    """One of each kind without effect, which the tables do not have."""
    frame, _, y = frames()
    whole = tcboost.TCBoostClassifier(0.1, 0.5).fit(frame, y)
    for j in range(frame.shape[1]):
        model = tcboost.TCBoostClassifier(0.1, 0.5).fit(frame, y)
        first = next(rule for rule in model.rules_ if rule.feature == j)
        right = first.level is None and not first.missing_right
        model.rules_.append(first._replace(missing_right=right))
        model.coef_ = np.concatenate([model.coef_, np.zeros((1, 4))])
        model._model = model.coef_, whole.additive_
        again = through_file(model, tmp_path)
        assert '"rules": {' in (tmp_path / "model.json").read_text()
        assert repr(again.rules_) == repr(model.rules_)
        np.testing.assert_array_equal(again.predict_proba(frame), whole.predict_proba(frame))


def test_a_loaded_model_is_gone_on_from(tmp_path):
    frame, other, y = frames()
    frame = frame.drop(columns="rank")
    model = tcboost.TCBoostClassifier(3.0, 0.5, warm_start=True).fit(frame, y)
    again = through_file(model, tmp_path)
    for one, rows in ((model, frame), (again, other)):
        one.set_params(alpha=0.5).fit(rows, y)
    assert_same_model(model, again, frame)


@pytest.mark.parametrize(
    ("pointer", "value", "why"),
    [
        ("/features/kinds", ["number"], "list of 6"),
        ("/features/kinds/1", "cycle", "'order'"),
        ("/features/kinds", "number", "list"),
        ("/features/kinds/2", "date", "too "),
        ("/claim/orders", [[6, ["a"]]], "from 0 to 5"),
        ("/claim/orders", [[1, ["a", "a"]]], "twice"),
        ("/claim/orders", [[1, [None]]], "must be str"),
        ("/claim/orders", [[1]], "list of 2"),
        ("/claim/orders", {"1": []}, "list"),
        ("/model/terms/1/axes/0/levels", [], "list of"),
        ("/model/terms/1/table/3/0", 0.0, "not those of|missing"),
        ("/model/terms/1/table/5/0", 0.0, "as a missing one"),
        ("/model/terms/0/axes/0/levels/0", ["a"], "must be str"),
    ],
)
def test_what_no_model_has(pointer, value, why, tmp_path):
    frame, _, y = frames()
    model = tcboost.TCBoostClassifier(0.1, 0.5).fit(
        frame.assign(length=frame.length * 1e300), y
    )
    tcboost.save(model, tmp_path / "model.json")
    text = (tmp_path / "model.json").read_bytes()
    refused(changed(text, pointer, value), tmp_path, why)


def test_levels_of_an_order_are_one_or_more(tmp_path):
    frame, _, y = frames()
    tcboost.save(tcboost.TCBoostClassifier(0.1, 0.5).fit(frame, y), tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_bytes())
    document["claim"], term = None, document["model"]["terms"][1]
    term["axes"][0]["levels"] = []
    term["table"], term["weight"] = term["table"][:1] * 2, term["weight"][:2]
    refused(json.dumps(document), tmp_path, "in an order", "/model/terms/1/table")
