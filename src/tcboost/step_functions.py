"""Sums of rules as tables: what a fit found, in the form of an `AdditiveModel`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .features import Rule
from .frames import NUMBER, ORDER, Column
from .model.additive import (
    MISSING,
    AdditiveModel,
    Axis,
    Levels,
    Ordered,
    Term,
    canonical,
    on_unit,
)
from .oracles import Stump
from .words import Weigh, in_places, rule_in_words

Vector = NDArray[np.float64]

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
    unit: int | None = None,
    **about: Any,
) -> AdditiveModel:
    """``F(x) = intercept + sum_t h_t(x) vectors_t``, with `about` of an `AdditiveModel`.

    Coefficients are rounded to the unit, this one or their own; from there on all is exact, and
    so the same for any order of the rules. With the weights of cells it is in canonical form.
    """
    if unit is None:
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
        known = {level for level in levels if level == level}
        kinds = sorted(known, key=lambda level: (isinstance(level, str), level))
        place = {level: k + 1 for k, level in enumerate(kinds)}
        table = np.tile(low, (len(kinds) + 2, 1))
        np.add.at(table, [place.get(level, 0) for level in levels], 2.0 * v)
        # 3.0 is the level 3, for people.
        whole = [isinstance(x, float) and x.is_integer() for x in kinds]
        return Levels(
            tuple(int(x) if w else x for x, w in zip(kinds, whole, strict=True))
        ), table
    threshold = steps.threshold[rules]
    cuts = np.unique(threshold[np.isfinite(threshold)])
    jumps = np.zeros((len(cuts) + 1, v.shape[1]))
    # Above a threshold of infinity there is nothing.
    inside = threshold < np.inf
    np.add.at(jumps, np.searchsorted(cuts, threshold[inside], side="right"), 2.0 * v[inside])
    missing = low + 2.0 * v[steps.missing_right[rules]].sum(axis=0)
    return Ordered(cuts), np.concatenate([missing[None], low + np.cumsum(jumps, axis=0)])


def rules_of(form: AdditiveModel) -> tuple[list[Rule], Vector, Vector] | None:
    """The rules of a form, their class vectors and the intercept; None if it is of no rules.

    The inverse of `additive_model`, exact: a rule is +1 on one side, -1 on the other, so that
    jumps are twice the vectors, and one with a vector of zeros is not seen. On which side rules
    have missing values the claim says; where no value was missing in training, `_heavier` does.
    """
    rules, vectors, intercept = list[Rule](), list[Vector](), form.intercept.copy()
    right = form.claim and form.claim.missing_right
    for k, term in enumerate(form.terms):
        axis, j = term.axes[0], term.inputs[0]
        if len(term.inputs) > 1 or term.weight is None:
            return None
        column = Column(form.kinds[j] if form.kinds else NUMBER)
        if column.kind == ORDER and isinstance(axis, Levels):
            column, term = Column(ORDER, axis.levels), in_places(term)
            axis = term.axes[0]
        if isinstance(axis, Levels):
            found = _level_rules(j, axis, term.table)
            low = term.table[-1]
        else:
            found = _cut_rules(j, axis, term, right[k] if right else None)
            low = term.table[1]
        kept = [(rule, vector) for rule, vector in found if vector.any()]
        rules += [rule_in_words(rule, column) for rule, _ in kept]
        vectors += [vector for _, vector in kept]
        intercept += low + sum(vector for _, vector in kept)
    return rules, np.reshape(vectors, (-1, form.n_outputs)), intercept


def _level_rules(j: int, axis: Levels, table: Vector) -> list[tuple[Rule, Vector]]:
    """Each level against all others; missing values are the last one."""
    levels = [*(map(float, axis.levels) if axis.numeric else axis.levels), np.nan]
    order = [*range(1, axis.n_cells - 1), MISSING]
    rules = [Rule(j, level=level) for level in levels]
    return list(zip(rules, (table[order] - table[-1]) / 2.0, strict=True))


def _cut_rules(
    j: int, axis: Ordered, term: Term, right: Vector | None
) -> list[tuple[Rule, Vector]]:
    """At each cut the rule with missing values on its left, and the one on its right."""
    assert term.weight is not None
    cuts, table = axis.cuts.tolist(), term.table
    v = np.diff(table[1:], axis=0) / 2.0
    if not term.weight[MISSING] > 0:
        # Those of training go with the larger side: so do missing ones, as the table says.
        same = np.flatnonzero((table[1:] == table[MISSING]).all(axis=1)).tolist()
        lighter = np.cumsum(term.weight[1:-1]) < 0.5 * term.weight.sum()
        n = min(same, key=lambda n: abs(n - np.count_nonzero(lighter)), default=0)
        return [(Rule(j, cut, k < n), v[k]) for k, cut in enumerate(cuts)]
    R = np.zeros_like(v) if right is None else right
    sides = zip(cuts, v - R, R, strict=True)
    both = [[(Rule(j, c, False), a), (Rule(j, c, True), b)] for c, a, b in sides]
    missing = (table[MISSING] - table[1]) / 2.0 - R.sum(axis=0)
    return [*chain.from_iterable(both), (Rule(j, np.inf, True), missing)]
