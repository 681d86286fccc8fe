"""A master that grows: its model is old, its solutions are not."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from test_master import SMALL, random_master

from tcboost import solve_master
from tcboost.correctors.master import Master
from tcboost.losses import SMOOTH


def grown(P, s, theta, tol, loss="exponential", master=None, w=()):
    """Column by column; the solutions of all rounds, and the master."""
    master, solutions = master or Master(s, SMOOTH[loss]), []
    for column in P.T:
        master.add(column[:, None].copy())
        solution, z = master.solve(theta, np.append(w, 0.0), tol)
        w = solution.w
        solutions.append(solution)
    return solutions, z, master


@pytest.mark.parametrize("kind", ["int8", "int16", "float64"])
@pytest.mark.parametrize("loss", sorted(SMOOTH))
def test_every_round_of_a_growing_master_is_solved(loss, kind):
    P, s = random_master(1, 400, 60)
    P = P.astype(kind)
    solutions, z, _ = grown(P, s, 8.0, 1e-7, loss)
    for t in (1, 10, 33, 60):
        cold = solve_master(P[:, :t], 8.0, sample_weight=s, tol=1e-9, loss=loss)
        grew = solutions[t - 1]
        assert grew.status == "optimal"
        assert cold.dual - 1e-12 <= grew.log_loss <= cold.log_loss + grew.gap
        g = grew.u @ P[:, :t].astype(float)
        true = 8.0 * max(0.0, g.max()) - grew.w @ g
        assert true == pytest.approx(grew.gap, abs=1e-11)
        assert grew.w.min() >= 0
        assert grew.w.sum() <= 8.0 * (1 + 1e-12)
    np.testing.assert_allclose(z, P @ solutions[-1].w, atol=1e-12)
    assert sum(solution.n_iter for solution in solutions) < 8 * len(solutions)


@pytest.mark.parametrize("frozen", SMALL[1:3], indirect=True)
def test_frozen_grown(frozen):
    rho, theta, optimum, optimum_gap = frozen
    solution = grown(rho, np.ones(len(rho)), theta, 1e-6)[0][-1]
    assert solution.status == "optimal"
    g = solution.u @ rho.astype(float)
    assert solution.r == pytest.approx(g.max(), abs=1e-13)  # sums in integers of 45 bits
    assert solution.gap == pytest.approx(theta * g.max() - solution.w @ g, abs=1e-11)
    assert abs(solution.log_loss - optimum) <= solution.gap + optimum_gap


@pytest.mark.parametrize("theta", [100.0, 1e6])
def test_a_heavy_row_among_many_light_ones(theta):
    """A loose master knows its gap, too: what rounding takes from equal weights adds up."""
    rng = np.random.default_rng(0)
    P = np.where(rng.random((6, 5)) < 0.5, 1, -1).astype(np.int8)[rng.integers(6, size=100_000)]
    s = np.ones(len(P))
    s[0] = len(P)
    for solution in grown(P, s, theta, max(1e-3, 1e-9 * theta))[0]:
        g = solution.u @ P[:, : len(solution.w)].astype(float)
        true = theta * max(0.0, g.max()) - solution.w @ g
        assert solution.status == "optimal"
        assert solution.gap == pytest.approx(true, abs=1e-9 * theta)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_a_copy_goes_on_to_the_bit(loss):
    P, s = random_master(2, 200, 40)
    first, _, master = grown(P[:, :25], s, 5.0, 1e-6, loss)
    again, pickled = copy.deepcopy(master), pickle.loads(pickle.dumps(master))
    one, *_ = grown(P[:, 25:], s, 5.0, 1e-6, loss, master, first[-1].w)
    other, *_ = grown(P[:, 25:], s, 5.0, 1e-6, loss, again, first[-1].w)
    np.testing.assert_array_equal(one[-1].w, other[-1].w)
    np.testing.assert_array_equal(one[-1].u, other[-1].u)
    other, *_ = grown(P[:, 25:], s, 5.0, 1e-6, loss, pickled, first[-1].w)
    assert other[-1].log_loss == pytest.approx(one[-1].log_loss, abs=1e-6)


def test_columns_can_be_forgotten():
    P, s = random_master(3, 200, 30)
    solutions, _, master = grown(P, s, 5.0, 1e-8)
    kept = solutions[-1].w > 0
    assert not kept.all()
    master.keep(kept)
    solution, _ = master.solve(2.0, solutions[-1].w[kept], 1e-8)
    best = solve_master(P[:, kept], 2.0, sample_weight=s, tol=1e-9)
    assert solution.log_loss == pytest.approx(best.log_loss, abs=2e-8)


def test_a_growing_master_refuses_what_does_not_fit():
    master = Master(np.ones(3), SMOOTH["exponential"])
    master.add(np.ones((3, 1), np.int8))
    with pytest.raises(ValueError, match="one margin a row"):
        master.add(np.ones((2, 1), np.int8))
    with pytest.raises(ValueError, match="one number a column"):
        master.solve(1.0, np.zeros(2), 1e-6)
    with pytest.raises(ValueError, match="one entry a column"):
        master.keep(np.array([True, False]))
    with pytest.raises(TypeError):  # columns are of one type
        master.add(np.ones((3, 1)))


@pytest.mark.parametrize(("width", "theta"), [(2, 5.0), (6, 400.0), (11, 8.0), (128, 8.0)])
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_columns_in_a_table_are_the_same_to_the_bit(loss, width, theta):
    """In blocks that begin and end inside of rows; copies go on as well."""
    rng = np.random.default_rng(width)
    n_cells = 256 if width == 6 else 2 * width
    numbers = np.array([0 if width == 6 else -2, 0, 2, 2], dtype=np.int8)
    s = rng.uniform(0.5, 2.0, 1501 if width < 100 else 40)
    dense = Master(s, SMOOTH[loss], n_threads=2, width=width)
    tabled = Master(s, SMOOTH[loss], n_threads=2, width=width)
    plain = Master(np.repeat(s, width), SMOOTH[loss])
    w = np.zeros(0)
    for t in range(12):
        cells = rng.integers(n_cells, size=len(s)).astype(np.uint8)
        table = rng.choice(numbers, (n_cells, width))
        tabled.add(cells, table)
        for other in (dense, plain):
            other.add(table[cells].reshape(-1, 1))
        w = np.append(w, 0.0)
        expected, z = dense.solve(theta, w, 1e-8)
        for other in (tabled, plain):
            solution, at = other.solve(theta, w, 1e-8)
            for one, same in zip(solution, expected, strict=True):
                np.testing.assert_array_equal(one, same)
            np.testing.assert_array_equal(at, z)
        w = expected.w
        if t == 4:
            tabled = copy.deepcopy(tabled)
    again, _ = pickle.loads(pickle.dumps(tabled)).solve(theta, w, 1e-8)
    assert again.n_iter == 0
    if (width, loss) == (6, "exponential"):  # what is lost in rounding was left out
        assert 0 < (expected.u < 1e-20).mean() < 1


def test_a_table_that_does_not_fit():
    cells, table = np.zeros(5, dtype=np.uint8), np.zeros((4, 3), dtype=np.int8)

    def add(cells, table, width=3):
        Master(np.ones(5), SMOOTH["exponential"], width=width).add(cells, table)

    add(cells, table)
    for arguments in ((cells[:4], table), (cells, table[:, :2].copy()), (cells, table, 2)):
        with pytest.raises(ValueError, match="one cell a row"):
            add(*arguments)
    with pytest.raises(ValueError, match="no such cell"):
        add(cells + np.uint8(4), table)


def test_solutions_outlive_the_next_solve():
    """What a solve has returned is not used as room by later ones."""
    P, s = random_master(2, 300, 30)
    master, kept, w = Master(s, SMOOTH["exponential"]), [], np.zeros(0)
    for column in P.T:
        master.add(column[:, None].copy())
        solution, z = master.solve(9.0, np.append(w, 0.0), 1e-8)
        w = solution.w
        kept.append((solution.u, solution.u.copy(), z, z.copy()))
    for u, u_then, z, z_then in kept:
        np.testing.assert_array_equal(u, u_then)
        np.testing.assert_array_equal(z, z_then)
