"""Prediction with 500 stumps on covertype, against LightGBM and XGBoost.

Claim: with the same number of threads, at least 5 times the rows a second of both, and for a
single row a lower latency. All by `predict` of the estimators, which validate their input; for
a single row also against the peers' boosters, which do not. The models are trained on 20,000
rows: how fast they predict depends on their stumps, not on how good they are.
The peers have 504 stumps, 72 of each class.

    python benchmarks/predict.py [--quick] [--repeats N] [--threads N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from xgboost import XGBClassifier

from tcboost import AdaBoostECC, TCBoostClassifier
from tcboost.paper import datasets
from timing import REPEATS, in_turn, machine, medians, permuted, versions

LIMIT, CALLS = 5.0, 200
PEERS = ("LightGBM", "XGBoost")


def fitted(X: np.ndarray, y: np.ndarray, n_jobs: int) -> dict[str, Any]:
    ours = {"max_bins": 255, "n_jobs": n_jobs, "random_state": 0}
    models = {
        "LightGBM": LGBMClassifier(num_leaves=2, n_estimators=72, n_jobs=n_jobs, verbose=-1),
        "XGBoost": XGBClassifier(
            tree_method="hist", max_depth=1, n_estimators=72, n_jobs=n_jobs
        ),
        "drawn codes": AdaBoostECC("random", 500, **ours),
        "learned codes": AdaBoostECC("learned", 500, **ours),
        "class vectors": TCBoostClassifier(
            alpha=0.1, l1_ratio=0.5, max_rules=500, max_bins=255, n_jobs=n_jobs
        ),
    }
    return {name: model.fit(X, y) for name, model in models.items()}


def calls(predict: Callable[[np.ndarray], object], X: np.ndarray) -> None:
    for i in range(CALLS):
        predict(X[i : i + 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one repetition")
    parser.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    repeats = 1 if options.quick else options.repeats
    X, y = datasets.load("covertype", options.data_dir)
    part = np.random.default_rng(0).permutation(len(y))[:20_000]
    models = fitted(X[part], y[part], options.threads)
    predicts: dict[str, Any] = {name: model.predict for name, model in models.items()}
    batches = {
        name: lambda i, f=f: partial(f, permuted(i, X, y)[0]) for name, f in predicts.items()
    }
    predicts["LightGBM, booster"] = partial(models["LightGBM"].booster_.predict, num_threads=1)
    predicts["XGBoost, booster"] = models["XGBoost"].get_booster().inplace_predict
    singles = {
        name: lambda i, f=f: partial(calls, f, permuted(i, X, y)[0])
        for name, f in predicts.items()
    }
    batch, single = medians(in_turn(batches, repeats)), medians(in_turn(singles, repeats))
    print(machine())
    print(versions("tcboost", "lightgbm", "xgboost", "numpy", "scikit-learn"))
    print(f"covertype, {X.shape[0]} rows at once, {options.threads} threads, and one by one;")
    print(f"medians of {repeats} repetitions, rows permuted, in turn")
    print()
    print("| model | stumps | rows a second | to LightGBM | to XGBoost | one row | |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for name, seconds in single.items():
        row = f"{1e6 * seconds / CALLS:.0f} us"
        if name not in batch:
            print(f"| {name} | | | | | {row} | |")
            continue
        model = models[name]
        stumps = 504 if name in PEERS else getattr(model, "n_rules_", model.n_iter_)
        ratios = [batch[peer] / batch[name] for peer in PEERS]
        lower = seconds < min(t for other, t in single.items() if other.startswith(PEERS))
        met = "met" if min(ratios) >= LIMIT and lower else "not met"
        print(
            f"| {name} | {stumps} | {len(X) / batch[name]:.3g} | {ratios[0]:.1f} "
            f"| {ratios[1]:.1f} | {row} | {'' if name in PEERS else met} |"
        )


if __name__ == "__main__":
    main()
