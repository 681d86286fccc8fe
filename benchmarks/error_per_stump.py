"""Error per stump: tcboost against boosters of stumps that have as many stumps in all.

A peer whose stumps have vector leaves has one a round; one that fits a tree for each class has
as many a round as there are classes. The learning rate of each peer is chosen by three-fold
cross validation on the training part, for each number of stumps; tcboost has no rate and runs
at its defaults. All else is as each library has it. One thread; `seconds` are those of the last
fit, which with tcboost chooses the penalty too.

    python benchmarks/error_per_stump.py [--sets ...] [--methods ...] [--out FILE] [--summary]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

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
    saved,
    scores,
    timed_fit,
)
from tcboost import TCBoostClassifier

STUMPS = (100, 500)
RATES = (0.1, 0.3, 1.0)
COLUMNS = "set split method stumps error log_loss bytes seconds settings"


def staged(model: Any, X: NDArray, rounds: int) -> NDArray:
    """Probabilities after so many rounds, or after the last one if it stopped before."""
    return deque(islice(model.staged_predict_proba(X), rounds), maxlen=1).pop()


@dataclass(frozen=True)
class Peer:
    """A booster of stumps."""

    make: Callable[[int, float], Any]  # of rounds and learning rate
    probability: Callable[[Any, NDArray, int], NDArray] = staged  # after so many rounds
    size: Callable[[Any], int] = pickled
    per_class: bool = False  # a stump for each class a round

    def rounds(self, stumps: int, n_classes: int) -> int:
        return max(1, stumps // n_classes) if self.per_class else stumps


def xgboost(rounds: int, rate: float, **options: Any) -> Any:
    from xgboost import XGBClassifier

    stumps = {"max_depth": 1, "tree_method": "hist", "n_jobs": 1}
    return XGBClassifier(n_estimators=rounds, learning_rate=rate, **stumps, **options)


def xgboost_vector(rounds: int, rate: float) -> Any:
    return xgboost(rounds, rate, multi_strategy="multi_output_tree")


def catboost(rounds: int, rate: float) -> Any:
    from catboost import CatBoostClassifier

    quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    return CatBoostClassifier(
        iterations=rounds, learning_rate=rate, depth=1, random_seed=0, **quiet
    )


def lightgbm(rounds: int, rate: float) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=rounds, learning_rate=rate, num_leaves=2, n_jobs=1, verbosity=-1
    )


def hist_gradient_boosting(rounds: int, rate: float) -> Any:
    return HistGradientBoostingClassifier(
        max_iter=rounds, learning_rate=rate, max_leaf_nodes=2, early_stopping=False
    )


def samme(rounds: int, rate: float) -> Any:
    stump = DecisionTreeClassifier(max_depth=1)
    return AdaBoostClassifier(stump, n_estimators=rounds, learning_rate=rate, random_state=0)


def xgboost_probability(model: Any, X: NDArray, rounds: int) -> NDArray:
    return model.predict_proba(X, iteration_range=(0, rounds))


def xgboost_size(model: Any) -> int:
    return len(model.get_booster().save_raw("ubj"))


PEERS = {
    "xgboost": Peer(xgboost_vector, xgboost_probability, xgboost_size),
    "xgboost-per-class": Peer(xgboost, xgboost_probability, xgboost_size, per_class=True),
    "catboost": Peer(
        catboost,
        lambda model, X, rounds: model.predict_proba(X, ntree_end=rounds, thread_count=1),
        lambda model: saved(model.save_model),
    ),
    "lightgbm": Peer(
        lightgbm,
        lambda model, X, rounds: model.predict_proba(X, num_iteration=rounds),
        lambda model: len(model.booster_.model_to_string().encode()),
        per_class=True,
    ),
    "hist-gradient-boosting": Peer(hist_gradient_boosting, per_class=True),
    "samme": Peer(samme),
}


def best_rates(peer: Peer, X: NDArray, y: NDArray) -> dict[int, float]:
    """For each number of stumps the rate of the lowest error, and then of the lowest loss."""
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    n_classes, found = len(np.unique(y)), {}
    for rate in RATES:
        for train, test in folds:
            model = peer.make(peer.rounds(max(STUMPS), n_classes), rate)
            model.fit(X[train], y[train])
            for stumps in STUMPS:
                rounds = peer.rounds(stumps, n_classes)
                score = scores(peer.probability(model, X[test], rounds), y[test])
                found.setdefault((stumps, rate), []).append(score)
    mean = {key: tuple(np.mean(values, axis=0)) for key, values in found.items()}
    return {s: min(RATES, key=lambda rate: mean[s, rate]) for s in STUMPS}


def evaluate(method: str, data: Parts, budgets: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """A row for each number of stumps."""
    X, X_test, y, y_test = data
    if method == OURS:
        for stumps in budgets:
            model, seconds = timed_fit(TCBoostClassifier(max_rules=stumps, n_jobs=1), X, y)
            chosen = f"alpha={model.alpha_:.4g} l1_ratio={model.l1_ratio_:g}"
            settings = f"{chosen} rules={model.n_rules_}"
            score = scores(model.predict_proba(X_test), y_test)
            yield stumps, *score, our_size(model), seconds, settings
        return
    peer, n_classes = PEERS[method], len(np.unique(y))
    rates = best_rates(peer, X, y)
    for stumps in budgets:
        rounds = peer.rounds(stumps, n_classes)
        model, seconds = timed_fit(peer.make(rounds, rates[stumps]), X, y)
        score = scores(peer.probability(model, X_test, rounds), y_test)
        settings = f"learning_rate={rates[stumps]} rounds={rounds}"
        yield stumps, *score, peer.size(model), seconds, settings


def summary(results: Results) -> None:
    for stumps in STUMPS:
        errors = results.means("error", stumps=stumps)
        peers = errors.drop(columns=OURS, errors="ignore")
        table, both = errors.copy(), OURS in errors and len(peers.columns) > 0
        if len(peers.columns):
            table["best peer"], table["its error"] = peers.idxmin(axis=1), peers.min(axis=1)
        if both:
            sizes = results.means("bytes", stumps=stumps) / 1000
            table["ratio"] = errors[OURS] / table["its error"]
            table["kB"] = sizes[OURS]
            table["its kB"] = [sizes.loc[row, best] for row, best in table["best peer"].items()]
        print(f"\n{stumps} stumps: mean error, and the best peer of each set")
        print(table.to_string(float_format="{:.4f}".format))
        if both:
            less = errors[OURS] - table["its error"]  # of numbers with six digits
            wins, ties = (less < -1e-6).sum(), (less.abs() <= 1e-6).sum()
            print(
                f"geometric mean of the ratios of errors {geometric_mean(table['ratio'])}, of "
                f"bytes {geometric_mean(table['kB'] / table['its kB'])}; tcboost has the "
                f"lowest error on {wins} of {len(errors)} sets, the same on {ties}"
            )


def main() -> None:
    options = arguments(__doc__.splitlines()[0], (OURS, *PEERS), "error_per_stump.csv")
    results = Results(options.out, COLUMNS, n_keys=4)
    alone()
    runs = [] if options.summary else product(options.splits, options.sets, options.methods)
    for split, name, method in runs:
        budgets = [s for s in STUMPS if (name, split, method, s) not in results]
        if budgets:
            for row in evaluate(method, parts(name, split, options.data_dir), budgets):
                results.add(name, split, method, *row)
    summary(results)


if __name__ == "__main__":
    main()
