"""Write the frozen files of a version of the format, with what they predict beside.

Run once for a version, by hand: ``python tests/model/make_frozen.py``. What it has written
before must load for ever, and is never written again.
"""

import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

import tcboost
from tcboost.model import AdditiveModel, Levels, Ordered, Term

FOLDER = Path(__file__).parent / "frozen"


def table():
    """A number that may be missing, one that never is, and levels; three classes by name."""
    draw = np.random.default_rng(7)
    X = np.round(draw.normal(size=(150, 3)), 1)
    X[:, 2] = draw.integers(0, 4, 150)
    y = (X[:, 0] > 0) + (X[:, 2] == 1).astype(int)
    X[::9, 0] = X[4::11, 2] = np.nan
    return X, np.array(["blue", "gr\u00fcn", "red"], dtype=object)[y]


def new_rows(n_features):
    X = np.round(np.random.default_rng(8).normal(2.0, 2.0, size=(12, n_features)), 1)
    X[1::5, 0] = X[2::5, -1] = np.nan
    return X


def couple():
    """A form alone: a table of two features, one of which has levels of text."""
    axes = Ordered(np.array([0.5, 2.0])), Levels(("no", "yes", 3))
    entries = np.arange(-30, 30).reshape(4, 5, 3) / 8
    weight = np.arange(20.0).reshape(4, 5) / 190
    return AdditiveModel(
        n_features=2,
        feature_names=("size", 'a "name"'),
        classes=np.array(["a", "b", "c"]),
        terms=(
            Term((0,), (Ordered(np.array([-1.0]), "date"),), np.eye(3) / 4),
            Term((0, 1), axes, entries, weight),
        ),
        intercept=np.array([0.5, 0.25, -1.0]),
        unit=-10,
        probability_scale=0.5,
        size=3.0,
    )


def models():
    """Small ones of each kind."""
    X, y = table()
    few = {"max_iter": 4}
    iris = load_iris(return_X_y=True)
    return {
        "rules": tcboost.TCBoostClassifier(2.0, 0.5, categorical_features=[2]).fit(X, y),
        "two_classes": tcboost.TCBoostClassifier(20.0, 1.0).fit(iris[0], iris[1] == 1),
        "mo": tcboost.AdaBoostMO(**few).fit(*iris),
        "ecc": tcboost.MultiBoostECC(**few, random_state=0).fit(*iris),
        "hinge": tcboost.MultiBoostHinge(**few).fit(*iris),
        "products": tcboost.AdaBoostECC(**few, weak_learner="product", random_state=0).fit(
            *iris
        ),
        "lda": tcboost.MultiBoostMO(**few, weak_learner="lda").fit(*iris),
        "couple": couple(),
    }


def rows_of(name, model):
    """New rows, as lists; None is missing."""
    if name == "couple":
        return [[x, level] for x in (None, 0.5, 0.75, 9.0) for level in ("yes", "?", 3, None)]
    X = new_rows(model.n_features_in_)
    if name == "lda":
        X = np.nan_to_num(X)
    return [[None if x != x else x for x in row] for row in X.tolist()]


def expected(model, rows):
    """What the model says of rows."""
    if isinstance(model, AdditiveModel):
        return {"scores": model.scores(np.array(rows, dtype=object)).tolist()}
    X = np.array(rows, dtype=float)
    found = {"predict": model.predict(X), "decision_function": model.decision_function(X)}
    if hasattr(model, "predict_proba"):
        found["predict_proba"] = model.predict_proba(X)
    return {name: values.tolist() for name, values in found.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # four rounds are few
    for name, model in models().items():
        path = FOLDER / f"{name}.json"
        if not path.exists():
            tcboost.save(model, path)
            rows = rows_of(name, model)
            answer = {"rows": rows, **expected(model, rows)}
            path.with_suffix(".expected").write_text(json.dumps(answer, indent=1) + "\n")
