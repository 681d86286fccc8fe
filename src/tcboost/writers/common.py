"""What all writers start from: tables of scores, labels and names; and the file at the end."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model.additive import (
    MISSING,
    AdditiveModel,
    Axis,
    Level,
    Levels,
    Places,
    Vector,
)
from ..model.replace import replace_file

Model = Any  # a fitted estimator that has tables, or an AdditiveModel
Path = str | os.PathLike[str] | None


class Scores(NamedTuple):
    """A term whose table is of scores, one for each class."""

    inputs: tuple[int, ...]
    axes: tuple[Axis, ...]
    table: Vector


class Content(NamedTuple):
    """A model for writers: outputs are decoded, all features have a name, and there are terms.

    `texts` are the features whose values are text, with all levels that any axis has of them;
    `times` those whose values are seconds, of dates since 1970 and of durations.
    """

    names: list[str]
    labels: list[Level]
    intercept: Vector
    terms: Sequence[Scores]
    scale: float | None
    texts: dict[int, list[str]]
    times: set[int]

    def steps(self, feature: int, axis: Axis) -> tuple[Vector, Places]:
        """Cuts, and the cell of a value with none, one, ... of them below it.

        Text counts as its place among the levels of its feature; what is none of them is -1.
        """
        if feature not in self.texts:
            return axis.ends
        texts = self.texts[feature]
        of = axis.cells(np.array(texts, dtype=object))
        return np.arange(len(texts), dtype=np.float64) - 0.5, np.append(axis.n_cells - 1, of)

    def about(self) -> str:
        """A line for people."""
        return (
            f"A model of {len(self.labels)} classes and {len(self.names)} features, "
            "written by tcboost."
        )


def content(model: Model) -> Content:
    """What there is to write of an estimator, or of its form."""
    if not isinstance(model, AdditiveModel):
        if not hasattr(type(model), "additive_"):
            kind = type(model).__name__
            raise TypeError(f"model must be a fitted estimator or its additive_, not a {kind}")
        model = model.additive_
    if model.link != "softmax":
        raise ValueError(f"link={model.link!r} is not known")
    labels = model.classes.tolist()
    if len({type(c) for c in labels}) > 1 or not isinstance(labels[0], Level):
        raise ValueError("labels must be all text, all integers, all floats or all bool")
    names = [str(name) for name in model.feature_names or [""] * model.n_features]
    nothing = Scores((0,), (Levels(()),), np.zeros((2, len(labels))))
    terms = [
        Scores(t.inputs, t.axes, model.decoded(t.table) + 0.0)  # one kind of zero
        for t in model.terms
    ] or [nothing]
    return Content(
        [name or f"x{j}" for j, name in enumerate(names)],
        labels,
        model.decoded(model.intercept) + 0.0,
        terms,
        model.probability_scale,
        _texts(model),
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
    kinds = model.kinds or [""] * model.n_features
    texts = {}
    for j, (of, kind) in enumerate(zip(found, kinds, strict=True)):
        text = [isinstance(level, str) for level in of]
        if any(text) and not all(text):
            raise ValueError(f"feature {j} is of text and of numbers; only one can be written")
        if any(text) or (not of and kind in ("levels", "order")):
            texts[j] = list(of)
    return texts


def expanded(told: Content, term: Scores) -> tuple[list[Vector], Vector]:
    """For each axis its cuts; and the table with a row for missing values, then one for a value
    with none, one, ... of the cuts below it.
    """
    cuts, table = [], term.table
    for k, (j, axis) in enumerate(zip(term.inputs, term.axes, strict=True)):
        of_axis, of = told.steps(j, axis)
        cuts.append(of_axis)
        table = table.take(np.append(MISSING, of), axis=k)
    return cuts, table


def integers(told: Content) -> tuple[int, NDArray[np.int64], list[NDArray[np.int64]]]:
    """The exponent of a unit; intercept and tables as multiples of it, sums within 62 bits."""
    parts = [told.intercept, *(term.table for term in told.terms)]
    values = np.concatenate([part.ravel() for part in parts])
    fraction, exponent = np.frexp(values[values != 0.0])
    odd = np.ldexp(fraction, 53).astype(np.int64)
    zeros = np.frexp((odd & -odd).astype(np.float64))[1] - 1
    unit = int((exponent - 53 + zeros).min()) if len(odd) else 0
    largest = math.fsum(float(np.abs(part).max()) for part in parts)
    if math.frexp(largest)[1] - unit > 62:
        raise ValueError(
            "intercept and tables are no multiples of one unit that 64 bits are enough for; "
            "additive_.rounded(decimals) gives a model whose are"
        )
    whole = [np.ldexp(part, -unit).astype(np.int64) for part in parts]
    return unit, whole[0], whole[1:]


def finished(text: str, path: Path) -> str:
    """The text, written where there is a path."""
    if path is not None:
        replace_file(path, text.encode())
    return text
