"""What is taken for a model file: nothing else, nothing damaged, no more than was asked for."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import tracemalloc
import zlib

import numpy as np
import pytest
from sklearn.datasets import load_iris

import tcboost
from tcboost import AdaBoostECC, AdaBoostMO, ModelFileError, TCBoostClassifier


def iris():
    X, y = load_iris(return_X_y=True)
    return X[::2], y[::2]


def changed(content, pointer, value):
    """The text of a document with another value at a place, or without it."""
    document = json.loads(content)
    *way, last = pointer.strip("/").split("/")
    inside = document
    for name in way:
        inside = inside[int(name) if isinstance(inside, list) else name]
    last = int(last) if isinstance(inside, list) else last
    if value is GONE:
        del inside[last]
    else:
        inside[last] = value
    return json.dumps(document)


GONE = object()


def refused(text, folder, why, pointer=None):
    path = folder / "other.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ModelFileError, match=why or None) as info:
        tcboost.load(path)
    message = str(info.value)
    assert len(message) <= 2000
    assert str(path) in message
    assert re.match(re.escape(pointer) + ": " if pointer else r"/[^ ]*: ", message), message
    assert isinstance(info.value, ValueError)


# ---------------------------------------------------------------- the format


def test_a_file_is_text_that_people_can_read(either):
    text = either.decode()
    document = json.loads(text)
    assert text.endswith("}\n")
    assert document["format"] == "tcboost-model"
    assert document["version"] == 2
    assert document["tcboost"] == tcboost.__version__
    for term in document["model"]["terms"]:
        for row in term["table"]:
            assert f" {json.dumps(row)}" in text  # on a line of its own
            assert (
                f"{json.dumps(row)}\n"
                not in text.replace(",\n", "\n").replace(json.dumps(row), "", 1)
                or term["table"].count(row) > 1
            )
    assert {"loss", "primal", "dual"} <= document["claim"].keys()


def test_the_same_bytes_again_whatever_the_name(either, tmp_path):
    plain, packed = tmp_path / "model.json", tmp_path / "model.json.gz"
    plain.write_bytes(either)
    model = tcboost.load(plain)
    tcboost.save(model, packed)
    assert packed.read_bytes()[:2] == b"\x1f\x8b"
    assert packed.read_bytes()[4:8] == bytes(4)  # no time stamp
    assert gzip.decompress(packed.read_bytes()) == either
    packed.rename(tmp_path / "model")
    again = tcboost.load(tmp_path / "model")
    for name in ("other", "other.gz", "other.txt"):
        tcboost.save(again, tmp_path / name)
        assert (tmp_path / name).read_bytes() == either


def test_the_claim_may_be_left_out(either, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(either)
    model = tcboost.load(path)
    tcboost.save(model, path, claim=False)
    assert json.loads(path.read_bytes())["claim"] is None
    again = tcboost.load(path)
    assert again.additive_.claim is None
    assert str(again.certificate_) == str(model.certificate_)
    X = iris()[0]
    assert again._ensemble().scores(X).tobytes() == model._ensemble().scores(X).tobytes()


def test_numbers_may_be_written_in_any_way(either, tmp_path):
    """Integers for doubles, spaces, escapes, another order of the keys."""
    document = json.loads(either)
    document = dict(reversed(document.items()))
    text = json.dumps(document, indent=3).replace("setosa", "set\\u006fsa")
    path = tmp_path / "other.json"
    path.write_text(re.sub(r"\b(\d+)\.0\b", r"\1", text))
    again = tcboost.load(path)
    (tmp_path / "model.json").write_bytes(either)
    X, model = iris()[0], tcboost.load(tmp_path / "model.json")
    assert again._ensemble().scores(X).tobytes() == model._ensemble().scores(X).tobytes()


def test_what_a_later_version_may_add_is_ignored(either, tmp_path):
    document = json.loads(either)
    document["news"] = document["model"]["news"] = {"of": ["a", {"later": "version"}]}
    document["estimator"]["parameters"]["more"] = 3
    path = tmp_path / "later.json"
    path.write_text(json.dumps(document))
    assert tcboost.load(path).n_features_in_ == 4


@pytest.mark.parametrize(
    ("pointer", "value", "why"),
    [
        ("/version", 3, "of version 3, not 2, .* by tcboost 9.9.9"),
        ("/version", 1, "of version 1, not 2"),
        ("/version", True, "integer"),
        ("/version", GONE, "integer"),
        ("/requires/0", "cubes", "knows 'cubes'; by tcboost 9.9.9"),
        ("/requires", GONE, "list"),
    ],
)
def test_what_a_reader_must_know(either, pointer, value, why, tmp_path):
    text = changed(changed(either, "/tcboost", "9.9.9"), pointer, value)
    refused(text, tmp_path, why, pointer)


def test_what_is_no_model_file(saved, tmp_path):
    archive = io.BytesIO()
    np.savez(archive, header=np.array("{}"))
    refused(archive.getvalue(), tmp_path, "version 1 .npz., which is no longer read")
    for text in ("", "{", "[]", "3", "{}", '{"format": "other"}', "a,b\n1,2\n", "null", '"x"'):
        refused(text, tmp_path, "not a tcboost model file")
    refused(saved.decode().encode("utf-16"), tmp_path, "not a tcboost model file")
    refused(b"\x1f\x8b" + saved, tmp_path, "not a tcboost model file")
    refused(gzip.compress(saved)[:-1], tmp_path, "gzip")
    refused(gzip.compress(saved) + b"x", tmp_path, "gzip")


def test_what_the_parser_would_take(either, tmp_path):
    text = either.decode()
    for literal in ("NaN", "Infinity", "-Infinity", "1e999", "-1e999"):
        other = re.sub(r'("primal": )[^,]*', rf"\g<1>{literal}", text, count=1)
        refused(other, tmp_path, "not a finite number", "/claim/primal")
        inside = f'{{"news": [{{"a/b~": [0, {literal}]}}],' + text[1:]
        refused(inside, tmp_path, "not a finite number", "/news/0/a~1b~0/1")
    for literal in (2**53 + 1, -(2**53) - 1, 10**400, "1" * 5000):
        refused(
            f'{{"news": {literal},{text[1:]}',
            tmp_path,
            "integer above 2^53".replace("^", r"\^"),
            "/news",
        )
    refused(f'{{"version": 2,{text[1:]}', tmp_path, "'version' is there twice", "/")
    refused(
        f'{{"n": {{"{"k" * 9000}": 1, "{"k" * 9000}": 1}},{text[1:]}',
        tmp_path,
        "twice|kkk",
        "/n",
    )


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        tcboost.load(tmp_path / "nowhere.json")


# ---------------------------------------------------------------- what no model has


TABLE = "/model/terms/0/table"
WRONG = [
    ("/model/unit", 2000, "from -1074"),
    ("/model/unit", -60, "multiple|2\\^53"),
    ("/model/link", "probit", "softmax"),
    ("/model/kind", "magic", "additive"),
    ("/model/size", -1.0, "from 0"),
    ("/model/probability_scale", "x", "not a finite number"),
    ("/model/intercept", [0.0], "list|classes"),
    ("/model/intercept/1", 1e-300, "multiple"),
    ("/model/terms/0/inputs", [4], "from 0 to 3"),
    ("/model/terms/0/inputs", [1, 1], "ascend"),
    ("/model/terms/0/inputs", [], "ascend"),
    ("/model/terms/0/axes", [], "list of 1"),
    ("/model/terms/0/axes/0/kind", "cyclic", "ordered"),
    ("/model/terms/0/axes/0/cuts", [2.0, 1.0], "above the one before"),
    ("/model/terms/0/axes/0/cuts", ["1"], "not a finite number"),
    (f"{TABLE}/1/0", None, "not a finite number"),
    (f"{TABLE}/1/0", "1", "not a finite number"),
    (f"{TABLE}/1/0", True, "not a finite number"),
    (f"{TABLE}/1/0", 1e-300, "multiple"),
    (f"{TABLE}/1/0", 1e300, "below"),
    (f"{TABLE}/1", [0.0], "list of 3"),
    (TABLE, [], "list of"),
    ("/model/terms/0/weight/0", -0.5, "from 0"),
    ("/features/count", 0, "from 1"),
    ("/features/names", ["a"], "list of 4"),
    ("/features/names/1", 3, "string"),
    ("/classes/type", "complex64", "bool"),
    ("/classes/values", ["a", "b", "b"], "ascend"),
    ("/classes/values", ["a"], "ascend"),
    ("/classes/values/0", 1, "must be str"),
    ("/claim/loss", "huber", "cross-entropy"),
    ("/claim/ridge", -1.0, "from 0"),
    ("/claim/cuts", [[0.0]], "list of 4"),
    ("/claim/unused_features", [9], "from 0 to 3"),
    ("/claim/n_rows", 1.5, "integer"),
    ("/claim/codes", [[0], [1], [1]], "-1 or 1"),
    ("/claim/witness", {"place": [1.5], "weight": [1.0]}, "not an integer"),
    ("/claim/witness", {"place": [-1], "weight": [1.0]}, "from 0"),
    ("/estimator/name", "save", "AdaBoostMO"),
    ("/estimator/name", "AdaBoostSAMME", "AdaBoostMO"),
    ("/estimator/parameters", [], "object"),
    ("/fitted/theta", None, "finite"),
    ("/fitted/certificate", {}, ""),
    ("/history", [], "object"),
    ("/history/gap/0", "x", "not a number"),
]
WRONG_PAPER = [
    ("/estimator/parameters/max_iter", 0, "max_iter"),
    ("/model/columns/0/weight", 0.5, "not those of the rules or columns"),
    ("/model/columns/0/weight", "1", "not a finite number"),
    ("/model/columns/1/code/1", 0, "-1 or 1"),
    ("/model/columns/1/code", [1, 1], "list of 3"),
    ("/model/columns/1/stumps/0/0", 9, "feature"),
    ("/model/columns/0/stumps/0/1", 1.0, "not those of"),
    ("/model/columns/1/stumps/0/1", None, "threshold"),
    ("/model/columns/1/stumps/0/2", 2, "threshold"),
    ("/model/columns/1/stumps/0/3", 1, "threshold"),
    ("/model/columns/1/stumps", [], "list of 1"),
    ("/model/columns/1/stumps", GONE, "stumps, products"),
    ("/model/columns", GONE, "list"),
    ("/model/decode", [[1, 1, 1], [1, -1, 1], [1, 1, -1]], "code|2\\^|columns"),
    ("/model/probability_scale", None, "probabilities"),
    ("/claim/theta", -1.0, "from 0"),
    ("/fitted/certificate/unused_features", ["e"], "features"),
    ("/fitted/certificate/unused_features", [-1], "features"),
]
WRONG_RULES = [
    ("/estimator/parameters/alpha", -1.0, "alpha"),
    ("/estimator/parameters/cv", 1, "cv"),
    ("/estimator/parameters/cv", [[[0], [1]]], "integer"),
    ("/estimator/parameters/categorical_features", ["a", [1, 2], True], "inhomogeneous"),
    ("/estimator/parameters/categorical_features", ["a", True], "array"),
    ("/estimator/parameters/class_weight", [1, 2], "sequence"),
    ("/model/terms/0/weight", None, "weights"),
    (f"{TABLE}/0/0", 0.0, "not those of"),
    ("/fitted/n_iter", 1, "one a round"),
    ("/fitted/alpha", None, "finite"),
    ("/cv_results/chosen", [True], "as long as"),
    ("/model/decode", [[1, 1, 1], [1, -1, 1], [1, 1, -1]], "no code|2\\^"),
    ("/claim/missing_right", [], "list of"),
    ("/rules", {"rules": [], "coef": [], "intercept": [0, 0, 0]}, "not those of"),
    ("/rules", {"rules": [[0, False, None, True]], "coef": []}, "finite"),
]


@pytest.mark.parametrize(
    ("kind", "pointer", "value", "why"),
    [("either", *one) for one in WRONG]
    + [("saved", *one) for one in WRONG_PAPER]
    + [("saved_rules", *one) for one in WRONG_RULES],
)
def test_what_no_model_has(kind, pointer, value, why, request, tmp_path):
    for name in ("saved", "saved_rules") if kind == "either" else (kind,):
        content = request.getfixturevalue(name)
        refused(changed(content, pointer, value), tmp_path, why)


def test_the_place_of_a_fault_is_a_pointer(saved, tmp_path):
    text = changed(saved, f"{TABLE}/2/1", None)
    refused(text, tmp_path, "not a finite number", f"{TABLE}/2/1")
    weight = "/model/columns/2/weight"
    refused(changed(saved, weight, []), tmp_path, "not a finite number", weight)
    code = "/model/columns/2/code/1"
    refused(changed(saved, code, 3), tmp_path, "from -1 to 1", code)


def test_parameters_of_scikit_learns_kind_make_short_errors(saved, tmp_path):
    for odd in (["x" * 10_000], {"a": [1] * 10_000}, [[[]]] * 500, "x" * 100_000):
        for name in ("max_iter", "loss", "max_bins", "weak_learner"):
            text = changed(saved, f"/estimator/parameters/{name}", odd)
            refused(text, tmp_path, "", "/estimator/parameters")


# ---------------------------------------------------------------- how much is read


def test_no_more_than_max_bytes_is_read(saved, tmp_path):
    path = tmp_path / "model.json"
    for content in (saved, gzip.compress(saved)):
        path.write_bytes(content)
        assert tcboost.load(path, max_bytes=len(saved)).n_iter_ == 3
        for max_bytes in (len(saved) - 1, 1, 0):
            with pytest.raises(ModelFileError, match=f"max_bytes={max_bytes}|gzip") as info:
                tcboost.load(path, max_bytes=max_bytes)
            assert str(path) in str(info.value)


def test_a_small_file_that_unpacks_to_much(tmp_path):
    path = tmp_path / "model.json.gz"
    path.write_bytes(zlib.compress(bytes(1 << 28), 9, 31))
    assert path.stat().st_size < 1 << 19
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="max_bytes=200000"):
            tcboost.load(path, max_bytes=200_000)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no endless file")
def test_an_endless_file_is_refused():
    with pytest.raises(ModelFileError, match="/dev/zero"):
        tcboost.load("/dev/zero")


START = '{"format": "tcboost-model", "version": 2, "requires": [], "news": '


@pytest.mark.parametrize(
    ("news", "why"),
    [
        ("[" * 17 + "]" * 17, "in each other"),
        ("[" + "[],[]," * 500_001 + "[]]", "brackets"),
        ("[" + "0," * 8_000_001 + "0]", "commas"),
        ("[" + '"",' * 1_000_001 + '""]', "strings"),
        ('"' + r"\\" * 1_000_001 + '"', "backslashes"),
    ],
)
def test_what_takes_much_memory_is_not_parsed(news, why, tmp_path):
    refused(START + news + "}", tmp_path, why, "/")
    # What stands in a string is none of it.
    if why in ("in each other", "commas"):
        refused(START + json.dumps(news) + "}", tmp_path, "", "/model")


MEASURED = """
import resource, sys, time, tcboost
tcboost.load  # what it imports is not counted
start = time.process_time()
try:
    tcboost.load(sys.argv[1])
except tcboost.ModelFileError as error:
    assert len(str(error)) <= 2000
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
LARGE = {
    "short strings": lambda: "[" + '"\U0001f338",' * 990_000 + "0]",
    "numbers": lambda: "[" + "0.1234," * 7_900_000 + "0]",
    "objects and numbers": lambda: (
        "[" + '{"a":1.5},' * 900_000 + "0.1," * 7_000_000 + '"\U0001f338"]'
    ),
    "one string": lambda: '"' + "x" * 60_000_000 + '\U0001f338"',
    "digits": lambda: "0." + "1" * 60_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LARGE)
def test_ten_seconds_and_a_gigabyte_are_enough(kind, tmp_path):
    path = tmp_path / "large.json"
    path.write_text(START + LARGE[kind]() + "}")
    assert path.stat().st_size < 1 << 26
    run = [sys.executable, "-c", MEASURED, str(path)]
    done = subprocess.run(run, check=True, capture_output=True, text=True)
    seconds, kilobytes = map(float, done.stdout.split())
    assert seconds < 10
    assert kilobytes < 1 << 20


# ---------------------------------------------------------------- damage


def test_a_truncated_file_is_refused(either, tmp_path):
    for content in (either, gzip.compress(either)):
        size = len(content)
        for cut in {0, 1, 2, 3, 30, size - 3, *range(50, size - 2, size // 40)}:
            refused(content[:cut], tmp_path, "")


MODELS = {
    "products": lambda: AdaBoostMO([[1, 1], [1, -1], [-1, 1]], 3, weak_learner="product"),
    "discriminants": lambda: AdaBoostECC(max_iter=3, weak_learner="lda", random_state=0),
    "no rules": lambda: TCBoostClassifier(1e6, 1.0),
}


@pytest.mark.parametrize("kind", MODELS)
def test_models_without_tables_are_checked_too(kind, tmp_path):
    path = tmp_path / "model.json"
    tcboost.save(MODELS[kind]().fit(*iris()), path)
    document = json.loads(path.read_bytes())
    wrong = {
        "products": [("products/0", []), ("products/0/0/0", -1), ("products", [[[0]]])],
        "discriminants": [("discriminants/0/0/1", "a"), ("discriminants/0/1", None)],
        "no rules": [],
    }
    assert document["model"]["kind"] == ("additive" if kind == "no rules" else "columns")
    for place, value in wrong[kind]:
        refused(changed(path.read_bytes(), f"/model/columns/1/{place}", value), tmp_path, "")
    if kind != "no rules":
        refused(changed(path.read_bytes(), "/estimator", None), tmp_path, "without tables")
