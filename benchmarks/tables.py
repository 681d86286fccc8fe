"""Tables of numbers and categories as they are, against peers that are additive, too.

Claim: the log loss on rows held out is no higher than that of the best of LightGBM,
HistGradientBoosting and CatBoost with trees of one split, and an Explainable Boosting Machine
without interactions, in the geometric mean over the tables; the fit takes a tenth of the EBM's
time. All at their other defaults, with one thread. Classes of fewer than 15 rows are left out.
Results are appended as they are known, and a stopped run goes on where it was.

    python benchmarks/tables.py [--sets ...] [--methods ...] [--rows N] [--out FILE] [--summary]
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from common import OURS, Results, alone, scores
from tcboost import TCBoostClassifier

COLUMNS = "set split method log_loss seconds"
CLASSES = {
    "penguins": "species",
    "diamonds": "cut",
    "storms": "status",
    "hotel_rates": "market_segment",
    "Chile": "vote",
    "WVS": "poverty",
    "hpc_data": "class",
}
KEEL = ("german", "crx", "splice", "marketing")
SETS = (*CLASSES, *KEEL)
FEWEST = 15  # rows of a class
OUT = Path(__file__).parent / "out" / "tables.csv"


@functools.cache
def table(name: str, rows: int | None) -> tuple[pd.DataFrame, np.ndarray]:
    """The columns, strings as categories, and the classes as numbers."""
    folder = Path(os.environ["TCBOOST_DATA"])
    if name in CLASSES:
        frame = pd.read_csv(folder / "tables" / f"{name}.csv", low_memory=False)
        y = frame.pop(CLASSES[name])
    else:
        frame = pd.read_csv(
            folder / "keel" / f"{name}.dat", header=None, skipinitialspace=True
        ).add_prefix("x")
        y = frame.pop(frame.columns[-1])
    kept = y.map(y.value_counts()).to_numpy() >= FEWEST
    frame, y = frame[kept].reset_index(drop=True), np.unique(y[kept], return_inverse=True)[1]
    if rows is not None and rows < len(y):
        frame, _, y, _ = train_test_split(frame, y, train_size=rows, stratify=y, random_state=0)
    text = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    return frame.astype(dict.fromkeys(text, "category")), y


def fitted(method: str, X: pd.DataFrame, y: np.ndarray) -> Any:
    """The model of a method, and what it wants a frame to be."""
    text = [c for c in X if X[c].dtype == "category"]

    def same(frame: pd.DataFrame) -> pd.DataFrame:
        return frame

    def words(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(**{c: frame[c].astype(object).fillna("missing") for c in text})

    def codes(frame: pd.DataFrame) -> pd.DataFrame:
        many = [c for c in text if len(frame[c].cat.categories) > 255]  # it takes no more
        return frame.assign(**{c: frame[c].cat.codes for c in many})

    if method == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(num_leaves=2, n_jobs=1, verbosity=-1).fit(X, y), same
    if method == "hgb":
        from sklearn.ensemble import HistGradientBoostingClassifier

        rule = {"max_depth": 1, "categorical_features": "from_dtype", "random_state": 0}
        return HistGradientBoostingClassifier(**rule).fit(codes(X), y), codes
    if method == "catboost":
        from catboost import CatBoostClassifier

        rule = {"depth": 1, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
        return CatBoostClassifier(**rule, random_seed=0).fit(words(X), y, text), words
    if method == "ebm":
        from interpret.glassbox import ExplainableBoostingClassifier

        return ExplainableBoostingClassifier(interactions=0, n_jobs=1).fit(words(X), y), words
    return TCBoostClassifier(n_jobs=1).fit(X, y), same


METHODS = (OURS, "lightgbm", "hgb", "catboost", "ebm")


def evaluate(method: str, name: str, split: int, rows: int | None) -> tuple[float, float]:
    """Log loss of the rows held out, and processor time of the fit."""
    X, y = table(name, rows)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)
    start = time.process_time()
    model, given = fitted(method, X, y)
    seconds = time.process_time() - start
    return scores(model.predict_proba(given(X_test)), y_test)[1], seconds


def summary(results: Results) -> None:
    """Means, ratios, and where ours is clearly behind."""
    wide = results.frame().pivot(index=["set", "split"], columns="method")
    loss, seconds = wide.log_loss.dropna(), wide.seconds
    peers = [m for m in METHODS if m in loss and m != OURS]
    means = loss.groupby("set").mean()
    best = means[peers].idxmin(axis=1)
    ratio = means[OURS] / means[peers].min(axis=1)
    print(means.assign(best=best, ratio=ratio).to_string(float_format="{:.4f}".format))
    print(f"of the best peer's log loss, geometric mean: {np.exp(np.log(ratio).mean()):.4f}")
    for name in ratio.index:
        pairs = loss.loc[name]
        apart = pairs[OURS] / pairs[best[name]]
        behind = apart.mean() - 2.0 * apart.std() / np.sqrt(len(apart))
        if behind > 1.1:
            print(f"{name}: above 1.1 by more than two standard errors ({apart.mean():.3f})")
    if "ebm" in seconds:
        both = seconds[[OURS, "ebm"]].dropna().groupby("set").mean()
        of_ebm = np.exp(np.log(both[OURS] / both.ebm).mean())
        print(f"of the EBM's time, geometric mean of {len(both)} tables: {of_ebm:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    several = {"nargs": "+", "metavar": "NAME"}
    parser.add_argument("--sets", choices=SETS, default=SETS, **several)
    parser.add_argument("--methods", choices=METHODS, default=METHODS, **several)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rows", type=int, help="at most so many rows of a table")
    parser.add_argument("--out", type=Path, default=OUT, help=f"default: {OUT}")
    parser.add_argument("--summary", action="store_true", help="measure nothing")
    options = parser.parse_args()
    if "TCBOOST_DATA" not in os.environ:
        parser.error("set TCBOOST_DATA to the folder that holds the tables")
    options.out.parent.mkdir(exist_ok=True)
    alone()
    results = Results(options.out, COLUMNS, n_keys=3)
    for name, split, method in product(options.sets, range(options.splits), options.methods):
        if not options.summary and (name, split, method) not in results:
            results.add(name, split, method, *evaluate(method, name, split, options.rows))
    summary(results)


if __name__ == "__main__":
    main()
