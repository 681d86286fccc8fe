"""What the comparisons with peers share: data, splits, scores, and results that outlive a stop.

A file of results is a CSV with a row for each fit, appended as soon as it is known; a run that
was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import csv
import functools
import os
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import tcboost
from tcboost.paper import datasets

SMALL = ("wine", "glass", "svmguide4", "vehicle", "segment", "digits")
SETS = (*SMALL, "satimage", "pendigits", "letter")
OURS = "tcboost"
Parts = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any], NDArray[Any]]


class Results:
    """A file of results; the first columns, `n_keys` of them, say of what."""

    def __init__(self, path: Path, columns: str, n_keys: int) -> None:
        self.path, self.n_keys = path, n_keys
        if not path.exists():
            path.write_text(columns.replace(" ", ",") + "\n", encoding="utf-8")
        with open(path, encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        if header != columns.split():
            raise SystemExit(f"{path} holds other results: its columns are {' '.join(header)}")
        self.keys = {tuple(row[:n_keys]) for row in rows}

    def __contains__(self, key: Sequence[object]) -> bool:
        return tuple(map(str, key)) in self.keys

    def add(self, *values: object) -> None:
        """Append a row, and print it."""
        short = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in values]
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(short)
        self.keys.add(tuple(short[: self.n_keys]))
        print(f"{time.strftime('%H:%M:%S')}  {'  '.join(short)}", flush=True)

    def frame(self, **only: object) -> pd.DataFrame:
        """The rows with these values."""
        if not self.keys:
            raise SystemExit(f"{self.path} has no results yet")
        frame = pd.read_csv(self.path)
        for column, wanted in only.items():
            frame = frame[frame[column] == wanted]
        return frame.copy()

    def means(self, value: str, **only: object) -> pd.DataFrame:
        """Sets x methods: means over the splits that all methods of a set have finished."""
        wide = self.frame(**only).pivot(index=["set", "split"], columns="method", values=value)
        sets = {
            name: part.dropna(axis=1, how="all").dropna().mean()
            for name, part in wide.groupby("set")
        }
        return pd.DataFrame({name: sets[name] for name in SETS if name in sets}).T


def arguments(
    description: str,
    methods: Sequence[str],
    out: str,
    sets: Sequence[str] = SETS,
    n_splits: int = 5,
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--sets", nargs="+", choices=sets, default=sets, metavar="SET")
    parser.add_argument(
        "--methods", nargs="+", choices=methods, default=methods, metavar="METHOD"
    )
    parser.add_argument(
        "--splits", nargs="+", type=int, default=range(n_splits), metavar="SEED"
    )
    parser.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")
    parser.add_argument("--out", type=Path, default=Path(out), help=f"default: {out}")
    parser.add_argument("--summary", action="store_true", help="only print what is there")
    return parser.parse_args()


def alone() -> None:
    """One thread, and no warnings: some peers have many."""
    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"
    threadpool_limits(1)


_load = functools.lru_cache(maxsize=None)(datasets.load)


def parts(name: str, split: int, data_dir: str | None) -> Parts:
    """X, X_test, y, y_test."""
    X, y = _load(name, data_dir)
    return train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)


def scores(probability: NDArray[np.floating], y: NDArray[np.integer]) -> tuple[float, float]:
    """Error and log loss."""
    of_truth = np.maximum(probability[np.arange(len(y)), y], 1e-15)
    error = np.mean(probability.argmax(axis=1) != y)
    return float(error), float(-np.log(of_truth, dtype=np.float64).mean())


def timed_fit(model: Any, X: NDArray, y: NDArray) -> tuple[Any, float]:
    start = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - start


def pickled(model: Any) -> int:
    """Bytes."""
    return len(pickle.dumps(model))


def saved(save: Callable[[str], object]) -> int:
    """Bytes of the file that `save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        save(str(path))
        return path.stat().st_size


def our_size(model: tcboost.TCBoostClassifier) -> int:
    return saved(lambda path: tcboost.save(model, path))


def geometric_mean(ratios: pd.Series) -> str:
    """As text; a ratio of or by nothing has no part in it, and that is said."""
    sound = ratios[(ratios > 0) & np.isfinite(ratios)]
    left_out = f" ({len(ratios) - len(sound)} left out)" if len(sound) < len(ratios) else ""
    return f"{np.exp(np.log(sound).mean()):.3f}{left_out}"
