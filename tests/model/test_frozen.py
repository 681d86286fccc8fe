"""Files that were written by this version of the format or before load for ever.

They are made by `make_frozen.py`, whose oracle is the model that was saved, at the time.
"""

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import make_frozen
import numpy as np
import pytest

import tcboost

FROZEN = sorted(make_frozen.FOLDER.glob("*.json"))
SCHEMA = json.loads((files("tcboost.model") / "schema.json").read_text())


def valid(text):
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))


def test_there_are_files():
    names = {path.stem for path in FROZEN}
    assert names >= {"rules", "two_classes", "mo", "ecc", "hinge", "products", "lda", "couple"}
    assert sum(path.stat().st_size for path in FROZEN) < 100_000


@pytest.mark.parametrize("path", FROZEN, ids=lambda path: path.stem)
def test_a_frozen_file_says_what_it_said(path):
    answer = json.loads(path.with_suffix(".expected").read_text())
    model = tcboost.load(path)
    again = make_frozen.expected(model, answer.pop("rows"))
    # The exponential function is that of the machine.
    one, other = (x.pop("predict_proba", []) for x in (answer, again))
    np.testing.assert_allclose(one, other, rtol=1e-14)
    assert again == answer


@pytest.mark.parametrize("path", FROZEN, ids=lambda path: path.stem)
def test_a_frozen_file_is_saved_as_it_was(path, tmp_path):
    def known(new, old):
        """Without what is new since then."""
        if not isinstance(old, dict):
            return new
        return {name: known(value, old[name]) for name, value in new.items() if name in old}

    tcboost.save(tcboost.load(path), tmp_path / "again.json")
    old = json.loads(path.read_bytes())
    document = known(json.loads((tmp_path / "again.json").read_bytes()), old)
    document["tcboost"] = old["tcboost"]
    assert json.dumps(document) == json.dumps(old)  # in the same order, too


@pytest.mark.parametrize("path", FROZEN, ids=lambda path: path.stem)
def test_the_schema_takes_it(path):
    valid(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [path.stem for path in FROZEN])
def test_the_schema_takes_what_is_saved_now(name, tmp_path):
    model = tcboost.load(make_frozen.FOLDER / f"{name}.json")
    if name != "couple":
        X = make_frozen.new_rows(model.n_features_in_)
        X = np.nan_to_num(X) if name == "lda" else X
        model.fit(X, np.arange(len(X)) % len(model.classes_))
    for claim in (True, False):
        tcboost.save(model, tmp_path / "new.json", claim=claim)
        valid((tmp_path / "new.json").read_text(encoding="utf-8"))


def test_the_schema_refuses_what_is_none(tmp_path):
    text = (make_frozen.FOLDER / "mo.json").read_text(encoding="utf-8")
    for change in (
        {"version": 3},
        {"requires": ["magic"]},
        {"model": {}},
        {"claim": {}},
        {"classes": {"type": "int64", "values": []}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            valid(json.dumps(json.loads(text) | change))


def test_the_documented_example_is_real():
    """The guide shows the beginning of a frozen file."""
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text(encoding="utf-8")
    shown = guide.split("```json\n")[1].split("```")[0]
    lines = (make_frozen.FOLDER / "two_classes.json").read_text(encoding="utf-8").splitlines()
    for line in shown.splitlines():
        assert line in lines or line.strip() == "..."
