"""The fitted model as data: an intercept and a table for each feature or couple of features.

It knows nothing of how it was fitted. It predicts, is saved, verified, explained and written as
code, each by this form alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._kept import kept_property
from .claim import Claim
from .tables import StumpTables, pad

Vector = NDArray[np.float64]
Places = NDArray[np.intp]
Level = str | int | float | bool

MISSING = 0  # the cell of missing values, of any axis
_FINEST = -1074  # every double is a multiple of this power of two


@dataclass(frozen=True, eq=False)
class Ordered:
    """Cells between cuts: 0 of missing values, else 1 + the number of cuts below a value.

    A value that equals a cut is below it. `unit_of_values` says how to show values to people:
    None for numbers, "date", "duration". `quantiles` of the training values, if they are known,
    serve pictures.
    """

    cuts: Vector
    unit_of_values: str | None = None
    quantiles: Vector | None = None

    def __post_init__(self) -> None:
        _freeze(self, "cuts", "quantiles")

    @property
    def n_cells(self) -> int:
        """Intervals, and the cell of missing values."""
        return len(self.cuts) + 2

    def cells(self, values: ArrayLike) -> Places:
        """The cell of each value."""
        x = np.asarray(values, dtype=np.float64)
        return np.where(np.isnan(x), MISSING, 1 + np.searchsorted(self.cuts, x, side="left"))

    @property
    def ends(self) -> tuple[Vector, Places]:
        """The cuts, and the cell of a value with none, one, ... of them below it."""
        return self.cuts, np.arange(1, self.n_cells)


@dataclass(frozen=True, eq=False)
class Levels:
    """A cell for missing values, one for each level, and last one for all other values."""

    levels: tuple[Level, ...]

    @property
    def n_cells(self) -> int:
        """Levels, missing values, and any other."""
        return len(self.levels) + 2

    @property
    def numeric(self) -> bool:
        """Whether values are numbers, True and False among them."""
        return not any(isinstance(level, str) for level in self.levels)

    def cells(self, values: ArrayLike) -> Places:
        """The cell of each value; None and NaN are missing.

        Levels that are text may be given as numbers, by their places.
        """
        x = np.asarray(values)
        if x.dtype.kind == "f" and not self.numeric:
            known = np.where((x >= 0) & (x < len(self.levels)), x, len(self.levels))
            return np.where(np.isnan(x), MISSING, 1 + known).astype(np.intp)
        place: dict[Any, int] = {level: k + 1 for k, level in enumerate(self.levels)}
        other = len(self.levels) + 1
        found = [MISSING if x is None or x != x else place.get(x, other) for x in x.tolist()]
        return np.array(found, dtype=np.intp)

    @property
    def ends(self) -> tuple[Vector, Places]:
        """Cuts around each level, or its place if levels are text, as of an ordered axis."""
        known = self.levels if self.numeric else range(len(self.levels))
        levels = np.unique(np.array(known, dtype=np.float64))
        with np.errstate(over="ignore"):  # below the least number there is -inf
            cuts = np.unique(np.concatenate([np.nextafter(levels, -np.inf), levels]))
        return cuts, self.cells(np.append(cuts, np.inf))


Axis = Ordered | Levels


@dataclass(frozen=True, eq=False)
class Term:
    """A function of one feature, or of two: a row of outputs for each cell.

    `weight` is the share of the training weight in each cell; None where it is not known.
    """

    inputs: tuple[int, ...]
    axes: tuple[Axis, ...]
    table: Vector
    weight: Vector | None = None

    def __post_init__(self) -> None:
        _freeze(self, "table", "weight")

    def cells(self, X: NDArray[Any]) -> tuple[Places, ...]:
        """For each of the inputs the cells of the rows."""
        pairs = zip(self.inputs, self.axes, strict=True)
        return tuple(axis.cells(X[:, j]) for j, axis in pairs)


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """``F(x) = intercept + sum_t table_t[cells of x]``, the scores being ``decode F(x)``.

    The intercept and all tables are multiples of ``2^unit`` that a sum of theirs stays below
    2^53 times of, so that every sum of them is a double, exact in any order and any language.

    Attributes
    ----------
    n_features : int
        Features of a row.
    feature_names : tuple of str, or None
        Their names, if they have any.
    classes : ndarray of shape (n_classes,)
        The classes, in the order of the scores.
    terms : tuple of Term
        Sorted by their inputs, no two of which are the same. Each table has a mean of zero
        under its weights, up to the unit; that of a couple along each of its axes.
    intercept : ndarray of shape (n_outputs,)
        F of no terms.
    decode : ndarray of shape (n_classes, n_outputs), or None
        The code matrix, entries -1 and +1; None where outputs are scores.
    unit : int
        Of intercept and tables, the exponent of a power of two; by default the largest that
        all of them are multiples of.
    probability_scale : float or None
        Probabilities are the softmax of so many times the scores; None where the loss tells
        none.
    link : str
        "softmax".
    size : float
        The sum of all coefficients, by which `margins` are divided.
    claim : Claim or None
        What is claimed of the fit, for `tcboost.verify`.
    kinds : tuple of str, or None
        Of a fit to a frame what each feature is: "number", "levels", "order" (levels in an
        order), "date", "duration".
    """

    n_features: int
    feature_names: tuple[str, ...] | None
    classes: NDArray[Any]
    terms: tuple[Term, ...]
    intercept: Vector
    decode: NDArray[np.int8] | None = None
    unit: int = _FINEST
    probability_scale: float | None = 1.0
    link: str = "softmax"
    size: float = 1.0
    claim: Claim | None = None
    kinds: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _freeze(self, "intercept", "decode", "classes")
        if self.unit == _FINEST:
            entries = [self.intercept, *(term.table.ravel() for term in self.terms)]
            object.__setattr__(self, "unit", _coarsest_unit(np.concatenate(entries)))

    @property
    def n_outputs(self) -> int:
        """K, the entries of a row of a table."""
        return len(self.intercept)

    def outputs(self, X: ArrayLike, n_threads: int = 1) -> Vector:
        """``F(x)`` of each row."""
        return self._looked_up(self._output_tables, X, n_threads, decoded=False)

    def scores(self, X: ArrayLike, n_threads: int = 1) -> Vector:
        """Of each row the score of every class; the largest is the prediction."""
        return self._looked_up(self._score_tables, X, n_threads, decoded=True)

    def best(self, X: ArrayLike, n_threads: int = 1) -> NDArray[np.int64]:
        """Of each row the class of the largest score, by its place, the first on a tie."""
        if self._others:
            return self.scores(X, n_threads).argmax(axis=1)
        return self._score_tables.best(self._numbers(np.asarray(X)), n_threads)

    def rounded(self, decimals: int) -> AdditiveModel:
        """A model of short numbers, off by half a unit of the last decimal at the most.

        They are multiples of the power of two just below ``10^-decimals``, and cells that come
        out the same are one. The model claims nothing of its own loss: `tcboost.verify` finds
        it, and a bound.

        Parameters
        ----------
        decimals : int
            How many are to be trusted.

        Returns
        -------
        AdditiveModel
        """
        unit = max(self.unit, -math.ceil(decimals * math.log2(10.0)))
        found = (merged_cells(replace(t, table=on_unit(t.table, unit))) for t in self.terms)
        terms = tuple(term for term in found if term.table.any())
        claim = self.claim and self.claim.without_numbers()
        b = on_unit(self.intercept, unit)
        return replace(self, intercept=b, terms=terms, unit=unit, claim=claim)

    @kept_property
    def _others(self) -> list[Term]:
        """Terms that the kernel does not know: couples."""
        return [t for t in self.terms if len(t.inputs) > 1]

    @kept_property
    def _score_tables(self) -> StumpTables:
        return self._tables(self.decoded)

    @kept_property
    def _output_tables(self) -> StumpTables:
        return self._tables(lambda F: F)

    def decoded(self, F: Vector) -> Vector:
        """Scores of outputs, along the last axis; exact, since all entries are -1 or +1."""
        return F if self.decode is None else F @ self.decode.T.astype(np.float64)

    def _tables(self, decode: Any) -> StumpTables:
        """Those of the terms that the kernel knows, and the intercept."""
        known = [t for t in self.terms if not any(t is other for other in self._others)]
        ends = [t.axes[0].ends for t in known]
        rows = [t.table[np.append(MISSING, of)] for t, (_, of) in zip(known, ends, strict=True)]
        base = decode(self.intercept)
        table = pad(decode(np.concatenate([np.empty((0, self.n_outputs)), *rows])))
        return StumpTables(
            np.array([t.inputs[0] for t in known], dtype=np.int64),
            np.cumsum([0, *(len(cuts) for cuts, _ in ends)]),
            np.concatenate([np.empty(0), *(cuts for cuts, _ in ends)]),
            table,
            pad(base),
            len(base),
        )

    def _looked_up(
        self, tables: StumpTables, X: ArrayLike, n_threads: int, decoded: bool
    ) -> Vector:
        values = np.asarray(X)
        F = tables.outputs(self._numbers(values), n_threads)
        for term in self._others:
            table = self.decoded(term.table) if decoded else term.table
            F += table[term.cells(values)]
        return F

    def _numbers(self, values: NDArray[Any]) -> Vector:
        """For the kernel, text by its place."""
        if values.dtype == np.float64:
            return values
        X = np.full(values.shape, np.nan)
        for term in self.terms:
            if len(term.inputs) == 1:
                (j,), (axis,) = term.inputs, term.axes
                if isinstance(axis, Levels) and not axis.numeric:
                    cells = axis.cells(values[:, j])
                    X[:, j] = np.where(cells == MISSING, np.nan, cells - 1.0)
                else:
                    X[:, j] = values[:, j].astype(np.float64)
        return X

    def __getstate__(self) -> dict[str, Any]:
        """Without what the kernel needs, which is made again where it is needed."""
        return {k: v for k, v in vars(self).items() if k[0] != "_"}


def cell_weights(axis: Axis, values: Vector, mass: Vector) -> Vector:
    """What these values weigh, by the cells of an axis."""
    return np.bincount(axis.cells(values), mass, axis.n_cells).astype(np.float64)


def merged_cells(term: Term) -> Term:
    """Without cuts whose sides are the same, and without levels that are as any other."""
    table, weight, axes = term.table, term.weight, list[Axis]()
    for k, axis in enumerate(term.axes):
        rows = np.moveaxis(table, k, 0).reshape(axis.n_cells, -1)
        if isinstance(axis, Ordered):
            apart = (rows[2:] != rows[1:-1]).any(axis=1)
            start = np.concatenate([[True, True], apart])
            axes.append(replace(axis, cuts=axis.cuts[apart]))
            which = np.cumsum(start) - 1
        else:
            apart = (rows[1:-1] != rows[-1]).any(axis=1)
            start = np.concatenate([[True], apart, [True]])
            axes.append(Levels(tuple(compress(axis.levels, apart.tolist()))))
            which = np.where(start, np.cumsum(start) - 1, np.count_nonzero(start) - 1)
        if weight is not None:
            merged = np.zeros((np.count_nonzero(start), *np.moveaxis(weight, k, 0).shape[1:]))
            np.add.at(merged, which, np.moveaxis(weight, k, 0))
            weight = np.moveaxis(merged, 0, k)
        table = np.compress(start, table, axis=k)
    return Term(term.inputs, tuple(axes), table + 0.0, weight)


def centred(term: Term, unit: int) -> tuple[Term, Vector]:
    """The term with means of zero under its weights, and what it gives up to the intercept.

    Exact: the mean is rounded to the unit.
    """
    assert term.weight is not None
    assert len(term.inputs) == 1
    mean = on_unit(term.weight @ term.table / max(float(term.weight.sum()), 1e-300), unit)
    return replace(term, table=term.table - mean), mean


def canonical(
    terms: Sequence[Term], intercept: Vector, unit: int
) -> tuple[tuple[Term, ...], Vector]:
    """Terms and intercept of the same function, the only ones that are merged and centred.

    Terms without weights stay where they are.
    """
    found, b = [], intercept.copy()
    for given in sorted(terms, key=lambda t: t.inputs):
        term = merged_cells(given)
        if term.weight is not None:
            term, mean = centred(term, unit)
            b += mean
        if term.table.any():
            found.append(replace(term, table=term.table + 0.0))  # one kind of zero
    return tuple(found), b + 0.0


def _coarsest_unit(values: Vector) -> int:
    """The largest exponent of a power of two that all values are multiples of."""
    mantissa, exponent = np.frexp(values[values != 0])
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    low = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # their lowest bits
    return int((exponent - 53 + low).min(initial=0))


def on_unit(values: Vector, unit: int) -> Vector:
    """The nearest multiples of 2^unit."""
    return np.ldexp(np.rint(np.ldexp(values, -unit)), unit)


def _freeze(holder: Any, *names: str) -> None:
    """Make arrays read-only, since others rely on them."""
    for name in names:
        array = getattr(holder, name)
        if array is not None:
            frozen = np.array(array)
            frozen.flags.writeable = False
            object.__setattr__(holder, name, frozen)
