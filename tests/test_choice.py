"""How alpha and l1_ratio are chosen, and how a fit goes on, ends early or is refused."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_validate,
)

from tcboost import TCBoostClassifier

IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)


def assert_same_model(one, other):
    assert repr(one.rules_) == repr(other.rules_)
    assert_array_equal(one.intercept_, other.intercept_)
    assert_array_equal(one.coef_, other.coef_)
    assert one.certificate_.objective == other.certificate_.objective


def with_levels(seed, n=400):
    rng = np.random.default_rng(seed)
    level, X = rng.integers(0, 30, n), rng.normal(size=(n, 4))
    chance = rng.uniform(0.05, 0.95, 30)[level]
    y = (rng.random(n) < chance).astype(int) + (X[:, 0] > 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return np.column_stack([level, X]), y


DATA = {
    "iris": (*IRIS, None, {}),
    "wine": (*WINE, None, {}),
    "weights": (
        *WINE,
        np.random.default_rng(0).uniform(0, 2, 178),
        {"class_weight": "balanced"},
    ),
    "levels": (*with_levels(0), None, {"categorical_features": [0]}),
    "missing": (*with_levels(1), None, {}),
    "copies": (np.repeat(IRIS[0], 3, axis=0), np.repeat(IRIS[1], 3), None, {}),
    "many rows": (*make_classification(3000, 6, flip_y=0.2, random_state=0), None, {}),
    "rare class": (WINE[0], np.where(np.arange(178) < 3, 5, WINE[1]), None, {}),
    "few rules": (*WINE, None, {"max_rules": 7}),
    "bins": (*WINE, None, {"max_bins": 5}),
}


# ---------------------------------------------------------------- what was chosen


@pytest.mark.parametrize("name", DATA)
def test_what_was_chosen_makes_the_same_model(name):
    X, y, weight, parameters = DATA[name]
    chosen = TCBoostClassifier(**parameters).fit(X, y, weight)
    given = TCBoostClassifier(chosen.alpha_, chosen.l1_ratio_, **parameters)
    assert_same_model(given.fit(X, y, weight), chosen)
    assert given.cv_results_ == {}
    assert np.isnan(given.certificate_.cv_log_loss)


@pytest.mark.parametrize("name", ["iris", "levels", "many rows", "rare class"])
@pytest.mark.parametrize("parameters", [{}, {"alpha": 2.5}, {"l1_ratio": 0.2}])
def test_the_table_of_what_was_tried(name, parameters):
    X, y, weight, others = DATA[name]
    model = TCBoostClassifier(**parameters, **others).fit(X, y, weight)
    frame = pd.DataFrame(model.cv_results_)
    assert list(frame) == ["alpha", "l1_ratio", "log_loss", "error", "n_rules", "chosen"]
    assert not frame.isna().to_numpy().any()
    assert not frame.duplicated(["alpha", "l1_ratio"]).any()
    (line,) = frame[frame["chosen"]].itertuples()
    assert (line.alpha, line.l1_ratio) == (model.alpha_, model.l1_ratio_)
    assert line.log_loss == model.certificate_.cv_log_loss
    assert line.log_loss <= 1.1 * frame["log_loss"].min()
    assert frame["error"].between(0, 1).all()
    for key, value in parameters.items():
        assert (frame[key] == value).all()


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.01, 1e-4, 1e-12, 1e-300])
def test_the_loss_of_rows_held_out_is_that_of_new_rows(l1_ratio):
    X, y = make_classification(1200, 8, n_informative=4, flip_y=0.1, random_state=1)
    model = TCBoostClassifier(l1_ratio=l1_ratio).fit(X[:600], y[:600])
    p = model.predict_proba(X[600:])
    loss = -np.log(p[np.arange(600), y[600:]]).mean()
    assert loss < 0.5
    assert loss == pytest.approx(model.certificate_.cv_log_loss, rel=0.25)


def test_a_column_without_news_leaves_the_classes_shares():
    X, y = np.zeros((90, 2)), np.repeat([0, 1, 2], [10, 30, 50])
    for data in (X, np.full((90, 2), np.nan), np.random.default_rng(0).normal(size=(90, 2))):
        p = TCBoostClassifier().fit(data, y).predict_proba(data)
        assert_allclose(p.mean(axis=0), [1 / 9, 3 / 9, 5 / 9], atol=0.02)


@pytest.mark.parametrize("alpha", [5e-324, 1e-300, 1e-30, 1e30, 1e300])
@pytest.mark.parametrize("l1_ratio", [5e-324, 1e-9, 1.0])
@pytest.mark.filterwarnings("ignore:the fit ended:UserWarning")
def test_any_positive_penalty_is_one(alpha, l1_ratio):
    for weight in (1e-310, 1.0, 1e200):
        model = TCBoostClassifier(alpha, l1_ratio).fit(*IRIS, np.full(150, weight))
        p = model.predict_proba(IRIS[0])
        assert np.isfinite(p).all()
        assert np.isfinite(model.certificate_.gap)


# ---------------------------------------------------------------- splits


def test_splits_in_all_their_forms_are_the_same():
    X, y = WINE
    splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    pairs = list(splitter.split(X, y))
    model = TCBoostClassifier(cv=splitter).fit(X, y)
    masks = [tuple(np.isin(np.arange(178), part) for part in pair) for pair in pairs]
    for cv in (pairs, iter(pairs), (pair for pair in pairs), masks):
        other = TCBoostClassifier(cv=cv).fit(X, y)
        assert other.cv_results_["log_loss"].tolist() == model.cv_results_["log_loss"].tolist()
        assert_same_model(other, model)
    assert model.certificate_.n_folds == 3
    one = TCBoostClassifier(cv=PredefinedSplit(np.arange(178) % 4 // 3 - 1)).fit(X, y)
    assert "(1 fold)" in str(one.certificate_)
    assert TCBoostClassifier(cv=None).fit(X, y).certificate_.n_folds == 5
    assert (
        TCBoostClassifier(cv=KFold(4, shuffle=True, random_state=0)).fit(X, y).score(X, y) > 0.9
    )


def test_a_splitter_sees_the_table_as_it_was_given():
    frame = pd.DataFrame(WINE[0], columns=[f"c{d}" for d in range(13)])
    names = np.array(["a", "b", "c"])[WINE[1]]

    class ByColor(ShuffleSplit):
        def split(self, X, y=None, groups=None):
            assert list(X) == list(frame)
            assert set(y) == set("abc")
            deep = X["c9"].to_numpy() > 5
            yield np.flatnonzero(deep), np.flatnonzero(~deep)
            yield np.flatnonzero(~deep), np.flatnonzero(deep)

    weight = np.arange(178) % 5 > 0  # rows of weight zero count as places
    model = TCBoostClassifier(cv=ByColor()).fit(frame, names, weight)
    assert model.certificate_.n_folds == 2


@pytest.mark.parametrize(
    ("cv", "match"),
    [
        ([], "cv needs splits"),
        ([(np.arange(100), [])], "cv needs splits"),
        ([([], np.arange(100))], "cv needs splits"),
        (iter([]), "cv needs splits"),
        (1, "cv"),
        (0, "cv"),
        ("three", "cv"),
        (KFold(200), "n_splits=200"),
    ],
)
def test_bad_splits(cv, match):
    with pytest.raises(ValueError, match=match):
        TCBoostClassifier(cv=cv).fit(*WINE)


def test_groups_are_routed_to_the_splitter():
    X, y = WINE
    groups = np.random.default_rng(0).integers(0, 12, 178)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        TCBoostClassifier(cv=GroupKFold(3)).fit(X, y, groups=groups)
    with config_context(enable_metadata_routing=True):
        splitter = StratifiedGroupKFold(3)
        model = TCBoostClassifier(cv=splitter).fit(X, y, groups=groups)
        pairs = list(splitter.split(X, y, groups))
        assert_same_model(TCBoostClassifier(cv=pairs).fit(X, y), model)
        with pytest.raises(TypeError, match="groups"):
            TCBoostClassifier(cv=3).fit(X, y, groups=groups)
        with pytest.raises(ValueError, match="groups"):
            TCBoostClassifier(cv=splitter).fit(X, y)
        asking = TCBoostClassifier(cv=GroupKFold(3)).set_fit_request(sample_weight=True)
        found = cross_validate(
            asking.set_score_request(sample_weight=False),
            *(X, y),
            cv=GroupKFold(3),
            params={"groups": groups, "sample_weight": np.ones(178)},
            error_score="raise",
        )
        assert found["test_score"].mean() > 0.9
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            cross_validate(TCBoostClassifier(), X, y, params={"sample_weight": np.ones(178)})


# ---------------------------------------------------------------- going on


@pytest.mark.parametrize("name", ["wine", "weights", "levels", "missing"])
def test_a_warm_start_ends_where_a_fit_from_the_start_does(name):
    X, y, weight, parameters = DATA[name]
    model = TCBoostClassifier(3.0, 0.5, 8, warm_start=True, tol=1e-4, **parameters)
    model.fit(X, y, weight)
    assert model.n_rules_ == 8
    for change in ({"max_rules": 2000}, {"alpha": 0.5}, {"alpha": 9.0}, {"max_bins": 20}):
        warm = model.set_params(**change).fit(X, y, weight).certificate_
        cold = TCBoostClassifier(**{**model.get_params(), "warm_start": False})
        cold = cold.fit(X, y, weight).certificate_
        assert warm.status == cold.status == "optimal"
        assert abs(warm.objective - cold.objective) <= 1e-4
    again = model.fit(X, y, weight)
    assert again.n_iter_ == 1  # there is nothing to do
    fewer = model.fit(X[::2], y[::2], None if weight is None else weight[::2])
    assert fewer.certificate_.status == "optimal"


def test_a_warm_start_saves_rounds():
    X, y = WINE
    model = TCBoostClassifier(0.5, 0.5, warm_start=True, tol=1e-6).fit(X, y)
    cold = TCBoostClassifier(0.45, 0.5, tol=1e-6).fit(X, y)
    assert model.set_params(alpha=0.45).fit(X, y).n_iter_ < cold.n_iter_ + 3


def state(model, X):
    attributes = {k: repr(v) for k, v in vars(model).items() if k.endswith("_")}
    return attributes | {"proba": model.predict_proba(X).tobytes()}


class Interrupting(KFold):
    def split(self, X, y=None, groups=None):
        yield from list(super().split(X, y))[:1]
        raise KeyboardInterrupt


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize(
    ("change", "data", "error"),
    [
        ({"alpha": -1.0}, WINE, ValueError),
        ({"categorical_features": [13]}, WINE, ValueError),
        ({"cv": Interrupting(3), "alpha": "auto"}, WINE, KeyboardInterrupt),
        ({"max_rules": 0}, WINE, ValueError),
        ({}, (np.where(WINE[0] > 1000, np.inf, WINE[0]), WINE[1]), ValueError),
        ({}, (WINE[0], np.zeros(178)), ValueError),
        ({}, (*WINE, -np.ones(178)), ValueError),
        ({}, (*WINE, np.zeros(178)), ValueError),
        ({}, (WINE[0][:0], WINE[1][:0]), ValueError),
    ],
)
def test_a_fit_that_does_not_end_well_changes_nothing(change, data, error, warm_start):
    model = TCBoostClassifier(1.0, 0.5, warm_start=warm_start).fit(*WINE)
    before = state(model, WINE[0])
    with pytest.raises(error):
        model.set_params(**change).fit(*data)
    assert state(model, WINE[0]) == before


@pytest.mark.parametrize(
    ("change", "data", "match"),
    [
        ({}, (WINE[0], WINE[1] + 1), "classes of the last fit"),
        ({}, (WINE[0][:, :12], WINE[1]), "13 features of the last fit, not 12"),
        ({"max_rules": 3}, WINE, "max_rules=3 is less than"),
    ],
)
def test_what_a_warm_start_refuses(change, data, match, capsys):
    model = TCBoostClassifier(1.0, 0.5, warm_start=True, verbose=1).fit(*WINE)
    before = state(model, WINE[0])
    capsys.readouterr()
    with pytest.raises(ValueError, match=match):
        model.set_params(alpha="auto", **change).fit(*data)
    assert state(model, WINE[0]) == before
    assert capsys.readouterr().out == ""  # and at once


# ---------------------------------------------------------------- callbacks


class Watcher:
    """Keeps the models of all rounds, and stops after `last` of them, or breaks off."""

    def __init__(self, last=None, breaks=False):
        self.last, self.breaks, self.models, self.ended = last, breaks, [], []

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.ended.append(context.task_name)
        if context.task_name == "round":
            self.models.append(fitted_estimator)
            if self.breaks:
                raise KeyboardInterrupt
        return len(self.models) == self.last


@pytest.mark.parametrize("alpha", ["auto", 0.1])
def test_callbacks_see_a_model_of_each_round(alpha):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    watcher, X = Watcher(), WINE[0]
    model = TCBoostClassifier(alpha, tol=1e-5).set_callbacks(watcher).fit(*WINE)
    assert watcher.ended == ["round"] * model.n_iter_ + ["fit"]
    for k, one in enumerate(watcher.models):
        assert one.n_iter_ == k + 1
        assert one.history_["objective"][-1] == model.history_["objective"][k]
        assert one.certificate_.lower_bound <= model.certificate_.objective
        assert_allclose(one.predict_proba(X).sum(axis=1), 1.0)
    assert_allclose(watcher.models[-1].predict_proba(X), model.predict_proba(X), atol=1e-9)
    stopped = TCBoostClassifier(alpha, tol=1e-5).set_callbacks(Watcher(last=2)).fit(*WINE)
    assert stopped.certificate_.status == "stopped early"
    assert stopped.n_iter_ == 2
    before = state(stopped, X)
    with pytest.raises(KeyboardInterrupt):
        stopped.set_callbacks(Watcher(breaks=True)).fit(*WINE)
    assert state(stopped, X) == before
