"""A path of budgets against independent fits of the same budgets and folds.

Prints the ratio of their times, measured in one run. Both sides fit every budget on all rows
to the estimator's tolerance, and in five folds to that of the path.
"""

import argparse
import statistics
import time

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import StratifiedKFold

from tcboost import MultiBoostECC, theta_path

DATA = {"wine": load_wine, "digits": load_digits}
THETAS = [1, 2, 4, 8, 16, 32, 64]
FOLD_TOL = 3e-2  # what the path asks of the fits in its folds


def independent(estimator, X, y):
    """Every budget from scratch, on all rows and in each fold."""
    for theta in THETAS:
        model = MultiBoostECC(**{**estimator.get_params(), "theta": theta})
        model.fit(X, y)
        model.set_params(tol=FOLD_TOL)
        for train, _ in StratifiedKFold(5).split(X, y):
            model.fit(X[train], y[train])


def seconds(work, *arguments, **options) -> float:
    start = time.perf_counter()
    work(*arguments, **options)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=900, help="at the most, of each data set")
    options = parser.parse_args()
    print(f"{'data':10}{'independent':>12}{'path':>8}{'path / independent':>20}")
    for name, load in DATA.items():
        X, y = load(return_X_y=True)
        times = []
        for repeat in range(options.repeats):  # interleaved, on other rows each time
            rows = np.random.default_rng(repeat).permutation(len(y))[: options.rows]
            estimator = MultiBoostECC("learned", tol=1e-2, max_iter=200)
            arguments = estimator, X[rows], y[rows]
            times.append(
                (
                    seconds(independent, *arguments),
                    seconds(theta_path, *arguments, thetas=THETAS),
                )
            )
        alone, path = (statistics.median(t) for t in zip(*times, strict=True))
        print(f"{name:10}{alone:12.2f}{path:8.2f}{path / alone:20.2f}", flush=True)


if __name__ == "__main__":
    main()
