"""Products with the signs of stumps, in chains, against those with the matrix of signs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tcboost import _core
from tcboost.correctors.chains import Chains
from tcboost.oracles import Column
from tcboost.oracles.stump import CONSTANT, StumpOracle
from tcboost.rows.blocks import LocalRows


def signs(n, lengths, seed):
    """Places of rows in chains of these lengths, where these start, and the matrix of signs."""
    rng = np.random.default_rng(seed)
    places = np.column_stack([rng.integers(m + 1, size=n) for m in lengths]).astype(np.uint16)
    H = [np.where(np.arange(m) < places[:, [g]], 1, -1) for g, m in enumerate(lengths)]
    first = np.cumsum([0, *lengths])
    return np.asfortranarray(places), first, np.concatenate(H, axis=1).astype(np.int8)


@pytest.mark.parametrize("n_classes", [1, 2, 4, 5, 8, 9, 12, 13, 31])
@pytest.mark.parametrize("lengths", [(1,), (3, 1, 0, 7), (1,) * 40, (300, 2)])
@pytest.mark.parametrize("n", [1, 511, 1500])
def test_kernels(n, lengths, n_classes):
    places, first, H = signs(n, lengths, n)
    rng = np.random.default_rng(n_classes)
    V, A = rng.normal(size=(sum(lengths), n_classes)), rng.normal(size=(n, n_classes))
    F, g = _core.chain_scores(places, first, V, 1), _core.chain_sums(places, first, A, 1)
    assert_allclose(F, H @ V, rtol=0, atol=1e-12)
    assert_allclose(g, H.T @ A, rtol=0, atol=1e-11)


@pytest.mark.parametrize("n_threads", [2, 3, 64])
def test_threads_change_nothing(n_threads):
    places, first, _ = signs(20_000, (4, 9, 1, 30), 0)
    rng = np.random.default_rng(1)
    for kernel, size in ((_core.chain_scores, first[-1]), (_core.chain_sums, 20_000)):
        B = rng.normal(size=(size, 5))
        assert_array_equal(kernel(places, first, B, n_threads), kernel(places, first, B, 1))


def test_kernels_refuse_what_does_not_fit():
    places, first, _ = signs(10, (2, 3), 0)
    V, A = np.zeros((5, 2)), np.zeros((10, 2))
    for kernel, B in ((_core.chain_scores, V), (_core.chain_sums, A)):
        for wrong in (first[:-1], first[::-1].copy(), first + 1):
            with pytest.raises(ValueError, match="first must ascend"):
                kernel(places, wrong, B, 1)
        with pytest.raises(ValueError, match="no such place"):
            kernel(places + np.uint16(3), first, B, 1)
    with pytest.raises(ValueError, match="a row for each hypothesis"):
        _core.chain_scores(places, first, V[1:], 1)
    with pytest.raises(ValueError, match="differ in their rows"):
        _core.chain_sums(places, first, A[1:], 1)


def test_a_chain_longer_than_16_bits_hold():
    n = 70_003
    H = np.where(np.arange(n) < np.array([[0], [5], [65_536], [n]]), 1, -1).astype(np.int8)
    keys = np.column_stack([np.zeros((n, 3), dtype=np.int64), np.arange(n)])
    chains = Chains(np.asfortranarray(H), keys)
    rng = np.random.default_rng(0)
    V, A = rng.normal(size=(n, 2)), rng.normal(size=(4, 2))
    assert_allclose(chains.scores(V), H @ V, rtol=0, atol=1e-9)
    assert_allclose(chains.pull(A), H.T @ A, rtol=0, atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_stumps_of_a_feature_are_a_chain(missing):
    rng = np.random.default_rng(3)
    X = rng.integers(6, size=(300, 4)).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    rows = LocalRows(X, rng.integers(3, size=300), np.ones(300), None, 1)
    oracle = StumpOracle(rows)
    stumps = [oracle.stump(j, s) for j in rng.permutation(len(oracle)) for s in (1, -1)]
    columns = [Column((h,)) for h in [*stumps, CONSTANT, stumps[0]]]
    H = np.asfortranarray(np.column_stack([c.hypotheses[0].predict(rows.X) for c in columns]))
    chains = Chains(H, oracle.chains(columns), n_threads=2)
    assert chains._places.shape[1] == (16 if missing else 8)  # four features, two signs
    V, A = rng.normal(size=(len(columns), 3)), rng.normal(size=(len(H), 3))
    for one in (chains, Chains(H)):  # with chains, and each stump alone
        assert_allclose(one.scores(V), H @ V, rtol=0, atol=1e-12)
        assert_allclose(one.pull(A), H.T @ A, rtol=0, atol=1e-11)
