"""Threads: a stage-wise fit on covertype with two threads against one.

Claim: the rounds are at least 1.7 times as fast, and so are whole fits, with all that comes
before the first round; and the model is the same to the last bit.

A virtual machine may have less than two cores to give: its processors may be halves of cores,
of which others use the other halves, and two threads are then slow whatever they do. So two
fits of one thread each run at once, too, every time, which need nothing of each other but the
interpreter. As much as they gain over one after the other there was to be had. What others use
changes within seconds, so all these fits take turns of some rounds each, after the first few.
(The first ones of a turn find the rows of other fits in the caches: with two threads they took
10.3 ms, and ten rounds later 8.9.) Whole fits run one after the other.

    python benchmarks/threads.py [--quick] [--repeats N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

from numpy.typing import NDArray

from tcboost import AdaBoostECC
from tcboost.paper import datasets
from timing import REPEATS, Rounds, in_turn, machine, medians, permuted, versions

Data = tuple[NDArray[Any], NDArray[Any]]
LIMIT, FEW, TURN = 1.7, 5, 25  # the claim, rounds before the first turn, rounds of a turn
SIDES = {"one": (1, 1), "two": (2, 1), "two fits": (1, 2)}  # threads of a fit, fits at once


class InTurn(Rounds):
    """Lets a fit go on when it is the turn of its side; whoever waits, waits for all others."""

    def __init__(self, side: str, rounds: int, barrier: Barrier) -> None:
        super().__init__()
        self.place, self.rounds, self.barrier = list(SIDES).index(side), rounds, barrier
        self.seconds = 0.0

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        super().on_fit_task_end(estimator, context)
        done = len(self.ends) - FEW
        if context.task_name == "round" and done >= 0 and done % TURN == 0:
            turns = len(SIDES)  # until it is mine again
            if done == 0:
                turns = self.place + 1
            else:
                self.seconds += self.ends[-1] - self.begun
            if done == self.rounds:
                turns = len(SIDES) - self.place
            for _ in range(turns):
                self.barrier.wait()
            self.begun = time.perf_counter()
        return False


def fit_in_turn(
    coding: str, rounds: int, data: Data
) -> tuple[dict[str, float], list[AdaBoostECC]]:
    """Milliseconds a round of each side, and all models."""
    fits = [(side, n_jobs) for side, (n_jobs, n) in SIDES.items() for _ in range(n)]
    barrier = Barrier(len(fits))

    def fit(side: str, n_jobs: int) -> tuple[float, AdaBoostECC]:
        mine = InTurn(side, rounds, barrier)
        model = AdaBoostECC(coding, FEW + rounds, max_bins=255, n_jobs=n_jobs, random_state=0)
        try:
            model.set_callbacks(mine).fit(*data)
        except BaseException:
            barrier.abort()  # or the others would wait for ever
            raise
        return 1e3 * mine.seconds / rounds, model

    with ThreadPoolExecutor(len(fits)) as threads:
        done = list(threads.map(fit, *zip(*fits, strict=True)))
    of_sides: dict[str, list[float]] = {side: [] for side in SIDES}
    for (side, _), (took, _) in zip(fits, done, strict=True):
        of_sides[side].append(took)
    times = {side: statistics.mean(took) for side, took in of_sides.items()}
    return times, [model for _, model in done]


def whole_fits(
    coding: str, rounds: int, repeats: int, data: Data
) -> tuple[dict[str, float], list[AdaBoostECC]]:
    """Seconds with one thread and with two, and all models."""
    models = []

    def side(n_jobs: int, i: int) -> Callable[[], object]:
        model = AdaBoostECC(coding, rounds, max_bins=255, n_jobs=n_jobs, random_state=0)
        models.append(model)
        return partial(model.fit, *permuted(i, *data))

    times = in_turn({str(n): partial(side, n) for n in (1, 2)}, repeats)
    return medians(times), models


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2 * REPEATS - 1)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, one repetition")
    parser.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")
    options = parser.parse_args()
    rounds, repeats = (2 * TURN, 1) if options.quick else (options.rounds, options.repeats)
    if rounds < TURN or rounds % TURN:
        parser.error(f"--rounds must be a multiple of {TURN}")
    X, y = datasets.load("covertype", options.data_dir)
    print(machine())
    print(f"{versions('tcboost', 'numpy')}; covertype, {X.shape[0]} x {X.shape[1]}, {rounds}")
    print(f"rounds after {FEW}, {TURN} a turn; ms a round, medians of {repeats}, rows permuted")
    print()
    print("| codes | one thread | two | ratio | two fits at once | gain | bits | |")
    print("|---|---:|---:|---:|---:|---:|---|---|")
    for coding in ("random", "learned"):
        times: dict[str, list[float]] = {side: [] for side in SIDES}
        same = True
        for i in range(repeats):
            took, models = fit_in_turn(coding, rounds, permuted(i, X, y))
            for side in SIDES:
                times[side].append(took[side])
            same &= alike(models, X)
        one, two, both = medians(times).values()
        cells = f"{one:.2f} | {two:.2f} | {one / two:.2f} | {both:.2f} | {2 * one / both:.2f}"
        print(f"| {coding} | {cells} | {judged(one / two, same)} |", flush=True)
    n, repeats = (2 * TURN, 1) if options.quick else (500, REPEATS)
    print(f"\nwhole fits of {n} rounds, in seconds, medians of {repeats}\n")
    print("| codes | one thread | two | ratio | bits | |")
    print("|---|---:|---:|---:|---|---|")
    for coding in ("random", "learned"):
        seconds, models = whole_fits(coding, n, repeats, (X, y))
        one, two = seconds.values()
        cells = f"{one:.2f} | {two:.2f} | {one / two:.2f}"
        print(f"| {coding} | {cells} | {judged(one / two, alike(models, X))} |", flush=True)


def alike(models: list[AdaBoostECC], X: NDArray[Any]) -> bool:
    return len({model.decision_function(X).tobytes() for model in models}) == 1


def judged(ratio: float, same: bool) -> str:
    met = "met" if same and ratio >= LIMIT else "not met"
    return f"{'same' if same else 'OTHERS'} | {met}"


if __name__ == "__main__":
    main()
