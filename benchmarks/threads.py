"""Threads: a stage-wise fit on covertype with two threads against one.

Claim: the rounds are at least 1.7 times as fast, and the model is the same to the last bit. The
rounds after the first few are timed, not reading and binning, which have one thread. What
others do on the machine hits two threads more than one, and only ever adds: the least times
come nearest to a machine of one's own.

    python benchmarks/threads.py [--quick] [--repeats N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import statistics

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
    print(f"to {T}; medians of {repeats} fits, rows permuted, in turn")
    print()
    print("| codes | one thread: ms a round | two | ratio | of the least | the same model | |")
    print("|---|---:|---:|---:|---:|---|---|")
    for coding in ("random", "learned"):
        times: dict[int, list[float]] = {1: [], 2: []}
        same = True
        for i in range(repeats):
            data, scores = permuted(i, X, y), []
            for n_jobs, found in times.items():
                model = AdaBoostECC(coding, T, max_bins=255, n_jobs=n_jobs, random_state=0)
                rounds = Rounds()
                model.set_callbacks(rounds).fit(*data)
                found.append(1e3 * (rounds.ends[-1] - rounds.ends[FEW - 1]) / (T - FEW))
                scores.append(model.decision_function(X).tobytes())
            same &= scores[0] == scores[1]
        one, two = (statistics.median(t) for t in times.values())
        least = min(times[1]) / min(times[2])
        met = "met" if same and one / two >= LIMIT else "not met"
        if met == "not met" and same and least >= LIMIT:
            met = "by the least only"
        print(
            f"| {coding} | {one:.1f} | {two:.1f} | {one / two:.2f} | {least:.2f} "
            f"| {'yes' if same else 'NO'} | {met} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
