"""Threads: a stage-wise fit on covertype with two threads against one.

Claim: the rounds are at least 1.7 times as fast, and the model is the same to the last bit. The
rounds after the first few are timed, not reading and binning, which have one thread.

A virtual machine may have less than two cores to give, and two threads are then slow whatever
they do. So plain loops run after every fit, as many at once as it had threads: hashes, which
need neither memory nor each other. What two of them gain is all that there was to be had.

    python benchmarks/threads.py [--quick] [--repeats N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from tcboost import AdaBoostECC
from tcboost.paper import datasets
from timing import REPEATS, Rounds, machine, permuted, seconds, versions

LIMIT, FEW = 1.7, 5
LOOPS = 300  # of a thread, each of about a millisecond


def loop(_: int) -> None:
    """Work that the interpreter is not needed for."""
    hashlib.pbkdf2_hmac("sha256", b"", b"", 4000)


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
    print(
        f"to {T}; ms a round and a loop, medians of {repeats} fits each, rows permuted, in turn"
    )
    print()
    print("| codes | one thread | two | ratio | loops: one | two | ratio | bits | |")
    print("|---|---:|---:|---:|---:|---:|---:|---|---|")
    for coding in ("random", "learned"):
        fits, loops = {1: [], 2: []}, {1: [], 2: []}
        same = True
        for i in range(repeats):
            data, scores = permuted(i, X, y), []
            for n_jobs in fits:
                model = AdaBoostECC(coding, T, max_bins=255, n_jobs=n_jobs, random_state=0)
                rounds = Rounds()
                model.set_callbacks(rounds).fit(*data)
                fits[n_jobs].append(1e3 * np.diff(rounds.ends[FEW:]).mean())
                scores.append(model.decision_function(X).tobytes())
                with ThreadPoolExecutor(n_jobs) as threads:
                    work = partial(threads.map, loop, range(LOOPS * n_jobs))
                    took = seconds(lambda work=work: list(work()))
                loops[n_jobs].append(1e3 * took / (LOOPS * n_jobs))
            same &= scores[0] == scores[1]
        row = []
        for times in (fits, loops):
            one, two = (statistics.median(times[n]) for n in (1, 2))
            row.append((one, two, one / two))
        met = "met" if same and row[0][2] >= LIMIT else "not met"
        cells = " | ".join(f"{one:.2f} | {two:.2f} | {ratio:.2f}" for one, two, ratio in row)
        print(f"| {coding} | {cells} | {'same' if same else 'OTHERS'} | {met} |", flush=True)


if __name__ == "__main__":
    main()
