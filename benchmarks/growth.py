"""Growth: the time of a fit against the rows N, the classes C and the rounds T.

Claim: against N (parts of covertype, 10^4 to 5 x 10^5 rows) the log-log slope is at most
1.05. The others are shown, and drawn in `benchmarks/results/growth.png`: C on synthetic rows,
T on digits. A slope is that of least squares through the medians; no peer, a curve is
compared with a line.

    python benchmarks/growth.py [--quick] [--repeats N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from tcboost import AdaBoostECC, MultiBoostECC, TCBoostClassifier
from tcboost.paper import datasets
from timing import REPEATS, in_turn, machine, medians, permuted, versions

ROWS = (10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
CLASSES = (10, 30, 100, 300, 1000)
ROUNDS = (10, 30, 100, 300)
LIMIT = 1.05
OUT = Path(__file__).parent / "results" / "growth.png"
Data = tuple[NDArray[np.float64], NDArray[np.integer]]


def models(T: int) -> dict[str, object]:
    """One of each kind of corrector: stage-wise, totally corrective, class vectors.

    255 bins: with exact ranks the table of prices, stumps x classes, grows with the rows, too.
    """
    same = {"max_iter": T, "max_bins": 255, "n_jobs": 1}
    return {
        "stage-wise": AdaBoostECC(coding="learned", **same),
        "totally corrective": MultiBoostECC(coding="learned", theta=10.0, **same),
        "class vectors": TCBoostClassifier(
            alpha=1.0, l1_ratio=0.5, max_rules=T, max_bins=255, n_jobs=1
        ),
    }


def part(data: Data, n: int, i: int) -> Data:
    X, y = permuted(i, *data)
    return np.ascontiguousarray(X[:n]), y[:n]


def synthetic(n_classes: int, i: int) -> Data:
    """5000 rows in 20 dimensions, a blob a class."""
    rng, y = np.random.default_rng(i), np.arange(5000) % n_classes
    return rng.normal(size=(len(y), 20)) + 2.0 * rng.normal(size=(n_classes, 20))[y], y


def curve(
    what: str, points: tuple[int, ...], data: Callable, T: Callable, repeats: int
) -> dict[str, list[float]]:
    """Median seconds of every model at every point."""
    times: dict[str, list[float]] = {}
    for point in points:
        prepared = [data(point, i) for i in range(repeats)]
        sides = {
            name: lambda i, model=model, prepared=prepared: partial(model.fit, *prepared[i])
            for name, model in models(T(point)).items()
        }
        for name, median in medians(in_turn(sides, repeats, time.process_time)).items():
            times.setdefault(name, []).append(median)
            print(f"  {what} = {point:<8} {name:20} {median:9.3f} s", flush=True)
    return times


def slope(points: tuple[int, ...], times: list[float]) -> float:
    return float(np.polyfit(np.log(points), np.log(times), 1)[0])


def draw(curves: dict[str, tuple[tuple[int, ...], dict[str, list[float]]]]) -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for axis, (what, (points, times)) in zip(axes, curves.items(), strict=True):
        for k, (name, t) in enumerate(times.items()):
            label = f"{name}: {slope(points, t):.2f}"
            axis.loglog(points, t, "os^"[k] + "-", color=f"C{k}", label=label)
            line = t[-1] * np.array(points) / points[-1]
            axis.loglog(points, line, ":", color=f"C{k}", alpha=0.5)
        axis.set(xlabel=what, ylabel="seconds of one thread", title=f"growth with the {what}")
        axis.grid(which="both", alpha=0.2)
        axis.legend(title="slope (dotted: 1)", frameon=False)
    OUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUT, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--quick", action="store_true", help="small sizes, one repetition")
    parser.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")
    options = parser.parse_args()
    rows, classes, rounds, repeats = ROWS, CLASSES, ROUNDS, options.repeats
    if options.quick:
        rows, classes, rounds, repeats = rows[:4], classes[:3], rounds[:3], 1
    print(machine())
    print(f"{versions('tcboost', 'numpy')}; processor time of one thread,")
    print(f"medians of {repeats} fits, rows permuted, in turn")
    covertype = datasets.load("covertype", options.data_dir)
    digits = load_digits(return_X_y=True)
    curves = {
        "rows N": (rows, curve("N", rows, partial(part, covertype), lambda N: 20, repeats)),
        "classes C": (classes, curve("C", classes, synthetic, lambda C: 20, repeats)),
        "rounds T": (
            rounds,
            curve("T", rounds, lambda T, i: permuted(i, *digits), lambda T: T, repeats),
        ),
    }
    draw(curves)
    print()
    print("| fit | against | from | to | slope | claim |")
    print("|---|---|---:|---:|---:|---|")
    for what, (points, times) in curves.items():
        for name, t in times.items():
            found = slope(points, t)
            claim = "" if what[-1] != "N" else "met" if found <= LIMIT else "not met"
            print(f"| {name} | {what} | {points[0]} | {points[-1]} | {found:.2f} | {claim} |")


if __name__ == "__main__":
    main()
