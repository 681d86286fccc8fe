"""Start-up: what `import tcboost` adds to `import sklearn.ensemble`, and a first fit on iris.

Every time is taken in a process of its own, of which the first run only fills the caches of
files and of bytecode. Claims: the import adds at most 50 ms, the first fit takes at most 50
ms. The peer of the import is scikit-learn's own, of the fit scikit-learn's AdaBoostClassifier
with as many stumps.

    python benchmarks/startup.py [--repeats N] [--quick]
"""

from __future__ import annotations

import argparse
import statistics

from timing import in_fresh_process, machine, versions

IMPORT = """
import time
start = time.perf_counter()
import sklearn.ensemble
between = time.perf_counter()
import tcboost
print(between - start, time.perf_counter() - between)
"""

FIT = """
import sys, time
import sklearn.ensemble, tcboost
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
model = eval(sys.argv[1], {**vars(tcboost), **vars(sklearn.ensemble)})
start = time.perf_counter()
model.fit(X, y)
print(time.perf_counter() - start)
"""

MODELS = (
    "TCBoostClassifier()",
    "TCBoostClassifier(theta=5)",
    "MultiBoostECC(theta=5, max_iter=20)",
    "MultiBoostMO(theta=5, max_iter=20)",
    "MultiBoostHinge(theta=5, max_iter=20)",
    "AdaBoostECC(max_iter=20)",
    "AdaBoostMO(max_iter=20)",
    "AdaBoostClassifier(n_estimators=20)",
)
LIMIT = 50.0  # ms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--quick", action="store_true", help="5 repetitions")
    options = parser.parse_args()
    repeats = 5 if options.quick else options.repeats
    imports, fits = [], {model: [] for model in MODELS}
    for i in range(repeats + 1):  # in turn; the first one does not count
        pair = [1e3 * float(t) for t in in_fresh_process(IMPORT).split()]
        times = {model: 1e3 * float(in_fresh_process(FIT, model)) for model in MODELS}
        if i:
            imports.append(pair)
            for model in MODELS:
                fits[model].append(times[model])
    print(machine())
    print(
        f"{versions('tcboost', 'scikit-learn', 'numpy')}; medians of {repeats} processes, in ms"
    )
    print()
    print("| what | median | least | claim |")
    print("|---|---:|---:|---|")
    theirs, ours = ([pair[k] for pair in imports] for k in (0, 1))
    print(
        f"| import sklearn.ensemble | {statistics.median(theirs):.0f} | {min(theirs):.0f} | |"
    )
    for what, times in [
        ("import tcboost, after it", ours),
        *((f"first fit, `{m}`", t) for m, t in fits.items()),
    ]:
        median = statistics.median(times)
        met = "" if "AdaBoostClassifier" in what else "met" if median <= LIMIT else "not met"
        print(f"| {what} | {median:.0f} | {min(times):.0f} | {met} |")


if __name__ == "__main__":
    main()
