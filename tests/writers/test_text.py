"""What writers promise beside their predictions: arguments, files, names, and integers of C."""

import ast
import re
import sqlite3
from pathlib import Path

import duckdb
import numpy as np
import onnxruntime
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from writer_engines import c, compiled
from writer_models import MODELS, by_hand, columns, cuts, rows

import tcboost
from tcboost.model import AdditiveModel, Levels, Ordered, Term

WRITERS = [
    tcboost.to_c,
    tcboost.to_sql,
    tcboost.to_python,
    tcboost.to_javascript,
    tcboost.to_onnx,
]
every = pytest.mark.parametrize("write", WRITERS)


@every
def test_the_same_text_goes_to_the_file(write, tmp_path):
    text = write(MODELS["text"](), tmp_path / "model")
    found = (tmp_path / "model").read_bytes()
    assert found == (text if isinstance(text, bytes) else text.encode())
    assert write(MODELS["text"]()) == text


@every
def test_an_estimator_and_its_form_are_written_alike(write):
    model = MODELS["default"]()
    assert write(model) == write(model.additive_)


@every
def test_what_cannot_be_written_says_so(write):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(NotFittedError):
        write(tcboost.AdaBoostMO())
    with pytest.raises(AttributeError, match="weak_learner='lda' makes no tables"):
        write(tcboost.AdaBoostMO(weak_learner="lda", max_iter=3).fit(X, y))
    with pytest.raises(TypeError, match="additive_, not a dict"):
        write({})
    mixed = by_hand([((0,), (Levels(("a", 1)),))], [0, 1])
    with pytest.raises(ValueError, match="feature 0 is of text and of numbers"):
        write(mixed)
    labels = by_hand([], np.array(["a", 1], dtype=object), n_features=1)
    with pytest.raises(ValueError, match="labels must be"):
        write(labels)


def test_arguments_that_are_none():
    model = MODELS["constant"]()
    with pytest.raises(ValueError, match="postgresql, duckdb, sqlite, but is 'oracle'"):
        tcboost.to_sql(model, dialect="oracle")
    for name in ("2nd", "a-b", "", "é", "a\n"):
        with pytest.raises(ValueError, match="name must be an identifier of C"):
            tcboost.to_c(model, name=name)
    for bits in (8, 64, "32", True):
        with pytest.raises(ValueError, match="bits must be None, 32 or 16"):
            tcboost.to_c(model, bits=bits)


def test_text_that_a_language_cannot_hold():
    model = by_hand([((0,), (Levels(("a\0b",)),))], ["x", "y"])
    with pytest.raises(ValueError, match="in C ends at a zero"):
        tcboost.to_c(model)
    with pytest.raises(ValueError, match="has no zeros"):
        tcboost.to_sql(model)


def test_columns_that_are_one_are_an_error_only_where_they_are_used():
    axis = Ordered(np.array([0.0]))
    used = by_hand([((0,), (axis,)), ((1,), (axis,))], [0, 1], feature_names=("a", "a"))
    with pytest.raises(ValueError, match="both called 'a'"):
        tcboost.to_sql(used)
    other = by_hand([((1,), (axis,))], [0, 1], n_features=3, feature_names=("a", "b", "a"))
    assert tcboost.to_sql(other)


def test_numbers_of_no_unit_are_no_integers():
    rng = np.random.default_rng(0)
    axis = cuts(rng, 3)
    terms = (Term((0,), (axis,), np.exp(rng.normal(scale=30, size=(5, 2)))),)
    model = AdditiveModel(1, None, np.array([0, 1]), terms, np.zeros(2))
    with pytest.raises(ValueError, match="rounded"):
        tcboost.to_sql(model)


def test_inputs_of_onnx_have_names_of_their_own():
    levels, axis = Levels(("a", "b")), Ordered(np.array([0.0]))
    terms = [((j,), (axis if j else levels,)) for j in range(6)]
    names = ("label", "/1", "a", "a", "", "probabilities")
    model = by_hand(terms, ["x", "y", "z"], feature_names=names)
    session = onnxruntime.InferenceSession(tcboost.to_onnx(model))
    inputs = [each.name for each in session.get_inputs()]
    assert inputs == ["label_", "/1", "a", "a_", "x4", "probabilities_"]
    fed = {name: np.array([-1.0, 1.0]) for name in inputs[1:]}
    label = session.run(["label"], {"label_": np.array(["b", "c"], dtype=object), **fed})[0]
    X = np.array([["b", *[-1.0] * 5], ["c", *[1.0] * 5]], dtype=object)
    assert label.tolist() == model.classes[model.best(X)].tolist()


def test_a_select_of_a_view_and_of_no_rows():
    model = MODELS["stage_wise"]()
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA s")
    connection.execute("CREATE VIEW s.v AS SELECT 1 AS x0, 2 AS x1, 3::FLOAT AS x2, 4 AS x3")
    query = tcboost.to_sql(model, table="s.v", dialect="duckdb")
    form = model.additive_
    label = form.classes[form.best([[1.0, 2.0, 3.0, 4.0]])][0]
    assert connection.execute(query).fetchone()[:5] == (1, 2, 3.0, 4, label)
    assert connection.execute(f"SELECT * FROM ({query}) WHERE x0 > 1").fetchall() == []
    connection.close()


def test_a_select_of_the_frame_of_the_fit():
    """Its columns are ENUM, TIMESTAMP_NS, INTERVAL, ..."""
    model, (data, _) = MODELS["frame"](), columns()
    query = tcboost.to_sql(model, dialect="duckdb")
    found = duckdb.sql(query).df()
    assert found.prediction.tolist() == model.predict(data).tolist()
    p = found.filter(regex="^p_").to_numpy()
    np.testing.assert_allclose(p, model.predict_proba(data), rtol=0, atol=1e-12)


def test_a_select_without_probabilities_needs_no_exp():
    text = tcboost.to_sql(MODELS["stage_wise"](), dialect="sqlite", probabilities=False)
    assert "EXP" not in text
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE data (x0, x1, x2, x3, prediction)")
    connection.execute("INSERT INTO data VALUES (1, 2, NULL, 4, 5)")
    form = MODELS["stage_wise"]().additive_
    label = form.classes[form.best([[1.0, 2.0, np.nan, 4.0]])][0]
    assert connection.execute(text).fetchall() == [(1, 2, None, 4, 5, label)]
    connection.close()


def test_features_of_sqlite_that_are_called_as_its_rowid():
    axis = cuts(np.random.default_rng(0), 9)
    terms = [((0,), (axis,)), ((1,), (axis,))]
    model = by_hand(terms, [0, 1, 2], feature_names=("_rowid_", "ROWID"))
    X = np.repeat(rows(model, 60), 2, axis=0)[:, [0, 0]]
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE data (_rowid_ DOUBLE, ROWID DOUBLE)")
    connection.executemany("INSERT INTO data VALUES (?, ?)", X.tolist())
    found = connection.execute(tcboost.to_sql(model, dialect="sqlite")).fetchall()
    assert [row[2] for row in found] == model.best(X).tolist()
    connection.close()


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize(
    "name", ["default", "couples", "text", "constant", "ties", "letters", "decoded"]
)
def test_integers_of_c(name, bits, tmp_path):
    """No score is further away than the text says, and a safe margin is one."""
    model = MODELS[name]()
    form = getattr(model, "additive_", model)
    X = rows(form, 500)
    off, margin = map(float, re.findall(r"more? than ([\d.e+-]+?)[;,]", _said(model, bits)))
    found = c(model, X, tmp_path, bits=bits)
    scores = form.scores(X)
    assert found.probabilities is None
    assert np.abs(found.scores - scores).max() <= off
    second, first = np.sort(scores, axis=1)[:, -2:].T
    sure = first - second > margin
    same = np.array(found.labels) == form.classes[form.best(X)]
    assert same[sure].all()
    assert sure.mean() > 0.5 or name == "ties"
    if name == "ties":  # small integers lose nothing, ties included
        assert off == 0.0
        assert same.all()


def _said(model, bits):
    text = tcboost.to_c(model, bits=bits)
    return text.replace("at most", "more than").split("*/")[0]


def test_two_models_of_c_in_one_program(tmp_path):
    first = tcboost.to_c(MODELS["stage_wise"](), name="int")
    second = tcboost.to_c(MODELS["text"](), name="second", bits=16)
    library = compiled(first + second, tmp_path)
    assert library.second_level(0, b"red") == library.second_level(0, b"red") >= 0
    assert library.second_level(0, b"re") == library.second_level(1, b"red") == -1


def test_html_and_c_are_not_ended_by_labels():
    assert "</script" not in tcboost.to_javascript(MODELS["text"]())
    assert "</script" not in tcboost.to_javascript(MODELS["default"]())
    comment = tcboost.to_c(MODELS["default"]()).split("#include")[0]
    assert comment.count("/*") == comment.count("*/") == 1


def test_writers_know_nothing_of_the_fit():
    """They import the form, how files are replaced, NumPy and the standard library."""
    folder = Path(tcboost.__file__).parent / "writers"
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                assert node.module in ("model.additive", "model.replace"), file
