"""The default of TCBoostClassifier against an older build of it and against peers.

A row of the results is one measurement of one method: `new`, as this checkout has it, `old`,
as `old.py` installs it, and peers. Rows are appended as they are known, and what is there is
not measured again: after a change, `--fresh new` measures only the new build. Times are the
exception, their sides are measured in turn and forgotten together. All methods have one thread.
A measurement that fails is told, and is tried again the next time.

    python benchmarks/default.py [--only BAR ...] [--methods METHOD ...] [--fresh METHOD ...]
        [--quick] [--summary] [--detail] [--out FILE]
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tcboost_old
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.utils import resample

import default_summary
import tcboost
from common import SMALL, Parts, Results, alone, scores
from default_data import agents, blobs, diamonds, drawn, one_hot, parts, table
from memory import FIT
from timing import in_fresh_process, in_turn, machine, medians, permuted, versions

COLUMNS = "bar what draw method value seconds"
SETS = (*SMALL, "dna", "thyroid", "satimage", "pendigits", "letter", "covertype")
MORE_SETS = ("iris", "svmguide2", "shuttle", *SETS)
STEADY = ("iris", "svmguide2", "breast_cancer", "thyroid", *SMALL)
WEIGHTED = ("wine", "glass", "vehicle")
LEVELS = (2, 20, 5, 50, 70, 200, 400)
RULES = (450, 1000, 2000)
SPLITS, DRAWS, MOVES = range(6), range(4), range(10)

# What, which repetition, the methods that are measured together, and what gives their values.
Run = tuple[str, int, tuple[str, ...], Callable[[], Sequence[float]]]


def first(n: int, values: Sequence[Any], quick: bool) -> Sequence[Any]:
    """So many of them, or all if there is time."""
    return values[:n] if quick else values


class StoppedLightGBM:
    """Stumps of LightGBM, 450 a class at the most, as many as a tenth of the rows wants."""

    def fit(self, X: NDArray, y: NDArray) -> StoppedLightGBM:
        from lightgbm import LGBMClassifier, early_stopping

        X, X_out, y, y_out = train_test_split(X, y, test_size=0.1, stratify=y, random_state=0)
        model = LGBMClassifier(n_estimators=450, num_leaves=2, n_jobs=1, verbosity=-1)
        stop = early_stopping(10, verbose=False)
        model.fit(X, y, eval_set=[(X_out, y_out)], callbacks=[stop])
        self.predict_proba = model.predict_proba
        return self


METHODS: dict[str, Callable[..., Any]] = {
    "new": partial(tcboost.TCBoostClassifier, n_jobs=1),
    "new levels": partial(tcboost.TCBoostClassifier, n_jobs=1, categorical_features=[0]),
    "old": partial(tcboost_old.TCBoostClassifier, n_jobs=1),
    "hgb": partial(HistGradientBoostingClassifier, random_state=0),
    "hgb stumps": partial(
        HistGradientBoostingClassifier,
        max_iter=450,
        max_leaf_nodes=2,
        early_stopping=True,
        random_state=0,
    ),
    "lightgbm stumps": StoppedLightGBM,
    "logistic": partial(
        LogisticRegressionCV, cv=5, scoring="neg_log_loss", max_iter=1000, random_state=0
    ),
}


def loss(method: str, data: Parts, **options: Any) -> tuple[float]:
    """Log loss on the rows held out."""
    X, X_test, y, y_test = data
    model = METHODS[method]().fit(X, y, **options)
    return (scores(model.predict_proba(X_test), y_test)[1],)


def seconds(
    sides: Iterable[Callable[[], Any]], data: Callable[[], tuple], repeats: int
) -> list[float]:
    """Medians of the processor time of fits, taken in turn, rows permuted every time."""

    def prepare(make: Callable[[], Any], i: int) -> Callable[[], object]:
        return partial(make().fit, *permuted(i, *data()))

    numbered = {str(k): partial(prepare, make) for k, make in enumerate(sides)}
    return list(medians(in_turn(numbered, repeats, time.process_time)).values())


def time_runs(quick: bool) -> Iterator[Run]:
    sides = METHODS["new"], METHODS["old"]
    for name in first(3, SETS, quick):
        repeats = 1 if quick else 3 if name in ("letter", "covertype") else 9
        yield name, 0, ("new", "old"), partial(seconds, sides, partial(table, name), repeats)


def growth_runs(quick: bool) -> Iterator[Run]:
    new, hgb = METHODS["new"], METHODS["hgb"]
    many = partial(blobs, 20 if quick else 200, 10, 10)
    yield "200 classes", 0, ("new", "hgb"), partial(seconds, (new, hgb), many, 3)
    many = partial(blobs, 200 if quick else 2000, 3, 4)
    yield "2000 classes", 0, ("new",), partial(seconds, (new,), many, 1)
    sides = [partial(new, max_rules=rules) for rules in RULES]
    names = tuple(f"new {rules}" for rules in RULES)
    some = (lambda: permuted(0, *(part[:2000] for part in diamonds()))) if quick else diamonds
    yield "diamonds", 0, names, partial(seconds, sides, some, 1 if quick else 3)


def peak(name: str) -> tuple[float, float]:
    """Megabytes of a fit above the input, and what it may have: the input, 16 bytes a score."""
    X, y = table(name)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "X.npy"), X)
        np.save(Path(folder, "y.npy"), y)
        found = in_fresh_process(FIT, folder, 0, "TCBoostClassifier(n_jobs=1)")
    return float(found.split()[0]), (X.nbytes + 16 * len(y) * (y.max() + 1)) / 1e6


def memory_runs(quick: bool) -> Iterator[Run]:
    for name in first(1, ("letter", "covertype"), quick):
        yield name, 0, ("new", "limit"), partial(peak, name)


def split_loss(method: str, name: str, split: int) -> tuple[float]:
    return loss(method, parts(*table(name), split))


def loss_runs(quick: bool) -> Iterator[Run]:
    for name, split in product(first(4, MORE_SETS, quick), first(2, SPLITS, quick)):
        for method in ("new", "old", "hgb stumps", "lightgbm stumps"):
            work = partial(split_loss, method, name, split)
            yield name, split, (method,), work


def category_loss(method: str, data: Callable[[], Parts]) -> tuple[float]:
    X, X_test, y, y_test = data()
    if method != "new levels":
        levels = int(max(X[:, 0].max(), X_test[:, 0].max())) + 1
        X, X_test = one_hot(X, levels), one_hot(X_test, levels)
    return loss(method, (X, X_test, y, y_test))


def category_runs(quick: bool) -> Iterator[Run]:
    cases: list[tuple[str, int, Callable[[], Parts]]] = [
        ("hotel_rates", split, lambda split=split: parts(*agents(), split))
        for split in first(1, SPLITS, quick)
    ]
    some, either = first(2, LEVELS, quick), (False, True)
    for draw, *law in product(first(1, DRAWS, quick), some, (2, 3), either, either):
        levels, classes, rare, number = law
        what = f"{levels} levels {classes} classes{rare * ' rare'}{number * ' number'}"
        cases.append((what, draw, partial(drawn, *law, draw)))
    for (what, draw, data), method in product(cases, ("new", "new levels", "old", "logistic")):
        yield what, draw, (method,), partial(category_loss, method, data)


def weighted_loss(method: str, name: str, case: str, split: int) -> tuple[float]:
    """As the rows are, all with a weight, all several times, or drawn with replacement."""
    X, X_test, y, y_test = parts(*table(name), split)
    if case == "weight 1000":
        return loss(method, (X, X_test, y, y_test), sample_weight=np.full(len(y), 1000.0))
    if case == "bootstrap":
        X, y = resample(X, y, stratify=y, random_state=split)
    copies = {"twice": 2, "five times": 5}.get(case, 1)
    return loss(method, (np.repeat(X, copies, 0), X_test, np.repeat(y, copies), y_test))


def weights_runs(quick: bool) -> Iterator[Run]:
    for name, split in product(first(2, SMALL, quick), first(2, SPLITS, quick)):
        for case in ("once", "weight 1000", "twice", "five times", "bootstrap"):
            if name in WEIGHTED or case != "weight 1000":
                for method in ("new", "old"):
                    work = partial(weighted_loss, method, name, case, split)
                    yield f"{name}: {case}", split, (method,), work


@functools.lru_cache(maxsize=4)
def unmoved(method: str, name: str, whole: bool) -> NDArray[np.floating]:
    """Probabilities of a fit on all rows, or of the rows held out from one on the others."""
    X, X_test, y, _ = steady_data(name, whole)
    return METHODS[method]().fit(X, y).predict_proba(X_test)


def steady_data(name: str, whole: bool) -> Parts:
    X, y = table(name, 2000) if name == "thyroid" else table(name)
    return (X, X, y, y) if whole else parts(X, y, 0)


def move(method: str, name: str, case: str, i: int) -> tuple[float]:
    """The largest move of a probability, that of the log loss, or the log loss of a part."""
    X, X_test, y, y_test = steady_data(name, whole=case == "dropped")
    if case == "nine tenths":
        X, _, y, _ = train_test_split(X, y, train_size=0.9, stratify=y, random_state=i)
        return loss(method, (X, X_test, y, y_test))
    before = unmoved(method, name, case == "dropped")
    if case == "dropped":
        row = np.random.default_rng(0).permutation(len(y))[i]
        model = METHODS[method]().fit(np.delete(X, row, 0), np.delete(y, row))
        return (float(np.abs(model.predict_proba(X) - before).max()),)
    shift = 1e-9 * (np.arange(X.shape[1]) == i % X.shape[1])
    (after,) = loss(method, (X + shift, X_test + shift, y, y_test))
    return (abs(after - scores(before, y_test)[1]),)


def steadiness_runs(quick: bool) -> Iterator[Run]:
    for name, method in product(first(2, STEADY, quick), ("new", "old", "hgb")):
        for case, i in product(("dropped", "shifted", "nine tenths"), first(2, MOVES, quick)):
            yield f"{name}: {case}", i, (method,), partial(move, method, name, case, i)


BARS: dict[str, Callable[[bool], Iterator[Run]]] = {
    "time": time_runs,
    "loss": loss_runs,
    "categories": category_runs,
    "weights": weights_runs,
    "steadiness": steadiness_runs,
    "growth": growth_runs,
    "memory": memory_runs,
}


def family(method: str) -> str:
    return method.split()[0]


def forget(path: Path, bars: Sequence[str], methods: Sequence[str]) -> None:
    """Drop the rows of methods; those of one work are dropped together."""
    frame = Results(path, COLUMNS, n_keys=4).frame()
    of = frame.method.map(family).where(~frame.bar.isin(("time", "growth", "memory")), "new")
    kept = frame[~(frame.bar.isin(bars) & of.isin(methods))]
    kept.to_csv(path.with_suffix(".kept"), index=False, float_format="%.6g")
    os.replace(path.with_suffix(".kept"), path)


def measure(results: Results, bars: Sequence[str], methods: Sequence[str], quick: bool) -> int:
    """All that is not there yet; the number of failures."""
    failed = 0
    for bar in bars:
        for what, draw, sides, work in BARS[bar](quick):
            there = all((bar, what, draw, method) in results for method in sides)
            if there or family(sides[0]) not in methods:
                continue
            start = time.perf_counter()
            try:
                values = work()
                if not np.isfinite(values).all():
                    raise ValueError(f"not finite: {values}")
            except Exception as e:
                failed += 1
                print(f"FAILED: {bar}, {what}, {draw}, {sides[0]}: {e!r}", flush=True)
                continue
            for method, value in zip(sides, values, strict=True):
                results.add(bar, what, draw, method, value, time.perf_counter() - start)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    methods = sorted(set(map(family, METHODS)))
    several = {"nargs": "+", "metavar": "NAME"}
    parser.add_argument("--only", choices=BARS, default=list(BARS), **several)
    parser.add_argument("--methods", choices=methods, default=methods, **several)
    parser.add_argument("--fresh", choices=methods, default=[], **several, help="measure again")
    parser.add_argument("--quick", action="store_true", help="little of each, in another file")
    parser.add_argument("--summary", action="store_true", help="measure nothing")
    parser.add_argument("--detail", action="store_true", help="a table of means for each bar")
    parser.add_argument("--out", type=Path, help="default: benchmarks/out/default.csv")
    options = parser.parse_args()
    if "TCBOOST_DATA" not in os.environ:
        parser.error("set TCBOOST_DATA to the folder that holds the data sets")
    file = "default_quick.csv" if options.quick else "default.csv"
    path = options.out or Path(__file__).parent / "out" / file
    path.parent.mkdir(exist_ok=True)
    if options.fresh and path.exists():
        forget(path, options.only, options.fresh)
    alone()
    results, failed = Results(path, COLUMNS, n_keys=4), 0
    if not options.summary:
        failed = measure(results, options.only, options.methods, options.quick)
    print(f"\n{machine()}; {versions('tcboost', 'numpy', 'scikit-learn', 'lightgbm')}\n")
    default_summary.show(results.frame(), options.only, options.detail)
    if failed:
        sys.exit(f"{failed} measurements failed")


if __name__ == "__main__":
    main()
