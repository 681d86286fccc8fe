"""Stump training: seconds a stump on covertype, against LightGBM and XGBoost.

Claim: with two threads each, no more than LightGBM's (`num_leaves=2`, 255 bins) and XGBoost's
(`hist`, depth 1) for drawn codes, at most twice as much for learned and vector codes. A peer's
stump is one tree; both grow one for each of the seven classes from one evaluation of the
gradient, where a round of ours has weights of its own. Every round of ours is certified.

A time a stump is that of a fit with more stumps, less that of one with few, by the stumps
between: the same for all, and without reading and binning. Processor time, of all threads, is
shown too: on a busy machine threads that wait for one another take several times as long, and
LightGBM's wait actively.

    python benchmarks/stumps.py [--quick] [--repeats N] [--threads N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from xgboost import XGBClassifier

from tcboost import AdaBoostECC, TCBoostClassifier
from tcboost.paper import datasets
from timing import REPEATS, machine, permuted, versions

C = 7
CLAIMS = {"drawn codes": 1.0, "learned codes": 2.0, "class vectors, theta=20": 2.0}


def sides(n_jobs: int) -> dict[str, Callable[[int], Any]]:
    """Estimators by their number of stumps, a multiple of the number of classes."""
    ours = {"max_bins": 255, "n_jobs": n_jobs, "random_state": 0}
    return {
        "LightGBM": lambda T: LGBMClassifier(
            num_leaves=2, max_bin=255, n_estimators=T // C, n_jobs=n_jobs, verbose=-1
        ),
        "XGBoost": lambda T: XGBClassifier(
            tree_method="hist", max_depth=1, max_bin=255, n_estimators=T // C, n_jobs=n_jobs
        ),
        "drawn codes": lambda T: AdaBoostECC("random", T, **ours),
        "learned codes": lambda T: AdaBoostECC("learned", T, **ours),
        "class vectors, theta=20": lambda T: TCBoostClassifier(theta=20.0, max_iter=T, **ours),
    }


def timed(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Seconds on the wall and of the processor."""
    start = time.perf_counter(), time.process_time()
    model.fit(X, y)
    return np.array([time.perf_counter() - start[0], time.process_time() - start[1]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="fewer stumps, one repetition")
    parser.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # one of an early end, at so few stumps
    repeats, few, many = (1, C, 4 * C) if options.quick else (options.repeats, 2 * C, 16 * C)
    X, y = datasets.load("covertype", options.data_dir)
    found: dict[str, list[np.ndarray]] = {}
    for i in range(repeats):
        data = permuted(i, X, y)
        for name, make in sides(options.threads).items():
            more = timed(make(many), *data) - timed(make(few), *data)
            found.setdefault(name, []).append(more / (many - few))
    print(machine())
    print(versions("tcboost", "lightgbm", "xgboost", "numpy"))
    print(f"covertype, {X.shape[0]} x {X.shape[1]}, {options.threads} threads, 255 bins; from")
    print(f"{few} to {many} stumps; medians of {repeats} repetitions, rows permuted, in turn")
    print()
    print("| stumps of | ms | to LightGBM | to XGBoost | processor: ms | to LightGBM | |")
    print("|---|---:|---:|---:|---:|---:|---|")
    wall, cpu = (
        {name: statistics.median(t[k] for t in times) for name, times in found.items()}
        for k in (0, 1)
    )
    for name in found:
        ratios = [wall[name] / wall[peer] for peer in ("LightGBM", "XGBoost")]
        met = "" if name not in CLAIMS else "met" if max(ratios) <= CLAIMS[name] else "not met"
        print(
            f"| {name} | {1e3 * wall[name]:.1f} | {ratios[0]:.2f} | {ratios[1]:.2f} "
            f"| {1e3 * cpu[name]:.1f} | {cpu[name] / cpu['LightGBM']:.2f} | {met} |"
        )


if __name__ == "__main__":
    main()
