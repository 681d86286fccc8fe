"""A model as one SELECT, whose scores are integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from ..model.additive import Level
from .common import Content, Model, Path, content, finished, integers

_AT_ONCE = 100  # arguments of a function, or terms of a sum: more are nested
# By dialects, the columns of a row that was handed on, and the largest of some numbers.
_DIALECTS = {
    "postgresql": ("(tcboost_row).*", "GREATEST"),
    "duckdb": ("tcboost_row.*", "GREATEST"),
    "sqlite": ("tcboost_data.*", "MAX"),
}
_ROWIDS = ("_rowid_", "rowid", "oid")  # of SQLite; a column of that name hides it
_DOUBLE = "DOUBLE PRECISION"
_NEXT = "\n      "


def to_sql(
    model: Model,
    path: Path = None,
    *,
    table: str = "data",
    dialect: str = "postgresql",
    probabilities: bool = True,
) -> str:
    """The model as one SELECT: all columns of a table, the class, and the probabilities.

    The columns of the model are called as its features, ``x0``, ``x1``, ... where they have
    no name; NULL and NaN are missing values. The result has a column ``prediction``, the label,
    and ``p_1``, ``p_2``, ... in the order of `classes_`. The scores are sums of BIGINT,
    multiples of one unit, and so exact. Features that were dates or durations of a frame are
    columns of a type of time (DATE, TIMESTAMP, INTERVAL, ...); SQLite, which has none, wants
    seconds, of dates since 1970.

    PostgreSQL 12, DuckDB and SQLite 3.35 or later know all that is used. In SQLite the table
    has a rowid, so it is no view, and no column but a feature is called ``_rowid_``. Where the
    loss tells no probabilities, there are none.

    Parameters
    ----------
    model : estimator or AdditiveModel
        What to write; estimators must be fitted, and have tables.
    path : str or path-like, default=None
        Where to write it as well.
    table : str, default="data"
        Where the rows are; a dot separates a schema from the table.
    dialect : {"postgresql", "duckdb", "sqlite"}, default="postgresql"
        For which engine.
    probabilities : bool, default=True
        Whether to have them; False needs no EXP.

    Returns
    -------
    str
        Without a semicolon, so that it can be part of another query.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import tcboost
    >>> X, y = load_iris(return_X_y=True)
    >>> text = tcboost.to_sql(tcboost.AdaBoostMO(max_iter=10).fit(X, y), table="flowers")
    >>> print(text.splitlines()[-2])
    SELECT (tcboost_row).*, tcboost_6.prediction, tcboost_6.p_1, tcboost_6.p_2, tcboost_6.p_3
    """
    if dialect not in _DIALECTS:
        raise ValueError(f"dialect must be one of {', '.join(_DIALECTS)}, but is {dialect!r}")
    return finished(_Query(content(model), table, dialect).text(probabilities), path)


class _Query:
    """Common table expressions, each computed once, that end in the prediction.

    They hand a row on as one value, its content or, in SQLite, its rowid, so that no name of
    theirs meets one of the table.
    """

    def __init__(self, told: Content, table: str, dialect: str) -> None:
        self.told, self.sqlite = told, dialect == "sqlite"
        self.columns, self.largest = _DIALECTS[dialect]
        self.source = f"{'.'.join(map(_quoted, table.split('.')))} AS tcboost_data"
        self.intercept, self.tables = integers(told)
        used = {name.lower() for name in told.names}
        self.rowid = f"tcboost_data.{next(k for k in _ROWIDS if k not in used)}"

    def text(self, probabilities: bool) -> str:
        """All of it."""
        classes = range(1, 1 + len(self.told.labels))
        s, e, p = ([f"{x}_{c}" for c in classes] for x in "sep")
        row = self.rowid if self.sqlite else "tcboost_data"
        top = _nested(s, lambda part: f"{self.largest}({', '.join(part)})")
        *labels, last = map(_literal, self.told.labels)
        best = _case((f"{s[c]} = top THEN {label}" for c, label in enumerate(labels)), last)
        steps = [
            [f"{row} AS tcboost_row", *self._columns()],
            ["tcboost_row", *self._cells()],
            ["tcboost_row", *self._scores()],
            ["*", f"{top} AS top"],
        ]
        if probabilities and self.told.scale is not None:
            steps += [["*", *map(self._power, s, e)], ["*", f"{_sum(e)} AS total"]]
        else:
            e = p = []
        parts = (f"{each} / total AS {to}" for each, to in zip(e, p, strict=True))
        steps.append(["tcboost_row", f"{best} AS prediction", *parts])
        text, source = "", self.source
        for k, columns in enumerate(steps):
            select = f"SELECT {f',{_NEXT}'.join(columns)}\n  FROM {source}"
            source = f"tcboost_{k}"
            text += f"{',' if k else 'WITH'} {source} AS MATERIALIZED (\n  {select})\n"
        names = [self.columns, *(f"{source}.{name}" for name in ("prediction", *p))]
        if self.sqlite:
            source += f" CROSS JOIN {self.source} ON {self.rowid} = tcboost_row"
        return f"{text}SELECT {', '.join(names)}\nFROM {source}"

    def _columns(self) -> list[str]:
        """The features in use as double, NaN as NULL, levels by their places."""
        used = self.told.used()
        names = [self.told.names[j] for j in used]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"features that are both called {name!r} are no columns")
        return [f"{self._value(j)} AS x_{j}" for j in used]

    def _value(self, j: int) -> str:
        """In SQLite there is no NaN, and there are no types of time."""
        column = f"tcboost_data.{_quoted(self.told.names[j])}"
        if j in self.told.texts:
            levels = map(_literal, self.told.texts[j])
            whens = [f"CAST({column} AS TEXT) = {x} THEN {k}" for k, x in enumerate(levels)]
            return _case([f"{column} IS NULL THEN NULL", *whens], -1)
        if self.sqlite:
            return f"CAST({column} AS {_DOUBLE})"
        if j in self.told.times:
            column = f"EXTRACT(EPOCH FROM {column})"
        return f"NULLIF(CAST({column} AS {_DOUBLE}), CAST('NaN' AS {_DOUBLE}))"

    def _cells(self) -> list[str]:
        """For each term the place in its table, that of a couple row by row."""
        found = []
        for t, term in enumerate(self.told.terms):
            place = ""
            for j, cuts in zip(term.inputs, term.cuts, strict=True):
                ends = map(_exact, cuts.tolist())
                whens = [f"x_{j} <= {end} THEN {k}" for k, end in enumerate(ends, 1)]
                cell = _case([f"x_{j} IS NULL THEN 0", *whens], len(cuts) + 1)
                place = f"{len(cuts) + 2} * ({place}) + {cell}" if place else cell
            found.append(f"{place} AS k_{t}")
        return found

    def _scores(self) -> list[str]:
        """Of each class the sum over all terms."""
        found = []
        for c, base in enumerate(self.intercept.tolist()):
            terms = [self._entry(t, table[:, c]) for t, table in enumerate(self.tables)]
            found.append(f"{_sum([*terms, f'CAST({base} AS BIGINT)'])} AS s_{c + 1}")
        return found

    def _entry(self, t: int, column: NDArray[np.int64]) -> str:
        """The value at a place; of an array, which takes no longer where they are many."""
        values = column.tolist()
        if not self.sqlite:
            return f"(CAST(ARRAY{values} AS BIGINT[]))[k_{t} + 1]"
        whens = " ".join(f"WHEN {k} THEN {n}" for k, n in enumerate(values))
        return f"CASE k_{t} {whens} END"

    def _power(self, score: str, power: str) -> str:
        """Of e; not below the least number that PostgreSQL can tell from an underflow."""
        assert self.told.scale is not None
        factor = _exact(math.ldexp(self.told.scale, self.told.unit))
        return f"EXP({self.largest}(({score} - top) * ({factor}), -700)) AS {power}"


def _case(whens: Iterable[str], otherwise: object) -> str:
    return f"CASE{''.join(f'{_NEXT}WHEN {when}' for when in whens)} ELSE {otherwise} END"


def _sum(parts: list[str]) -> str:
    return _nested(parts, lambda part: f"({f'{_NEXT}+ '.join(part)})")


def _nested(parts: list[str], join: Callable[[list[str]], str]) -> str:
    """All parts joined, not too many at once."""
    while len(parts) > 1:
        groups = (parts[k : k + _AT_ONCE] for k in range(0, len(parts), _AT_ONCE))
        parts = [join(group) if len(group) > 1 else group[0] for group in groups]
    return parts[0]


def _exact(value: float) -> str:
    """An integer times a power of two: not all engines read decimals to the nearest double."""
    integer, divisor = value.as_integer_ratio()
    zeros = max(integer.bit_length() - 62, 0)
    exponent = zeros - divisor.bit_length() + 1
    text = f"CAST({integer >> zeros} AS {_DOUBLE})"
    sign = "/" if exponent < 0 else "*"
    for power in range(0, abs(exponent), 62):
        text += f" {sign} {2 ** min(62, abs(exponent) - power)}"
    return text if exponent == 0 else f"{text} /* {value!r} */"


def _literal(value: Level) -> str:
    if isinstance(value, str):
        return _quoted(value, "'")
    return f"({_exact(value)})" if isinstance(value, float) else str(value).upper()


def _quoted(text: str, mark: str = '"') -> str:
    if "\0" in text:
        raise ValueError(f"text of SQL has no zeros, but {text!r} has")
    return f"{mark}{text.replace(mark, 2 * mark)}{mark}"
