"""Sums of rules as tables: what a fit found, in the form of an `AdditiveModel`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .features import Rule
from .frames import DATE, DURATION, ORDER, Column
from .model.additive import AdditiveModel, Axis, Levels, Ordered, Term, canonical, on_unit
from .oracles import Stump

Vector = NDArray[np.float64]
Weigh = Callable[[int, Axis], Vector]  # the training weight of the cells of an axis

_BITS = 51  # of the sum of all coefficients: tables and the sums of theirs have two more


@dataclass(frozen=True)
class Steps:
    """Rules side by side: +1 above a threshold, or at a level, else -1.

    Those of a threshold of -inf are +1 everywhere. A level of NaN is that of missing values.
    """

    feature: NDArray[np.int64]
    threshold: Vector
    missing_right: NDArray[np.bool_]
    level: list[Any]  # None where there is a threshold
    sign: NDArray[np.int8]

    @classmethod
    def of_rules(cls, rules: Sequence[Rule]) -> Steps:
        """Those of `TCBoostClassifier`."""
        return cls(
            np.array([r.feature for r in rules], dtype=np.int64),
            np.array([np.nan if r.threshold is None else r.threshold for r in rules]),
            np.array([r.missing_right for r in rules], dtype=bool),
            [r.level for r in rules],
            np.ones(len(rules), dtype=np.int8),
        )

    @classmethod
    def of_stumps(cls, stumps: Sequence[Stump]) -> Steps:
        """Those of the paper's estimators."""
        return cls(
            np.array([h.feature for h in stumps], dtype=np.int64),
            np.array([h.threshold for h in stumps], dtype=np.float64),
            np.array([h.missing_right for h in stumps], dtype=bool),
            [None] * len(stumps),
            np.array([h.sign for h in stumps], dtype=np.int8),
        )


def unit_of(vectors: Vector, decode: NDArray[np.int8] | None) -> int:
    """The exponent of the unit in which no sum of these coefficients is beyond 2^51."""
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    if decode is not None:
        scores = np.abs(vectors @ decode.T.astype(np.float64)).max(axis=1, initial=0.0)
        largest = np.maximum(largest, scores)
    return max(int(np.frexp(math.fsum(largest.tolist()))[1]) - _BITS, -1000)


def additive_model(
    steps: Steps,
    vectors: Vector,
    intercept: Vector,
    weigh: Weigh | None = None,
    decode: NDArray[np.int8] | None = None,
    **about: Any,
) -> AdditiveModel:
    """``F(x) = intercept + sum_t h_t(x) vectors_t``, with `about` of an `AdditiveModel`.

    Coefficients are rounded to the unit; from there on all is exact, and so the same for any
    order of the rules. With the weights of cells it is in canonical form.
    """
    unit = unit_of(np.concatenate([vectors, intercept[None]]), decode)
    v = steps.sign[:, None] * on_unit(vectors, unit)
    b = on_unit(intercept, unit)
    constant = (steps.threshold == -np.inf) & steps.missing_right
    b += v[constant].sum(axis=0)
    order = np.argsort(steps.feature, kind="stable")
    order = order[~constant[order]]
    used, first = np.unique(steps.feature[order], return_index=True)
    terms = []
    for j, rules in zip(used.tolist(), np.split(order, first)[1:], strict=True):
        axis, table = _step_function(steps, rules, v[rules])
        weight = None if weigh is None else weigh(j, axis)
        terms.append(Term((j,), (axis,), table, weight))
    if weigh is not None:
        found, b = canonical(terms, b, unit)
    else:
        found = tuple(terms)
    return AdditiveModel(terms=found, intercept=b, decode=decode, unit=unit, **about)


def _step_function(steps: Steps, rules: NDArray[np.intp], v: Vector) -> tuple[Axis, Vector]:
    """The axis and the table of the rules of one feature."""
    low = -v.sum(axis=0)
    levels = [steps.level[t] for t in rules]
    if levels[0] is not None:
        kinds = sorted({level for level in levels if level == level})
        place = {level: k + 1 for k, level in enumerate(kinds)}
        table = np.tile(low, (len(kinds) + 2, 1))
        np.add.at(table, [place.get(level, 0) for level in levels], 2.0 * v)
        # 3.0 is the level 3, for people.
        return Levels(tuple(int(x) if x == int(x) else x for x in kinds)), table
    threshold = steps.threshold[rules]
    cuts = np.unique(threshold[np.isfinite(threshold)])
    jumps = np.zeros((len(cuts) + 1, v.shape[1]))
    # Above a threshold of infinity there is nothing.
    inside = threshold < np.inf
    np.add.at(jumps, np.searchsorted(cuts, threshold[inside], side="right"), 2.0 * v[inside])
    missing = low + 2.0 * v[steps.missing_right[rules]].sum(axis=0)
    return Ordered(cuts), np.concatenate([missing[None], low + np.cumsum(jumps, axis=0)])


def in_words(form: AdditiveModel, columns: Sequence[Column], weigh: Weigh) -> AdditiveModel:
    """The same with levels by their names; those in an order have a cell for each.

    Where such a level was never seen it is as a missing value.
    """
    terms = []
    for term in form.terms:
        (j,), (axis,) = term.inputs, term.axes
        kind, levels = columns[j].kind, columns[j].levels
        if isinstance(axis, Levels) and levels:
            axis = Levels(tuple(levels[int(place)] for place in axis.levels))
        elif kind == ORDER:
            places = Levels(tuple(range(len(levels))))
            cells = np.concatenate([[0], axis.cells(np.arange(len(levels))), [0]])
            table, weight = term.table[cells], weigh(j, places)
            term = replace(term, table=table, weight=weight)
            axis = Levels(levels)
        elif isinstance(axis, Ordered) and kind in (DATE, DURATION):
            axis = replace(axis, unit_of_values=kind)
        terms.append(replace(term, axes=(axis,)))
    kinds = tuple(column.kind for column in columns)
    return replace(form, terms=tuple(terms), kinds=kinds)


def rule_in_words(rule: Rule, column: Column) -> Rule:
    """The rule with levels by their names, and a threshold as people write it."""
    levels = column.levels
    if rule.threshold is None:
        known = levels and rule.level == rule.level
        return rule._replace(level=levels[int(rule.level)]) if known else rule
    if not np.isfinite(rule.threshold):
        return rule
    if column.kind == ORDER:
        return rule._replace(shown=str(levels[math.floor(rule.threshold)]))
    if column.kind == DATE:
        return rule._replace(shown=str(np.datetime64(round(rule.threshold * 1e6), "us")))
    if column.kind == DURATION:
        return rule._replace(shown=str(timedelta(seconds=rule.threshold)))
    return rule


def rule_by_places(rule: Rule, column: Column) -> Rule:
    """The rule with the place of its level; one that is not there is beyond all of them."""
    if rule.threshold is not None or rule.level != rule.level or not column.levels:
        return rule
    place = column.levels.index(rule.level) if rule.level in column.levels else -1
    return rule._replace(level=float(place))
