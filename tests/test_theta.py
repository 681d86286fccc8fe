"""The budget by cross validation, and the scale of the probabilities."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeClassifier

from tcboost import MultiBoostECC, MultiBoostHinge, MultiBoostMO, TCBoostClassifier
from tcboost.boosting import Run
from tcboost.rows.blocks import LocalRows
from tcboost.theta import CURVES, STEPS, Style, best_scale, choose_level, content_folds


def rows_of(X, y):
    return LocalRows(X, y, np.ones(len(y)), "auto", 1)


def test_folds_depend_on_content_only():
    X, y = load_iris(return_X_y=True)
    rows = rows_of(X, y)
    fold = content_folds(rows, 5)
    order = np.random.default_rng(0).permutation(150)
    again = rows_of(np.tile(X[order], (2, 1)), np.tile(y[order], 2))
    assert_array_equal(content_folds(again, 5), fold)
    for c in range(3):  # stratified
        counts = np.bincount(fold[rows.y == c], minlength=5)
        assert counts.max() - counts.min() <= 1
    part = rows.subset(fold != 0)
    assert len(part) == np.count_nonzero(fold != 0)
    assert part.weight.sum() == pytest.approx(1.0)


def test_few_rows_leave_folds_without_any():
    X, y = np.array([[0.0], [1.0]] * 6), np.arange(12) % 2
    stump = DecisionTreeClassifier(max_depth=1)
    model = MultiBoostMO(theta="cv", max_iter=3, weak_learner=stump).fit(X, y)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("factor", [0.1, 1.0, 7.0])
def test_the_best_scale_undoes_a_wrong_one(factor):
    rng = np.random.default_rng(0)
    F = rng.normal(size=(4000, 3)) * 2
    y = np.array([rng.choice(3, p=p) for p in softmax(F, axis=1)])
    scale, loss = best_scale(F * factor, y, np.full(4000, 1 / 4000))
    assert scale * factor == pytest.approx(1.0, rel=0.1)
    assert loss == pytest.approx(log_loss(y, softmax(scale * factor * F, axis=1)), abs=3e-3)


@pytest.mark.parametrize("factor", [1e-3, 0.3, 1.0, 40.0, -1.0])
def test_the_best_scale_is_that_of_a_search(factor):
    rng = np.random.default_rng(2)
    y, weight = rng.integers(4, size=90), rng.uniform(0.5, 2.0, 90)
    F = factor * (rng.normal(size=(90, 4)) + 2.0 * np.eye(4)[y])
    weight /= weight.sum()
    smooth = 1.0 / (1.0 / (weight @ weight) + 1.0)
    target = (1.0 - smooth) * np.eye(4)[y] + smooth / 4.0

    def value(log_a):
        return -weight @ (target * log_softmax(np.exp(log_a) * F, axis=1)).sum(axis=1)

    found = minimize_scalar(value, bounds=(-6, 3), method="bounded", options={"xatol": 1e-9})
    scale, loss = best_scale(F, y, weight)
    assert loss <= found.fun + 1e-12
    assert loss == pytest.approx(value(np.log(scale)), rel=1e-12)
    assert np.log(scale) == pytest.approx(found.x, abs=1e-5)


def test_a_perfect_separation_does_not_make_it_sure():
    y, weight = np.arange(30) % 3, np.full(30, 1 / 30)
    scale, _ = best_scale(5.0 * np.eye(3)[y], y, weight)
    # The smoothed labels: one row more that is of all classes alike.
    assert softmax(scale * np.array([5.0, 0, 0]))[1] == pytest.approx(1 / 93, rel=1e-2)


def test_the_choice_has_about_the_lowest_out_of_fold_loss():
    rng = np.random.default_rng(1)
    y = np.arange(120) % 3
    X = rng.normal(size=(120, 6))
    X[:, 0] += y
    model = TCBoostClassifier(max_iter=60).fit(X, y)
    choice = model.theta_choice_
    assert choice.validation_loss[choice.best] <= 1.02 * choice.validation_loss.min()
    assert choice.levels[choice.best] > 1  # noise is not worth its price
    for style in (STEPS, CURVES):
        tried = [s is style for s in choice.styles]
        assert any(tried)
        assert (np.diff(choice.thetas[tried]) < 0).all()  # a higher price, a smaller budget
    assert (choice.n_active > 0).all()
    assert model.probability_scale_ == choice.scale


class Told:
    """In the place of a run: its scores make the loss that a table has for the level."""

    def __init__(self, rows, style, seen):
        self.task, self.corrector, self.columns, self.w = self, self, [], np.zeros((0, 2))
        self.rows, self.theta, self.style, self.seen = rows, 1.0, style, seen
        self.margin = self

    def set_budget(self, budget):
        level = budget.price * self.rows.size / self.style.budget(1.0, 1.0).price
        self.tried = self.style.name, round(float(np.log2(level)))
        self.seen.append(self.tried)

    def boost(self, max_iter, draft):
        assert draft > 0


# Losses of steps by log2 of the level; then the levels to be tried, from 4 on, and the one to
# be taken.
WALKS = {
    "falls, then rises": ({2: 5.0, 1: 4.0, 0: 3.0, -1: 3.5}, [2, 1, 0, -1], 0),
    "hardly falls": ({2: 5.0, 1: 4.99, 3: 6.0}, [2, 1, 3], 2),
    "rises": ({2: 5.0, 1: 6.0, 3: 4.0, 4: 4.0, 5: 4.1}, [2, 1, 3, 4, 5], 4),
    "falls for ever": (
        {k: 5.0 * 0.9 ** (2 - k) for k in range(-10, 3)},
        [*range(2, -11, -1)],
        -10,
    ),
}


def choice_by(losses, monkeypatch, **options):
    """The levels tried, in their order, and the choice, by losses of style and level."""
    rng, seen = np.random.default_rng(0), []
    rows = rows_of(rng.normal(size=(6000, 2)), np.arange(6000) % 2)  # one fold will do
    monkeypatch.setattr("tcboost.theta.scores_of", lambda run, X: np.zeros((len(X), 2)))
    monkeypatch.setattr("tcboost.theta.best_scale", lambda *_: (1.0, losses[seen[-1]]))
    choice = choose_level(
        rows, 2, lambda part, style: Told(part, style, seen), Style.budget, 10, **options
    )
    return seen, choice


@pytest.mark.parametrize("walk", WALKS)
def test_levels_are_tried_downwards_and_else_upwards(walk, monkeypatch):
    losses, tried, best = WALKS[walk]
    losses = {("steps", level): loss for level, loss in losses.items()}
    seen, choice = choice_by(losses, monkeypatch, styles=(STEPS,))
    assert seen == [("steps", level) for level in tried]
    assert np.log2(choice.levels).tolist() == sorted(tried)
    assert np.log2(choice.levels[choice.best]) == best
    assert choice.first == 4.0


# Losses of curves by log2 of the level, where the best steps have 3 at 0; the levels of curves
# to be tried, and what is to be taken.
STYLES = {
    "hopeless": ({1: 3.4}, [1], "steps", 0),
    "clearly better": ({1: 3.1, 0: 2.9, -1: 2.8, -2: 2.9}, [1, 0, -1, -2], "curves", -1),
    "hardly better": ({1: 2.98, 0: 3.0, 2: 3.1}, [1, 0, 2], "steps", 0),
}


@pytest.mark.parametrize("case", STYLES)
def test_a_style_starts_near_the_best_level_and_must_be_clearly_better(case, monkeypatch):
    curves, tried, style, best = STYLES[case]
    losses = {("steps", k): loss for k, loss in {2: 5.0, 1: 4.0, 0: 3.0, -1: 3.5}.items()}
    losses |= {("curves", k): loss for k, loss in curves.items()}
    seen, choice = choice_by(losses, monkeypatch)
    assert seen[4:] == [("curves", level) for level in tried]
    assert choice.styles[choice.best].name == style
    assert np.log2(choice.levels[choice.best]) == best
    assert choice.first == (4.0 if style == "steps" else 2.0)
    assert choice.validation_loss[choice.best] == losses[style, best]


def test_the_fit_goes_down_to_the_level_of_the_choice():
    """And ends where one that has this price from the start would, if there is room."""
    X, y = load_iris(return_X_y=True)
    model = TCBoostClassifier(tol=1e-5).fit(X, y)
    choice = model.theta_choice_
    level, style = choice.levels[choice.best], choice.styles[choice.best]
    budget = style.budget(level, len(y))
    rows = rows_of(X, y).coarser(style.max_bins)
    run = model._start(rows, 0, budget, 1e-5).boost(500)
    value = [c.primal + budget.price * c.theta for c in (model.certificate_, run.certificate)]
    assert value[0] == pytest.approx(value[1], abs=2e-5)
    assert model.estimators_[0].hypotheses[0].threshold == -np.inf


def test_a_class_with_fewer_rows_than_folds():
    X, y = load_iris(return_X_y=True)
    few = np.r_[0:40, 50:90, 100:102]
    model = TCBoostClassifier(max_iter=20).fit(X[few], y[few])
    assert set(model.classes_) == {0, 1, 2}
    assert model.score(X[few], y[few]) > 0.9


def test_the_papers_cross_validation():
    """Sec. IV: 16 budgets, five folds, the same codes for every candidate, lowest error."""
    X, y = load_iris(return_X_y=True)
    model = MultiBoostECC(theta="cv", max_iter=6, random_state=0).fit(X, y)
    choice = model.theta_choice_
    assert_array_equal(choice.thetas[[0, 1, -1]], [2, 5, 200])
    assert len(choice.thetas) == 16
    assert choice.best == choice.validation_error.argmin()
    assert model.theta_ == choice.theta
    # The first is what a fit of its own gives on the rows outside the fold.
    rows = rows_of(X, y)
    fold, wrong = content_folds(rows, 5), np.zeros(len(rows), bool)
    for k in range(5):
        part = rows.subset(fold != k)
        alone = MultiBoostECC(theta=2.0, max_iter=6, random_state=0)
        alone.fit(part.X, part.y, part.weight)
        wrong[fold == k] = alone.predict(rows.X[fold == k]) != rows.y[fold == k]
    assert choice.validation_error[0] == pytest.approx(rows.weight @ wrong)


@pytest.mark.parametrize(
    ("model", "in_threads"),
    [
        (TCBoostClassifier(max_iter=40), True),
        (TCBoostClassifier(theta="auto", loss="exponential", max_iter=20), True),
        (MultiBoostMO(theta="cv", max_iter=20), True),
        (MultiBoostECC(theta="cv", max_iter=20, random_state=0), True),
        (MultiBoostECC(theta="cv", max_iter=10, loss="logistic", random_state=0), True),
        (MultiBoostECC(theta="cv", max_iter=10, weak_learner="product", random_state=0), True),
        (MultiBoostECC(theta="cv", max_iter=4, weak_learner="lda", random_state=0), False),
        (MultiBoostHinge(theta="cv", max_iter=4), False),
    ],
    ids=lambda value: str(value).replace(" ", "") if isinstance(value, BaseEstimator) else "",
)
def test_folds_in_threads_choose_the_same(model, in_threads, monkeypatch):
    X, y = load_wine(return_X_y=True)
    callers, boost = set(), Run.boost

    def seen(run, *args, **kwargs):
        callers.add(threading.get_ident())
        return boost(run, *args, **kwargs)

    monkeypatch.setattr(Run, "boost", seen)
    expected = clone(model).set_params(n_jobs=1).fit(X, y)
    assert callers == {threading.get_ident()}
    for n_jobs in (2, 7):
        found = clone(model).set_params(n_jobs=n_jobs).fit(X, y)
        for a, b in zip(found.theta_choice_, expected.theta_choice_, strict=True):
            assert_array_equal(a, b)
        assert_array_equal(found.decision_function(X), expected.decision_function(X))
    assert (len(callers) > 1) == in_threads


def test_an_error_in_a_fold_is_told(monkeypatch):
    X, y = load_wine(return_X_y=True)
    boost = Run.boost

    def fails(run, *args, draft=0.0, **kwargs):
        if draft and len(run.task.rows) % 2:
            raise FloatingPointError("in a fold")
        return boost(run, *args, draft=draft, **kwargs)

    monkeypatch.setattr(Run, "boost", fails)
    with pytest.raises(FloatingPointError, match="in a fold"):
        MultiBoostMO(theta="cv", max_iter=20, n_jobs=2).fit(X, y)
