"""Memory: the peak of a fit above the input it was given, in a process of its own.

Covertype, T = 100, the input in memory as float64. Claims: at most the size of the input for
the stage-wise fit, and one byte a row and round more for the totally corrective ECC. The peak
is the kernel's own count (VmHWM, set back just before the fit), so that this needs Linux. No
peer: the input is the measure.

    python benchmarks/memory.py [--quick] [--rounds T] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np

from tcboost.paper import datasets
from timing import in_fresh_process, machine, versions

FIT = """
import ctypes, re, sys
from pathlib import Path
import numpy as np
from tcboost import *

def megabytes(field):
    status = Path("/proc/self/status").read_text()
    return int(re.search(field + r":\\s+(\\d+)", status)[1]) * 1024 / 1e6

folder, seed, model = sys.argv[1:]
X, y = np.load(folder + "/X.npy"), np.load(folder + "/y.npy")
np.random.default_rng(int(seed)).shuffle(order := np.arange(len(y)))
X[:], y[:] = X[order], y[order]
del order
model = eval(model)
model.fit(X[:1000], y[:1000])  # libraries and their threads are no part of it
ctypes.CDLL(None).malloc_trim(0)  # what is free does not count as there before
Path("/proc/self/clear_refs").write_text("5")
before = megabytes("VmRSS")
model.fit(X, y)
print(megabytes("VmHWM") - before, model.n_iter_)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="10 rounds, one repetition")
    parser.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")
    options = parser.parse_args()
    T, repeats = (10, 1) if options.quick else (options.rounds, options.repeats)
    X, y = datasets.load("covertype", options.data_dir)
    size, per_round = X.nbytes / 1e6, T * len(y) / 1e6
    claims = {
        f"AdaBoostECC(max_iter={T})": size,
        f"AdaBoostECC(coding='learned', max_iter={T})": size,
        f"AdaBoostMO(max_iter={T})": size,
        f"AdaBoostMO('ovr', max_iter={T})": size,
        f"MultiBoostECC(theta=20, max_iter={T})": size + per_round,
        f"MultiBoostECC(theta=20, coding='learned', max_iter={T})": size + per_round,
    }
    peaks = {model: [] for model in claims}
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "X.npy"), X)
        np.save(Path(folder, "y.npy"), y)
        for i in range(repeats):
            for model in claims:
                peak, rounds = in_fresh_process(FIT, folder, i, model).split()
                assert int(rounds) == T, f"{model} ended after {rounds} rounds"
                peaks[model].append(float(peak))
    print(machine())
    print(
        f"{versions('tcboost', 'numpy')}; covertype, {X.shape[0]} x {X.shape[1]}, {size:.0f} MB"
    )
    print(f"as float64; medians of {repeats} processes, in MB above the input")
    print()
    print("| model | peak | claim at most | of the claim | |")
    print("|---|---:|---:|---:|---|")
    for model, most in claims.items():
        peak = statistics.median(peaks[model])
        met = "met" if peak <= most else "not met"
        print(
            f"| `{model}` | {peak:.0f} | {most:.0f} | {peak / most:.2f} | {met} |", flush=True
        )


if __name__ == "__main__":
    main()
