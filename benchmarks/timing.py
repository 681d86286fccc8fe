"""What the speed benchmarks share: times taken in turn, on data permuted every time.

Only ratios within one run are claims. The sides of a comparison run one after the other in
every repetition, so that a busy machine hits all of them, and each repetition has rows in
another order, so that nothing can be remembered from the last one.
"""

from __future__ import annotations

import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

REPEATS = 5
Clock = Callable[[], float]


def seconds(work: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def in_turn(
    sides: Mapping[str, Callable[[int], Callable[[], object]]],
    repeats: int = REPEATS,
    clock: Clock = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of every side; ``side(i)`` prepares repetition i, untimed, for its work."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for i in range(repeats):
        for name, prepare in sides.items():
            times[name].append(seconds(prepare(i), clock))
    return times


class Rounds:
    """When the rounds of a fit ended: a callback of scikit-learn's, from version 1.9 on."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    def teardown(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        if context.task_name == "round":
            self.ends.append(time.perf_counter())
        return False


def medians(times: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(t) for name, t in times.items()}


def permuted(i: int, X: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rows in the order of repetition i."""
    order = np.random.default_rng(i).permutation(len(y))
    return X[order], y[order]


def in_fresh_process(code: str, *arguments: object) -> str:
    """What a program prints that nothing ran before in the same process."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def stolen() -> float:
    """Seconds that others on the host had of these processors, as Linux counts them."""
    try:
        first = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0]
        return int(first.split()[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return math.nan


def versions(*packages: str) -> str:
    return ", ".join(f"{p} {version(p)}" for p in packages)


def machine() -> str:
    """The processor, how many of them this process may use, and what the system is."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.split(": ")[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        cores = os.cpu_count() or 1
    return f"{cores} cores of {name}, {platform.system()}, Python {platform.python_version()}"
