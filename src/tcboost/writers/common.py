"""What all writers start from: labels, names and tables of scores; and the file at the end."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from string import Template
from typing import Any, AnyStr, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model.additive import (
    MISSING,
    AdditiveModel,
    Level,
    Levels,
    Ordered,
    Term,
    Vector,
    merged_cells,
)
from ..model.replace import replace_file

Model = Any  # a fitted estimator that has tables, or an AdditiveModel
Path = str | os.PathLike[str] | None


class Table(NamedTuple):
    """A term of features that are numbers, each with its cuts, ascending.

    Cell 0 of a feature is of missing values, 1 + k of values with k of the cuts below them. The
    scores have a row for each cell, of couples for all cells of the second feature with cell 0
    of the first one, then with its next.
    """

    inputs: tuple[int, ...]
    cuts: list[Vector]
    scores: Vector


class Content(NamedTuple):
    """A model for writers: all features have a name, and there are terms.

    `texts` are the features whose values are text, with all levels that any axis has of them:
    to the terms, a level is its place among these, and any other text is -1. `times` are those
    whose values are seconds, of dates since 1970 and of durations.
    """

    about: str
    names: list[str]
    labels: list[Level]
    unit: int
    intercept: Vector
    terms: Sequence[Table]
    scale: float | None
    texts: dict[int, list[str]]
    times: set[int]

    def used(self) -> list[int]:
        """Features of the terms, ascending."""
        return sorted({j for term in self.terms for j in term.inputs})


def content(model: Model) -> Content:
    """What there is to write of an estimator, or of its form."""
    if not isinstance(model, AdditiveModel):
        if not hasattr(type(model), "additive_"):
            kind = type(model).__name__
            raise TypeError(f"model must be a fitted estimator or its additive_, not a {kind}")
        model = model.additive_
    if model.link != "softmax":
        raise ValueError(f"link={model.link!r} is not known")
    labels, n = model.classes.tolist(), model.n_features
    if len({type(c) for c in labels}) > 1 or not isinstance(labels[0], Level):
        raise ValueError("labels must be all text, all integers, all floats or all bool")
    texts = _texts(model)
    nothing = Table((0,), [np.empty(0)], np.zeros((2, len(labels))))
    return Content(
        f"A model of {len(labels)} classes and {n} features, written by tcboost.",
        [str(name) or f"x{j}" for j, name in enumerate(model.feature_names or [""] * n)],
        labels,
        model.unit,
        model.decoded(model.intercept) + 0.0,  # one kind of zero
        [_table(model, term, texts) for term in model.terms] or [nothing],
        None if model.probability_scale is None else float(model.probability_scale),
        texts,
        {j for j, kind in enumerate(model.kinds or ()) if kind in ("date", "duration")},
    )


def _texts(model: AdditiveModel) -> dict[int, list[str]]:
    """Of features whose values are text, all levels, each once.

    Where no term tells, those that a frame had as levels are text.
    """
    found: list[dict[Any, None]] = [{} for _ in range(model.n_features)]
    for term in model.terms:
        for j, axis in zip(term.inputs, term.axes, strict=True):
            found[j].update(dict.fromkeys(axis.levels if isinstance(axis, Levels) else (0.0,)))
    texts = {}
    for j, of in enumerate(found):
        by_kind = model.kinds is not None and model.kinds[j] in ("levels", "order")
        text = {isinstance(level, str) for level in of} or {by_kind}
        if len(text) > 1:
            raise ValueError(f"feature {j} is of text and of numbers; only one can be written")
        if text == {True}:
            texts[j] = list(of)
    return texts


def _table(model: AdditiveModel, term: Term, texts: dict[int, list[str]]) -> Table:
    """The same function of numbers alone, with no cut whose sides are the same."""
    axes, table = list[Ordered](), model.decoded(term.table)
    for k, (j, axis) in enumerate(zip(term.inputs, term.axes, strict=True)):
        cuts, of = axis.ends
        if j in texts:
            levels = np.array(texts[j], dtype=object)
            cuts, of = np.arange(-0.5, len(levels) - 1), np.append(-1, axis.cells(levels))
        axes.append(Ordered(cuts))
        table = table.take(np.append(MISSING, of), axis=k)
    found = merged_cells(Term(term.inputs, tuple(axes), table))
    rows = found.table.reshape(-1, len(model.classes))
    return Table(term.inputs, [axis.ends[0] for axis in found.axes], rows)


def integers(told: Content) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """Intercept and tables, by their places, as multiples of the unit, sums within 62 bits."""
    parts = [told.intercept, *(term.scores for term in told.terms)]
    if sum(np.abs(part).max() for part in parts) >= math.ldexp(1.0, 62 + told.unit):
        raise ValueError(
            f"intercept and tables are too large for multiples of 2^{told.unit} in 64 bits; "
            "additive_.rounded(decimals) gives a model that has a larger unit"
        )
    first, *others = (np.ldexp(part, -told.unit).astype(np.int64) for part in parts)
    return first, others


def module(template: str, told: Content, literal: Callable[[Any], str]) -> str:
    """A module of Python or JavaScript, in both of which tables are lists alike."""
    terms = ""
    for inputs, cuts, scores in told.terms:
        axes = [[j, of.tolist()] for j, of in zip(inputs, cuts, strict=True)]
        rows = "".join(f"\n    {row}," for row in scores.tolist())
        terms += f"\n  [{literal(axes)}, [{rows}\n  ]],"
    return Template(template).substitute(
        about=told.about,
        labels=literal(told.labels),
        names=literal(told.names),
        levels=literal(told.texts),
        scale=literal(told.scale),
        intercept=told.intercept.tolist(),
        terms=terms,
    )


def finished(text: AnyStr, path: Path) -> AnyStr:
    """The text, written where there is a path."""
    if path is not None:
        replace_file(path, text.encode() if isinstance(text, str) else text)
    return text
