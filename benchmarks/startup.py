"""Start-up: what `import tcboost` adds to `import sklearn.ensemble`, and a first fit on iris.

Every time is taken in a process of its own, of which the first run only fills the caches of
files and of bytecode. Claims: the import adds at most 50 ms, the first fit takes at most 50
ms. Most names are loaded when they are asked for, which is before a fit: import and all names
are shown together, too. The peer of the import is scikit-learn's own, of the fit
scikit-learn's AdaBoostClassifier with as many stumps.

    python benchmarks/startup.py [--repeats N] [--quick]
"""

from __future__ import annotations

import argparse

import numpy as np

from timing import in_fresh_process, machine, versions

IMPORT = """
import time
times = [time.process_time()]
import sklearn.ensemble
times += [time.perf_counter(), time.process_time()]
import tcboost
times += [time.perf_counter(), time.process_time()]
from tcboost import *
times += [time.perf_counter(), time.process_time()]
print(times[3] - times[1], times[4] - times[2], times[5] - times[1], times[6] - times[2])
print(times[2] - times[0])
"""

FIT = """
import sys, time
from sklearn.ensemble import AdaBoostClassifier
from tcboost import *
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
model = eval(sys.argv[1])
start = time.perf_counter(), time.process_time()
model.fit(X, y)
print(time.perf_counter() - start[0], time.process_time() - start[1])
"""

MODELS = (
    "TCBoostClassifier()",
    "TCBoostClassifier(alpha=2, l1_ratio=0.5)",
    "MultiBoostECC(theta=5, max_iter=20)",
    "MultiBoostMO(theta=5, max_iter=20)",
    "MultiBoostHinge(theta=5, max_iter=20)",
    "AdaBoostECC(max_iter=20)",
    "AdaBoostMO(max_iter=20)",
    "AdaBoostClassifier(n_estimators=20)",
)
SHOWN = (  # without a claim
    "all of its names, too",
    "import sklearn.ensemble",
    "first fit, `AdaBoostClassifier(n_estimators=20)`",
)
LIMIT = 50.0  # ms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--quick", action="store_true", help="5 repetitions")
    options = parser.parse_args()
    repeats = 5 if options.quick else options.repeats
    times: dict[str, list[list[float]]] = {}
    for _ in range(repeats + 1):  # in turn; the first one does not count
        ours = in_fresh_process(IMPORT).split()
        times.setdefault("import tcboost, after sklearn.ensemble", []).append(ours[:2])
        times.setdefault("all of its names, too", []).append(ours[2:4])
        times.setdefault("import sklearn.ensemble", []).append(2 * ours[4:])
        for model in MODELS:
            found = in_fresh_process(FIT, model).split()
            times.setdefault(f"first fit, `{model}`", []).append(found)
    print(machine())
    print(versions("tcboost", "scikit-learn", "numpy"))
    print(
        f"medians of {repeats} processes, in ms; on a busy machine the processor's time counts"
    )
    print()
    print("| what | by the clock | least | of the processor | claim |")
    print("|---|---:|---:|---:|---|")
    for what, found in times.items():
        clock, processor = 1e3 * np.array(found[1:], dtype=float).T
        median = np.median(clock)
        met = "met" if median <= LIMIT else "not met"
        met = "" if what in SHOWN else met
        figures = (median, clock.min(), np.median(processor))
        print(f"| {what} | {' | '.join(f'{t:.0f}' for t in figures)} | {met} |")


if __name__ == "__main__":
    main()
