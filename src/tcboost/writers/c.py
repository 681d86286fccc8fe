"""A model as C99, without allocation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import count
from string import Template
from typing import Any

import numpy as np

from ..model.additive import AdditiveModel, Vector
from .common import Content, HasForm, Path, content, expanded, finished

_KEYWORDS = """auto break case char const continue default do double else enum extern float for
    goto if inline int long register restrict return short signed sizeof static struct switch
    typedef union unsigned void volatile while _Bool _Complex _Imaginary"""
_TEXT = Template("""\
/* $about
 * Classes, by their places: $labels
 * Features, by their places in x: $names
 * NAN is a missing value. Do not compile with -ffast-math, which knows none.
$note */
$include
/* The place of the class of the largest score, the first on a tie. */
int ${name}_predict(const double *x);
/* The $C scores. */
void ${name}_scores(const double *x, double *scores);
$declared
static const $number ${name}_intercept[$C] = {$intercept};
$tables
$adder(const double *x, $total *$sums)
{
    int c;
    for (c = 0; c < $C; c++) $sums[c] = ${name}_intercept[c];
$add}
$scores
int ${name}_predict(const double *x)
{
    $total sums[$C];
    int c, best = 0;
    ${adds}(x, sums);
    for (c = 1; c < $C; c++) if (sums[c] > sums[best]) best = c;
    return best;
}
$functions""")
_TABLES = Template("""\
/* Axes of the terms: of which feature; where its cuts are; where the table of the term is, and
 * by how much a cell moves on in it; whether the axis is the last of its term. */
static const struct { int feature, start, n_cuts, first, stride, last; } ${name}_axes[$n] = {
$axes
};
static const double ${name}_cuts[] = {
$cuts
};
/* For every cell the numbers of all classes. */
static const $entry ${name}_table[] = {
$table
};

/* 0 for a missing value, else 1 + the number of cuts below it: by halving, then one by one. */
static int ${name}_cell(const double *cuts, int n, double value)
{
    const double *from = cuts;
    int i, cell = value == value;
    while (n > 16) {
        const int half = n / 2;
        from += from[half - 1] < value ? half : 0;
        n -= half;
    }
    for (i = 0; i < n; i++) cell += from[i] < value;
    return cell + (int)(from - cuts);
}
""")
_ADD = Template("""\
    for (int a = 0, place = 0; a < $n; a++) {
        const double *cuts = ${name}_cuts + ${name}_axes[a].start;
        place += ${name}_axes[a].first + ${name}_axes[a].stride
            * ${name}_cell(cuts, ${name}_axes[a].n_cuts, x[${name}_axes[a].feature]);
        if (!${name}_axes[a].last) continue;
        for (c = 0; c < $C; c++) $sums[c] += ${name}_table[place + c];
        place = 0;
    }
""")
_SCALED = Template("""
void ${name}_scores(const double *x, double *scores)
{
    int32_t sums[$C];
    int c;
    ${name}_add(x, sums);
    for (c = 0; c < $C; c++) scores[c] = sums[c] * $step;
}
""")
_PROBABILITIES = Template("""
void ${name}_probabilities(const double *x, double *p)
{
    double top, total = 0.0;
    int c;
    ${name}_scores(x, p);
    top = p[0];
    for (c = 1; c < $C; c++) if (p[c] > top) top = p[c];
    for (c = 0; c < $C; c++) total += p[c] = exp($scale * (p[c] - top));
    for (c = 0; c < $C; c++) p[c] /= total;
}
""")
_LEVEL = Template("""
int ${name}_level(int feature, const char *text)
{
    static const struct { int feature, number; const char *text; } levels[$n] = {
$levels
    };
    int i;
    for (i = 0; i < $n; i++) {
        if (levels[i].feature == feature && !strcmp(levels[i].text, text)) {
            return levels[i].number;
        }
    }
    return -1;
}
""")


def to_c(
    model: HasForm | AdditiveModel, path: Path = None, *, name: str = "model", bits: Any = None
) -> str:
    """The model as C99 that allocates nothing: a file to be compiled as it is.

    It defines, for a row ``x`` of all features where NAN is missing::

        int model_predict(const double *x);                       the place of the class
        void model_scores(const double *x, double *scores);       the model's, bit for bit
        void model_probabilities(const double *x, double *p);
        int model_level(int feature, const char *text);           what to put into x

    The last is there if a feature has levels of text (in UTF-8), and is -1 for unknown ones.
    The probabilities, which alone need ``exp``, are not there where the loss tells none.

    Parameters
    ----------
    model : estimator or AdditiveModel
        What to write; estimators must be fitted, and have tables.
    path : str or path-like, default=None
        Where to write it as well.
    name : str, default="model"
        With what all names begin.
    bits : {None, 32, 16}, default=None
        Tables of integers of so many bits, sums of 32, no probabilities. The first lines of the
        text say by how much a score may differ, and which margin makes the class sure.

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import tcboost
    >>> X, y = load_iris(return_X_y=True)
    >>> text = tcboost.to_c(tcboost.AdaBoostMO(max_iter=10).fit(X, y), name="iris")
    >>> "int iris_predict(const double *x)" in text
    True
    """
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) or name in _KEYWORDS.split():
        raise ValueError(f"name must be an identifier of C, but is {name!r}")
    if bits not in (None, 16, 32):
        raise ValueError(f"bits must be None, 32 or 16, but is {bits!r}")
    told = content(model)
    grids = [expanded(told, term) for term in told.terms]
    intercept, tables = told.intercept, [table for _, table in grids]
    names = {"name": name, "C": len(told.labels), "number": "double", "entry": "double"}
    names |= {"total": "double", "sums": "scores", "adds": f"{name}_scores", "note": ""}
    if bits:
        step, intercept, tables, off = _rounded(intercept, tables, bits)
        names |= {"number": "int32_t", "entry": f"int{bits}_t", "total": "int32_t"}
        names |= {"sums": "sums", "adds": f"{name}_add", "step": step.hex()}
        names["note"] = (
            f" * A score differs from the model's by at most {off:.17g}; where the largest is\n"
            f" * ahead by more than {2 * off:.17g}, the class is the model's.\n"
        )
    names["adder"] = f"{'static ' if bits else ''}void {names['adds']}"
    include = ["<stdint.h>"] if bits else []
    declared, functions = [], []
    if told.scale is not None and not bits:
        include.append("<math.h>")
        declared.append(f"void {name}_probabilities(const double *x, double *p);")
        functions.append(_PROBABILITIES.substitute(names, scale=float(told.scale).hex()))
    if told.texts:
        include.append("<string.h>")
        declared.append("/* The number of a level (UTF-8) in x; -1 of one that is unknown. */")
        declared.append(f"int {name}_level(int feature, const char *text);")
        functions.append(_level(told, names))
    text = _TEXT.substitute(
        names,
        about=told.about(),
        labels=_comment(told.labels),
        names=_comment(told.names),
        include="".join(f"#include {header}\n" for header in include),
        declared="".join(f"{line}\n" for line in declared),
        intercept=_numbers([intercept]).strip(" ,"),
        tables=_tables(told, [cuts for cuts, _ in grids], tables, names),
        add=_ADD.substitute(names, n=_n_axes(told)) if grids else "    (void)x;\n",
        scores=_SCALED.substitute(names) if bits else "",
        functions="".join(functions),
    )
    return finished(text, path)


def _n_axes(told: Content) -> int:
    return sum(len(term.inputs) for term in told.terms)


def _tables(
    told: Content, cuts: list[list[Vector]], tables: list[Any], names: dict[str, Any]
) -> str:
    """Axes, cuts and tables; nothing for a constant."""
    if not tables:
        return ""
    axes, start, first = [], 0, 0
    for term, of_axes, table in zip(told.terms, cuts, tables, strict=True):
        stride = table.size
        for k, (j, of_axis) in enumerate(zip(term.inputs, of_axes, strict=True)):
            stride //= table.shape[k]
            last = k == len(of_axes) - 1
            place = first if k == 0 else 0
            fields = (j, start, len(of_axis), place, stride, int(last))
            axes.append(f"    {{{', '.join(map(str, fields))}}}")
            start += len(of_axis)
        first += table.size
    flat = [of_axis for of_axes in cuts for of_axis in of_axes if len(of_axis)]
    return _TABLES.substitute(
        names,
        n=len(axes),
        axes=",\n".join(axes),
        cuts=_numbers(flat or [np.zeros(1)]),
        table=_numbers(row for table in tables for row in table.reshape(-1, names["C"])),
    )


def _numbers(rows: Iterable[Any]) -> str:
    """Rows of numbers, the doubles in hexadecimal, which C reads exactly."""
    lines = (
        ", ".join(x.hex() if isinstance(x, float) else str(x) for x in row.tolist())
        for row in rows
    )
    return ",\n".join(f"    {line}" for line in lines)


def _rounded(
    intercept: Vector, tables: list[Vector], bits: int
) -> tuple[float, Any, list[Any], float]:
    """The least step that leaves room for all sums, multiples of it, and what is lost."""
    parts = [intercept, *tables]
    largest = [float(np.abs(part).max()) for part in parts]
    start = max(int(np.frexp(sum(largest))[1]) - 31, -1000)
    for exponent in count(start):
        whole = [np.rint(np.ldexp(part, -exponent)) for part in parts]
        tops = [np.abs(part).max() for part in whole]
        if sum(tops) < 2**31 and max(tops[1:], default=0) < 2 ** (bits - 1):
            break
    lost = [
        np.abs(np.ldexp(w, exponent) - part).max() for w, part in zip(whole, parts, strict=True)
    ]
    integer = [part.astype(np.int64) for part in whole]
    return 2.0**exponent, integer[0], integer[1:], float(sum(lost)) * (1.0 + 1e-9)


def _level(told: Content, names: dict[str, Any]) -> str:
    rows = [
        f'        {{{j}, {k}, "{_escaped(text)}"}}'
        for j, texts in sorted(told.texts.items())
        for k, text in enumerate(texts)
    ]
    return _LEVEL.substitute(names, n=len(rows), levels=",\n".join(rows))


def _escaped(text: str) -> str:
    """The inside of a literal; what is not a letter, digit or space of ASCII, in octal."""
    if "\0" in text:
        raise ValueError(f"text in C ends at a zero, which the level {text!r} has inside")
    plain = (
        chr(b) if b < 128 and (chr(b).isalnum() or b == 32) else f"\\{b:03o}"
        for b in text.encode()
    )
    return "".join(plain)


def _comment(value: object) -> str:
    """JSON that neither ends a comment nor starts one."""
    return json.dumps(value).replace("/", "\\/").replace("?", "\\u003f")
