"""The form and its claim come back from a file, all bits of them."""

import ast
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import make_frozen
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import tcboost
from tcboost.model import AdditiveModel, Levels, Ordered, RowWeights, Term

BUDGET = (tcboost.AdaBoostMO, tcboost.AdaBoostECC, tcboost.MultiBoostMO, tcboost.MultiBoostECC)


def assert_same(one, other):
    """Bit for bit, of types and dtypes, too."""
    assert type(one) is type(other)
    if is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_same(*pair)
    else:
        assert one == other


def through_file(model, tmp_path, **options):
    tcboost.save(model, tmp_path / "model.json", **options)
    return tcboost.load(tmp_path / "model.json")


def table(missing, seed=0):
    """Breast cancer, wine or iris; with `missing` of one kind or another."""
    draw = np.random.default_rng(seed)
    X, y = (load_breast_cancer, load_wine, load_iris)[seed % 3](return_X_y=True)
    if missing == "some":
        X[draw.random(X.shape) < 0.1] = np.nan
    elif missing == "of one class":  # on one side only
        X[y == 0, 1], X[draw.random(len(y)) < 0.1, 2] = np.nan, np.nan
    elif missing == "a column":
        X[:, 0] = np.nan
    return X, y


@pytest.mark.parametrize("missing", ["none", "some", "of one class", "a column"])
@pytest.mark.parametrize("l1_ratio", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_rules_are_told_by_tables(missing, l1_ratio, weighted, tmp_path):
    """Their oracle is the model that was fitted, whose rules were never in tables."""
    for seed in range(3):
        X, y = table(missing, seed)
        draw = np.random.default_rng(seed)
        levels = [3] if seed == 2 else None
        weight = draw.integers(1, 4, len(y)) / 7 if weighted else None
        model = tcboost.TCBoostClassifier(
            float(10 ** draw.uniform(-1, 1)),
            l1_ratio,
            categorical_features=levels,
            class_weight="balanced" if weighted else None,
        ).fit(X, y, weight)
        again = through_file(model, tmp_path)
        assert '"rules": {' not in (tmp_path / "model.json").read_text()
        assert repr(again.rules_) == repr(model.rules_)
        np.testing.assert_array_equal(again.coef_, model.coef_)
        np.testing.assert_array_equal(again.intercept_, model.intercept_)
        assert_same(again.additive_, model.additive_)
        # Without the claim, too.
        again = through_file(model, tmp_path, claim=False)
        assert repr(again.rules_) == repr(model.rules_)
        np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize("change", ["a rule without effect", "another model", "a cut undone"])
def test_rules_that_tables_do_not_tell(change, tmp_path):
    X, y = table("some", 2)
    model = tcboost.TCBoostClassifier(1.0, 0.5).fit(X, y)
    coef = model.coef_.copy()
    if change == "a rule without effect":
        coef[3] = 0.0
    elif change == "another model":
        coef = coef / 3.0
    else:  # missing values on both sides, of opposite effect
        cut = [rule[:2] for rule in model.rules_]
        both = next(k for k in range(1, len(cut)) if cut[k] == cut[k - 1])
        coef[both] = -coef[both - 1]
    model.coef_ = coef
    again = through_file(model, tmp_path)
    assert repr(again.rules_) == repr(model.rules_)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.intercept_, model.intercept_)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    text = (tmp_path / "model.json").read_bytes()
    tcboost.save(again, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == text


@pytest.mark.parametrize("missing", ["none", "some"])
@pytest.mark.parametrize("cls", [*BUDGET, tcboost.MultiBoostHinge])
def test_claims_and_witnesses(cls, missing, tmp_path):
    X, y = table(missing, 1)
    for early_stopping in (False, True):
        model = cls(max_iter=12, early_stopping=early_stopping, random_state=0).fit(X, y)
        again = through_file(model, tmp_path)
        assert_same(again.additive_, model.additive_)


def test_witnesses_of_both_kinds_are_frozen():
    ecc, hinge = (tcboost.load(make_frozen.FOLDER / f"{n}.json") for n in ("ecc", "hinge"))
    assert isinstance(ecc.additive_.claim.witness, AdditiveModel)
    assert isinstance(hinge.additive_.claim.witness, RowWeights)


def test_listed_codes_and_quantile_cuts(tmp_path):
    X, y = table("none", 0)
    model = tcboost.AdaBoostECC("runs", max_iter=5, max_bins=8, random_state=0)
    model.fit(X, np.arange(len(y)) % 3)
    claim = model.additive_.claim
    assert claim.codes is not None
    assert claim.cuts != "all"
    assert_same(through_file(model, tmp_path).additive_, model.additive_)


def test_a_form_alone(tmp_path):
    form = make_frozen.couple()
    again = through_file(form, tmp_path)
    assert_same(again, form)
    assert_same(through_file(form.rounded(1), tmp_path), form.rounded(1))
    fitted = tcboost.TCBoostClassifier(1.0, 0.5).fit(*table("some", 2)).additive_
    assert_same(through_file(fitted, tmp_path), fitted)
    without = replace(fitted, claim=None)
    assert_same(through_file(fitted, tmp_path, claim=False), without)


CLASSES = [
    np.array([-(2**63), -1, 2**63 - 1]),
    np.array([0, 2**53, 2**64 - 1], dtype=np.uint64),
    np.array([1, 2, 250], dtype=np.uint8),
    np.array([0.1, 0.5, 1e30], dtype=np.float32),
    np.array([-5e-324, 0.1, 1.7976931348623157e308]),
    np.array(["", "a\nb", "\u96ea \U0001f338"]),
    np.array(["a", "b", "c"], dtype="U20"),
    np.array(["a", "a\0", "\ud800"], dtype=object),
]


@pytest.mark.parametrize("classes", CLASSES, ids=lambda c: str(c.dtype))
def test_classes_of_a_form(classes, tmp_path):
    form = replace(make_frozen.couple(), classes=classes)
    again = through_file(form, tmp_path)
    assert again.classes.dtype == classes.dtype
    assert again.classes.tolist() == classes.tolist()


def axes():
    yield Ordered(np.array([-1.7976931348623157e308, -5e-324, 0.0, 1e-5, 0.1 + 0.2, 1e16]))
    yield Ordered(np.empty(0), "duration", np.linspace(0, 1, 33))
    yield Levels((True, "", "\u96ea", 3, 0.5, "NaN", "missing"))
    yield Levels((1e300, 2**53, -0.5))


def test_axes_of_a_form(tmp_path):
    for axis in axes():
        table = np.arange(axis.n_cells * 3.0).reshape(-1, 3) / 4
        term = Term((5,), (axis,), table)
        form = AdditiveModel(
            7, None, np.array([1, 2, 3]), (term,), np.zeros(3), unit=-20, claim=None
        )
        assert_same(through_file(form, tmp_path), form)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"unit": -1073}, "below"),
        ({"intercept": np.array([1 / 3, 0, 0])}, "multiple"),
        ({"intercept": np.array([np.nan, 0, 0])}, "JSON"),
        ({"classes": np.array([1, 1, 2])}, "ascend"),
        ({"classes": np.array([1, None, 2], dtype=object)}, "classes"),
        ({"feature_names": ("a",)}, "list of 2"),
    ],
)
def test_a_form_that_is_none_is_not_saved(change, why, tmp_path):
    form = replace(make_frozen.couple(), **change)
    with pytest.raises(ValueError, match=why):
        tcboost.save(form, tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def test_form_and_file_import_nothing_of_the_fit():
    outside = []
    for path in Path(tcboost.__file__).with_name("model").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level > 1:
                assert node.module in ("_core", "_kept"), path.name
            elif isinstance(node, ast.Import):
                outside += [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                outside.append(node.module)
    tops = {name.split(".")[0] for name in outside}
    assert "numpy" in tops
    assert not tops & {"tcboost", "sklearn", "scipy", "joblib"}
