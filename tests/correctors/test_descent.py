"""The kernel of coordinate descent against Clarabel, plain formulas and bad arguments."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from test_ball import optimum

from tcboost._core import descend
from tcboost.correctors import Budget
from tcboost.correctors.newton import newton_step
from tcboost.losses import LOSSES


@dataclass
class Small:
    """A restricted master and its coefficients; rows are sorted by class."""

    H: np.ndarray
    codes: np.ndarray | None
    y: np.ndarray
    weight: np.ndarray
    exponential: bool
    W: np.ndarray
    F: np.ndarray
    n_classes: int
    linear: np.ndarray | None = None  # what is taken off the loss, by W

    def run(
        self, theta=np.inf, price=0.0, ridge=0.0, tol=0.0, max_sweeps=1, free_ridge=0.0, **other
    ):
        arguments = {
            "H": self.H,
            "codes": self.codes,
            "start": np.searchsorted(self.y, np.arange(self.n_classes + 1)).astype(np.int64),
            "weight": self.weight,
            "W": self.W,
            "F": self.F,
            "linear": self.linear,
            "exponential": self.exponential,
        }
        gap, size, squares, slope = descend(
            **arguments | {"n_threads": 1} | other,
            theta=theta,
            price=price,
            ridge=ridge,
            free_ridge=free_ridge,
            tol=tol,
            max_sweeps=max_sweeps,
        )
        free = norms(self.W[:1]).sum() if free_ridge > 0 else 0.0
        assert size == pytest.approx(self.size - free, rel=1e-12, abs=1e-300)
        F = self.scores
        g = (
            self.H.T
            @ LOSSES["exponential" if self.exponential else "multinomial"].on_scores(
                F, self.y, self.weight
            )[1]
        )
        assert slope == pytest.approx((self.vectors * g).sum(), rel=1e-9, abs=1e-9)
        if self.codes is None:
            ridges = np.full(len(self.W), ridge)
            ridges[:1] = free_ridge or ridge
            assert squares == pytest.approx(ridges @ norms(self.W) ** 2, rel=1e-12, abs=1e-300)
        return gap

    @property
    def vectors(self):
        return self.W if self.codes is None else self.W[:, None] * self.codes

    @property
    def size(self):
        return float(np.abs(self.W).sum() if self.codes is not None else norms(self.W).sum())

    @property
    def scores(self):
        return self.H.astype(float) @ self.vectors

    def objective(self, price=0.0, ridge=0.0):
        F, rows = self.scores, np.arange(len(self.y))
        if self.exponential:
            x = F - F[rows, self.y][:, None]
            x[rows, self.y] = -np.inf
            loss = logsumexp(x + np.log(self.weight / (self.n_classes - 1))[:, None])
        else:
            loss = self.weight @ (logsumexp(F, axis=1) - F[rows, self.y])
        ridge = 0.0 if self.codes is not None else ridge
        if self.linear is not None:
            loss -= (self.linear * self.W).sum()
        return float(loss + ridge / 2 * (self.W**2).sum() + price * self.size)

    def gradient(self):
        """Minus that of the loss, by the class vectors."""
        F, onehot = self.scores, np.eye(self.n_classes)[self.y]
        if self.exponential:
            x = F - (F * onehot).sum(axis=1, keepdims=True) + np.log(self.weight)[:, None]
            u = softmax(np.where(onehot > 0, -np.inf, x))
            V = onehot * u.sum(axis=1, keepdims=True) - u
        else:
            V = self.weight[:, None] * (onehot - softmax(F, axis=1))
        return self.H.T.astype(float) @ V

    def gap(self, theta, price=0.0, ridge=0.0):
        g = self.gradient()
        if self.codes is None:
            g = g - ridge * self.W + (0.0 if self.linear is None else self.linear)
            largest = norms(g).max(initial=0.0)
        else:
            g = (self.codes * g).sum(axis=1) + (0.0 if self.linear is None else self.linear)
            largest = g.max(initial=0.0)
        return theta * max(largest, price) - float((self.W * g).sum())


def norms(W):
    return np.linalg.norm(W, axis=1)


def small(seed, exponential, coded, n_classes=3, n=24, t=6, used=0.0, weights=None):
    """A random one, and random coefficients of a total size `used`."""
    rng = np.random.default_rng(seed)
    y = np.sort(np.arange(n) % n_classes)
    x = rng.normal(size=(n, t)) + 0.7 * rng.normal(size=(n_classes, t))[y]
    H = np.asfortranarray(np.where(x > 0, 1, -1).astype(np.int8))
    codes = rng.choice([-1, 1], size=(t, n_classes)).astype(np.int8) if coded else None
    weight = rng.uniform(0.5, 2.0, n) if weights is None else weights(rng, n)
    W = rng.exponential(size=t) if coded else rng.normal(size=(t, n_classes))
    W *= used / max(1e-300, W.sum() if coded else norms(W).sum())
    made = Small(H, codes, y, weight / weight.sum(), exponential, W, np.empty(0), n_classes)
    made.F = np.ascontiguousarray(made.scores.T)
    return made


NAMES = {False: "multinomial", True: "exponential"}
both_losses = pytest.mark.parametrize("exponential", [False, True])
both_kinds = pytest.mark.parametrize("coded", [False, True])

# Budgets: theta, price, ridge.
COSTS = [
    (0.5, 0.0, 0.0),
    (4.0, 0.0, 0.0),
    (4.0, 0.0, 0.05),
    (np.inf, 0.02, 0.0),
    (np.inf, 0.02, 0.05),
    (0.7, 0.02, 0.01),
]


def assert_consistent(made, theta):
    assert np.isfinite(made.W).all()
    scale = 1.0 + np.abs(made.vectors).sum()
    np.testing.assert_allclose(made.F.T, made.scores, rtol=0, atol=1e-13 * scale)
    assert made.size <= theta * (1 + 1e-12)
    assert made.codes is None or (made.W >= 0).all()


@both_losses
@both_kinds
def test_rows_of_several_blocks(exponential, coded):
    """Every row 301 times, with a part of its weight: more than the kernel has at a time."""
    few, many = (small(3, exponential, coded, n=25, used=1.0) for _ in range(2))
    times = 301
    many.H = np.asfortranarray(np.repeat(many.H, times, axis=0))
    many.y, many.weight = np.repeat(many.y, times), np.repeat(many.weight, times) / times
    many.F = np.repeat(many.F, times, axis=1)
    gaps = [made.run(theta=4.0, max_sweeps=5) for made in (few, many)]
    np.testing.assert_allclose(many.W, few.W, rtol=1e-10, atol=1e-12)
    assert_consistent(many, 4.0)
    assert gaps[0] == pytest.approx(gaps[1], rel=1e-7, abs=1e-12)
    assert many.run(theta=4.0, max_sweeps=0) == pytest.approx(
        many.gap(4.0), rel=1e-7, abs=1e-12
    )


@both_losses
@both_kinds
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_no_sweep_raises_the_objective(exponential, coded, cost, n_classes):
    theta, price, ridge = cost
    if exponential and np.isinf(theta):
        return  # has no minimum
    for used in (0.0, 0.3, 1.0):
        budget = theta if np.isfinite(theta) else 3.0
        made = small(n_classes, exponential, coded, n_classes, used=used * budget)
        values = [made.objective(price, ridge)]
        for _ in range(12):
            made.run(theta, price, ridge)
            assert_consistent(made, theta)
            values.append(made.objective(price, ridge))
        assert (np.diff(values) <= 1e-13 * (1 + np.abs(values[1:]))).all()
        assert values[-1] < values[0]


@both_losses
@both_kinds
@pytest.mark.parametrize("cost", COSTS)
def test_many_sweeps_reach_the_optimum(exponential, coded, cost):
    theta, price, ridge = cost
    if (exponential and np.isinf(theta)) or (coded and ridge and not price):
        return  # no minimum, or a ridge that multiples of codes do not have
    made = small(1, exponential, coded)
    made.run(theta, price, ridge, tol=1e-9, max_sweeps=2000)
    assert_consistent(made, theta)
    loss = "exponential" if exponential else "multinomial"
    truth = optimum(
        made, made.H.astype(float), made.codes, loss, theta, price, 0.0 if coded else ridge
    )
    assert made.objective(price, ridge) == pytest.approx(truth, abs=1e-7)


@both_losses
@both_kinds
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("price", [0.0, 0.05])
@pytest.mark.parametrize("sweeps", [0, 1, 3, 40])
def test_the_gap_is_that_of_the_formula(exponential, coded, ridge, price, sweeps):
    for seed, used in ((2, 0.0), (3, 0.6), (4, 2.0)):
        made = small(seed, exponential, coded, used=used)
        made.run(2.0, price, ridge, max_sweeps=sweeps)
        gap = made.run(2.0, price, ridge, max_sweeps=0)
        assert gap == pytest.approx(made.gap(2.0, price, ridge), abs=1e-13)
        assert gap >= -1e-13
        # With a price and no theta, within the size in use.
        made = small(seed, exponential, coded, used=used)
        made.run(np.inf, 0.1 + price, ridge, max_sweeps=sweeps)
        gap = made.run(np.inf, 0.1 + price, ridge, max_sweeps=0)
        assert gap == pytest.approx(made.gap(made.size, 0.1 + price, ridge), abs=1e-13)


@both_losses
@both_kinds
@pytest.mark.parametrize("cost", COSTS[:3])
def test_a_linear_part_of_the_loss(exponential, coded, cost):
    """The objective falls, the gap is that of the formula, and with Newton steps it closes."""
    theta, price, ridge = cost
    ridge = 0.0 if coded else ridge
    made = small(7, exponential, coded, n=60, used=0.4 * theta)
    if coded:
        made.codes[:, 0] = -made.codes[:, 1]  # a constant code does nothing to the loss
        made.F = np.ascontiguousarray(made.scores.T)
    made.linear = 0.05 * np.random.default_rng(8).normal(size=made.W.shape)
    rows = LOSSES[NAMES[exponential]], made.y, made.weight, Budget(theta, price, ridge)
    value = made.objective(price, ridge)
    for _ in range(40):
        made.run(theta, price, ridge)
        assert_consistent(made, theta)
        gap = made.run(theta, price, ridge, max_sweeps=0)
        assert gap == pytest.approx(made.gap(theta, price, ridge), abs=1e-13)
        step = newton_step(made.H, made.codes, made.W, *rows, made.linear)
        if step is not None:
            made.W = step.w
            made.F = np.ascontiguousarray(made.scores.T)
        value, last = made.objective(price, ridge), value
        assert value <= last + 1e-13
    assert made.gap(theta, price, ridge) <= 1e-7


@both_losses
@both_kinds
@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3, 1e-4, 1e-5])
def test_a_gap_within_the_tolerance_is_true(exponential, coded, tol):
    """In single precision down to 1e-4; what is larger may be of edges a little old."""
    for seed in range(6):
        made = small(seed, exponential, coded, n=60, used=1.0)
        found = [made.run(2.0, tol=tol, max_sweeps=sweeps) for sweeps in (1, 2, 4000)]
        assert found[-1] == pytest.approx(made.gap(2.0), abs=2e-6 if tol >= 1e-4 else 1e-13)
        assert found[-1] <= tol
        assert_consistent(made, 2.0)


@both_losses
def test_single_precision_far_from_the_start(exponential):
    """Scores that move by hundreds in one sweep: the exponentials are made anew in time."""
    made = small(14, exponential, False, n=40, t=12)
    made.H[:, ::3] = np.where(made.y == 0, 1, -1)[:, None]
    made.H[:, 1::3] = np.where(made.y == 1, 1, -1)[:, None]
    before = made.objective()
    for _ in range(30):
        made.run(1e6, tol=1e-4, max_sweeps=20)
        assert_consistent(made, 1e6)
    assert made.objective() < before - 1


def test_many_equal_weights_add_up_in_single_precision():
    """What rounding takes from a long sum of equal numbers is the same each time."""
    sizes = np.array([300_001, 50_000, 50_000])
    n, rng = sizes.sum(), np.random.default_rng(0)
    H = rng.choice(np.array([-1, 1], dtype=np.int8), size=(n, 2), p=[0.1, 0.9])
    start = np.concatenate([[0], np.cumsum(sizes)])
    g = np.array([np.add.reduceat(h, start[:-1]) - h.sum() / 3 for h in H.T.astype(int)]) / n
    data = np.asfortranarray(H), None, start, np.full(n, 1.0 / n)
    for tol, error in ((1e-3, 2e-5), (1e-9, 1e-10)):
        W, F = np.zeros((2, 3)), np.zeros((3, n))
        gap, *_ = descend(*data, W, F, None, 20.0, 0.0, 0.0, 0.0, tol, 0, False, 1)
        assert gap == pytest.approx(20.0 * norms(g).max(), abs=error)


def test_the_gap_bounds_the_excess_and_ends_the_sweeps():
    for sweeps in (1, 2, 5, 20):
        made = small(5, False, False)
        made.run(3.0, ridge=0.01, max_sweeps=sweeps)
        gap = made.run(3.0, ridge=0.01, max_sweeps=0)
        truth = optimum(made, made.H.astype(float), None, "multinomial", 3.0, ridge=0.01)
        assert -1e-8 <= made.objective(ridge=0.01) - truth <= gap + 1e-8
    made = small(5, False, False)
    assert 1e-4 < made.run(3.0, tol=1e-2, max_sweeps=10**6) <= 1e-2
    before = made.W.copy()
    made.run(3.0, tol=1e-2, max_sweeps=10**6)
    # The edges are looked at after a sweep first, so that one may be made in vain.
    assert np.abs(made.W - before).max() < 0.2


@both_losses
@pytest.mark.parametrize("price", [0.0, 0.02, 10.0])
def test_the_first_class_vector_may_be_free(exponential, price):
    """It has no size, no price and a ridge of its own, and still the gap is true."""
    theta, ridge, free = (1.0, 0.03, 1e-3) if exponential or not price else (np.inf, 0.03, 1e-3)

    def value(made):
        paid = norms(made.W[1:]).sum()
        bare = made.objective() + ridge / 2 * (made.W[1:] ** 2).sum()
        return bare + free / 2 * (made.W[0] ** 2).sum() + price * paid

    made = small(13, exponential, False, n=30)
    made.H[:, 0] = 1
    truth = optimum(
        made, made.H.astype(float), None, NAMES[exponential], theta, price, ridge, free
    )
    values = [value(made)]
    for sweeps in (0, 1, 1, 3, 400):
        made.run(theta, price, ridge, free_ridge=free, max_sweeps=sweeps)
        gap = made.run(theta, price, ridge, free_ridge=free, max_sweeps=0)
        np.testing.assert_allclose(made.F.T, made.scores, rtol=0, atol=1e-12)
        assert norms(made.W[1:]).sum() <= theta * (1 + 1e-12)
        values.append(value(made))
        if np.isfinite(theta):
            g = made.gradient() - np.array([free] + [ridge] * 5)[:, None] * made.W
            expected = theta * max(norms(g[1:]).max(), price) - (made.W[1:] * g[1:]).sum()
            expected += (g[0] ** 2).sum() / (2 * free)
            assert gap == pytest.approx(expected, abs=1e-12)
            assert values[-1] - truth <= gap + 1e-8
    assert (np.diff(values) <= 1e-13).all()
    assert values[-1] == pytest.approx(truth, abs=1e-6)
    if price == 10.0:
        assert not made.W[1:].any()


@both_losses
@both_kinds
def test_rescaled_coefficients_lie_on_the_budget(exponential, coded):
    made = small(6, exponential, coded)
    made.run(0.3, max_sweeps=30)
    assert made.size == pytest.approx(0.3, rel=1e-12)


@both_losses
@both_kinds
@pytest.mark.parametrize("theta", [1e-300, 1e-9, 1e9, 1e300])
@pytest.mark.parametrize("ridge", [0.0, 1e-9, 1e6])
@pytest.mark.parametrize("tol", [0.0, 1e-4])
def test_extreme_budgets(exponential, coded, theta, ridge, tol):
    made = small(7, exponential, coded)
    before = made.objective(ridge=ridge)
    gap = made.run(theta, ridge=ridge, tol=tol, max_sweeps=30)
    assert_consistent(made, theta)
    assert made.objective(ridge=ridge) <= before + 1e-15
    assert np.isfinite(gap)
    if ridge == 1e6 and not coded:  # as good as one step of gradient descent
        first = small(7, exponential, coded).gradient() / 1e6
        if norms(first).sum() < theta:
            np.testing.assert_allclose(made.W, first, rtol=1e-4, atol=1e-12)


@both_losses
@both_kinds
@pytest.mark.parametrize("seed", range(5))
def test_weights_of_twelve_orders_of_magnitude(exponential, coded, seed):
    def weights(rng, n):
        return 10.0 ** rng.uniform(-12, 0, n)

    made = small(seed, exponential, coded, used=1.0, weights=weights)
    values = [made.objective()]
    for _ in range(20):
        made.run(5.0)
        assert made.run(5.0, max_sweeps=0) == pytest.approx(made.gap(5.0), abs=1e-12)
        assert_consistent(made, 5.0)
        values.append(made.objective())
    assert (np.diff(values) <= 1e-13).all()
    assert made.run(5.0, tol=1e-4, max_sweeps=20000) <= 1e-4


@both_losses
@both_kinds
def test_nothing_to_do(exponential, coded):
    """No column, one row, a class without rows."""
    made = small(8, exponential, coded, t=0)
    assert made.run(2.0, max_sweeps=3) == 0.0
    assert not made.F.any()
    for n in (1, 2):
        made = small(8, exponential, coded, n=n, t=2)
        assert np.bincount(made.y, minlength=3).min() == 0
        before = made.objective()
        made.run(2.0, max_sweeps=50)
        assert made.run(2.0, max_sweeps=0) == pytest.approx(made.gap(2.0), abs=1e-13)
        assert_consistent(made, 2.0)
        assert made.objective() <= before
    made = small(9, exponential, coded)
    made.run(0.0, max_sweeps=5)
    assert not made.W.any()
    assert not made.F.any()


def test_a_price_above_all_edges_leaves_zero():
    made = small(10, False, False)
    edge = norms(made.gradient()).max()
    made.run(price=1.0001 * edge, max_sweeps=5)
    assert not made.W.any()
    made.run(price=0.9 * edge, max_sweeps=5)
    assert made.W.any()


@both_losses
@both_kinds
@pytest.mark.parametrize("tol", [0.0, 1e-4])
def test_threads_change_no_bit(exponential, coded, tol):
    results = []
    for n_threads in (1, 2, 3):
        made = small(12, exponential, coded, n_classes=8, n=40_000, t=3, used=1.0)
        gap = made.run(2.0, ridge=0.01, tol=tol, max_sweeps=3, n_threads=n_threads)
        results.append((gap, made.W.tobytes(), made.F.tobytes()))
    assert results[0] == results[1] == results[2]
    assert made.F.size > 2**18  # fewer scores have one thread


@both_kinds
def test_the_same_call_gives_the_same_bits(coded):
    made, again = (small(11, False, coded, used=1.0) for _ in range(2))
    assert made.run(2.0, max_sweeps=3) == again.run(2.0, max_sweeps=3)
    np.testing.assert_array_equal(made.W, again.W)
    np.testing.assert_array_equal(made.F, again.F)


BAD = {
    "no start": {"start": np.zeros(0, np.int64)},
    "one class": {"start": np.array([0, 24])},
    "start descends": {"start": np.array([0, 20, 16, 24])},
    "start is negative": {"start": np.array([0, -8, 16, 24])},
    "start begins late": {"start": np.array([1, 8, 16, 24])},
    "start ends early": {"start": np.array([0, 8, 16, 23])},
    "start ends late": {"start": np.array([0, 8, 16, 25])},
    "weight": {"weight": np.ones(23)},
    "W turned": {"W": np.zeros((3, 6))},
    "W flat": {"W": np.zeros(18)},
    "W short": {"W": np.zeros((5, 3))},
    "F turned": {"F": np.zeros((24, 3))},
    "F flat": {"F": np.zeros(72)},
    "linear": {"linear": np.zeros((5, 3))},
    "codes without W": {"codes": np.ones((6, 3), np.int8)},
    "codes turned": {"codes": np.ones((3, 6), np.int8), "W": np.zeros(6)},
    "no rows": {
        "H": np.zeros((0, 6), np.int8, order="F"),
        "start": np.zeros(4, np.int64),
        "weight": np.zeros(0),
        "F": np.zeros((3, 0)),
    },
}
WRONG = {
    "real H": {"H": np.ones((24, 6), order="F")},
    "H by rows": {"H": np.ones((24, 6), np.int8)},
    "flat H": {"H": np.ones(24, np.int8)},
    "short start": {"start": np.array([0, 8, 16, 24], np.int32)},
    "single W": {"W": np.zeros((6, 3), np.float32)},
    "W read-only": {"W": np.broadcast_to(0.0, (6, 3))},
    "F by columns": {"F": np.zeros((3, 24), order="F")},
    "F a list": {"F": [[0.0] * 24] * 3},
    "weight None": {"weight": None},
}


@pytest.mark.parametrize("name", BAD)
def test_shapes_that_do_not_fit(name):
    with pytest.raises(ValueError, match=r"start|rows|classes|columns"):
        small(0, False, False).run(1.0, **BAD[name])


@pytest.mark.parametrize("name", WRONG)
def test_types_that_do_not_fit(name):
    with pytest.raises(TypeError, match="incompatible function arguments"):
        small(0, False, False).run(1.0, **WRONG[name])


@pytest.mark.parametrize("name", ["theta", "price", "ridge", "free_ridge", "max_sweeps"])
def test_numbers_that_make_no_sense(name):
    with pytest.raises(ValueError, match="must not be negative"):
        small(0, False, False).run(**{name: -1})
    if name != "max_sweeps":
        with pytest.raises(ValueError, match="must not be negative"):
            small(0, False, False).run(**{name: np.nan})
