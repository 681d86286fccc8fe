"""Each writer's text, run by what it is written for: labels, scores, probabilities."""

import ctypes
import json
import shutil
import sqlite3
import subprocess
from typing import NamedTuple

import duckdb
import numpy as np
import onnxruntime
import pandas as pd
import pytest

import tcboost


class Found(NamedTuple):
    labels: list
    scores: np.ndarray | None
    probabilities: np.ndarray | None


def missing(x):
    return x is None or x != x


def text_columns(X):
    return [j for j in range(X.shape[1]) if any(isinstance(x, str) for x in X[:, j].tolist())]


def compiled(text, folder, *flags):
    """The library that a strict compiler makes of C."""
    compiler = shutil.which("gcc") or pytest.skip("there is no gcc")
    source, library = folder / "model.c", folder / "model.so"
    source.write_text(text, encoding="utf-8")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", *flags]
    command = [compiler, *strict, "-shared", "-fPIC", source, "-o", library, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(library)


def c(model, X, folder, **options):
    form = getattr(model, "additive_", model)
    library = compiled(tcboost.to_c(model, **options), folder)
    numbers, text = np.empty(X.shape), text_columns(X)
    for j in range(X.shape[1]):
        column = X[:, j].tolist()
        if j in text:
            level = {
                t: library.model_level(j, t.encode()) for t in set(column) if not missing(t)
            }
            column = [np.nan if missing(t) else level[t] for t in column]
        numbers[:, j] = column
    n, width = len(X), len(form.classes)
    scores, p = np.full((2, n, width), np.nan)
    at = ctypes.c_void_p
    rows = [at(row.ctypes.data) for row in numbers]
    places = [library.model_predict(row) for row in rows]
    for i, row in enumerate(rows):
        library.model_scores(row, at(scores[i].ctypes.data))
    knows = hasattr(library, "model_probabilities")
    for i, row in enumerate(rows):
        if knows:
            library.model_probabilities(row, at(p[i].ctypes.data))
    return Found(form.classes[places].tolist(), scores, p if knows else None)


def python(model, X, folder):
    module = {}
    exec(tcboost.to_python(model), module)
    rows = X.tolist()
    labels = [module["predict"](row) for row in rows]
    scores = np.array([module["scores"](row) for row in rows])
    try:
        return Found(labels, scores, np.array([module["probabilities"](row) for row in rows]))
    except ValueError:
        return Found(labels, scores, None)


_DRIVER = """
import { readFileSync, writeFileSync } from "fs";
import { classes, predict, scores, probabilities } from "./model.mjs";
const absent = [null, undefined, NaN];
const rows = JSON.parse(readFileSync("rows.json")).map((row, i) => row.map((x) =>
  x === null ? absent[i % 3] : typeof x === "string" && x[0] === "#" ? Number(x.slice(1)) :
  typeof x === "string" ? x.slice(1) : x));
let p = null;
try { p = rows.map(probabilities); } catch (e) {}
const label = (x) => typeof x === "bigint" ? String(x) : x;
const labels = rows.map(predict).map(label);
const found = { labels, classes: classes.map(label), scores: rows.map(scores), p };
writeFileSync("found.json", JSON.stringify(found));
"""


def javascript(model, X, folder):
    node = shutil.which("node") or pytest.skip("there is no node, of Debian's package nodejs")
    tcboost.to_javascript(model, folder / "model.mjs")
    (folder / "driver.mjs").write_text(_DRIVER)

    def sent(x):
        if missing(x):
            return None
        if isinstance(x, str):
            return f"={x}"
        return float(x) if np.isfinite(x) else "#" + str(x).replace("inf", "Infinity")

    (folder / "rows.json").write_text(
        json.dumps([[sent(x) for x in row] for row in X.tolist()])
    )
    subprocess.run([node, "driver.mjs"], cwd=folder, check=True)
    found = json.loads((folder / "found.json").read_text())
    labels, p = found["labels"], found["p"]
    kind = type(getattr(model, "additive_", model).classes.tolist()[0])
    return Found(
        [kind(label) for label in labels],
        np.array(found["scores"], dtype=float),
        None if p is None else np.array(p),
    )


def columns_of(model):
    form = getattr(model, "additive_", model)
    names = form.feature_names or [""] * form.n_features
    return [name or f"x{j}" for j, name in enumerate(names)]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def selected(rows, names, columns, n_classes):
    """What a SELECT has put out; it has all columns of the table, in their order."""
    start = 1 + len(columns)
    assert names[:start] == ["number", *columns]
    rows = sorted(rows)
    assert [row[0] for row in rows] == list(range(len(rows)))
    p = [row[start + 1 :] for row in rows]
    wanted = ["prediction", *(f"p_{k + 1}" for k in range(n_classes))]
    assert names[start:] == (wanted if p[0] else wanted[:1])
    return Found([row[start] for row in rows], None, np.array(p) if p[0] else None)


def sqlite(model, X, folder):
    classes = getattr(model, "additive_", model).classes
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("SELECT EXP(0.0)")
    except sqlite3.OperationalError:
        connection.create_function("EXP", 1, np.exp)
    names = columns_of(model)
    text = text_columns(X)
    kinds = ["TEXT" if j in text else "DOUBLE" for j in range(len(names))]
    of = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(names, kinds, strict=True))
    connection.execute(f'CREATE TABLE "da""ta" (number INTEGER, {of})')
    places = ", ".join("?" * (len(names) + 1))
    rows = [(i, *row) for i, row in enumerate(X.tolist())]
    connection.executemany(f'INSERT INTO "da""ta" VALUES ({places})', rows)
    cursor = connection.execute(tcboost.to_sql(model, table='da"ta', dialect="sqlite"))
    put_out = [column[0] for column in cursor.description]
    found = selected(cursor.fetchall(), put_out, names, len(classes))
    connection.close()
    if classes.dtype == bool:
        return found._replace(labels=list(map(bool, found.labels)))
    return found


TYPES_OF_TIME = {"date": "make_timestamp", "duration": "to_microseconds"}


def duck(model, X, folder):
    """Every other missing number is NULL, the others are NaN; times are of their types."""
    names, text = columns_of(model), text_columns(X)
    kinds = getattr(model, "additive_", model).kinds or [""] * len(names)
    connection = duckdb.connect()
    columns = {
        f"c{j}": X[:, j] if j in text else X[:, j].astype(float) for j in range(X.shape[1])
    }
    frame = pd.DataFrame({"number": range(len(X)), **columns})  # noqa: F841 - DuckDB finds it
    of = [
        f"c{j} AS {quoted(name)}"
        if j in text
        else f"{TYPES_OF_TIME[kinds[j]]}((c{j} * 1e6)::BIGINT) AS {quoted(name)}"
        if kinds[j] in TYPES_OF_TIME
        else f"CASE WHEN number % 2 = 0 THEN c{j} ELSE COALESCE(c{j}, 'NaN'::DOUBLE) END "
        f"AS {quoted(name)}"
        for j, name in enumerate(names)
    ]
    connection.execute(f'CREATE TABLE "da""ta" AS SELECT number, {", ".join(of)} FROM frame')
    result = connection.execute(tcboost.to_sql(model, table='da"ta', dialect="duckdb"))
    put_out = [column[0] for column in result.description]
    width = len(getattr(model, "additive_", model).classes)
    found = selected(result.fetchall(), put_out, names, width)
    connection.close()
    return found


def onnx(model, X, folder):
    session = onnxruntime.InferenceSession(tcboost.to_onnx(model))
    names, text = [each.name for each in session.get_inputs()], text_columns(X)
    if names == ["X"]:
        assert session.get_inputs()[0].shape[1] == X.shape[1]
        fed = {"X": X.astype(float)}
    else:
        fed = {
            name: np.array(["" if missing(x) else x for x in X[:, j]], dtype=object)[:, None]
            if j in text
            else X[:, j].astype(float)
            for j, name in enumerate(names)
        }
    outputs = [each.name for each in session.get_outputs()]
    assert outputs == ["label", "probabilities"][: len(outputs)]
    labels, *p = session.run(None, fed)
    return Found(labels.tolist(), None, p[0] if p else None)


ENGINES = {f.__name__: f for f in (c, python, javascript, sqlite, duck, onnx)}
