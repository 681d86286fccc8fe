"""What the results of `default.py` say: figures, limits, and whether they hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from default_data import table

# What is claimed, the figure, the limit.
Line = tuple[str, float, float]


def wide(frame: pd.DataFrame, *methods: str) -> pd.DataFrame:
    """A column for each method, a row for each of the draws that all of them have."""
    columns = frame.pivot(index=["what", "draw"], columns="method", values="value")
    return columns.reindex(columns=methods).dropna()


def means(frame: pd.DataFrame, *methods: str) -> pd.DataFrame:
    return wide(frame, *methods).groupby("what").mean()


def ratio(of: pd.DataFrame, over: str, under: str) -> pd.Series:
    return of[over] / of[under]


def geometric(ratios: pd.Series) -> float:
    return float(np.exp(np.log(ratios).mean()))


def largest(ratios: pd.Series, limit: float, text: str = "largest") -> Line:
    if ratios.empty:
        return text, math.nan, limit
    return f"{text} ({ratios.idxmax()})", ratios.max(), limit


def case(of: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows "set: name", by set."""
    part = of[of.index.str.endswith(f": {name}")]
    return part.set_axis(part.index.str.removesuffix(f": {name}"))


def time_lines(frame: pd.DataFrame) -> Iterator[Line]:
    all_sets = ratio(means(frame, "new", "old"), "new", "old")
    for name in ("letter", "covertype"):
        yield f"{name}, of the old build's time", all_sets.get(name, math.nan), 0.5
    small = all_sets.drop(["letter", "covertype"], errors="ignore")
    yield f"{len(small)} of 10 other sets, geometric mean", geometric(small), 0.7
    yield largest(small, 1.5)


def loss_lines(frame: pd.DataFrame) -> Iterator[Line]:
    both = ratio(means(frame, "new", "old"), "new", "old")
    yield f"of the old build's, {len(both)} of 15 sets, geometric mean", geometric(both), 1.0
    yield largest(both, 1.05)
    peers = ["hgb stumps", "lightgbm stumps"]
    losses = means(frame, "new", "old", *peers)
    new, old = (geometric(losses[side] / losses[peers].min(axis=1)) for side in ("new", "old"))
    yield "of the better of two peers with stumps; limit: that of the old build", new, old


def category_lines(frame: pd.DataFrame) -> Iterator[Line]:
    hotel = frame[frame.what == "hotel_rates"]
    draws = frame[frame.what != "hotel_rates"]
    for method, text in (("new", "one-hot columns"), ("new levels", "levels")):
        ratios = ratio(wide(draws, method, "logistic"), method, "logistic")
        by_law = ratios.groupby("what").mean()
        yield f"{text}, of logistic regression's, {len(by_law)} of 56 laws", by_law.mean(), 1.03
        yield largest(by_law, 1.03, f"{text}, largest mean over draws")
    pairs = ratio(wide(draws, "new levels", "new"), "new levels", "new")
    yield f"levels, of one-hot columns', {len(pairs)} of 224 draws", pairs.mean(), 1.0
    for method, text in (("new", "one-hot columns"), ("new levels", "levels")):
        yield f"hotel_rates, agent as {text}", hotel.value[hotel.method == method].mean(), 0.34


def weights_lines(frame: pd.DataFrame) -> Iterator[Line]:
    new, both = means(frame, "new"), means(frame, "new", "old")
    for name in ("weight 1000", "twice", "five times"):
        ratios = (case(new, name) / case(new, "once")).new.dropna()
        yield largest(ratios, 1.05, f"{name}, of the log loss of the rows once: largest")
    ratios = ratio(case(both, "bootstrap"), "new", "old")
    yield f"bootstrap samples, of the old build's, {len(ratios)} sets", ratios.mean(), 1.05


def steadiness_lines(frame: pd.DataFrame) -> Iterator[Line]:
    values = wide(frame, "new").groupby("what")
    dropped = case(values.max(), "dropped").new
    yield f"a row dropped: largest move, median of {len(dropped)} sets", dropped.median(), 0.15
    shifted = case(values.max(), "shifted").new
    yield "a column shifted by 1e-9: largest move of the loss", shifted.median(), 0.002
    spread = case(wide(frame, "new", "hgb").groupby("what").std(), "nine tenths").median()
    yield "nine tenths: deviation of the loss; limit: HGB's", spread.new, spread.hgb


def growth_lines(frame: pd.DataFrame) -> Iterator[Line]:
    value = frame.set_index(["what", "method"]).value
    new, hgb = (value.get(("200 classes", side), math.nan) for side in ("new", "hgb"))
    yield "200 classes, of HGB's time", new / hgb, 1.0
    yield "2000 classes, seconds", value.get(("2000 classes", "new"), math.nan), 60.0
    times = frame[frame.what == "diamonds"]
    rules = times.method.str.removeprefix("new ").astype(float)
    slope = np.polyfit(np.log(rules), np.log(times.value), 1)[0] if len(times) else math.nan
    yield "max_rules on diamonds, slope", float(slope), 1.2


def memory_lines(frame: pd.DataFrame) -> Iterator[Line]:
    for name, of in means(frame, "new", "limit").iterrows():
        size = table(str(name))[0].nbytes / 1e6
        yield f"{name} ({size:.0f} MB), peak in MB above the input", of.new, of.limit


LINES: dict[str, Callable[[pd.DataFrame], Iterator[Line]]] = {
    "time": time_lines,
    "loss": loss_lines,
    "categories": category_lines,
    "weights": weights_lines,
    "steadiness": steadiness_lines,
    "growth": growth_lines,
    "memory": memory_lines,
}


def show(frame: pd.DataFrame, bars: Sequence[str], detail: bool) -> None:
    # Two runs at once may have measured the same.
    frame = frame.drop_duplicates(["bar", "what", "draw", "method"], keep="last")
    print("| bar | what | figure | at most | |")
    print("|---|---|---:|---:|---|")
    for bar in bars:
        for text, figure, limit in LINES[bar](frame[frame.bar == bar]):
            held = "met" if figure <= limit else "not met"
            verdict = "not measured" if math.isnan(figure) else held
            print(f"| {bar} | {text} | {figure:.4g} | {limit:.4g} | {verdict} |")
    for bar in bars if detail else ():
        part = frame[frame.bar == bar]
        print(f"\n{bar}: means\n{part.pivot_table('value', 'what', 'method').to_string()}")
