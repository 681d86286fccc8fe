"""Models of frames as people know them: levels by their names, dates as dates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from .features import Rule
from .frames import DATE, DURATION, ORDER, Column
from .model.additive import AdditiveModel, Axis, Levels, Ordered, Term, merged_cells

Vector = NDArray[np.float64]
Weigh = Callable[[int, Axis], Vector]  # the training weight of the cells of an axis


def in_words(
    form: AdditiveModel, columns: Sequence[Column], weigh: Weigh | None = None
) -> AdditiveModel:
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
            table, weight = term.table[cells], weigh and weigh(j, places)
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


def in_places(term: Term) -> Term:
    """Of levels in an order the function of their places, cut where it changes."""
    (axis,) = term.axes
    cuts: Vector = np.arange(0.5, axis.n_cells - 3)
    weight = None if term.weight is None else term.weight[:-1]
    table = term.table[:-1]  # where any other level is as a missing one
    return merged_cells(replace(term, axes=(Ordered(cuts),), table=table, weight=weight))
