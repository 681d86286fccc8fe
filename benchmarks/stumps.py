"""Stump training: seconds a stump on covertype, against LightGBM and XGBoost.

Claim: with two threads each, no more than LightGBM's (`num_leaves=2`, 255 bins) and XGBoost's
(`hist`, depth 1) for drawn codes, at most twice as much for learned codes. A peer's
stump is one tree; both grow one for each of the seven classes from one evaluation of the
gradient, where a round of ours has weights of its own. Every round of ours is certified.

The stumps after the first fourteen are timed, by what each library calls after an iteration:
reading and binning are not among the times. Whole fits, with all of it, are shown beside them.
What others do on the machine only ever adds: the least times come nearest to a machine of one's
own.

    python benchmarks/stumps.py [--quick] [--repeats N] [--threads N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from lightgbm import LGBMClassifier
from xgboost import XGBClassifier
from xgboost.callback import TrainingCallback

from tcboost import AdaBoostECC
from tcboost.paper import datasets
from timing import REPEATS, Rounds, machine, permuted, versions

C = 7
FEW = 2 * C
CLAIMS = {"drawn codes": 1.0, "learned codes": 2.0}


Times = list[tuple[int, float]]  # so many stumps were there, and when


class Iterations(TrainingCallback):
    """When the iterations of XGBoost ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        self.ends.append(time.perf_counter())
        return False


def lightgbm(T: int, n_jobs: int, *data: Any) -> Times:
    """An iteration is a stump a class."""
    ends: list[float] = []
    model = LGBMClassifier(
        num_leaves=2, max_bin=255, n_estimators=T // C, n_jobs=n_jobs, verbose=-1
    )
    model.fit(*data, callbacks=[lambda env: ends.append(time.perf_counter())])
    return [(C * (i + 1), end) for i, end in enumerate(ends)]


def xgboost(T: int, n_jobs: int, *data: Any) -> Times:
    """An iteration is a stump a class."""
    settings = {"tree_method": "hist", "max_depth": 1, "max_bin": 255, "n_estimators": T // C}
    iterations = Iterations()
    XGBClassifier(**settings, n_jobs=n_jobs, callbacks=[iterations]).fit(*data)
    return [(C * (i + 1), end) for i, end in enumerate(iterations.ends)]


def ours(model: Any, T: int, n_jobs: int, *data: Any) -> Times:
    """A round is a stump."""
    rounds = Rounds()
    model.set_params(max_iter=T, max_bins=255, n_jobs=n_jobs, random_state=0)
    model.set_callbacks(rounds).fit(*data)
    return list(enumerate(rounds.ends, 1))


SIDES: dict[str, Callable[..., Times]] = {
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "drawn codes": partial(ours, AdaBoostECC("random")),
    "learned codes": partial(ours, AdaBoostECC("learned")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2 * REPEATS - 1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="fewer stumps, one repetition")
    parser.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # one of an early end, at so few stumps
    repeats, T = (1, 4 * C) if options.quick else (options.repeats, 16 * C)
    X, y = datasets.load("covertype", options.data_dir)
    found: dict[str, list[float]] = {name: [] for name in SIDES}
    whole: dict[str, list[float]] = {name: [] for name in SIDES}
    for i in range(repeats):
        data = permuted(i, X, y)
        for name, fit in SIDES.items():
            begun = time.perf_counter()
            times = fit(T, options.threads, *data)
            whole[name].append(time.perf_counter() - begun)
            (few, start), (many, end) = next(t for t in times if t[0] >= FEW), times[-1]
            found[name].append(1e3 * (end - start) / (many - few))
    print(machine())
    print(versions("tcboost", "lightgbm", "xgboost", "numpy"))
    print(
        f"covertype, {X.shape[0]} x {X.shape[1]}, {options.threads} threads, 255 bins; stumps"
    )
    print(f"{FEW} to {T}; {repeats} fits each, rows permuted, in turn")
    print()
    peers = "to LightGBM | to XGBoost"
    print(f"| stumps of | ms, median | {peers} | ms, least | {peers} | |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    medians, of_fits = ({k: statistics.median(t) for k, t in d.items()} for d in (found, whole))
    least = {name: min(t) for name, t in found.items()}
    for name in SIDES:
        cells, ratios = [name], []
        for times in (medians, least):
            to = [times[name] / times[peer] for peer in ("LightGBM", "XGBoost")]
            ratios.append(max(to))
            cells += [f"{times[name]:.1f}", *(f"{ratio:.2f}" for ratio in to)]
        met = ""
        if name in CLAIMS:
            met = "met" if ratios[0] <= CLAIMS[name] else "not met"
            if met == "not met" and ratios[1] <= CLAIMS[name]:
                met = "by the least only"
        print("|", " | ".join([*cells, met]), "|")
    print(f"\nwhole fits of {T} stumps, in seconds, medians\n")
    print("| fit of | s | to LightGBM | to XGBoost |\n|---|---:|---:|---:|")
    for name, took in of_fits.items():
        to = [took / of_fits[peer] for peer in ("LightGBM", "XGBoost")]
        print(f"| {name} | {took:.2f} | {to[0]:.2f} | {to[1]:.2f} |")


if __name__ == "__main__":
    main()
