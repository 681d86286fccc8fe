"""The kernel of block coordinate descent, against NumPy and against what must hold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from tcboost._core import descend


def setting(seed=3, n=40, t=6, n_classes=3, coded=False):
    rng = np.random.default_rng(seed)
    y = np.sort(np.arange(n) % n_classes)
    codes = rng.choice([-1, 1], size=(t, n_classes)).astype(np.int8) if coded else None
    return {
        "H": np.asfortranarray(rng.choice([-1, 1], size=(n, t)).astype(np.int8)),
        "codes": codes,
        "start": np.searchsorted(y, np.arange(n_classes + 1)),
        "weight": rng.dirichlet(np.ones(n)),
        "W": np.zeros(t) if coded else np.zeros((t, n_classes)),
        "F": np.zeros((n_classes, n)),
        "theta": 2.0,
        "price": 0.0,
        "ridge": 0.0,
        "tol": 0.0,
        "max_sweeps": 1,
        "exponential": False,
    }


def classes(a):
    return np.repeat(np.arange(len(a["start"]) - 1), np.diff(a["start"]))


def sizes(a):
    return a["W"] if a["codes"] is not None else np.linalg.norm(a["W"], axis=1)


def value(a):
    """Loss, ridge and price of the coefficients, from their definition."""
    vectors = a["W"] if a["codes"] is None else a["W"][:, None] * a["codes"]
    F, y = a["H"].astype(float) @ vectors, classes(a)
    own = F[np.arange(len(y)), y]
    if a["exponential"]:
        x = F - own[:, None] + np.log(a["weight"] / (F.shape[1] - 1))[:, None]
        x[np.arange(len(y)), y] = -np.inf
        loss = logsumexp(x)
    else:
        loss = a["weight"] @ (logsumexp(F, axis=1) - own)
    return loss + a["ridge"] / 2 * (a["W"] ** 2).sum() + a["price"] * sizes(a).sum()


CASES = [
    {},
    {"theta": 0.1},
    {"theta": 300.0},
    {"ridge": 0.3},
    {"theta": np.inf, "price": 0.02},
    {"theta": np.inf, "price": 0.02, "ridge": 0.1},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("exponential", [False, True])
@pytest.mark.parametrize("coded", [False, True])
def test_sweeps_go_down_within_the_budget(case, exponential, coded):
    if (coded and case.get("ridge")) or (exponential and case.get("price")):
        return  # not of these
    a = setting(coded=coded) | case | {"exponential": exponential}
    values = [value(a)]
    for _ in range(200):
        gap = descend(**a)
        values.append(value(a))
        assert sizes(a).sum() <= a["theta"] * (1 + 1e-12)
        assert (sizes(a) >= 0).all()
        vectors = a["W"] if not coded else a["W"][:, None] * a["codes"]
        assert_allclose(a["F"].T, a["H"] @ vectors, atol=1e-10)
    # One sweep may fail to gain, and is then taken back in the next.
    assert min(values) == pytest.approx(values[-1], abs=1e-6)
    assert values[-1] < values[0]
    # The gap, from finite differences of the value along each coefficient.
    gradient = np.zeros_like(a["W"])
    for k in np.ndindex(a["W"].shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = a | {"W": a["W"].copy(), "price": 0.0}
            moved["W"][k] += step
            ends.append(value(moved))
        gradient[k] = -(ends[0] - ends[1]) / 2e-6
    edges = gradient if coded else np.linalg.norm(gradient, axis=1)
    theta = a["theta"] if np.isfinite(a["theta"]) else sizes(a).sum()
    expected = theta * max(edges.max(), a["price"], 0.0) - (gradient * a["W"]).sum()
    assert gap == pytest.approx(expected, abs=1e-5 * (1 + theta))


@pytest.mark.parametrize("change", [{"theta": 1e-300}, {"theta": 1e9}, {"ridge": 1e6}])
def test_extremes_stay_finite(change):
    a = setting() | change | {"max_sweeps": 50}
    a["weight"] = 10.0 ** np.linspace(-12, 0, len(a["weight"]))
    a["weight"] /= a["weight"].sum()
    assert np.isfinite(descend(**a))
    assert np.isfinite(a["W"]).all()
    assert np.isfinite(a["F"]).all()


def test_a_class_without_rows_and_no_columns():
    a = setting()
    a["start"] = np.array([0, 20, 20, 40])
    descend(**a)
    assert np.isfinite(a["W"]).all()
    none = setting(t=6) | {"H": np.zeros((40, 0), np.int8, order="F"), "W": np.zeros((0, 3))}
    assert descend(**none) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"start": np.array([0, 30, 20, 40])},
        {"start": np.array([1, 10, 20, 40])},
        {"start": np.array([0, 10, 20, 41])},
        {"start": np.array([0])},
        {"weight": np.ones(39)},
        {"F": np.zeros((40, 3))},
        {"W": np.zeros((5, 3))},
        {"codes": np.ones((6, 2), np.int8), "W": np.zeros(6)},
    ],
    ids=str,
)
def test_shapes_are_checked(change):
    with pytest.raises(ValueError, match=r"start|rows|F must|W does|codes"):
        descend(**(setting() | change))
