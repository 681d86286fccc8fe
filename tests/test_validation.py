"""What is said of data that cannot be taken: where, what is wrong, and what to do."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import tcboost
from tcboost import (
    AdaBoostMO,
    MultiBoostMO,
    MultiBoostSAMME,
    TCBoostClassifier,
    solve_master,
    theta_path,
)

X, y = load_iris(return_X_y=True)
COLOUR = np.array(["red", "green", "blue"])[y]
DAYS = pd.date_range("2020-01-01", periods=150)


def frame(**columns):
    return pd.DataFrame({"length": X[:, 0], "width": X[:, 1], **columns})


def polars(column):
    return pl.DataFrame({"length": X[:, 0], "colour": column})


ENCODE, NUMBERS = "OneHotEncoder", "give them as numbers"
BAD = {
    "strings": (np.column_stack([X.astype(object), COLOUR]), "column 4 of X", ENCODE),
    "one string": ([[1.0, 2.0], [3.0, "x"]] * 75, "column 1 of X holds strings.*'x'", ENCODE),
    "bytes": (np.full((150, 2), b"red"), "column 0 of X holds strings, such as b'red'", ENCODE),
    "pandas, strings": (frame(colour=COLOUR), r"column 2 \('colour'\) of X.*strings", ENCODE),
    "pandas, categories": (
        frame(colour=pd.Categorical(COLOUR)),
        r"column 2 \('colour'\) of X holds categories",
        ENCODE,
    ),
    "pandas, categories of integers": (
        frame(colour=pd.Categorical(y)),
        r"column 2 \('colour'\) of X holds categories",
        ENCODE,
    ),
    "pandas, dates": (frame(day=DAYS), r"column 2 \('day'\) of X holds dates", NUMBERS),
    "pandas, only dates": (pd.DataFrame({"day": DAYS}), r"\('day'\) of X holds dates", NUMBERS),
    "pandas, times": (frame(t=DAYS - DAYS[0]), r"\('t'\) of X holds dates or times", NUMBERS),
    "objects that are dates": (
        frame(day=[datetime.date(2020, 1, 1)] * 150),
        r"\('day'\) of X holds dates or times, such as",
        NUMBERS,
    ),
    "pandas, what is missing": (frame(a=[pd.NA, 1] * 75), r"\('a'\) of X holds <NA>", ""),
    "polars, strings": (polars(COLOUR), r"column 1 \('colour'\) of X holds strings", ENCODE),
    "polars, categories": (
        polars(pl.Series(COLOUR, dtype=pl.Categorical)),
        r"column 1 \('colour'\) of X holds categories",
        ENCODE,
    ),
    "polars, dates": (
        polars([datetime.date(2020, 1, 1)] * 150),
        r"column 1 \('colour'\) of X holds dates",
        NUMBERS,
    ),
    "dates": (np.array(DAYS)[:, None], "X holds dates", NUMBERS),
    "a sparse matrix": (csr_matrix(X), "[Ss]parse", "toarray"),
    "rows of two lengths": ([[1.0, 2.0], [3.0]] * 75, "rows of X differ in length: 2 .* 1", ""),
    "lists in a table": ([[1.0, [2.0]]] * 150, "column 1 of X holds lists", "one number"),
    "infinity": (
        frame(c=np.r_[np.inf, X[1:, 2]]),
        r"X contains infinity in column 2 \('c'\)",
        "NaN for what is missing",
    ),
}


TAKEN = {k for k in BAD if k.startswith(("pandas", "polars", "objects"))}  # by frames


@pytest.mark.parametrize(
    ("cls", "case"),
    [(AdaBoostMO, case) for case in BAD]
    + [(TCBoostClassifier, case) for case in BAD if case not in TAKEN],
)
def test_a_column_that_is_no_number_is_named(cls, case):
    bad, what, remedy = BAD[case]
    with pytest.raises((TypeError, ValueError), match=what) as fitting:
        cls().fit(bad, y)
    assert remedy in str(fitting.value)
    assert "np." not in str(fitting.value)


@pytest.mark.parametrize("case", sorted(TAKEN))
def test_what_a_frame_holds_is_taken(case):
    table = BAD[case][0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of columns of no use
        model = TCBoostClassifier(2.0, 0.5).fit(table, y)
    assert model.predict_proba(table).shape == (150, 3)


def test_it_is_named_at_prediction_too():
    numbers = frame(c=y)
    model = AdaBoostMO().fit(numbers, y)
    for column, what in ((pd.Categorical(y), "categories"), (COLOUR, "strings")):
        with pytest.raises(ValueError, match=rf"column 2 \('c'\) of X holds {what}"):
            model.predict(numbers.assign(c=column))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(numbers.rename(columns={"c": "d"}))
    with pytest.raises(ValueError, match="2 features"):
        AdaBoostMO(max_iter=3).fit(X, y).predict(X[:, :2])


def test_thinning_names_it_too():
    numbers = frame(c=y)
    forest = RandomForestClassifier(5, random_state=0).fit(numbers, y)
    with pytest.raises(ValueError, match=r"column 2 \('c'\) of X holds categories"):
        tcboost.thin(forest, numbers.assign(c=pd.Categorical(y)), y, theta=2.0)


def test_what_scikit_learn_takes_for_numbers_is_taken():
    integers = pd.DataFrame({"a": pd.array([None, 2] * 75, dtype="Int64"), "b": y > 1})
    for table in (integers, X.astype(object), (X > 1).tolist(), polars(y), X.astype("f2")):
        assert AdaBoostMO(max_iter=3).fit(table, y).predict(table).shape == (150,)


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (np.where(y == 0, np.nan, y), r"y contains NaN in row 0"),
        (np.where(y == 0, np.inf, y), r"y contains infinity"),
        (np.where(y == 1, None, COLOUR), r"y contains None in row 50"),
        (np.where(y == 1, np.nan, COLOUR.astype(object)), r"y contains NaN in row 50"),
        (np.where(y == 1, 7, COLOUR.astype(object)), r"y mixes strings with other labels"),
        (np.where(y == 1, np.datetime64("NaT", "ns"), DAYS), "y contains .* in row 50: leave"),
        (np.zeros(150), r"one class only \(0\.0\)"),
    ],
)
def test_bad_labels_are_named(labels, match):
    with pytest.raises(ValueError, match=match):
        AdaBoostMO().fit(X, labels)


def test_which_of_the_two_it_is():
    missing = frame(c=np.r_[X[:149, 2], np.nan])
    for model in (AdaBoostMO(weak_learner="lda"), MultiBoostSAMME()):
        with pytest.raises(ValueError, match=r"NaN in column 2 \('c'\): .* fill it in"):
            model.fit(missing, y)
    for value, what in ((np.nan, "NaN"), (-np.inf, "infinity")):
        with pytest.raises(ValueError, match=f"rho contains {what}$"):
            solve_master([[1.0, value]], theta=1.0)


def test_numbers_are_printed_as_numbers():
    zero = np.float64(0.0)
    calls = [
        lambda: AdaBoostMO().fit(X, y, np.full(150, "heavy")),
        lambda: MultiBoostMO(theta=zero).fit(X, y),
        lambda: TCBoostClassifier(class_weight={0: np.float64(np.inf)}).fit(X, y),
        lambda: solve_master(X, theta=zero),
        lambda: theta_path(MultiBoostMO(), X, y, thetas=[zero]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"0\.0|inf|sample_weight must be") as refused:
            call()
        assert "np." not in str(refused.value)
