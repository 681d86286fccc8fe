"""SAMME, AdaBoost.M1, M2 and OC against their literal forms and scikit-learn."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import tcboost
from reference import algorithms
from reference import relatives as ref
from reference.programs import restricted_gap, solve_master
from tcboost import AdaBoostECC, AdaBoostSAMME, MultiBoostSAMME, theta_path
from tcboost.correctors.stagewise import Sums, stagewise_coefficient
from tcboost.margins import AgainstAll, Pairwise
from tcboost.oracles import MulticlassOracle
from tcboost.rows.blocks import LocalRows

VARIANTS = ["samme", "m1", "m2"]
SETS = {"iris": load_iris, "wine": load_wine, "digits": load_digits}
IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)


def tree(depth):
    return DecisionTreeClassifier(max_depth=depth)


def rows_of(X, y, weight=None):
    """Rows as an estimator sees them: equal ones merged, in canonical order."""
    return LocalRows(X, y, np.ones(len(y)) if weight is None else weight, "auto", 1)


def seeds(random_state):
    """What an estimator seeds its weak learners with, round by round."""
    return np.random.RandomState(np.random.RandomState(random_state).randint(2**31 - 1))


def learner(depth, draws, kept, expand=False):
    """A weak learner for the reference; it keeps the trees it has fitted."""

    def learn(X, y, D):
        model = tree(depth).set_params(random_state=draws.randint(2**31 - 1))
        rows, labels, weight = (
            ref.expanded(y, D) if expand else (np.arange(len(y)), y, D / D.max())
        )
        kept.append(model.fit(X[rows], labels, weight))
        return model.predict(X)

    return learn


# ---------------------------------------------------------------- the margin


@pytest.mark.parametrize("C", [2, 3, 5, 200])
def test_the_margin_is_that_of_samme(C):
    """``Y . g / C`` with the code vectors of the published algorithm is rho / (C - 1)."""
    code = np.full((C, C), -1 / (C - 1))
    np.fill_diagonal(code, 1.0)
    y, said = (a.ravel() for a in np.meshgrid(np.arange(C), np.arange(C)))
    onehot = np.eye(C, dtype=np.int8)[said]
    rho = AgainstAll(C, 1 / (C - 1)).apply(onehot, y)
    assert_allclose(rho[:, 0] / (C - 1), (code[y] * code[said]).sum(axis=1) / C, atol=1e-15)
    assert_array_equal(rho[:, 0], np.where(said == y, 1.0, -1 / (C - 1)))
    # The mean of the pairwise margins, which makes its loss the smaller one.
    assert_allclose(rho[:, 0], Pairwise(C).apply(onehot, y).mean(axis=1), atol=1e-15)
    m1 = AgainstAll(C, 1.0).apply(onehot, y)
    assert_array_equal(m1[:, 0], np.where(said == y, 1.0, -1.0))


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_the_adjoint(share):
    rng = np.random.default_rng(0)
    margin, y = AgainstAll(5, share), rng.integers(5, size=30)
    u, o = rng.integers(2**55, size=(30, 1)), rng.normal(size=(30, 5))
    V = margin.adjoint(u, y)
    assert (V * o).sum() == pytest.approx((u * margin.apply(o, y)).sum(), rel=1e-12)
    assert np.abs(V).sum() == pytest.approx(margin.spread * u.sum())
    with pytest.raises(NotImplementedError):
        margin.wrong(margin.apply(o, y), y)


# ---------------------------------------------------------------- stage-wise


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("name", SETS)
def test_samme_is_that_of_scikit_learn(name, depth):
    """Round by round: coefficients that are 1 - 1/C times theirs, the same predictions.

    Trees are seeded alike, and so try the features in the same order. The canonical order of
    the rows and the merging of equal ones (iris has such a pair) change sums of weights in the
    last digit: of two splits that are equally good a tree may take the other one. That happens
    at depth 2, where the coefficients and the votes on the training rows are still the same.
    """
    X, y = SETS[name](return_X_y=True)
    C, T = y.max() + 1, 30
    ours = AdaBoostSAMME(T, weak_learner=tree(depth), random_state=0).fit(X, y)
    theirs = AdaBoostClassifier(tree(depth), n_estimators=T, random_state=seeds(0)).fit(X, y)
    assert ours.n_iter_ == T
    assert_allclose(ours.estimator_weights_, (1 - 1 / C) * theirs.estimator_weights_, rtol=1e-9)
    new = X + np.random.default_rng(0).normal(scale=X.std(axis=0) / 2, size=X.shape)
    for data in (X, new) if depth == 1 else (X,):
        for mine, other in zip(
            ours.staged_predict(data), theirs.staged_predict(data), strict=True
        ):
            assert_array_equal(mine, other)
    for column, other in zip(ours.estimators_, theirs.estimators_, strict=True):
        if depth == 1:
            assert_array_equal(column.outputs(new).argmax(axis=1), other.predict(new))


def test_an_error_next_to_zero_is_bounded():
    """Where scikit-learn's coefficient would grow: half the weight of a row at the start."""
    ours = AdaBoostSAMME(6, weak_learner=tree(3), random_state=0).fit(*WINE)
    theirs = AdaBoostClassifier(tree(3), n_estimators=6, random_state=seeds(0)).fit(*WINE)
    bound = 2 / 3 * np.log(2 * (1 - 1 / 356) * 356)
    w = np.minimum(2 / 3 * theirs.estimator_weights_, bound)
    assert (w == bound).any()
    assert_allclose(ours.estimator_weights_[:4], w[:4], rtol=1e-9)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("data", [IRIS, WINE], ids=["iris", "wine"])
def test_literal_forms(data, variant, depth):
    X, y = data
    weight = np.random.default_rng(3).integers(1, 4, len(y)).astype(float)
    rows, T = rows_of(X, y, weight), 15
    ours = AdaBoostSAMME(T, variant=variant, weak_learner=tree(depth), random_state=1)
    ours.fit(X, y, weight)
    trees = []
    learn = learner(depth, seeds(1), trees, expand=variant == "m2")
    arguments = {"learn": learn, "s": rows.weight}
    if variant == "samme":
        run, factor = ref.samme(rows.X, rows.y, 3, T, **arguments), 2 / 3
        assert_allclose(
            ours.history_["loss"], ref.samme_loss(run, rows.y, 3, rows.weight), rtol=1e-9
        )
    elif variant == "m1":
        run, factor = ref.adaboost_m1(rows.X, rows.y, T, **arguments), 1 / 2
    else:
        run, factor = ref.adaboost_m2(rows.X, rows.y, 3, T, **arguments), 1 / 2
    assert ours.n_iter_ == len(run.coefficients) > 3
    assert_allclose(ours.estimator_weights_, factor * np.array(run.coefficients), rtol=1e-9)
    votes = run.votes(3)
    for scores, expected in zip(
        ours.staged_decision_function(rows.X), factor * votes, strict=True
    ):
        assert_allclose(scores, expected, atol=1e-9)
    wrong = [rows.weight @ (v.argmax(axis=1) != rows.y) for v in votes]
    assert_allclose(ours.history_["train_error"], wrong, atol=1e-12)


def test_m1_ends_at_an_error_of_one_half_and_the_others_go_on():
    X, y = load_digits(return_X_y=True)
    fits = {v: AdaBoostSAMME(5, variant=v, random_state=0).fit(X, y).n_iter_ for v in VARIANTS}
    assert fits == {"samme": 5, "m1": 0, "m2": 5}
    # In the middle of a run, too, where the literal form ends.
    rng = np.random.default_rng(3)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 3)) + 1.2 * rng.normal(size=(3, 3))[y]
    rows = rows_of(X, y)
    run = ref.adaboost_m1(rows.X, rows.y, 40, learner(1, seeds(0), []))
    ours = AdaBoostSAMME(40, variant="m1", random_state=0).fit(X, y)
    assert 1 < ours.n_iter_ == len(run.coefficients) < 40


@pytest.mark.parametrize("weak_learner", [tree(1), tree(3), GaussianNB()], ids=str)
def test_two_classes_are_binary_adaboost(weak_learner):
    X, y = WINE[0][WINE[1] > 0], WINE[1][WINE[1] > 0]
    fits = [
        AdaBoostSAMME(8, variant=v, weak_learner=weak_learner, random_state=0).fit(X, y)
        for v in VARIANTS
    ]
    for other in fits[1:]:
        assert_allclose(other.estimator_weights_, fits[0].estimator_weights_, rtol=1e-12)
        assert_allclose(other.decision_function(X), fits[0].decision_function(X))


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=60)
def test_the_weighted_error_of_expanded_rows_is_the_pseudo_loss(seed):
    """For every hypothesis: what it gets right, less a constant, is ``sum_i V[i, h(x_i)]``."""
    rng = np.random.default_rng(seed)
    C, n = int(rng.integers(2, 5)), 12
    y, D = rng.integers(C, size=n), rng.dirichlet(np.ones(n * C)).reshape(n, C)
    D[np.arange(n), y] = 0.0
    rows, labels, gains = ref.expanded(y, D)
    values = []
    for _ in range(4):
        h = rng.integers(C, size=n)
        own = (h == y)[:, None]
        pseudo_loss = 0.5 * (D * (1 - own + np.eye(C)[h])).sum()
        values.append(gains[h[rows] == labels].sum() + 2 * pseudo_loss)
    assert_allclose(values, values[0], rtol=1e-12)


class Recorder(DecisionTreeClassifier):
    """Keeps what it is fitted with."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = X, y, sample_weight
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("share", [0.5, 1.0, None])
def test_what_a_weak_learner_is_given(share):
    rows = rows_of(*IRIS)
    u = np.random.default_rng(0).integers(0, 3, size=(len(rows), 2 if share is None else 1))
    V = (Pairwise(3) if share is None else AgainstAll(3, share)).adjoint(u * 2**50, rows.y)
    oracle = MulticlassOracle(rows, Recorder(max_depth=2), np.random.RandomState(0), 3)
    ((h, edge),) = oracle.price(rows, V).best(None)
    X, y, weight = h.classifier.seen_
    if share is None:
        D = np.zeros((len(rows), 3))
        D[np.arange(3) != rows.y[:, None]] = u.ravel()
        chosen, labels, gains = ref.expanded(rows.y, D)
    else:
        chosen = np.flatnonzero(u)
        labels, gains = rows.y[chosen], u[chosen, 0]
    assert_array_equal(X, rows.X[chosen])
    assert_array_equal(y, labels)
    assert_allclose(weight, gains / gains.max(), rtol=1e-12)
    predicted = h.classifier.predict(rows.X)
    assert_array_equal(h.predict(rows.X), np.eye(3)[predicted])
    assert edge == pytest.approx(V[np.arange(len(rows)), predicted].sum())


# ---------------------------------------------------------------- AdaBoost.OC


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [2, 3, 5])
def test_adaboost_oc(C, weighted):
    rng = np.random.default_rng(C)
    y = np.arange(60) % C
    X = rng.normal(size=(60, 3)) + 0.8 * rng.normal(size=(C, 3))[y]
    weight = rng.uniform(0.5, 2.0, 60) if weighted else np.ones(60)
    rows, T = rows_of(X, y, weight), 12
    ours = AdaBoostECC(max_iter=T, coefficient="pseudo-loss", random_state=0)
    ours.fit(X, y, weight)
    run = ref.adaboost_oc(rows.X, rows.y, ours.coding_matrix_, rows.weight)
    assert_allclose(ours.estimator_weights_, np.array(run.alphas) / 2, rtol=1e-9)
    for column, stump in zip(ours.estimators_, run.stumps, strict=True):
        (h,) = column.hypotheses
        assert (h.feature, h.threshold, h.sign) == (stump.feature, stump.threshold, stump.sign)
    scores = ours._ensemble().scores(rows.X)  # votes of 0 and 1: the same, but for a constant
    assert_allclose(
        scores - scores.mean(axis=1)[:, None],
        run.votes - run.votes.mean(axis=1)[:, None],
        atol=1e-9,
    )
    ecc = AdaBoostECC(max_iter=T, random_state=0).fit(X, y, weight)
    assert ecc.estimator_weights_[0] >= ours.estimator_weights_[0] * (1 - 1e-12)
    expected = algorithms.adaboost_ecc(rows.X, rows.y, ecc.coding_matrix_, T, rows.weight)
    assert_allclose(ecc.estimator_weights_, expected.omegas, rtol=1e-9)


@given(st.lists(st.tuples(st.integers(0, 2**50), st.sampled_from([-2, 0, 2])), min_size=1))
@settings(deadline=None, max_examples=200)
def test_the_pseudo_loss_never_gives_more_than_the_error(pairs):
    u, rho = (np.array(a) for a in zip(*pairs, strict=True))
    by_error = stagewise_coefficient(Sums.of(u, rho), 1e-10)
    by_pseudo_loss = stagewise_coefficient(Sums.of(u, rho), 1e-10, pseudo_loss=True)
    if by_error is None:
        assert by_pseudo_loss is None
    elif by_pseudo_loss is not None:  # else it is no more than rounding above one half
        D = (u / u.sum()) @ rho / 2
        assert by_pseudo_loss <= by_error
        if D < 1 - 1e-6:
            assert by_pseudo_loss == pytest.approx(
                np.log((1 + D) / (1 - D)) / 4, rel=1e-6, abs=1e-12
            )


# ---------------------------------------------------------------- totally corrective


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("name", SETS)
def test_the_training_loss_is_below_that_of_stage_wise_rounds(name, depth):
    X, y = SETS[name](return_X_y=True)
    stage_wise = AdaBoostSAMME(30, weak_learner=tree(depth), random_state=0).fit(X, y)
    corrective = MultiBoostSAMME(max_iter=30, weak_learner=tree(depth), random_state=0).fit(
        X, y
    )
    assert corrective.theta_ == stage_wise.theta_ == stage_wise.estimator_weights_.sum()
    assert corrective.estimator_weights_.sum() <= corrective.theta_ * (1 + 1e-12)
    assert corrective.certificate_.primal < stage_wise.certificate_.primal
    assert corrective.certificate_.gap == np.inf
    assert "DecisionTreeClassifier are fitted, not searched" in str(corrective.certificate_)
    for model in (stage_wise, corrective):
        staged = [1 - np.mean(p == y) for p in model.staged_predict(X)]
        assert_allclose(model.history_["train_error"], staged, atol=1e-12)


@pytest.mark.parametrize("theta", [2.0, 15.0])
@pytest.mark.parametrize("data", [IRIS, WINE], ids=["iris", "wine"])
def test_the_restricted_master_is_solved(data, theta):
    """Primal = dual in the literal program, over margins from the published code vectors."""
    rows = rows_of(*data)
    model = MultiBoostSAMME(theta=theta, max_iter=12, tol=1e-8, random_state=0).fit(*data)
    code = np.where(np.eye(3) == 1, 1.0, -1 / 2)
    P = np.column_stack(
        [
            2 / 3 * (code[rows.y] * code[c.outputs(rows.X).argmax(axis=1)]).sum(axis=1)
            for c in model.estimators_
        ]
    )
    master = solve_master(P, rows.weight, theta)
    assert model.certificate_.primal == pytest.approx(master.loss, abs=1e-8)
    assert master.loss == pytest.approx(master.dual, abs=1e-8)
    assert restricted_gap(P, rows.weight, model.estimator_weights_, theta) <= 1e-9
    assert_allclose(model.history_["r"][-1], master.r, atol=1e-6)
    # A column was only added if it violated the dual.
    assert (model.history_["edge"][1:] > model.history_["r"][:-1]).all()


def test_a_hypothesis_that_prices_too_low_is_fitted_again(monkeypatch):
    """Without that a run ends with the first tree that does not violate the dual."""
    model = MultiBoostSAMME(theta=30.0, max_iter=40, random_state=0).fit(*IRIS)
    again = MultiBoostSAMME(theta=30.0, max_iter=40, random_state=0).fit(*IRIS)
    assert_array_equal(model.estimator_weights_, again.estimator_weights_)
    monkeypatch.setattr("tcboost.columns._MAX_FITS", 1)
    once = MultiBoostSAMME(theta=30.0, max_iter=40, random_state=0).fit(*IRIS)
    assert once.n_iter_ < model.n_iter_
    assert once.certificate_.primal > model.certificate_.primal
    rows = rows_of(*IRIS)
    V = AgainstAll(3, 0.5).adjoint(np.ones((len(rows), 1), np.int64), rows.y)
    oracle = MulticlassOracle(rows, Recorder(max_depth=1), np.random.RandomState(0), 3)
    prices, weights = oracle.price(rows, V), set()
    for k in range(4):
        ((h, edge),) = prices.best(None)
        weight = h.classifier.seen_[2]
        assert (weight == 1).all() == (k == 0)  # the first is not disturbed
        weights.add(weight.tobytes())
        assert edge == (V * h.predict(rows.X)).sum()  # and no edge is
    assert len(weights) == 4


# ---------------------------------------------------------------- as estimators

ALL = [AdaBoostSAMME(20, variant=v) for v in VARIANTS]
ALL += [MultiBoostSAMME(max_iter=20), AdaBoostECC(max_iter=20, coefficient="pseudo-loss")]


@parametrize_with_checks(ALL)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("weak_learner", [tree(3), GaussianNB()], ids=str)
@pytest.mark.parametrize("cls", [AdaBoostSAMME, MultiBoostSAMME])
@pytest.mark.filterwarnings("ignore")  # those of the weak learner on absurd data
def test_scikit_learn_checks_with_any_weak_learner(cls, weak_learner):
    check_estimator(cls(max_iter=10, weak_learner=weak_learner))


@pytest.mark.parametrize("model", ALL[:4], ids=str)
def test_order_and_repetition_of_rows_change_nothing(model):
    X, y = WINE
    rng = np.random.default_rng(0)
    order, weight = rng.permutation(len(y)), rng.integers(1, 4, len(y))
    scores = model.set_params(random_state=0).fit(X, y).decision_function(X)
    model.fit(np.tile(X[order], (2, 1)), np.tile(y[order], 2))
    assert_array_equal(model.decision_function(X), scores)
    weighted = model.fit(X, y, weight).decision_function(X)
    model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_array_equal(model.decision_function(X), weighted)


@pytest.mark.parametrize("weak_learner", [GaussianNB(), LogisticRegression(max_iter=5000)])
@pytest.mark.parametrize("cls", [AdaBoostSAMME, MultiBoostSAMME])
def test_other_weak_learners(cls, weak_learner):
    X, y = IRIS
    names = np.array(["b", "a", "c"])[y]
    model = cls(max_iter=10, weak_learner=weak_learner, random_state=0).fit(X, names)
    assert model.score(X, names) > 0.93
    p = model.predict_proba(X)
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X), p)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("C", [2, 3, 5])
def test_probabilities_are_the_population_minimiser(C, variant):
    """At scores F the gradient of the expected loss vanishes for these probabilities."""
    margin = AdaBoostSAMME(variant=variant)._margin(C)
    F = np.random.default_rng(C).normal(size=C)
    F -= F.mean()  # a sum of coefficients is the same for all rows
    p = np.exp(2 * margin.per_score * F)
    p /= p.sum()
    z = margin.apply(np.tile(F, (C, 1)), np.arange(C))
    gradient = margin.adjoint(p[:, None] * np.exp(-z), np.arange(C)).sum(axis=0)
    assert_allclose(gradient - gradient.mean(), 0.0, atol=1e-12)


@pytest.mark.parametrize("cls", [AdaBoostSAMME, MultiBoostSAMME])
def test_going_on_and_stopping_early(cls):
    X, y = WINE
    theta = {} if cls is AdaBoostSAMME else {"theta": 8.0}
    model = cls(max_iter=3, random_state=0, warm_start=True, **theta).fit(X, y)
    again = pickle.loads(pickle.dumps(model)).set_params(max_iter=9).fit(X, y)
    model.set_params(max_iter=6).fit(X, y).set_params(max_iter=9).fit(X, y)
    alone = cls(max_iter=9, random_state=0, **theta).fit(X, y)
    assert_array_equal(model.decision_function(X), alone.decision_function(X))
    assert again.certificate_.primal == pytest.approx(alone.certificate_.primal, abs=1e-4)
    early = cls(max_iter=60, random_state=0, early_stopping=True, n_iter_no_change=3, **theta)
    early.fit(X, y)
    assert early.n_iter_ == 1 + early.history_["validation_loss"].argmin()


def test_a_path_and_a_cross_validation_of_budgets():
    path = theta_path(MultiBoostSAMME(max_iter=15, random_state=0), *IRIS, thetas=[1, 4])
    assert path.loss[1] < path.loss[0]
    model = MultiBoostSAMME(theta="cv", max_iter=4, random_state=0).fit(*IRIS)
    assert model.theta_ in model.theta_choice_.thetas


@pytest.mark.parametrize("theta", [1e-3, 1e7, 1e9])
def test_any_budget(theta):
    model = MultiBoostSAMME(theta=theta, max_iter=10, random_state=0).fit(*WINE)
    assert np.isfinite(model.decision_function(WINE[0])).all()
    assert model.estimator_weights_.sum() <= theta * (1 + 1e-9)


@pytest.mark.parametrize("cls", [AdaBoostSAMME, MultiBoostSAMME])
def test_bad_and_odd_input(cls, tmp_path):
    X, y = IRIS[0].copy(), IRIS[1]
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN.* in column 2"):
        cls().fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        cls().fit(IRIS[0], np.zeros(150))
    with pytest.raises(ValueError, match="must take sample_weight"):
        cls(weak_learner=KNeighborsClassifier()).fit(*IRIS)
    for bad in ({"weak_learner": "stump"}, {"max_iter": 0}, {"weak_learner": 3}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            cls(**bad).fit(*IRIS)
    with pytest.raises(ValueError, match="variant"):
        AdaBoostSAMME(variant="m3").fit(*IRIS)
    with pytest.raises(ValueError, match="theta"):
        MultiBoostSAMME(theta=0.0).fit(*IRIS)
    flat = cls(max_iter=5, random_state=0).fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 2])
    assert_array_equal(flat.predict(np.zeros((2, 2))), [0, 0])  # the most frequent class
    even = cls(max_iter=5, random_state=0).fit(np.ones((4, 1)), [0, 0, 1, 1])
    assert even.n_iter_ == 0
    for model in (flat, even):
        with pytest.raises(ValueError, match="pickled"):
            tcboost.save(model, tmp_path / "model")
    two = cls(max_iter=3, random_state=0).fit([[0.0], [1.0]], [0, 1])
    assert_array_equal(two.predict([[0.0], [1.0]]), [0, 1])


def test_a_class_that_weighs_nothing_beside_another(tmp_path):
    """One class is left to fit, which not every classifier can be."""
    weight = np.where(IRIS[1] == 0, 1.0, 1e-250)
    for weak_learner in (None, LogisticRegression(max_iter=5000)):
        model = AdaBoostSAMME(3, weak_learner=weak_learner, random_state=0)
        model.fit(*IRIS, weight)
        assert (model.predict(IRIS[0]) == 0).all()


def test_output_codes_in_a_file(tmp_path):
    model = AdaBoostECC(max_iter=4, coefficient="pseudo-loss", random_state=0).fit(*IRIS)
    tcboost.save(model, tmp_path / "model")
    again = tcboost.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert_array_equal(again.decision_function(IRIS[0]), model.decision_function(IRIS[0]))
