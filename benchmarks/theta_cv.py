"""Theta by cross validation: `theta="cv"` against one fit at the theta that it chose.

dna, T = 500, 16 values and 5 folds, and the final fit. Claim: at most 20 times the time. The
peer is the same estimator with the chosen theta given.

    python benchmarks/theta_cv.py [--quick] [--repeats N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
from functools import partial

from sklearn.base import clone

from tcboost import MultiBoostECC, MultiBoostMO
from tcboost.paper import datasets
from timing import REPEATS, in_turn, machine, medians, permuted, versions

LIMIT = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="50 rounds, one repetition")
    parser.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")
    options = parser.parse_args()
    T, repeats = (50, 1) if options.quick else (options.rounds, options.repeats)
    X, y = datasets.load("dna", options.data_dir)
    print(machine())
    print(
        f"{versions('tcboost', 'numpy')}; dna, {X.shape[0]} x {X.shape[1]}, T = {T}, medians of"
    )
    print(f"{repeats} fits, rows permuted, in turn")
    print()
    print("| model | theta | one fit | with cross validation | ratio | claim |")
    print("|---|---:|---:|---:|---:|---|")
    for model in (MultiBoostMO(max_iter=T), MultiBoostECC(max_iter=T, random_state=0)):
        searched = clone(model).set_params(theta="cv")

        def search(i: int, model=searched) -> partial:
            return partial(model.fit, *permuted(i, X, y))

        def fit(i: int, model=model, searched=searched) -> partial:
            return partial(model.set_params(theta=searched.theta_).fit, *permuted(i, X, y))

        # The search comes first: the other side has the theta that it chose.
        t = medians(in_turn({"cv": search, "one": fit}, repeats))
        ratio = t["cv"] / t["one"]
        print(
            f"| {type(model).__name__} | {searched.theta_:g} | {t['one']:.2f} s "
            f"| {t['cv']:.2f} s | {ratio:.1f} | {'met' if ratio <= LIMIT else 'not met'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
