"""What scikit-learn's users expect of any estimator."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeClassifier

import tcboost
from tcboost import AdaBoostECC, AdaBoostMO, MultiBoostECC, MultiBoostMO, TCBoostClassifier

STAGE_WISE = [AdaBoostMO, AdaBoostECC]
PAPER = [*STAGE_WISE, MultiBoostMO, MultiBoostECC]
ALL = [*PAPER, TCBoostClassifier]
IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)


def small(cls, **parameters):
    """A quick estimator of the class, its budget given."""
    if cls not in STAGE_WISE:
        parameters = {"theta": 5.0, "tol": 1e-6, **parameters}
    return cls(**{"max_iter": 12, "random_state": 0, **parameters})


# ---------------------------------------------------------------- stages and margins


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_stages_are_the_models_after_each_round(cls, n_classes):
    X, y = (a[WINE[1] < n_classes] for a in WINE)
    model = small(cls).fit(X, y)
    scores = list(model.staged_decision_function(X))
    assert len(scores) == model.n_iter_ == 12
    assert_array_equal(scores[-1], model.decision_function(X))
    assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    alone = small(cls, max_iter=5).fit(X, y)
    if cls is TCBoostClassifier:  # which polishes its last round
        F = scores[4] if n_classes > 2 else np.column_stack([0 * scores[4], scores[4]])
        loss = log_loss(y, softmax(F, axis=1))
        assert loss == pytest.approx(model.history_["loss"][4], rel=1e-9)
        assert loss >= alone.certificate_.primal
    else:
        assert_array_equal(scores[4], alone.decision_function(X))
    if cls not in STAGE_WISE:  # no prefix of the final model
        prefix = tcboost.model.Ensemble(
            model.estimators_[:5], model.estimator_weights_[:5], model._ensemble().margin
        ).scores(X)
        assert np.abs(model._signed(prefix) - scores[4]).max() > 1e-3


@pytest.mark.parametrize("cls", ALL)
def test_stages_of_a_model_from_a_file(cls, tmp_path):
    model = small(cls).fit(*IRIS)
    tcboost.save(model, tmp_path / "model.tcb")
    again = tcboost.load(tmp_path / "model.tcb")
    if cls in STAGE_WISE:
        assert_array_equal(
            list(again.staged_predict(IRIS[0])), list(model.staged_predict(IRIS[0]))
        )
    else:
        with pytest.raises(ValueError, match="not the stages"):
            next(again.staged_predict(IRIS[0]))


@pytest.mark.parametrize("learner", ["stump", "lda", DecisionTreeClassifier(max_depth=1)])
@pytest.mark.parametrize("cls", PAPER)
def test_margins_are_those_of_the_paper(cls, learner):
    X, y = WINE
    names = np.array(["b", "a", "c"])[y]
    model = small(cls, weak_learner=learner).fit(X, names)
    z = model.margins(X, names)
    F = sum(
        w * c.outputs(X)
        for w, c in zip(model.estimator_weights_, model.estimators_, strict=True)
    )
    F /= model.estimator_weights_.sum()
    label = np.searchsorted(model.classes_, names)
    if model._pairwise:
        expected = [np.delete(f[c] - f, c) for f, c in zip(F, label, strict=True)]
    else:
        expected = model.coding_matrix_[label] * F
    assert_allclose(z, expected, atol=1e-12)
    assert z.min() == pytest.approx(model.history_["min_margin"][-1])
    wrong = model.predict(X) != names
    if model._pairwise:
        assert (z[wrong].min(axis=1) <= 1e-9).all()
        assert (z[~wrong].min(axis=1) >= -1e-9).all()


def test_margins_of_class_vectors_and_of_bad_labels():
    model = small(TCBoostClassifier).fit(*IRIS)
    z = model.margins(*IRIS)
    assert z.shape == (150, 2)
    assert z.min() == pytest.approx(model.history_["min_margin"][-1])
    with pytest.raises(ValueError, match=r"not seen in fit: \[7\]"):
        model.margins(IRIS[0][:2], [0, 7])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.margins(IRIS[0], IRIS[1][:-1])


@pytest.mark.parametrize("cls", ALL)
def test_pickling_keeps_every_bit(cls):
    model = small(cls).fit(*IRIS)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(IRIS[0]), model.decision_function(IRIS[0]))
    assert_array_equal(list(again.staged_predict(IRIS[0])), list(model.staged_predict(IRIS[0])))
