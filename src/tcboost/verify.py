"""Whether what a model claims of itself is true, recomputed by somebody who trusts nobody.

The mathematics is in ``docs/verify.md``. NumPy, `math` and `decimal` are at work here, on
tables and rows; nothing that fits models is. Taken as the statement are the loss, the columns,
the budget or the penalties, and the cuts. All other numbers are recomputed, or serve as hints
from which a bound follows that is sound whatever they are.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .model.additive import AdditiveModel, Levels
from .model.claim import Claim, RowWeights
from .verification import (
    Vector,
    Verification,
    cells,
    claim_of,
    enough,
    form_of,
    in_numbers,
    in_words,
    outside,
    places,
    rows_of,
    tables_fit,
    unproved,
)

Integers = NDArray[np.int64]

_BITS = 60  # dual weights are integers that sum to 2^60 at the most: no sum of them overflows
_BLOCK = 1 << 13  # rows, or rules, at a time


class Numbers(NamedTuple):
    """How to calculate, elementwise: with doubles or with decimals."""

    of: Callable[[Any], Any]
    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    whole: Callable[[Any], Any]  # rounds down what is not negative
    total: Callable[[Any], Any]


FLOAT = Numbers(np.asarray, np.exp, np.log, lambda x: x.astype(np.int64), math.fsum)
DECIMAL = Numbers(
    np.frompyfunc(decimal.Decimal, 1, 1),
    np.frompyfunc(decimal.Decimal.exp, 1, 1),
    np.frompyfunc(decimal.Decimal.ln, 1, 1),
    lambda x: np.frompyfunc(int, 1, 1)(x).astype(np.int64),
    sum,
)


class Task(NamedTuple):
    """A claim about rows, their classes y, and their weights w, which sum to one."""

    claim: Claim
    code: NDArray[np.int64] | None
    n_classes: int
    X: NDArray[Any]
    y: NDArray[np.intp]
    w: Vector
    numbers: Numbers

    def parts(self) -> list[slice]:
        """The rows, some at a time."""
        return [slice(i, i + _BLOCK) for i in range(0, len(self.y), _BLOCK)]

    def margins(self, F: Vector, part: slice) -> Vector:
        """Of outputs F; that between a row's own class and itself is infinite."""
        y, F = self.y[part], F[part]
        if self.claim.margin == "codeword":
            return self.code[y] * F  # type: ignore[index]
        own, scores = np.arange(len(y)), scores_of(F, self.code)
        z = scores[own, y][:, None] - scores
        z[own, y] = np.inf
        return z

    def adjoint(self, u: Integers) -> Integers:
        """V with ``<u, margins(F)> = <V, F>`` for every F."""
        if self.claim.margin == "codeword":
            return self.code[self.y] * u  # type: ignore[index]
        V = -u
        V[np.arange(len(u)), self.y] += u.sum(axis=1)
        return V if self.code is None else V @ self.code

    def prior(self, part: slice, width: int) -> Vector:
        """What the loss of a row weighs, or that of a margin."""
        w = self.w[part][:, None]
        if self.claim.loss in ("cross-entropy", "hinge"):
            return w
        return w / (width - (self.claim.margin == "pairwise"))

    def point(self, F: Vector, part: slice, top: float) -> tuple[Any, Any]:
        """Terms of the loss at F, and minus their slopes."""
        a, z, kind = self.numbers, self.margins(F, part), self.claim.loss
        s, z, zero, one = a.of(self.prior(part, z.shape[1])), a.of(z), a.of(0.0), a.of(1.0)
        if kind == "cross-entropy":
            most = np.maximum((-z).max(axis=1, keepdims=True), zero)
            e = a.exp(-z - most)
            total = a.exp(-most) + e.sum(axis=1, keepdims=True)
            return s * (most + a.log(total)), s * (e / total)
        if kind == "exponential":
            e = s * a.exp(-z - a.of(top))
            return e, e
        if kind == "logistic":
            e, wrong = a.exp(-abs(z)), z < 0
            value = np.where(wrong, -z, zero) + a.log(one + e)
            return s * value, s * (np.where(wrong, one, e) / (one + e))
        short = np.maximum(one - z, zero)
        if kind == "hinge":  # whose slopes prove nothing where margins tie
            return s * short.max(axis=1, keepdims=True), short * zero
        return s * short * short / a.of(2.0), s * short

    def loss(self, F: Vector, top: float = 0.0) -> Any:
        """At F; of the exponential loss before the logarithm, divided by exp(top)."""
        terms = (self.point(F, part, top)[0].ravel().tolist() for part in self.parts())
        return self.numbers.total([self.numbers.total(some) for some in terms])

    def weights(self, F: Vector) -> tuple[float, Integers, int]:
        """The loss at F, and integers u: 2^-bits u is minus its slopes, rounded down."""
        a, top, bits = self.numbers, 0.0, _BITS
        largest = max(float((-self.margins(F, part)).max()) for part in self.parts())
        if self.claim.loss == "exponential":
            loss = top = float(a.of(largest) + a.log(a.of(self.loss(F, largest))))
        else:
            loss = float(self.loss(F))
        if self.claim.loss == "squared_hinge":  # its slopes may sum to more than one
            bits -= math.frexp(max(1.0, 1.0 + largest))[1]
        u = [a.whole(self.point(F, part, top)[1] * a.of(2.0**bits)) for part in self.parts()]
        return loss, np.concatenate(u), bits

    def made_feasible(self, u: Integers, bits: int) -> None:
        """No row of cross-entropy or of the hinge gives more than it weighs, in place."""
        row = np.arange(len(u))
        while (excess := np.maximum(u.sum(axis=1) - whole(self.w, bits), 0)).any():
            most = u.argmax(axis=1)
            u[row, most] -= np.minimum(excess, u[row, most])

    def entropy(self, u: Integers, bits: int) -> float:
        """What the dual weights say of all models, but for their edges, rounded down."""
        a, kind, sums, sizes = self.numbers, self.claim.loss, list[Any](), list[Any]()
        unit = a.of(int(u.sum()) if kind == "exponential" else 2**bits)
        for part in self.parts():
            n, s = u[part], a.of(self.prior(part, u.shape[1]))
            if kind == "cross-entropy":  # a row's own class has what is left
                has = whole(self.w[part], bits)[:, None]
                n, s = np.hstack([n, has - n.sum(axis=1, keepdims=True)]), a.of(has) / unit
            terms = q = a.of(n) / unit
            if kind == "squared_hinge":
                terms = q - q * q / (a.of(2.0) * np.where(q > 0, s, a.of(1.0)))
            elif kind != "hinge":
                terms = -q * logarithm(a, q, s)
            if kind == "logistic":
                rest = np.maximum(s - q, a.of(0.0))
                terms = terms - rest * logarithm(a, rest, s)
            some = terms.ravel().tolist()
            sums.append(a.total(some))
            sizes.append(a.total(map(abs, some)))
        return float(a.total(sums)) - 2.0**-50 * float(a.total(sizes))


def verify(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    arithmetic: str = "float",
) -> Verification:
    """Recompute what a model claims of itself: its training loss, and a bound for all others.

    Parameters
    ----------
    model : estimator or AdditiveModel
        A fitted estimator that has `additive_`, or that.
    X : array-like of shape (n_samples, n_features)
        The rows that it was fitted to, in any order.
    y : array-like of shape (n_samples,)
        Their classes.
    sample_weight : array-like of shape (n_samples,), optional
        The weights that they had.
    arithmetic : {"float", "decimal"}, default="float"
        "decimal" has 30 digits and trusts no exponential of the machine; it is far slower.

    Returns
    -------
    Verification
        True as a condition if everything is proved; in words when printed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tcboost import TCBoostClassifier, verify
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TCBoostClassifier(alpha=2, l1_ratio=0.5).fit(X, y)
    >>> bool(verify(model, X, y))
    True
    >>> y[0] = 2
    >>> bool(verify(model, X, y))
    False
    """
    if arithmetic not in ("float", "decimal"):
        raise ValueError(f"arithmetic must be 'float' or 'decimal', not {arithmetic!r}")
    form, given = form_of(model), X
    X, y, weight = rows_of(form, X, y, sample_weight)
    form, X = in_numbers(form, X)
    claim = claim_of(form)
    n_rows, n_held_out = int(np.count_nonzero(weight)), 0
    if not isinstance(model, AdditiveModel):
        weight, n_rows, n_held_out = model._weights_of_fit(given, y, weight)
    elif claim.n_held_out:
        raise ValueError(
            f"{claim.n_held_out} of the rows only said when to stop, and a model alone does "
            "not know which: give the estimator"
        )
    numbers = FLOAT if arithmetic == "float" else DECIMAL
    strange = tuple(outside(form))
    with decimal.localcontext(decimal.Context(prec=30)), np.errstate(all="ignore"):
        task = task_of(form, X, y, weight, numbers)
        F = outputs(form, task.X)
        loss, *at_model = task.weights(F)
        entropy = replace(claim, loss="cross-entropy", margin="pairwise")
        log_loss = float(task._replace(claim=entropy).loss(F))
        rules, b = decomposed(form, task.X)
        loss, budget = loss + cost(claim, rules, b), spent(claim, rules, b)
        # What the penalties of an optimal model can be at the most: no model costs log C.
        most = math.log(task.n_classes)
        most = most if strange else min(loss, most)
        bounds, unused = [-math.inf, -math.inf], set[int]()
        for u, bits in dual_weights(task, form, at_model):
            found, names = lower_bounds(task, u, bits, loss, most)
            bounds, unused = list(map(max, bounds, found)), unused | names
            if enough(claim, loss - bounds[0], unused):
                break
    gaps = loss - bounds[0], loss - bounds[1]
    problems = *strange, *unproved(claim, loss, gaps[0], budget, unused)
    for what, count, claimed in (
        ("rows of positive weight", n_rows, claim.n_rows),
        ("different rows held out", n_held_out, claim.n_held_out),
    ):
        if count != claimed:
            problems += (f"there are {count} {what}, not {claimed}",)
    figures = loss, bounds[0], *gaps, budget
    text = in_words(claim, n_rows, figures, log_loss)
    return Verification(not problems, *figures, problems, text)


# ---------------------------------------------------------------- rows, scores, coefficients


def task_of(
    form: AdditiveModel, X: NDArray[Any], y: NDArray[Any], weight: Vector, numbers: Numbers
) -> Task:
    """Rows of positive weight; of the hinge equal ones are one, in the order of a witness."""
    claim, kept = form.claim, weight > 0
    assert claim is not None
    if not kept.all():
        X, y, weight = X[kept], y[kept], weight[kept]
    y, w = places(form, y), weight / weight.max()
    if claim.class_weight is not None:
        w = w * claim.class_weight[y]
    if claim.loss == "hinge":
        columns = [*(X[:, j] for j in range(X.shape[1])), y]
        order = np.lexsort((y, *columns[-2::-1]))
        new = np.arange(len(y)) == 0
        for x in (x[order] for x in columns):
            new[1:] |= (x[1:] != x[:-1]) & ~(np.isnan(x[1:]) & np.isnan(x[:-1]))
        w = np.add.reduceat(w[order], np.flatnonzero(new))
        X, y = X[order[new]], y[order[new]]
    code = None if form.decode is None else form.decode.astype(np.int64)
    return Task(claim, code, len(form.classes), X, y, w / math.fsum(w.tolist()), numbers)


def outputs(form: AdditiveModel, X: NDArray[Any]) -> Vector:
    """F of each row, which is exact where all tables are on the unit."""
    F = np.tile(form.intercept, (len(X), 1))
    for term in form.terms:
        found = [cells(axis, X[:, j]) for j, axis in zip(term.inputs, term.axes, strict=True)]
        for i in range(0, len(X), _BLOCK):
            F[i : i + _BLOCK] += term.table[tuple(at[i : i + _BLOCK] for at in found)]
    return F


def scores_of(F: Vector, code: NDArray[Any] | None) -> Vector:
    """Of every class."""
    return F if code is None else F @ code.T.astype(np.float64)


def whole(x: Vector, bits: int) -> Integers:
    """How many units of 2^-bits there are."""
    return np.floor(np.ldexp(x, bits)).astype(np.int64)


def logarithm(a: Numbers, q: Any, s: Any) -> Any:
    """Of q / s, or 0 where q is."""
    one = a.of(1.0)
    return a.log(np.where(q > 0, q, one) / np.where(q > 0, s, one))


def decomposed(form: AdditiveModel, X: NDArray[Any]) -> tuple[Vector, Vector]:
    """Coefficients of rules, and an intercept, that make the tables on these rows.

    The rules of a cut have half of its jump. How much of that those have with missing values on
    their right is a guess, and any guess is right.
    """
    assert form.claim is not None
    b, rules = form.intercept.copy(), [np.zeros((0, form.n_outputs))]
    guesses = form.claim.missing_right or (None,) * len(form.terms)
    for term, right in zip(form.terms, guesses, strict=True):
        T, missing = term.table, np.isnan(X[:, term.inputs[0]]).any()
        if len(term.inputs) > 1:
            continue
        if isinstance(term.axes[0], Levels):
            v = (T[0 if missing else 1 : -1] - T[-1]) / 2.0
            b += T[-1] + v.sum(axis=0)
        else:
            v = np.diff(T[1:], axis=0) / 2.0
            b += (T[1] + T[-1]) / 2.0
        if missing and not isinstance(term.axes[0], Levels):
            right = np.zeros_like(v) if right is None else right
            alone = (T[0] - T[1]) / 2.0 - right.sum(axis=0)
            b += alone
            v = np.concatenate([v - right, right, alone[None]])
        rules.append(v)
    return np.concatenate(rules), b


def cost(claim: Claim, rules: Vector, b: Vector) -> float:
    """What the penalties add to the loss."""
    if claim.penalty is None:
        return 0.0
    squares = claim.ridge * total(rules * rules) + claim.intercept_ridge * total(b * b)
    return claim.penalty * total(lengths(rules)) + squares / 2.0


def spent(claim: Claim, rules: Vector, b: Vector) -> float:
    """What the coefficients sum to, a constant among them where there is a budget."""
    if claim.theta is not None:
        rules = np.concatenate([rules, b[None]])
    if claim.columns == "vectors":
        return total(lengths(rules))
    of_bits = map(total, np.abs(rules).T)
    return max(of_bits) if claim.columns == "bits" else total(np.abs(rules).max(axis=1))


def lengths(v: Vector) -> Vector:
    """Of the rows."""
    return np.sqrt((v * v).sum(axis=-1, keepdims=True))


def total(x: Vector) -> float:
    """The sum, rounded once."""
    return math.fsum(x.ravel().tolist())


# ---------------------------------------------------------------- bounds


def dual_weights(task: Task, form: AdditiveModel, at_model: Any) -> Iterator[Any]:
    """From which bounds follow: those of the model, of the witness, and of smaller scores.

    At a penalty they are not made smaller, since every other intercept costs too much.
    """
    witness = task.claim.witness
    if task.claim.loss == "hinge":
        yield given_weights(task, witness), _BITS
        return
    yield at_model
    sources = [form]
    if isinstance(witness, AdditiveModel) and tables_fit(witness, form):
        sources.insert(0, witness)
    for source in sources:
        F = outputs(source, task.X)
        for tenths in range(10, 0, -1) if task.claim.penalty is None else (10,):
            if tenths < 10 or source is not form:
                yield task.weights(tenths / 10 * F)[1:]


def given_weights(task: Task, witness: Any) -> Integers:
    """Of the hinge; none if there is no witness that makes sense."""
    u, width = np.zeros((len(task.y), task.n_classes), dtype=np.int64), task.n_classes - 1
    if isinstance(witness, RowWeights):
        row, k = np.divmod(np.asarray(witness.place, np.int64), width)
        if ((row >= 0) & (row < len(u)) & (witness.weight >= 0)).all() and total(
            witness.weight
        ) <= 2.0:
            np.add.at(u, (row, k + (k >= task.y[row])), whole(witness.weight, _BITS))
            task.made_feasible(u, _BITS)
    return u


def lower_bounds(
    task: Task, u: Integers, bits: int, loss: float, most: float
) -> tuple[tuple[float, float], set[int]]:
    """Of the loss of any model, with the claimed cuts and with all, and what is unused."""
    claim = task.claim
    if claim.loss == "cross-entropy":
        task.made_feasible(u, bits)
    unit = 1.0 / int(u.sum()) if claim.loss == "exponential" else 2.0**-bits
    entropy, V, found = task.entropy(u, bits), task.adjoint(u), []
    largest, excess = edges(task, V, unit)
    constant = unit * V.sum(axis=0)
    for of_features, squares in zip(largest, excess, strict=True):
        longest = np.maximum(of_features.max(axis=0), measured(claim, constant[None])[0])
        if claim.penalty is None:
            gain = float((claim.theta or 0.0) * longest.sum())
        else:
            over = max(0.0, float(of_features.max()) - claim.penalty)
            gain = most / claim.penalty * over if over else 0.0
            if claim.ridge > 0.0:
                gain = min(gain, squares / (2.0 * claim.ridge))
            gain += float(constant @ constant) / (2.0 * claim.intercept_ridge)
        bound = entropy - gain
        found.append(bound - 1e-14 * (1.0 + abs(loss) + abs(bound)))
        if len(found) == 1:
            unused = spared(task, of_features, longest, max(0.0, loss - found[0]))
    infimum = -math.inf if claim.loss == "exponential" else 0.0
    return (max(found[0], infimum), max(found[1], infimum)), set(
        np.flatnonzero(unused).tolist()
    )


def spared(task: Task, largest: Vector, longest: Vector, gap: float) -> NDArray[np.bool_]:
    """Features that no optimal model uses: too far below what is used, and V is near the best.

    How near follows from the gap, by the strong concavity of the dual in u.
    """
    claim, code = task.claim, task.code
    if claim.penalty is not None:
        return np.asarray(largest[:, 0] + math.sqrt(gap) < claim.penalty)
    if claim.loss == "hinge":
        return np.asarray(np.isneginf(largest).all(axis=1))
    spread = 1.0
    if claim.margin == "pairwise":  # the sum of |V| for weights of one
        code = np.eye(2, dtype=np.int64) if code is None else code
        spread = float(np.abs(code[:, None] - code).sum(axis=2).max())
    bend = 0.25 if claim.loss == "logistic" else 1.0
    near = spread * math.sqrt(bend * (2.0 * gap + 1e-14))
    return np.asarray((largest < longest - 2.0 * near).all(axis=1))


def edges(task: Task, V: Integers, unit: float) -> tuple[Vector, list[float]]:
    """Measures of all rules, with the claimed cuts and with all that differ on these rows.

    For each feature the largest ones, (2, features, 1 or outputs); and the sums of the squares
    of what they exceed the penalty by. S holds sums of V over the rows up to a place in the
    order of a feature, so that the sum of a rule is made of rows of it.
    """
    claim, (n, n_features) = task.claim, task.X.shape
    S = np.zeros((n + 1, V.shape[1]), dtype=np.int64)
    width = V.shape[1] if claim.columns == "bits" else 1
    largest, excess = np.full((2, n_features, width), -np.inf), [0.0, 0.0]
    added, r = 0.0, claim.penalty or 0.0
    for j in range(n_features):
        x = task.X[:, j]
        order = np.argsort(x)  # missing values are last
        x = x[order]
        np.cumsum(np.take(V, order, axis=0, out=S[1:]), axis=0, out=S[1:])
        m = n - int(np.isnan(x).sum())
        cuts = np.flatnonzero(x[1:m] != x[: max(m, 1) - 1]) + 1
        listed = None if claim.cuts == "all" or j in claim.categorical else claim.cuts[j]
        claimed = cuts if listed is None else np.searchsorted(x[:m], listed, side="right")
        for k, at in enumerate((claimed, cuts)):
            if k and at is claimed:
                largest[1, j], excess[1] = largest[0, j], excess[1] + added
                break
            added = 0.0
            for A in rule_sums(S, at, m, j in claim.categorical):
                measure = measured(claim, unit * A.astype(np.float64))
                largest[k, j] = np.maximum(largest[k, j], measure.max(axis=0))
                added += float((np.maximum(measure - r, 0.0) ** 2).sum())
            excess[k] += added
    return largest, excess


def rule_sums(S: Integers, cuts: Any, m: int, categorical: bool) -> Iterator[Integers]:
    """The sum of V times what it says, of each rule of a feature with m values.

    `cuts` are numbers of values below, n - m are missing.
    """
    n = len(S) - 1
    if categorical:
        ends = np.unique([0, *cuts, m, n])
        if len(ends) > 2:
            yield 2 * np.diff(S[ends], axis=0) - S[n]
    elif m:
        left = 2 * S[m] - S[n]  # with missing values on the left of no cut
        for i in range(0, len(cuts), _BLOCK):
            yield S[n] - 2 * S[cuts[i : i + _BLOCK]]
            if m < n:
                yield left - 2 * S[cuts[i : i + _BLOCK]]
        if m < n:
            yield left[None]


def measured(claim: Claim, A: Vector) -> Vector:
    """What coefficients that sum to one can make of each A: of bits each by itself."""
    if claim.columns == "vectors":
        return lengths(A)
    if claim.columns == "listed codes":
        return np.abs(A @ np.asarray(claim.codes, np.float64)).max(axis=1, keepdims=True)
    return np.abs(A) if claim.columns == "bits" else np.abs(A).sum(axis=1, keepdims=True)
