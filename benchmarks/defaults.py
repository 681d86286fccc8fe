"""How the defaults of TCBoostClassifier were chosen: on sets that no other comparison uses.

Seven data sets that are not among those of `error_per_stump.py` and `ebm.py`, 70 to 30, three
splits: log loss and error, with 100 and 500 stumps, of the default and of others that change
one thing. Large sets are cut to a random part.

    python benchmarks/defaults.py [--sets ...] [--methods ...] [--out FILE] [--summary]
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import tcboost.estimator
import tcboost.theta
from common import Parts, Results, alone, arguments, scores, timed_fit
from tcboost import TCBoostClassifier
from tcboost.paper import datasets
from tcboost.theta import CURVES, STEPS

ROWS = {"covertype": 5000, "shuttle": 5000, "mnist": 3000}
SETS = ("iris", "svmguide2", "dna", "thyroid", *ROWS)
STUMPS = (100, 500)
COLUMNS = "set split method stumps error log_loss n_test active seconds"

# What is changed: the styles that are tried, constants of `tcboost.theta`, or parameters of the
# estimator.
DEFAULT = "default"
VARIANTS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "steps only": {"STYLES": (STEPS,)},
    "curves only": {"STYLES": (CURVES,)},
    "curves of 16 bins": {"STYLES": (STEPS, CURVES._replace(max_bins=16))},
    "curves of 64 bins": {"STYLES": (STEPS, CURVES._replace(max_bins=64))},
    "curves: price 1, ridge 10": {"STYLES": (STEPS, CURVES._replace(price=1.0, ridge=10.0))},
    "curves: price 0.1, ridge 100": {
        "STYLES": (STEPS, CURVES._replace(price=0.1, ridge=100.0))
    },
    "steps: ridge 1": {"STYLES": (STEPS._replace(ridge=1.0), CURVES)},
    "intercept as any stump": {"_INTERCEPT": 0.0},
    "from level 16": {"_FIRST": 16.0},
    "500 rows to validate": {"_ENOUGH_ROWS": 500},
    "255 bins": {"max_bins": 255},
}


def development_parts(name: str, split: int, data_dir: str | None) -> Parts:
    X, y = datasets.load(name, data_dir)
    if name in ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=ROWS[name], random_state=7)
        kept = np.isin(y, np.flatnonzero(np.bincount(y) >= 10))
        X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    return train_test_split(X, y, test_size=0.3, stratify=y, random_state=100 + split)


def evaluate(variant: str, data: Parts, stumps: int) -> tuple[Any, ...]:
    X, X_test, y, y_test = data
    changes = VARIANTS[variant]
    options = {k: v for k, v in changes.items() if k.islower() and not k.startswith("_")}
    with ExitStack() as changed:
        for name in changes.keys() - options.keys():
            module = tcboost.estimator if name == "STYLES" else tcboost.theta
            changed.enter_context(mock.patch.object(module, name, changes[name]))
        model = TCBoostClassifier(max_iter=stumps, n_jobs=1, **options)
        model, seconds = timed_fit(model, X, y)
    active = int(model.estimator_weights_.any(axis=1).sum())
    return *scores(model.predict_proba(X_test), y_test), len(y_test), active, seconds


def summary(results: Results) -> None:
    """Geometric means over the sets, as ratios to the default; one error more for each."""
    for stumps in STUMPS:
        frame = results.frame(stumps=stumps)
        frame["error"] = (frame.error * frame.n_test + 1) / (frame.n_test + 1)
        table = {}
        for value in ("error", "log_loss", "active", "seconds"):
            wide = frame.pivot_table(index=["set", "split"], columns="method", values=value)
            logs = np.log(wide.dropna()).groupby("set").mean()
            table[value] = np.exp(logs.sub(logs[DEFAULT], axis=0).mean())
        print(f"\n{stumps} stumps: ratios to the default, {len(logs)} sets")
        order = [variant for variant in VARIANTS if variant in logs]
        print(pd.DataFrame(table).loc[order].to_string(float_format="{:.3f}".format))


def main() -> None:
    options = arguments(__doc__.splitlines()[0], tuple(VARIANTS), "defaults.csv", SETS, 3)
    results = Results(options.out, COLUMNS, n_keys=4)
    alone()
    runs = [] if options.summary else product(options.splits, options.sets, options.methods)
    for split, name, variant in runs:
        for stumps in STUMPS:
            if (name, split, variant, stumps) not in results:
                data = development_parts(name, split, options.data_dir)
                results.add(name, split, variant, stumps, *evaluate(variant, data, stumps))
    summary(results)


if __name__ == "__main__":
    main()
