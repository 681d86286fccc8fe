"""Every writer of every kind of model, run: the model itself is what they are held to."""

import numpy as np
import pytest
from scipy.special import softmax
from writer_engines import ENGINES
from writer_models import MODELS, rows


def agree(name, engine, n, folder):
    model = MODELS[name]()
    form = getattr(model, "additive_", model)
    X = rows(form, n)
    if engine == "onnx" and name == "text":  # where "" is a level, nothing says "missing"
        X = X[[isinstance(x, str) for x in X[:, 3]]]
    found = ENGINES[engine](model, X, folder)
    wanted = form.classes[form.best(X)].tolist()
    assert len(set(wanted)) > 1 or name == "constant"
    assert found.labels == wanted
    assert {type(label) for label in found.labels} == {type(label) for label in wanted}
    scores = form.scores(X)
    if found.scores is not None:
        np.testing.assert_array_equal(found.scores, scores)
    if form.probability_scale is None:
        assert found.probabilities is None
    else:
        p = softmax(form.probability_scale * scores, axis=1)
        np.testing.assert_allclose(found.probabilities, p, rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MODELS)
def test_it_is_the_model(name, engine, tmp_path):
    agree(name, engine, 700, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MODELS)
def test_it_is_the_model_on_many_rows(name, engine, tmp_path):
    agree(name, engine, 10_000, tmp_path)
