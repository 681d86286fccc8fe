"""Threads: a stage-wise fit on covertype with two threads against one.

Claim: the rounds are at least 1.7 times as fast, and the model is the same to the last bit. The
rounds after the first few are timed, not reading and binning, which have one thread. All of
them are alike, but for what others do on the machine, which only ever adds, and to two threads
more than to one: the tenth of the rounds that took the least comes nearest to a machine of
one's own.

    python benchmarks/threads.py [--quick] [--repeats N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse

import numpy as np

from tcboost import AdaBoostECC
from tcboost.paper import datasets
from timing import REPEATS, Rounds, machine, permuted, versions

LIMIT, FEW = 1.7, 5


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
    print(f"to {T}; medians of all, {repeats} fits each, rows permuted, in turn")
    print()
    print("| codes | one thread: ms | two | ratio | tenth: one | two | ratio | same bits | |")
    print("|---|---:|---:|---:|---:|---:|---:|---|---|")
    for coding in ("random", "learned"):
        times: dict[int, list[float]] = {1: [], 2: []}
        same = True
        for i in range(repeats):
            data, scores = permuted(i, X, y), []
            for n_jobs, found in times.items():
                model = AdaBoostECC(coding, T, max_bins=255, n_jobs=n_jobs, random_state=0)
                rounds = Rounds()
                model.set_callbacks(rounds).fit(*data)
                found += (1e3 * np.diff(rounds.ends[FEW - 1 :])).tolist()
                scores.append(model.decision_function(X).tobytes())
            same &= scores[0] == scores[1]
        one, two = (np.quantile(t, [0.5, 0.1]) for t in times.values())
        ratio, quiet = one / two
        met = "met" if same and ratio >= LIMIT else "not met"
        if met == "not met" and same and quiet >= LIMIT:
            met = "in quiet rounds only"
        print(
            f"| {coding} | {one[0]:.1f} | {two[0]:.1f} | {ratio:.2f} | {one[1]:.1f} "
            f"| {two[1]:.1f} | {quiet:.2f} | {'yes' if same else 'NO'} | {met} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
