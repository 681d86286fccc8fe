"""Time of Clarabel through cvxpy over that of `solve_master`, on frozen restricted masters.

Both solve the same problem in the same run, one after the other in turn: only the ratio means
something. Rows and columns are permuted every time, for both in the same way. Clarabel runs at
its default accuracy, `solve_master` cold at a gap of 1e-6; the gap of either is measured at its
own w by the same formula. Claim: a geometric mean of at least 500, none below 100.

Set OPENBLAS_NUM_THREADS=1 for one thread each. Clarabel takes about 3 minutes for all instances
once: `--peer-repeats` may give it fewer runs.

    python benchmarks/master.py --masters DIR [--quick] [--repeats N] [--peer-repeats N]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import clarabel
import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

import tcboost
from tcboost import solve_master

TOL = 1e-6
QUICK = 3000  # rows


def by_clarabel(rho: NDArray[np.float64], theta: float) -> NDArray[np.float64]:
    """The program as a user of cvxpy would write it."""
    w = cp.Variable(rho.shape[1], nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.log_sum_exp(-(rho @ w))), [cp.sum(w) <= theta])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the gap says how much
        problem.solve(solver=cp.CLARABEL)
    return w.value


def by_tcboost(rho: NDArray[np.int8], theta: float) -> NDArray[np.float64]:
    return solve_master(rho, theta, tol=TOL).w


def gap(rho: NDArray[np.float64], theta: float, w: NDArray[np.float64]) -> float:
    """How far w, made feasible, may be from optimal: theta r - w . g."""
    w = np.maximum(w, 0.0)
    w *= min(1.0, theta / w.sum())
    g = softmax(-rho @ w) @ rho
    r = max(0.0, g.max())
    return float(w @ (r - g) + r * (theta - w.sum()))


def timed(solver: Callable, rho: NDArray, theta: float) -> tuple[float, NDArray[np.float64]]:
    start = time.perf_counter()
    w = solver(rho, theta)
    return time.perf_counter() - start, w


def compare(path: Path, repeats: int, peer_repeats: int) -> tuple[str, float]:
    """One line of the table, and the ratio."""
    with np.load(path) as data:
        rho, theta = data["rho"], float(data["theta"])
    ours, peers, gaps, peer_gaps = [], [], [], []
    for i in range(max(repeats, peer_repeats)):  # in turn, so that a busy machine hits both
        rng = np.random.default_rng(i)  # in another order, so that nothing is remembered
        rho = rho[np.ix_(rng.permutation(rho.shape[0]), rng.permutation(rho.shape[1]))]
        dense = rho.astype(float)
        if i < repeats:
            seconds, w = timed(by_tcboost, rho, theta)
            ours.append(seconds)
            gaps.append(gap(dense, theta, w))
        if i < peer_repeats:
            seconds, w = timed(by_clarabel, dense, theta)
            peers.append(seconds)
            peer_gaps.append(gap(dense, theta, w))
    mine, peer = statistics.median(ours), statistics.median(peers)
    line = (
        f"{path.stem:22} {rho.shape[0]:6} x {rho.shape[1]:<4} {theta:6g} {peer:9.2f} "
        f"{max(peer_gaps):8.0e} {mine:9.3f} {max(gaps):8.0e} "
        f"{peer / mine:7.0f}"
    )
    return line, peer / mine


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Time of Clarabel through cvxpy over that of tcboost.solve_master."
    )
    parser.add_argument(
        "--masters",
        type=Path,
        default=os.environ.get("TCBOOST_MASTERS"),
        help="folder of frozen masters (.npz); default: the variable TCBOOST_MASTERS",
    )
    parser.add_argument("--repeats", type=int, default=5, help="runs of ours (default 5)")
    parser.add_argument(
        "--peer-repeats", type=int, default=5, help="runs of Clarabel (default 5)"
    )
    parser.add_argument("--quick", action="store_true", help="only the small instances")
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    args = parser.parse_args()
    if min(args.repeats, args.peer_repeats) < 1:
        parser.error("repeats must be at least 1")
    if args.masters is None:
        parser.error("no frozen masters: pass --masters DIR or set TCBOOST_MASTERS")
    if not args.masters.is_dir():
        parser.error(f"no frozen masters: {args.masters} is not a folder")
    return args


def selected(folder: Path, quick: bool) -> list[Path]:
    """The instances, small ones first."""
    rows = {}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as data:
            rows[path] = data["rho"].shape[0]
    paths = sorted(rows, key=lambda path: rows[path])
    return [path for path in paths if rows[path] < QUICK] if quick else paths


def main() -> None:
    args = arguments()
    paths = selected(args.masters, args.quick)
    if not paths:
        sys.exit(f"no frozen masters: no .npz file to run in {args.masters}")
    lines = []

    def tell(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    tell(
        f"tcboost {tcboost.__version__}, clarabel {clarabel.__version__}, "
        f"cvxpy {cp.__version__}, numpy {np.__version__}, python {platform.python_version()}"
    )
    tell(
        f"medians and largest gaps of {args.repeats} runs (tcboost, gap {TOL:g}) and "
        f"{args.peer_repeats} (Clarabel, default accuracy), in turn"
    )
    tell(
        f"{'instance':22} {'rows x columns':>13} {'theta':>6} {'Clarabel':>9} {'gap':>8} "
        f"{'tcboost':>9} {'gap':>8} {'ratio':>7}"
    )
    by_tcboost(np.array([[1, -1]], dtype=np.int8), 1.0)  # imports and caches
    by_clarabel(np.array([[1.0, -1.0]]), 1.0)
    ratios = []
    for path in paths:
        line, ratio = compare(path, args.repeats, args.peer_repeats)
        tell(line)
        ratios.append(ratio)
    mean, least = statistics.geometric_mean(ratios), min(ratios)
    met = "met" if mean >= 500 and least >= 100 else "not met"
    tell(f"geometric mean of the ratios: {mean:.0f}, least: {least:.0f}; the claim is {met}")
    if args.output:
        args.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
