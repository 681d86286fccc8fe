"""A model as C99, without allocation."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from itertools import count
from string import Template
from typing import Any

import numpy as np

from ..model.additive import Vector
from .common import Content, Model, Path, content, finished

_TEXT = """\
/* $about
 * Classes, by their places: $labels
 * Features, by their places in x: $features
 * NAN is a missing value. Do not compile with -ffast-math, which knows none.
$note */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Axes of the terms: of which feature; where its cuts are; where the table of the term is, or
 * -1 where another axis of the term comes next. */
static const struct { int feature, start, n_cuts, table; } ${name}_axes[$n] = {
$axes
};
static const double ${name}_cuts[] = {
$cuts
};
static const $sum ${name}_intercept[$C] = {
$intercept
};
/* For every cell the numbers of all classes. */
static const $entry ${name}_table[] = {
$table
};

/* 0 for a missing value, else 1 + the number of cuts below it: by halving, then one by one. */
static int ${name}_cell(const double *cuts, int n, double value)
{
    const double *from = cuts;
    int cell = value == value;
    while (n > 16) {
        const int half = n / 2;
        from += from[half - 1] < value ? half : 0;
        n -= half;
    }
    for (int i = 0; i < n; i++) cell += from[i] < value;
    return cell + (int)(from - cuts);
}

static void ${name}_add(const double *x, $sum *sums)
{
    for (int c = 0; c < $C; c++) sums[c] = ${name}_intercept[c];
    for (int a = 0, place = 0; a < $n; a++) {
        const int n = ${name}_axes[a].n_cuts, table = ${name}_axes[a].table;
        place = place * (n + 2)
            + ${name}_cell(${name}_cuts + ${name}_axes[a].start, n, x[${name}_axes[a].feature]);
        if (table < 0) continue;
        for (int c = 0; c < $C; c++) sums[c] += ${name}_table[table + place * $C + c];
        place = 0;
    }
}

/* The place of the class of the largest score, the first on a tie. */
int ${name}_predict(const double *x)
{
    $sum sums[$C];
    int best = 0;
    ${name}_add(x, sums);
    for (int c = 1; c < $C; c++) if (sums[c] > sums[best]) best = c;
    return best;
}

void ${name}_scores(const double *x, double *scores)
{
    $sum sums[$C];
    ${name}_add(x, sums);
    for (int c = 0; c < $C; c++) scores[c] = sums[c]$step;
}
"""
_PROBABILITIES = """
void ${name}_probabilities(const double *x, double *p)
{
    double top, total = 0.0;
    ${name}_scores(x, p);
    top = p[0];
    for (int c = 1; c < $C; c++) if (p[c] > top) top = p[c];
    for (int c = 0; c < $C; c++) total += p[c] = exp($scale * (p[c] - top));
    for (int c = 0; c < $C; c++) p[c] /= total;
}
"""
_LEVEL = """
/* The number of a level (UTF-8) in x; -1 of one that is unknown. */
int ${name}_level(int feature, const char *text)
{
    static const struct { int feature, number; const char *text; } levels[] = {$levels
        {-1, -1, 0}
    };
    int i = 0;
    while (levels[i].text
        && (levels[i].feature != feature || strcmp(levels[i].text, text))) i++;
    return levels[i].number;
}
"""


def to_c(
    model: Model, path: Path = None, *, name: str = "model", bits: int | None = None
) -> str:
    """The model as C99 that allocates nothing: a file to be compiled as it is.

    It defines, for a row ``x`` of all features where NAN is missing::

        int model_predict(const double *x);                       the place of the class
        void model_scores(const double *x, double *scores);       the model's, bit for bit
        void model_probabilities(const double *x, double *p);
        int model_level(int feature, const char *text);           what to put into x

    The last is there if a feature has levels of text (in UTF-8), and is -1 for unknown ones.
    Dates and durations of a frame are given in seconds, of dates since 1970.
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
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(f"name must be an identifier of C, but is {name!r}")
    if bits not in (None, 16, 32):
        raise ValueError(f"bits must be None, 32 or 16, but is {bits!r}")
    told = content(model)
    parts, step, note = [told.intercept, *(term.scores for term in told.terms)], "", ""
    if bits:
        parts, size, off = _rounded(parts, bits)
        step = f" * {size.hex()}"
        note = (
            f" * A score differs from the model's by at most {off:.17g}; where the largest is\n"
            f" * ahead by more than {2 * off:.17g}, the class is the model's.\n"
        )
    axes = _axes(told)
    levels = ((j, k, text) for j, of in told.texts.items() for k, text in enumerate(of))
    known = told.scale is not None and not bits
    template = _TEXT + _PROBABILITIES * known + _LEVEL * bool(told.texts)
    text = Template(template).substitute(
        name=name,
        C=len(told.labels),
        about=told.about,
        labels=_comment(told.labels),
        features=_comment(told.names),
        note=note,
        sum="int32_t" if bits else "double",
        entry=f"int{bits:d}_t" if bits else "double",
        step=step,
        n=len(axes),
        axes=",\n".join(f"    {{{', '.join(map(str, fields))}}}" for fields in axes),
        cuts=_numbers([c for t in told.terms for c in t.cuts if len(c)] or [np.zeros(1)]),
        intercept=_numbers(parts[:1]),
        table=_numbers(row for part in parts[1:] for row in part),
        scale=told.scale and told.scale.hex(),
        levels="".join(f'\n        {{{j}, {k}, "{_escaped(x)}"}},' for j, k, x in levels),
    )
    return finished(text, path)


def _axes(told: Content) -> list[list[int]]:
    """The fields of every axis."""
    axes, start, place = list[list[int]](), 0, 0
    for term in told.terms:
        for j, cuts in zip(term.inputs, term.cuts, strict=True):
            axes.append([j, start, len(cuts), -1])
            start += len(cuts)
        axes[-1][-1] = place
        place += term.scores.size
    return axes


def _numbers(rows: Iterable[Any]) -> str:
    """Rows of numbers, the doubles in hexadecimal, which C reads exactly."""
    lines = (
        ", ".join(x.hex() if isinstance(x, float) else str(x) for x in row.tolist())
        for row in rows
    )
    return ",\n".join(f"    {line}" for line in lines)


def _rounded(parts: list[Vector], bits: int) -> tuple[list[Any], float, float]:
    """Multiples of the least step with room for all of them, the step, and what is lost."""
    most = sum(np.abs(part).max() for part in parts)
    for exponent in count(max(math.frexp(most)[1] - 31, -1000)):
        whole = [np.rint(np.ldexp(part, -exponent)) for part in parts]
        tops = [np.abs(part).max() for part in whole]
        if sum(tops) < 2**31 and max(tops[1:]) < 2 ** (bits - 1):
            break
    pairs = zip(whole, parts, strict=True)
    lost = sum(float(np.abs(np.ldexp(w, exponent) - part).max()) for w, part in pairs)
    return [w.astype(np.int64) for w in whole], 2.0**exponent, lost * (1.0 + 1e-9)


def _escaped(text: str) -> str:
    """The inside of a literal; what is not a letter, digit or space of ASCII, in octal."""
    if "\0" in text:
        raise ValueError(f"text in C ends at a zero, which the level {text!r} has inside")
    odd = re.compile(rb"[^A-Za-z0-9 ]")
    return odd.sub(lambda found: b"\\%03o" % found[0][0], text.encode()).decode()


def _comment(value: object) -> str:
    """JSON that neither ends a comment nor starts one."""
    return json.dumps(value).replace("/", "\\/").replace("?", "\\u003f")
