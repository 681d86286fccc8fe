"""How many trees can go at no loss of accuracy: three ensembles thinned, a table and a figure.

Theta is chosen on training rows alone, by three-fold cross validation of the whole: an ensemble
is fitted without a fold, thinned for each theta, and tried on the fold. The theta of the lowest
error, the smallest on a tie, thins the ensemble of all training rows. The figure also shows
what the other thetas would have done on the test rows; nothing is chosen by it.
"""

import argparse
import os
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.tree import DecisionTreeClassifier

import tcboost
from tcboost.paper.datasets import DATASETS, load

THETAS = [2.0**k for k in range(8)]


def ensembles(n_trees, seed):
    stages = {"n_estimators": n_trees, "random_state": seed}
    rounds = {"n_estimators": max(1, n_trees // 4), "random_state": seed}  # of a tree a class
    return {
        "AdaBoost": AdaBoostClassifier(DecisionTreeClassifier(max_depth=4), **stages),
        "random forest": RandomForestClassifier(**stages),
        "gradient boosting": GradientBoostingClassifier(**rounds),
    }


def thinned(whole, X, y):
    return [tcboost.thin(whole, X, y, theta) for theta in THETAS]


def choose(ensemble, X, y, seed):
    """The index of the theta with the fewest errors out of fold."""
    wrong = np.zeros(len(THETAS))
    for train, test in StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y):
        models = thinned(clone(ensemble).fit(X[train], y[train]), X[train], y[train])
        wrong += [np.sum(model.predict(X[test]) != y[test]) for model in models]
    return int(np.argmin(wrong))


def compare(ensemble, X, y, seed):
    """Trees and test error of the whole, of the thinned one, and for each theta; its theta."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    best, whole = choose(ensemble, X, y, seed), clone(ensemble).fit(X, y)
    models = thinned(whole, X, y)
    assert max(model.certificate_.gap for model in models) <= 1e-6
    points = [(len(m.estimators_), 1 - m.score(X_test, y_test)) for m in models]
    return (len(whole.estimators_), 1 - whole.score(X_test, y_test)), points[best], points, best


def run(sets, n_trees, n_splits):
    print(
        f"{'data':10}{'ensemble':19}{'trees':>7}{'left':>7}{'gone':>7}{'test error':>12}"
        f"{'thinned':>9}{'theta':>12}{'seconds':>9}"
    )
    results = {}
    for data in sets:
        X, y = load(data)
        for name in ensembles(1, 0):
            start = time.perf_counter()
            runs = [compare(ensembles(n_trees, k)[name], X, y, k) for k in range(n_splits)]
            whole, left, points = (np.mean([r[i] for r in runs], axis=0) for i in range(3))
            thetas = sorted(THETAS[r[3]] for r in runs)
            print(
                f"{data:10}{name:19}{whole[0]:7.0f}{left[0]:7.1f}{1 - left[0] / whole[0]:7.0%}"
                f"{whole[1]:12.4f}{left[1]:9.4f}{f'{thetas[0]:g} to {thetas[-1]:g}':>12}"
                f"{time.perf_counter() - start:9.1f}",
                flush=True,
            )
            results[data, name] = whole, left, points
    return results


def plot(results, path):
    """Test error against the trees that are left."""
    sets = list(dict.fromkeys(data for data, _ in results))
    figure, axes = plt.subplots(
        1, len(sets), figsize=(5.5 * len(sets), 4.4), squeeze=False, layout="constrained"
    )
    colors = dict(zip(ensembles(1, 0), ("tab:blue", "tab:green", "tab:orange"), strict=True))
    for (data, name), (whole, left, points) in results.items():
        axis, color = axes[0, sets.index(data)], colors[name]
        axis.plot(*points.T, "-", color=color, label=f"{name}, thinned", marker=".")
        axis.plot(*whole, "s", color=color, markersize=8, label=f"{name}, whole")
        axis.axhline(whole[1], color=color, linestyle=":", linewidth=1)
        axis.plot(*left, "*", color=color, markersize=15, markeredgecolor="black")
        axis.set(title=data, xlabel="trees (gradient boosting: rounds of trees)", xscale="log")
        axis.set_ylim(0, 3.5 * max(w[1] for (d, _), (w, _, _) in results.items() if d == data))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("test error")
    lines, labels = axes[0, 0].get_legend_handles_labels()
    star = plt.Line2D([], [], marker="*", color="white", markeredgecolor="black", markersize=15)
    figure.legend(
        [*lines, star],
        [*labels, "chosen on training rows"],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    figure.savefig(path, dpi=110)


def main() -> None:
    default = ["digits", "segment" if os.environ.get("TCBOOST_DATA") else "wine"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=DATASETS, default=default, metavar="SET")
    parser.add_argument("--trees", type=int, default=200, help="of every ensemble")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--figure", type=Path, default=Path("thin.png"))
    options = parser.parse_args()
    plot(run(options.sets, options.trees, options.splits), options.figure)
    print(f"Figure: {options.figure.resolve()}")


if __name__ == "__main__":
    main()
