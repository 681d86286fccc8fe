"""Random fits of TCBoostClassifier, and what must hold of any of them."""

import cvxpy as cp
import numpy as np
from sklearn.base import clone

from attack_draws import SMALL, draw_data, fitted
from reference import programs
from tcboost import TCBoostClassifier

STATUS = {"optimal", "max_rules", "max_iter", "stalled"}


def draw_model(draw, n_features, C):
    return TCBoostClassifier(
        draw(*[draw.decades(-4, 2)] * 5, "auto"),
        draw(0.5, 0.01, draw.rng.random(), 1.0, "auto"),
        draw(1, 3, 450, 450, 450),
        max_bins=draw("auto", 2, 6, 1023, 1023),
        categorical_features=draw(None, None, draw.rng.random(n_features) < 0.5, [0]),
        cv=draw(2, 5),
        class_weight=draw(None, None, "balanced", dict(enumerate(draw.decades(-1, 1, C)))),
        tol=draw.decades(-6, -1),
        n_jobs=draw(1, 2),
    )


def weights(model, y, weight):
    """Of the rows, with those of their classes."""
    s, of_class = np.ones(len(y)) if weight is None else weight, model.class_weight
    if of_class == "balanced":
        return s * s.sum() / len({*y}) / np.bincount(y, s)[y]
    return s if of_class is None else s * np.array([of_class[c] for c in y])


def all_rules(X, categorical):
    """What every rule says of every row, of features that are not binned."""
    found = []
    for d, x in enumerate(X.T):
        values, missing = np.unique(x[~np.isnan(x)]), np.isnan(x)
        if categorical is not None and np.isin(d, np.arange(X.shape[1])[categorical]):
            levels = [x == v for v in values] + [missing] * int(missing.any())
            found += levels if len(levels) > 1 else []
            continue
        some = missing.any() and not missing.all()
        for v in values[:-1]:
            found += [x > v, (x > v) | missing] if some else [x > v]
        found += [missing] * int(some)
    return np.where(np.array(found).reshape(-1, len(X)).T, 1.0, -1.0)


def optimum(model, X, y, s):
    """The objective of a point that is nearly the best of all models."""
    H, C, total = all_rules(X, model.categorical_features), len({*y}), s.sum()
    s = s / total
    per_row, l1_ratio = model.alpha_ / total, model.l1_ratio_
    b, v = cp.Variable(C), cp.Variable((max(1, H.shape[1]), C))

    F = np.ones((len(y), 1)) @ cp.reshape(b, (1, C), order="C")
    if H.shape[1]:
        F = F + H @ v
    loss = s @ (cp.log_sum_exp(F, axis=1) - F[np.arange(len(y)), y])
    lengths = cp.sum(cp.norm(v, 2, axis=1))
    squares = (1.0 - l1_ratio) / 2.0 * cp.sum_squares(v) + 5e-4 * cp.sum_squares(b)
    problem = cp.Problem(cp.Minimize(loss + per_row * (l1_ratio * lengths + squares)))
    assert programs.solve(problem)
    return problem.value


def bits(model, X):
    """What may depend on the problem only."""
    numbers = model.decision_function(X), model.coef_, model.history_["objective"]
    return model.alpha_, model.certificate_, [a.tobytes() for a in numbers]


def check(model, X, y, s, warned):
    """What must hold of a fit on rows that weigh s."""
    proof, history = model.certificate_, model.history_
    assert not any("np." in words for words in (str(proof), repr(proof), *warned))
    assert proof.status in STATUS
    assert 0.0 <= proof.lower_bound <= proof.objective
    assert proof.status != "optimal" or proof.gap <= model.tol
    assert model.n_rules_ == len(model.rules_) == len(model.coef_) <= model.max_rules
    assert np.isfinite(model.coef_).all()
    assert {len(values) for values in history.values()} == {model.n_iter_}
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    # As scikit-learn's log_loss, which takes no probability for less than 2e-16.
    logs = model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    np.testing.assert_allclose(
        proof.train_log_loss, -(s @ logs) / s.sum(), rtol=1e-9, atol=1e-12
    )


def attack_rules(draw, note):
    X, y, weight = draw_data(draw)
    n, C = len(y), len({*y})
    model = draw_model(draw, X.shape[1], C)
    note(f"{model} on {X.shape}, {C} classes, weights {weight!r:.60}")
    model, warned = fitted(model, X, y, weight)
    s = weights(model, y, weight)
    rows = X[s > 0], y[s > 0], s[s > 0]
    check(model, *rows, warned)
    if model.max_bins == 1023 and n <= SMALL:
        best = optimum(model, *rows)
        proof = model.certificate_
        assert proof.lower_bound <= best + 1e-7 * (1.0 + best)

    new = draw.rng.permuted(X, axis=0)
    order = draw.rng.permutation(n)
    again, _ = fitted(
        clone(model), X[order], y[order], weight if weight is None else weight[order]
    )
    assert bits(again, new) == bits(model, new)
    same = {"alpha": model.alpha_, "l1_ratio": model.l1_ratio_}
    again, _ = fitted(clone(model).set_params(**same), X, y, weight)
    assert again.coef_.tobytes() == model.coef_.tobytes()
    if weight is not None and weight.dtype == int:
        copies = np.repeat(order, weight[order])
        again, _ = fitted(clone(again), X[copies], y[copies])
        assert again.coef_.tobytes() == model.coef_.tobytes()

    first = {"alpha": draw(0.3, 3.0) * model.alpha_, "max_rules": draw(1, model.max_rules)}
    again = clone(model).set_params(**same, warm_start=True).set_params(**first)
    again, _ = fitted(again, X, y, weight)
    again, _ = fitted(again.set_params(**same, max_rules=model.max_rules), X, y, weight)
    low = max(m.certificate_.lower_bound for m in (model, again))
    assert low <= min(m.certificate_.objective for m in (model, again)) * (1.0 + 1e-9)
