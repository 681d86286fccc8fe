"""What must hold for any data: small integer grids give ties, duplicates and constants."""

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from tcboost import AdaBoostECC, AdaBoostMO, MultiBoostECC, MultiBoostHinge, MultiBoostMO

FAMILY = [
    partial(AdaBoostECC, "ovr"),
    partial(MultiBoostECC, "ecoc"),
    partial(MultiBoostMO, loss="logistic"),
    partial(MultiBoostECC, loss="logistic"),
    partial(AdaBoostMO, loss="logistic"),
    partial(MultiBoostMO, loss="squared_hinge"),
    MultiBoostHinge,
    partial(MultiBoostHinge, theta=0.3),
]
ALL = [AdaBoostMO, AdaBoostECC, MultiBoostMO, MultiBoostECC]
CORRECTIVE = [MultiBoostMO, MultiBoostECC]
QUICK = settings(
    max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@st.composite
def problems(draw):
    n = draw(st.integers(4, 25))
    n_classes = draw(st.integers(2, min(4, n)))
    X = draw(arrays(float, (n, draw(st.integers(1, 3))), elements=st.integers(0, 5).map(float)))
    holes = draw(arrays(bool, X.shape, elements=st.sampled_from([False] * 9 + [True])))
    X[holes] = np.nan
    y = draw(arrays(int, n, elements=st.integers(0, n_classes - 1)))
    y[:n_classes] = np.arange(n_classes)
    weight = draw(arrays(int, n, elements=st.integers(1, 3)))
    return X, y, weight


def assert_same_model(a, b):
    assert_array_equal(a.estimator_weights_, b.estimator_weights_)
    assert_array_equal(a.coding_matrix_, b.coding_matrix_)
    for left, right in zip(a.estimators_, b.estimators_, strict=True):
        assert left.hypotheses == right.hypotheses
    for name in ("loss", "gap", "r", "train_error", "min_margin"):
        assert_array_equal(a.history_[name], b.history_[name])


@QUICK
@given(problems(), st.sampled_from([*ALL, *FAMILY]), st.integers(0, 2**32 - 1))
def test_row_order_repetition_and_threads_change_nothing(problem, cls, seed):
    X, y, weight = problem
    model = cls(max_iter=8, random_state=0, n_jobs=1).fit(X, y, weight)
    order = np.random.default_rng(seed).permutation(len(y))
    shuffled = cls(max_iter=8, random_state=0, n_jobs=3).fit(X[order], y[order], weight[order])
    assert_same_model(model, shuffled)
    tripled = cls(max_iter=8, random_state=0).fit(
        np.tile(X, (3, 1)), np.tile(y, 3), np.tile(weight, 3)
    )
    assert_same_model(model, tripled)
    rows = np.repeat(np.arange(len(y)), weight)
    repeated = cls(max_iter=8, random_state=0).fit(X[rows], y[rows])
    assert_same_model(model, repeated)


@QUICK
@given(problems(), st.sampled_from(CORRECTIVE), st.floats(0.01, 50.0))
def test_totally_corrective_rounds_satisfy_the_optimality_conditions(problem, cls, theta):
    X, y, weight = problem
    tol = 1e-6
    for n_rounds in (1, 3, 6):
        model = cls(theta=theta, tol=tol, max_iter=n_rounds, random_state=0).fit(X, y, weight)
        w = model.estimator_weights_
        assert (w >= 0).all()
        assert w.sum() <= theta * (1 + 1e-12)
        if len(w):
            # Recomputed with NumPy from the columns alone.
            rho = np.array([margins(model, c.outputs(X), y).ravel() for c in model.estimators_])
            z = w @ rho
            s = np.repeat(weight, rho.shape[1] // len(y))
            u = s * np.exp(-z + z.min())
            g = rho @ (u / u.sum())
            r = max(0.0, g.max())
            restricted_gap = theta * r - w @ g
            assert restricted_gap <= 0.1 * tol + 1e-10
            assert g.max() - (w @ g) / theta <= restricted_gap / theta + 1e-12
            assert_allclose(model.history_["r"][-1], r, atol=1e-9)


def margins(model, outputs, y):
    M = model.coding_matrix_
    if isinstance(model, MultiBoostMO):
        return M[y] * outputs
    return np.array([np.delete(o[c] - o, c) for o, c in zip(outputs, y, strict=True)])


@QUICK
@given(problems(), st.sampled_from([*ALL, *FAMILY]))
def test_the_training_loss_never_rises(problem, cls):
    X, y, weight = problem
    model = cls(max_iter=12, random_state=1).fit(X, y, weight)
    corrective = hasattr(model, "theta")
    slack = 1e-5 if corrective else 1e-12  # the master's tolerance
    empty = {"exponential": 0.0, "logistic": np.log(2), "squared_hinge": 0.5, "hinge": 1.0}
    assert (np.diff(model.history_["loss"], prepend=empty[model.loss]) <= slack).all()
    assert (np.diff(model.history_["gap"] - model.history_["loss"]) <= 1e-9).all() or (
        not corrective
    )


@QUICK
@given(problems(), st.sampled_from([*ALL, *FAMILY]))
def test_history_agrees_with_the_model(problem, cls):
    X, y, weight = problem
    model = cls(max_iter=6, random_state=2).fit(X, y, weight)
    assert model.n_iter_ == len(model.estimators_) == len(model.history_["loss"])
    scores = model.decision_function(X)
    if model.n_iter_ and scores.ndim == 2:
        ordered = np.sort(scores, axis=1)
        if (ordered[:, -1] - ordered[:, -2]).min() > 1e-9:  # no ties for rounding to decide
            error = np.average(model.predict(X) != y, weights=weight)
            assert model.history_["train_error"][-1] == pytest.approx(error)
    assert model.certificate_.gap >= 0
    if model.n_iter_:
        assert model.certificate_.gap == model.history_["gap"][-1]


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [
        (AdaBoostMO, {}),
        (MultiBoostMO, {}),
        (MultiBoostMO, {"coding": "ovr", "theta": 5.0}),
        (AdaBoostECC, {"coding": "learned"}),
        (MultiBoostECC, {"coding": "learned"}),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_relabelling_the_classes_changes_only_their_names(cls, parameters, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 4
    X = rng.normal(size=(60, 4)) + rng.normal(size=(4, 4))[y]
    new_name = rng.permutation(4)
    model = cls(max_iter=15, **parameters).fit(X, y)
    renamed = cls(max_iter=15, **parameters).fit(X, new_name[y])
    assert_allclose(model.history_["loss"], renamed.history_["loss"], atol=1e-9)
    assert_array_equal(new_name[model.predict(X)], renamed.predict(X))
    assert_allclose(
        model.decision_function(X), renamed.decision_function(X)[:, new_name], atol=1e-6
    )
