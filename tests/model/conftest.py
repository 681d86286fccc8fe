"""Model files, one of each kind."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import tcboost


def saved_bytes(model, folder):
    X, y = load_iris(return_X_y=True)
    table = pd.DataFrame(X[::2], columns=list("abcd"))
    labels = np.array(["x", "y", "z"], dtype=object)[y[::2]]
    tcboost.save(model.fit(table, labels), folder / "model.json")
    return (folder / "model.json").read_bytes()


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """The bytes of a model file."""
    model = tcboost.MultiBoostECC(max_iter=3, random_state=0)
    return saved_bytes(model, tmp_path_factory.mktemp("saved"))


@pytest.fixture(scope="session")
def saved_rules(tmp_path_factory):
    """The bytes of a file of a model of rules."""
    model = tcboost.TCBoostClassifier(max_rules=20, categorical_features=[3])
    return saved_bytes(model, tmp_path_factory.mktemp("saved"))


@pytest.fixture(params=["saved", "saved_rules"])
def either(request):
    """The bytes of a file of either kind."""
    return request.getfixturevalue(request.param)
