"""Threads: a stage-wise fit on covertype with two threads against one.

Claim: the rounds are at least 1.7 times as fast, and the model is the same to the last bit. A
time is that of a fit with more rounds less that of one with few: reading and binning, which
have one thread, are shown as the time of the latter.

    python benchmarks/threads.py [--quick] [--repeats N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
from functools import partial

from tcboost import AdaBoostECC
from tcboost.paper import datasets
from timing import REPEATS, in_turn, machine, medians, permuted, versions

LIMIT, FEW = 1.7, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--rounds", type=int, default=105)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, one repetition")
    parser.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")
    options = parser.parse_args()
    T, repeats = (25, 1) if options.quick else (options.rounds, options.repeats)
    X, y = datasets.load("covertype", options.data_dir)
    print(machine())
    print(f"{versions('tcboost', 'numpy')}; covertype, {X.shape[0]} x {X.shape[1]}, from {FEW}")
    print(f"to {T} rounds; medians of {repeats} fits, rows permuted, in turn")
    print()
    print("| codes | one thread | two | ratio | up to the first rounds | the same model | |")
    print("|---|---:|---:|---:|---:|---|---|")
    for coding in ("random", "learned"):
        models = {
            (n, rounds): AdaBoostECC(coding, rounds, max_bins=255, n_jobs=n, random_state=0)
            for n in (1, 2)
            for rounds in (FEW, T)
        }
        fits = {
            key: lambda i, model=model: partial(model.fit, *permuted(i, X, y))
            for key, model in models.items()
        }
        t = medians(in_turn(fits, repeats))
        one, two = (t[n, T] - t[n, FEW] for n in (1, 2))
        scores = [models[n, T].decision_function(X).tobytes() for n in (1, 2)]
        same = scores[0] == scores[1]
        met = "met" if one / two >= LIMIT and same else "not met"
        print(
            f"| {coding} | {one:.2f} s | {two:.2f} s | {one / two:.2f} | {t[2, FEW]:.2f} s "
            f"| {'yes' if same else 'NO'} | {met} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
