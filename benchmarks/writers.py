"""The C of the letter model, against the compiled C of LightGBM.

Claim: at most half the time a row. Ours is the default, by `to_c`; the peer is LightGBM with
two leaves a tree, a learning rate of .3, and the fewest rounds whose test error is no higher
than ours, compiled by TL2cgen. The same compiler makes both with -O3; the rows of the test part
are predicted one by one, in another order every time, in process time. The peer's call puts out
its scores, from rows that are in its own form already; ours puts out the class. `text + data`
is what an object adds to a program.

    python benchmarks/writers.py [--quick] [--repeats N] [--rounds N] [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import subprocess
import tempfile
import time
from pathlib import Path

import lightgbm
import numpy as np
import tl2cgen
import treelite

import tcboost
from common import parts
from timing import REPEATS, in_turn, machine, medians, permuted, versions

CALLS = 20  # of each row
PARAMETERS = {
    "objective": "multiclass",
    "num_leaves": 2,
    "learning_rate": 0.3,
    "num_threads": 1,
    "verbose": -1,
}
OURS = """
int model_predict(const double *x);
int run(const double *X, int n, int d, int calls)
{
    int sum = 0;
    for (int k = 0; k < calls; k++) for (int i = 0; i < n; i++) sum += model_predict(X + i * d);
    return sum;
}
"""
THEIRS = """
#include "header.h"
int run(const double *X, int n, int d, int calls)
{
    double scores[MAX_N_CLASS], sum = 0;
    for (int k = 0; k < calls; k++) for (int i = 0; i < n; i++) {
        for (int c = 0; c < MAX_N_CLASS; c++) scores[c] = 0;
        predict((union Entry *)(X + i * d), 1, scores);
        sum += scores[0];
    }
    return (int)sum;
}
"""


def good_enough(
    train: lightgbm.Dataset, X: np.ndarray, y: np.ndarray, error: float, rounds: int
) -> tuple[lightgbm.Booster, float]:
    """The model of the fewest rounds, and its error; that of all rounds if none will do."""
    k = int(y.max()) + 1
    booster = lightgbm.train({**PARAMETERS, "num_class": k}, train, rounds)
    scores = np.zeros((len(X), k))
    for i in range(rounds):
        scores += booster.predict(X, raw_score=True, start_iteration=i, num_iteration=1)
        found = float(np.mean(scores.argmax(axis=1) != y))
        if found <= error:
            break
    text = booster.model_to_string(num_iteration=i + 1)
    return lightgbm.Booster(model_str=text), found


def compiled(folder: Path, loop: str) -> tuple[ctypes.CDLL, float]:
    """A library of main.c and a loop over rows, and the kilobytes of main.c."""
    (folder / "loop.c").write_text(loop)
    compiler = ["gcc", "-std=c99", "-O3", "-fPIC"]
    for name in ("main", "loop"):
        subprocess.run([*compiler, "-c", f"{name}.c"], cwd=folder, check=True)
    link = [*compiler, "-shared", "main.o", "loop.o", "-o", "run.so", "-lm"]
    subprocess.run(link, cwd=folder, check=True)
    size = subprocess.run(["size", "main.o"], cwd=folder, capture_output=True, text=True)
    text, data = size.stdout.splitlines()[1].split()[:2]
    return ctypes.CDLL(folder / "run.so"), (int(text) + int(data)) / 1024


def check(runs: dict, X: np.ndarray, model: object, peer: lightgbm.Booster) -> None:
    """Both libraries compute what their models do."""
    scores = np.zeros(peer.predict(X[:1]).size)
    wanted = peer.predict(X, raw_score=True)
    for row, label, of_peer in zip(X, model.predict(X), wanted, strict=True):
        at = ctypes.c_void_p(row.ctypes.data)
        assert runs["ours"].model_predict(at) == label
        scores[:] = 0
        runs["TL2cgen"].predict(at, 1, ctypes.c_void_p(scores.ctypes.data))
        np.testing.assert_allclose(scores, of_peer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--rounds", type=int, default=1000, help="of the peer, at most")
    parser.add_argument("--quick", action="store_true", help="one repetition")
    parser.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")
    options = parser.parse_args()
    repeats = 1 if options.quick else options.repeats
    X, X_test, y, y_test = parts("letter", 0, options.data_dir)
    classes, y = np.unique(y, return_inverse=True)
    y_test = np.searchsorted(classes, y_test)
    model = tcboost.TCBoostClassifier().fit(X, y)
    error = float(np.mean(model.predict(X_test) != y_test))
    train = lightgbm.Dataset(X, y)
    peer, peer_error = good_enough(train, X_test, y_test, error, options.rounds)
    n_rounds = peer.current_iteration()
    with tempfile.TemporaryDirectory() as name:
        runs, sizes = {}, {}
        for bits in (None, 32, 16):
            side, folder = f"ours, {bits} bits" if bits else "ours", Path(name, str(bits))
            folder.mkdir()
            tcboost.to_c(model, folder / "main.c", bits=bits)
            runs[side], sizes[side] = compiled(folder, OURS)
        folder = Path(name, "peer")
        with contextlib.redirect_stdout(io.StringIO()):  # advice
            tl2cgen.generate_c_code(treelite.frontend.from_lightgbm(peer), folder, params={})
        runs["TL2cgen"], sizes["TL2cgen"] = compiled(folder, THEIRS)
    n, d = X_test.shape
    check(runs, X_test[:100], model, peer)

    def prepared(library: ctypes.CDLL, i: int):
        rows = np.ascontiguousarray(permuted(i, X_test, y_test)[0])
        return lambda: library.run(ctypes.c_void_p(rows.ctypes.data), n, d, CALLS)

    sides = {side: lambda i, run=run: prepared(run, i) for side, run in runs.items()}
    times = medians(in_turn(sides, repeats, time.process_time))
    print(machine())
    print(versions("tcboost", "lightgbm", "treelite", "tl2cgen", "numpy"))
    print(
        f"letter, {n} rows, {len(classes)} classes; medians of {repeats} repetitions, in turn"
    )
    print(f"test errors {error:.4f}, {model.n_rules_} rules, and {peer_error:.4f}, ", end="")
    print(f"{n_rounds} rounds, {n_rounds * len(classes)} stumps")
    if peer_error > error:
        print("the peer has not come down to ours: more rounds would take it longer still")
    print()
    print("| code | ns a row | to TL2cgen | KB, text + data | |")
    print("|---|---:|---:|---:|---|")
    for side, seconds in times.items():
        ratio = seconds / times["TL2cgen"]
        met = "" if side == "TL2cgen" else "met" if ratio <= 0.5 else "not met"
        row = 1e9 * seconds / (n * CALLS)
        print(f"| {side} | {row:.0f} | {ratio:.3f} | {sizes[side]:.1f} | {met} |")


if __name__ == "__main__":
    main()
