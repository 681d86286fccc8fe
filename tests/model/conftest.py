"""A model file."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import tcboost


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """The bytes of a model file."""
    path = tmp_path_factory.mktemp("saved") / "model.tcb"
    X, y = load_iris(return_X_y=True)
    table = pd.DataFrame(X[::2], columns=list("abcd"))
    labels = np.array(["x", "y", "z"], dtype=object)[y[::2]]
    model = tcboost.MultiBoostECC(max_iter=3, random_state=0).fit(table, labels)
    tcboost.save(model, path)
    return path.read_bytes()
