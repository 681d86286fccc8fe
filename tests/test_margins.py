"""Both margins: the adjoint identity in integers, gradients, and who is misclassified."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import algorithms as ref
from tcboost.coding import ecoc, one_vs_rest
from tcboost.losses import Exponential
from tcboost.margins import AgainstAll, Codeword, Pairwise, PairwiseCode


def exponential(z, log_s):
    log_s = np.broadcast_to(log_s, z.shape)[:, 0]
    return Exponential().dual_weights(z, z.shape[1] * np.exp(log_s))


def make(kind, n_classes):
    """A margin and the number of outputs it takes."""
    if kind == "pairwise":
        return Pairwise(n_classes), n_classes
    if kind in ("samme", "m1"):
        return AgainstAll(n_classes, 1.0 if kind == "m1" else 1 / (n_classes - 1)), n_classes
    M = ecoc(n_classes) if "ecoc" in kind else one_vs_rest(n_classes)
    return (PairwiseCode if "pairwise" in kind else Codeword)(M), M.shape[1]


KINDS = ["pairwise", "ecoc", "ovr", "pairwise ecoc", "pairwise ovr"]
CASES = [(kind, C) for kind in KINDS for C in (2, 3, 5)]
ALL = CASES + [(kind, C) for kind in ("samme", "m1") for C in (2, 3, 5)]


def labels(n, n_classes, seed=0):
    """Every class occurs."""
    y = np.random.default_rng(seed).integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    return y


# ---------------------------------------------------------------- what the margins are


@pytest.mark.parametrize("C", [2, 3, 5])
def test_pairwise_margins_are_those_of_the_paper(C):
    rng = np.random.default_rng(C)
    X, y = rng.normal(size=(20, 2)), labels(20, C)
    for seed in range(4):
        m = np.random.default_rng(seed).choice([-1, 1], size=C).astype(np.int8)
        stump = ref.Stump(seed % 2, 0.1 * seed, 1 - 2 * (seed % 2))
        h = stump.predict(X).astype(np.int8)
        rho = Pairwise(C).apply(h[:, None] * m, y)
        assert rho.shape == (20, C - 1)
        np.testing.assert_array_equal(rho, ref.rho_ecc(X, y, m, stump))
        assert set(rho.ravel().tolist()) <= {-2, 0, 2}


@pytest.mark.parametrize("C", [2, 3, 5])
@pytest.mark.parametrize("code", [ecoc, one_vs_rest])
def test_codeword_margins_are_those_of_the_paper(C, code):
    rng = np.random.default_rng(C)
    X, y, M = rng.normal(size=(20, 2)), labels(20, C), code(C)
    stumps = [ref.Stump(l % 2, 0.1 * l, 1 - 2 * (l % 2)) for l in range(M.shape[1])]
    outputs = ref.outputs_of(X, stumps).astype(np.int8)
    rho = Codeword(M).apply(outputs, y)
    np.testing.assert_array_equal(rho, ref.rho_mo(X, y, M, stumps))


@pytest.mark.parametrize("C", [2, 3, 5])
@pytest.mark.parametrize("code", [ecoc, one_vs_rest])
def test_pairwise_margins_of_a_code_are_those_of_the_paper(C, code):
    rng = np.random.default_rng(C)
    X, y, M = rng.normal(size=(20, 2)), labels(20, C), code(C)
    stumps = [ref.Stump(l % 2, 0.1 * l, 1 - 2 * (l % 2)) for l in range(M.shape[1])]
    outputs = ref.outputs_of(X, stumps).astype(np.int8)
    margin = PairwiseCode(M)
    rho = margin.apply(outputs, y)
    np.testing.assert_array_equal(rho, ref.rho_code(X, y, M, stumps))
    assert np.abs(rho).max() <= margin.spread


def test_margins_of_many_bits_do_not_overflow():
    M = np.repeat(one_vs_rest(4), 70, axis=1)  # 280 bits, of which 140 tell two classes apart
    margin, y = PairwiseCode(M), np.arange(4)
    rho = margin.apply(M[y], y)
    assert (rho == 280).all()
    assert margin.spread == 280


@pytest.mark.parametrize(("kind", "C"), ALL)
def test_width(kind, C):
    margin, n_outputs = make(kind, C)
    outputs = np.ones((C, n_outputs), dtype=np.int8)
    assert margin.apply(outputs, np.arange(C)).shape == (C, margin.width)
    assert margin.scores(outputs.astype(float)).shape == (C, C)


# ---------------------------------------------------------------- the adjoint


@st.composite
def identities(draw):
    """A margin, labels, dual weights that sum to at most 2^60, and outputs of -1 and +1."""
    C, n = draw(st.integers(2, 5)), draw(st.integers(1, 12))
    margin, n_outputs = make(draw(st.sampled_from(KINDS)), C)
    y = np.array(draw(st.lists(st.integers(0, C - 1), min_size=n, max_size=n)))
    largest = 2**60 // (n * margin.width)
    u = draw(
        st.lists(st.integers(0, largest), min_size=n * margin.width, max_size=n * margin.width)
    )
    o = draw(st.lists(st.sampled_from([-1, 1]), min_size=n * n_outputs, max_size=n * n_outputs))
    return (
        margin,
        y,
        np.array(u, dtype=np.int64).reshape(n, margin.width),
        np.array(o, dtype=np.int8).reshape(n, n_outputs),
    )


def inner(a, b):
    return sum(x * y for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True))


@given(identities())
@settings(deadline=None, max_examples=200)
def test_adjoint_identity_in_integers(case):
    margin, y, u, o = case
    V = margin.adjoint(u, y)
    assert V.dtype == np.int64
    assert V.shape == o.shape
    assert inner(u, margin.apply(o, y)) == inner(V, o)


@given(identities())
@settings(deadline=None, max_examples=100)
def test_rows_of_pairwise_weights_sum_to_zero(case):
    margin, y, u, _ = case
    V = margin.adjoint(u, y)
    assert np.abs(V.astype(float)).sum() <= margin.spread * u.sum(dtype=float) * (1 + 1e-12)
    if type(margin) is Pairwise:
        assert (V.sum(axis=1) == 0).all()
        own = np.take_along_axis(V, y[:, None], axis=1)
        np.testing.assert_array_equal(own[:, 0], u.sum(axis=1))
        assert np.abs(V).sum() == 2 * u.sum()
    elif isinstance(margin, Codeword):
        np.testing.assert_array_equal(np.abs(V), u)


def test_pairwise_adjoint_by_hand():
    V = Pairwise(3).adjoint(np.array([[5, 7], [1, 2], [10, 20]]), np.array([0, 1, 2]))
    np.testing.assert_array_equal(V, [[12, -5, -7], [-1, 3, -2], [-10, -20, 30]])


def test_codeword_adjoint_by_hand():
    M = np.array([[1, -1], [-1, -1], [1, 1]], dtype=np.int8)
    V = Codeword(M).adjoint(np.array([[5, 7], [1, 2], [10, 20]]), np.array([1, 0, 2]))
    np.testing.assert_array_equal(V, [[-5, -7], [1, -2], [10, 20]])


@pytest.mark.parametrize(("kind", "C"), ALL)
def test_gradient_of_the_loss_in_the_outputs(kind, C):
    margin, n_outputs = make(kind, C)
    rng = np.random.default_rng(C)
    y = labels(8, C)
    outputs = rng.normal(size=(8, n_outputs))
    log_s = np.log(rng.dirichlet(np.ones(8)) / margin.width)[:, None]
    dual = exponential(margin.apply(outputs, y), log_s)
    V = margin.adjoint(dual.u, y) / dual.scale
    step = 1e-5
    for i in np.ndindex(outputs.shape):
        moved = []
        for shift in (step, -step):
            o = outputs.copy()
            o[i] += shift
            moved.append(exponential(margin.apply(o, y), log_s).loss)
        np.testing.assert_allclose((moved[0] - moved[1]) / (2 * step), -V[i], atol=1e-8)


# ---------------------------------------------------------------- predictions


@pytest.mark.parametrize(("kind", "C"), CASES)
@pytest.mark.parametrize("ties", [True, False])
def test_wrong_is_where_the_largest_score_is_another_class(kind, C, ties):
    margin, n_outputs = make(kind, C)
    rng = np.random.default_rng(C)
    F = rng.normal(size=(300, n_outputs))
    if ties:
        F = np.rint(F)
    y = labels(300, C)
    scores = margin.scores(F)
    wrong = margin.wrong(margin.apply(F, y), y)
    np.testing.assert_array_equal(wrong, scores.argmax(axis=1) != y)
    assert wrong.any()
    assert not wrong.all()
    if ties:  # they do occur, at the top too
        top = scores == scores.max(axis=1, keepdims=True)
        assert (top.sum(axis=1) > 1).any()


@pytest.mark.parametrize(("kind", "C"), ALL)
def test_scores(kind, C):
    margin, n_outputs = make(kind, C)
    F = np.random.default_rng(C).integers(-9, 9, size=(10, n_outputs)).astype(float)
    M = getattr(margin, "M", np.eye(C))
    expected = [[sum(M[c] * f) for c in range(C)] for f in F]
    np.testing.assert_array_equal(margin.scores(F), expected)


def test_a_row_that_scores_nothing_is_the_first_class():
    for kind in KINDS:
        margin, n_outputs = make(kind, 3)
        z = margin.apply(np.zeros((3, n_outputs)), np.arange(3))
        np.testing.assert_array_equal(margin.wrong(z, np.arange(3)), [False, True, True])


def test_two_classes():
    y = np.array([0, 1, 1])
    o = np.array([[3.0, 1.0], [3.0, 1.0], [0.0, 5.0]])
    z = Pairwise(2).apply(o, y)
    np.testing.assert_array_equal(z, [[2], [-2], [5]])
    np.testing.assert_array_equal(Pairwise(2).wrong(z, y), [False, True, False])
    np.testing.assert_array_equal(
        Pairwise(2).adjoint(np.array([[1], [2], [4]]), y), [[1, -1], [-2, 2], [-4, 4]]
    )
    M = np.array([[-1], [1]], dtype=np.int8)
    F = np.array([[-2.0], [-2.0], [5.0]])
    z = Codeword(M).apply(F, y)
    np.testing.assert_array_equal(z, [[2], [-2], [5]])
    np.testing.assert_array_equal(Codeword(M).wrong(z, y), [False, True, False])


def test_decoding_in_parts(monkeypatch):
    rng, M = np.random.default_rng(0), ecoc(4)
    z, y = rng.normal(size=(50, M.shape[1])), rng.integers(4, size=50)
    whole = Codeword(M).wrong(z, y)
    assert 0 < whole.mean() < 1
    for part in (1, 3 * M.shape[1]):
        monkeypatch.setattr("tcboost.margins._PART", part)
        np.testing.assert_array_equal(Codeword(M).wrong(z, y), whole)


@pytest.mark.parametrize("size", [1e-300, 1e-10, 1.0, 1e10])
def test_rounding_decides_no_tie_of_any_size(size):
    """Three classes on four bits: the last two score alike, but for the last digits."""
    margin = Codeword(np.array([[1, 1, 1, 1], [-1, -1, 1, -1], [-1, -1, -1, 1]], dtype=np.int8))
    y = np.array([1, 2, 1, 2])
    F = size * np.array([[-0.5, -0.7, 0.3, 0.1 + 0.2]] * 4)
    F[2:, 2] *= 1.01
    assert margin.wrong(margin.apply(F, y), y).tolist() == [False, True, False, True]
    F[:, 2] *= 0.9
    assert margin.wrong(margin.apply(F, y), y).tolist() == [True, False, True, False]
