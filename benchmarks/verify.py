"""Verify: its time and memory against those of the fit that it verifies, in one process each.

100,000 made rows of 50 features and 10 classes, `TCBoostClassifier` with alpha and l1_ratio
given and chosen, both sides in turn on rows in another order every time. Claims: verify takes
at most half the time of the fit, by the clock and with all cores, and its peak is at most twice
the input and the probabilities above them. The peak is the kernel's own count (VmHWM, set back
before), so that this needs Linux.

    python benchmarks/verify.py [--quick] [--repeats N]
"""

from __future__ import annotations

import argparse
import statistics

from timing import in_fresh_process, machine, versions

RUN = """
import ctypes, re, sys, time
from pathlib import Path
import numpy as np
from tcboost import *

def megabytes(field):
    status = Path("/proc/self/status").read_text()
    return int(re.search(field + r":\\s+(\\d+)", status)[1]) * 1024 / 1e6

n, seed, model = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
X = rng.normal(size=(n, 50))
W = rng.normal(size=(50, 10)) * (rng.random((50, 10)) < 0.2)
y = (np.sin(2 * X) @ W + 0.5 * rng.gumbel(size=(n, 10))).argmax(axis=1)
order = np.random.default_rng(seed).permutation(n)
X, y = X[order], y[order]
model = eval(model)
verify(model.fit(X[:1000], y[:1000]), X[:1000], y[:1000])  # libraries are no part of it
times = [time.perf_counter(), time.process_time()]
model.fit(X, y)
times += [time.perf_counter(), time.process_time()]
ctypes.CDLL(None).malloc_trim(0)  # what is free does not count as there before
Path("/proc/self/clear_refs").write_text("5")
before = megabytes("VmRSS")
start = time.perf_counter(), time.process_time()
found = verify(model, X, y)
end = time.perf_counter(), time.process_time()
assert found, str(found)
fit = times[2] - times[0], times[3] - times[1]
print(*fit, end[0] - start[0], end[1] - start[1], megabytes("VmHWM") - before)
"""

MODELS = (
    "TCBoostClassifier(alpha=20, l1_ratio=0.5)",
    "TCBoostClassifier(alpha=20, l1_ratio=0.01)",
    "TCBoostClassifier()",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="10,000 rows, one repetition")
    options = parser.parse_args()
    n, repeats = (10_000, 1) if options.quick else (100_000, options.repeats)
    most = 2 * (50 + 10) * n * 8 / 1e6
    found: dict[str, list[list[float]]] = {model: [] for model in MODELS}
    for i in range(repeats):
        for model in MODELS:
            printed = in_fresh_process(RUN, n, i, model).split()
            found[model].append([float(x) for x in printed])
    print(machine())
    print(
        f"{versions('tcboost', 'numpy')}; {n} rows, medians of {repeats} processes, in seconds"
    )
    print()
    print("| model | fit | of the processor | verify | of the processor | ratio | MB above | |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    for model, runs in found.items():
        *times, peak = map(statistics.median, zip(*runs, strict=True))
        ratio = statistics.median(one[2] / one[0] for one in runs)
        met = "met" if ratio <= 0.5 and peak <= most else "not met"
        row = " | ".join(f"{t:.2f}" for t in (*times, ratio))
        print(f"| `{model}` | {row} | {peak:.0f} of {most:.0f} | {met} |", flush=True)


if __name__ == "__main__":
    main()
