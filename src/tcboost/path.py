"""A whole path of budgets, every point fitted, certified and validated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from ._blas import one_blas_thread
from .boosting import Run
from .classifier import TCBoostClassifier
from .estimator import BoostingClassifier
from .rows.blocks import LocalRows
from .theta import Choice, Search, content_folds, solve_at, walk
from .thinning import Thinning

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class ThetaPath:
    """Models of growing budget; each array has one entry a budget.

    Attributes
    ----------
    estimators : list of estimator
        The fitted models, each with its own `certificate_`.
    thetas, loss, gap, train_error : ndarray
        Budgets; training loss, the gap that certifies it, and training error.
    n_active : ndarray
        Hypotheses with a coefficient.
    validation_loss, validation_error : ndarray
        Out-of-fold cross-entropy (of scaled scores) and error.
    best : int
        The one of least validation loss.
    """

    estimators: list[Any]
    thetas: Vector
    loss: Vector
    gap: Vector
    train_error: Vector
    n_active: NDArray[np.intp]
    validation_loss: Vector
    validation_error: Vector
    best: int


def theta_path(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    thetas: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> ThetaPath:
    """Fit a totally corrective estimator for a whole grid of budgets.

    Each budget starts from the columns and coefficients of the one before, on all rows and, for
    the validation, in each of five folds.

    Parameters
    ----------
    estimator : estimator
        `MultiBoostMO`, `MultiBoostECC`, `MultiBoostHinge` or `MultiBoostSAMME`; its `theta` is
        not used. Or a fitted ensemble to `thin`; only rows that it was not fitted to validate
        its trees, too.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    thetas : array-like, optional
        Budgets; by default 1, 2, 4, ... until the validation loss has not fallen twice.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    ThetaPath

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tcboost import MultiBoostECC, theta_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = theta_path(MultiBoostECC(random_state=0), X, y, thetas=[1, 4])
    >>> bool(path.loss[1] < path.loss[0])
    True
    """
    if isinstance(estimator, TCBoostClassifier):
        raise TypeError(
            "theta_path takes estimators with a budget theta; TCBoostClassifier has alpha, and "
            "what it tried is in its cv_results_"
        )
    if isinstance(estimator, BoostingClassifier) and estimator._stage_wise:
        raise ValueError(f"estimator must be a totally corrective one, got {estimator!r}")
    search = Search() if thetas is None else Search(_budgets(thetas), stop_early=False)
    if isinstance(estimator, BoostingClassifier):
        base = clone(estimator).set_params(theta=search.grid[0])
        base._validate_params()
        rows = base._rows(X, y, sample_weight)
        seed = check_random_state(base.random_state).randint(2**31 - 1)
        with one_blas_thread():
            choice = base._choose_theta(rows, seed, search)
            estimators = _fit_path(base, rows, seed, choice)
    else:
        estimators, choice, rows = _thin_path(Thinning(estimator, X, y, sample_weight), search)
    certificates = [e.certificate_ for e in estimators]
    return ThetaPath(
        estimators,
        choice.thetas,
        np.array([c.primal for c in certificates]),
        np.array([c.gap for c in certificates]),
        np.array([rows.weight @ (e._ensemble().best(rows.X) != rows.y) for e in estimators]),
        np.array([np.count_nonzero(e.estimator_weights_) for e in estimators]),
        choice.validation_loss,
        choice.validation_error,
        choice.best,
    )


def _budgets(thetas: ArrayLike) -> tuple[float, ...]:
    problem = "thetas must be distinct positive finite numbers, got"
    try:
        grid = tuple(np.sort(np.asarray(thetas, float).ravel()).tolist())
    except (TypeError, ValueError):
        raise ValueError(f"{problem} {thetas!r}") from None
    if not grid or not np.isfinite(grid).all() or grid[0] <= 0 or len(set(grid)) < len(grid):
        raise ValueError(f"{problem} {list(grid)}")
    return grid


def _thin_path(problem: Thinning, search: Search) -> tuple[list[Any], Choice, LocalRows]:
    rows, fold = problem.rows, content_folds(problem.rows, 5)
    wrong = np.arange(len(problem.P) // len(rows) + 1) != rows.y[:, None]

    def validate(theta: float) -> tuple[Vector, float]:
        w = np.array([problem.solve(theta, rows.weight * (fold != k)).w for k in range(5)])
        scores = np.zeros((len(w), *wrong.shape))  # less that of the true class
        scores[:, wrong] = -w @ problem.P.T
        return scores[fold, np.arange(len(rows))], np.count_nonzero(w) / len(w)

    choice = walk(rows, validate, search)
    return list(map(problem.model, choice.thetas, choice.scales)), choice, rows


def _fit_path(base: Any, rows: LocalRows, seed: int, choice: Choice) -> list[Any]:
    estimators: list[Any] = []

    def start(rows: LocalRows, theta: float) -> Run:
        return base._start(rows, seed, theta, base.tol)

    run = start(rows, float(choice.thetas[0]))
    for theta, scale in zip(choice.thetas, choice.scales, strict=True):
        run = solve_at(run, float(theta), base.max_iter, start)
        model = clone(base).set_params(theta=float(theta))
        model.n_features_in_, model.classes_ = base.n_features_in_, base.classes_
        if hasattr(base, "feature_names_in_"):
            model.feature_names_in_ = base.feature_names_in_
        model.probability_scale_ = float(scale)
        model._keep(run)
        estimators.append(model)
    return estimators


def plot_theta_path(path: ThetaPath, axes: Any = None) -> Any:
    """Loss, error and size against the budget: one picture from which to choose a model.

    Parameters
    ----------
    path : ThetaPath
        What `theta_path` returned.
    axes : array of three matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    array of three matplotlib Axes
    """
    import matplotlib.pyplot as plt  # an extra: pip install tcboost[plot]

    if axes is None:
        _, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    axes[0].plot(path.thetas, path.loss, "o-", label="training")
    axes[0].fill_between(path.thetas, path.loss - path.gap, path.loss, alpha=0.3, label="gap")
    axes[0].plot(path.thetas, path.validation_loss, "s--", label="validation, scaled")
    axes[1].plot(path.thetas, path.train_error, "o-", label="training")
    axes[1].plot(path.thetas, path.validation_error, "s--", label="validation")
    axes[2].plot(path.thetas, path.n_active, "o-")
    for axis, title in zip(axes, ("loss", "error", "active hypotheses"), strict=True):
        axis.set(xscale="log", xlabel="theta", title=title)
        axis.axvline(path.thetas[path.best], color="gray", linestyle=":")
        axis.grid(alpha=0.3)
    axes[1].set_ylim(bottom=0)
    axes[2].set_ylim(bottom=0)
    axes[0].legend(frameon=False)
    axes[1].legend(frameon=False)
    return axes
