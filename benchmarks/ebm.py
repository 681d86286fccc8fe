"""No limit of stumps: tcboost against an Explainable Boosting Machine, both at their defaults.

Both are additive, a table a feature, so the EBM has no interactions. LightGBM's stumps at their
defaults stand beside them for their log loss. All with one thread each. Parameters:
class scores, in the vectors of the rules and in the tables of the EBM; thresholds and leaves
of LightGBM's stumps.

    python benchmarks/ebm.py [--sets ...] [--methods ...] [--out FILE] [--summary]
"""

from __future__ import annotations

from itertools import product
from typing import Any

from common import (
    OURS,
    Parts,
    Results,
    alone,
    arguments,
    geometric_mean,
    our_size,
    parts,
    pickled,
    scores,
    timed_fit,
)
from tcboost import TCBoostClassifier

EBM, LIGHTGBM = "ebm", "lightgbm"
COLUMNS = "set split method error log_loss seconds parameters bytes"


def make(method: str) -> Any:
    if method == EBM:
        from interpret.glassbox import ExplainableBoostingClassifier

        return ExplainableBoostingClassifier(interactions=0, n_jobs=1)
    if method == LIGHTGBM:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(num_leaves=2, n_jobs=1, verbosity=-1)
    return TCBoostClassifier(n_jobs=1)


def parameters_and_bytes(method: str, model: Any) -> tuple[int, int]:
    if method == EBM:
        return sum(table.size for table in model.term_scores_), pickled(model)
    if method == LIGHTGBM:
        stored = model.booster_.model_to_string().encode()
        return 3 * model.booster_.num_trees(), len(stored)
    return model.coef_.size + model.intercept_.size, our_size(model)


def evaluate(method: str, data: Parts) -> tuple[Any, ...]:
    X, X_test, y, y_test = data
    model, seconds = timed_fit(make(method), X, y)
    score = scores(model.predict_proba(X_test), y_test)
    return *score, seconds, *parameters_and_bytes(method, model)


def summary(results: Results) -> None:
    for value in ("error", "log_loss", "parameters", "seconds"):
        table = results.means(value)
        print(f"\nmean {value.replace('_', ' ')}")
        peers = [method for method in table if method != OURS] if OURS in table else []
        ratios = {f"{OURS} / {peer}": table[OURS] / table[peer] for peer in peers}
        print(table.assign(**ratios).to_string(float_format="{:.4g}".format))
        for name, ratio in ratios.items():
            print(f"geometric mean of {name}: {geometric_mean(ratio)}")


def main() -> None:
    options = arguments(__doc__.splitlines()[0], (OURS, EBM, LIGHTGBM), "ebm.csv")
    results = Results(options.out, COLUMNS, n_keys=3)
    alone()
    runs = [] if options.summary else product(options.splits, options.sets, options.methods)
    for split, name, method in runs:
        if (name, split, method) not in results:
            row = evaluate(method, parts(name, split, options.data_dir))
            results.add(name, split, method, *row)
    summary(results)


if __name__ == "__main__":
    main()
