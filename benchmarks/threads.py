"""Threads: a stage-wise fit on covertype with two threads against one.

Claim: the rounds are at least 1.7 times as fast, and the model is the same to the last bit. The
rounds after the first few are timed, not reading and binning, which have one thread.

A virtual machine may have less than two cores to give: its processors may be halves of cores,
of which others use the other halves, and two threads are then slow whatever they do. So two
fits of one thread each run at once, too, every time, which need nothing of each other but the
interpreter. As much as they gain over one after the other there was to be had.

    python benchmarks/threads.py [--quick] [--repeats N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import statistics
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tcboost import AdaBoostECC
from tcboost.paper import datasets
from timing import REPEATS, Rounds, machine, medians, permuted, versions

Data = tuple[NDArray[Any], NDArray[Any]]
LIMIT, FEW = 1.7, 5
SIDES = {"one": (1, 1), "two": (2, 1), "two fits": (1, 2)}  # threads of a fit, fits at once


def fit(model: AdaBoostECC, data: Data) -> tuple[float, AdaBoostECC]:
    """Milliseconds a round, and the model."""
    rounds = Rounds()
    model.set_callbacks(rounds).fit(*data)
    return 1e3 * np.diff(rounds.ends[FEW:]).mean(), model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2 * REPEATS - 1)
    parser.add_argument("--rounds", type=int, default=105)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, one repetition")
    parser.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")
    options = parser.parse_args()
    T, repeats = (25, 1) if options.quick else (options.rounds, options.repeats)
    X, y = datasets.load("covertype", options.data_dir)
    print(machine())
    print(
        f"{versions('tcboost', 'numpy')}; covertype, {X.shape[0]} x {X.shape[1]}, rounds {FEW}"
    )
    print(f"to {T}; ms a round, medians of {repeats}, rows permuted, in turn")
    print()
    print("| codes | one thread | two | ratio | two fits at once | gain | bits | |")
    print("|---|---:|---:|---:|---:|---:|---|---|")
    for coding in ("random", "learned"):
        times: dict[str, list[float]] = {side: [] for side in SIDES}
        same = True
        for i in range(repeats):
            data, scores = permuted(i, X, y), set()
            for side, (n_jobs, n_fits) in SIDES.items():
                model = AdaBoostECC(coding, T, max_bins=255, n_jobs=n_jobs, random_state=0)
                models = [clone(model) for _ in range(n_fits)]
                with ThreadPoolExecutor(n_fits) as threads:
                    done = list(threads.map(fit, models, [data] * n_fits))
                times[side].append(statistics.mean(took for took, _ in done))
                scores |= {fitted.decision_function(X).tobytes() for _, fitted in done}
            same &= len(scores) == 1
        one, two, both = medians(times).values()
        met = "met" if same and one / two >= LIMIT else "not met"
        cells = f"{one:.2f} | {two:.2f} | {one / two:.2f} | {both:.2f} | {2 * one / both:.2f}"
        print(f"| {coding} | {cells} | {'same' if same else 'OTHERS'} | {met} |", flush=True)


if __name__ == "__main__":
    main()
