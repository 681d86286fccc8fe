"""Whether what a model claims of itself is true, recomputed by somebody who trusts nobody.

``docs/verify.md`` is the mathematics, in the same order. `verify` comes to the verdict; `Rows`
have margins and losses, and slopes, from which weights u and their `entropy` come; `decomposed`
has a model's coefficients, for `cost` and what is `spent`; `lower_bounds` follow from any u of
`dual_weights` by the sums V of all rules (`edges`), and so do unused features (`spared`).

Nothing that fits models is at work. Taken as the statement are loss, columns, budget or
penalties, and cuts; all other numbers are recomputed, or serve as hints.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .model.additive import AdditiveModel, Levels
from .model.claim import Claim, RowWeights
from .verification import Vector, Verification, in_words, read, tables_fit, unproved

Integers = NDArray[np.int64]

_BITS = 60  # dual weights are integers that sum to 2^60 at the most: no sum of them overflows
_BLOCK = 1 << 13  # rows, or rules, at a time
# Doubles as numbers to calculate with, and the logarithm of these; NumPy has all else of both.
_ARITHMETIC: dict[str, tuple[Any, Any]] = {
    "float": (np.asarray, np.log),
    "decimal": (
        np.frompyfunc(decimal.Decimal, 1, 1),
        np.frompyfunc(decimal.Decimal.ln, 1, 1),
    ),
}


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
    if arithmetic not in _ARITHMETIC:
        raise ValueError(f"arithmetic must be 'float' or 'decimal', not {arithmetic!r}")
    form, given, n_rows, strange = read(model, X, y, sample_weight)
    claim = form.claim
    assert claim is not None
    quiet = decimal.Context(prec=30, traps=[])
    with decimal.localcontext(quiet), np.errstate(all="ignore"):
        rows = weighed(form, *given, *_ARITHMETIC[arithmetic])
        F = outputs(form, rows.X)
        loss, *at_model = rows.at(F)
        entropy = replace(claim, loss="cross-entropy", margin="pairwise")
        log_loss = rows._replace(claim=entropy).at(F)[0]
        rules, b = decomposed(form, rows.X)
        loss, budget = loss + cost(claim, rules, b), spent(claim, rules, b)
        # What the penalties of an optimal model can be at the most: no model costs log C.
        most = math.log(len(form.classes))
        most = most if strange else min(loss, most)
        bounds, unused = [-math.inf, -math.inf], set[int]()
        for u, bits in dual_weights(rows, form, at_model):
            found, names = lower_bounds(rows, u, bits, loss, most)
            bounds, unused = list(map(max, bounds, found)), unused | names
            missed = [*unproved(claim, loss, loss - bounds[0], budget, unused)]
            if not missed and claim.dual is not None:
                break
    problems = (*strange, *missed)
    figures = loss, bounds[0], loss - bounds[0], loss - bounds[1], budget
    text = in_words(claim, n_rows, figures, log_loss)
    return Verification(not problems, *figures, problems, text)


# ---------------------------------------------------------------- rows, margins, losses


class Rows(NamedTuple):
    """Rows, their classes y, and weights w, which sum to one; scores are ``F code^T``.

    `of` gives numbers to calculate with, doubles or decimals, and `log` is their logarithm.
    """

    claim: Claim
    code: Integers
    of: Any
    log: Any
    X: Vector
    y: NDArray[np.intp]
    w: Vector

    def blocks(self, array: NDArray[Any]) -> Iterator[tuple[Rows, NDArray[Any]]]:
        """Some rows at a time, and what an array has of them."""
        for i in range(0, len(self.y), _BLOCK):
            part = slice(i, i + _BLOCK)
            X, y, w = self.X[part], self.y[part], self.w[part]
            yield self._replace(X=X, y=y, w=w), array[part]

    @property
    def own(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where the class of each row is."""
        return np.arange(len(self.y)), self.y

    @property
    def prior(self) -> Vector:
        """What the loss of a row weighs, or that of a margin, as a column."""
        if self.claim.loss in ("cross-entropy", "hinge"):
            return self.w[:, None]
        n_classes, n_outputs = self.code.shape
        return self.w[:, None] / (n_outputs if self.codeword else n_classes - 1)

    @property
    def codeword(self) -> bool:
        """Whether margins are those of the bits of a code."""
        return self.claim.margin == "codeword"

    def margins(self, F: Vector) -> Vector:
        """z of outputs F; that between a row's own class and itself is to count for nothing."""
        if self.codeword:
            return self.code[self.y] * F
        scores = F @ self.code.T
        z = scores[self.own][:, None] - scores
        z[self.own] = 0.0 if self.claim.loss == "cross-entropy" else np.inf
        return z

    def adjoint(self, u: Integers) -> Integers:
        """V with ``<u, margins(F)> = <V, F>`` for every F."""
        if self.codeword:
            return self.code[self.y] * u
        V = -u
        V[self.own] += u.sum(axis=1)
        return V @ self.code

    def losses(self, F: Vector, top: float) -> tuple[Any, Any]:
        """Terms of the loss at F, and minus their slopes; the exponential's over exp(top)."""
        s, z, kind = self.of(self.prior), self.of(self.margins(F)), self.claim.loss
        if kind == "cross-entropy":  # log sum exp(-z)
            most = (-z).max(axis=1, keepdims=True)
            e = np.exp(-z - most)
            total = e.sum(axis=1, keepdims=True)
            return s * (most + self.log(total)), s * (e / total)
        if kind == "exponential":  # exp(-z)
            e = s * np.exp(-z - self.of(top))
            return e, e
        if kind == "logistic":  # log(1 + exp(-z))
            e = np.exp(-abs(z))
            value = np.maximum(-z, 0) + self.log(1 + e)
            return s * value, s * (np.where(z < 0, 1, e) / (1 + e))
        short = np.maximum(1 - z, 0)
        if kind == "hinge":  # whose slopes prove nothing where margins tie
            return s * short.max(axis=1, keepdims=True), 0 * short
        return s * short * short / 2, s * short

    def at(self, F: Vector) -> tuple[float, Integers, int]:
        """The loss at F, and integers u: 2^-bits u is minus its slopes, rounded down."""
        bits, kind, largest = _BITS, self.claim.loss, 0.0
        if kind in ("exponential", "squared_hinge"):
            largest = -min(some.margins(G).min() for some, G in self.blocks(F))
        if kind == "squared_hinge":  # its slopes may sum to more than one
            bits -= math.frexp(max(1.0, 1.0 + largest))[1]

        def sums(top: float) -> tuple[float, Integers]:
            values, u = [], []
            for some, G in self.blocks(F):
                terms, slopes = some.losses(G, top)
                values.append(total(terms))
                u.append((slopes * self.of(2.0**bits)).astype(np.int64))
            return math.fsum(values), np.concatenate(u)

        loss, u = sums(largest)
        if kind == "exponential":  # the logarithm of all, whose slopes sum to one
            loss = largest + float(self.log(self.of(loss)))
            u = sums(loss)[1]
        return loss, u, bits

    def made_feasible(self, u: Integers) -> None:
        """No row of cross-entropy or of the hinge gives more than it weighs, in place.

        Of cross-entropy each row's own class has what is left.
        """
        if self.claim.loss not in ("cross-entropy", "hinge"):
            return
        u[self.own], has, row = 0, whole(self.w), np.arange(len(u))
        while (excess := np.maximum(u.sum(axis=1) - has, 0)).any():
            most = u.argmax(axis=1)
            u[row, most] -= np.minimum(excess, u[row, most])
        if self.claim.loss == "cross-entropy":
            u[self.own] = has - u.sum(axis=1)

    def entropy(self, u: Integers, unit: float) -> float:
        """What feasible u say of all models, but for ``<V, F'>``, rounded down.

        The inequalities of Fenchel and Young in the table of ``docs/verify.md``.
        """

        def of_shares(q: Any, s: Any) -> Any:
            return np.where(q > 0, -q * self.log(q / s), 0)

        values, sizes, kind, unit = [], [], self.claim.loss, self.of(unit)
        for some, n in self.blocks(u):
            q, s = self.of(n) / unit, self.of(some.prior)
            if kind == "hinge":
                terms = q
            elif kind == "squared_hinge":
                terms = np.where(q > 0, q - q * q / (2 * s), 0)
            elif kind == "logistic":
                terms = of_shares(q, s) + of_shares(np.maximum(s - q, 0), s)
            else:
                if kind == "cross-entropy":  # what u sums to in each row
                    s = self.of(whole(some.w)[:, None]) / unit
                terms = of_shares(q, s)
            values.append(total(terms))
            sizes.append(total(abs(terms)))
        return math.fsum(values) - 2.0**-50 * math.fsum(sizes)


def weighed(
    form: AdditiveModel, X: Vector, y: NDArray[np.intp], w: Vector, of: Any, log: Any
) -> Rows:
    """Rows with their final weights; of the hinge equal ones are one, as a witness has them."""
    claim, w = form.claim, w / w.max()
    assert claim is not None
    if claim.class_weight is not None:
        w = w * claim.class_weight[y]
    if claim.loss == "hinge":
        content = np.column_stack([np.where(np.isnan(X), np.inf, X), y]) + 0.0
        _, first, which = np.unique(content, axis=0, return_index=True, return_inverse=True)
        X, y, w = X[first], y[first], np.bincount(which.ravel(), w).astype(float)
    code = np.eye(form.n_outputs) if form.decode is None else form.decode
    return Rows(claim, code.astype(np.int64), of, log, X, y, w / math.fsum(w.tolist()))


def outputs(form: AdditiveModel, X: Vector) -> Vector:
    """F of each row, which is exact where all tables are on the unit."""
    F = np.tile(form.intercept, (len(X), 1))
    for term in form.terms:
        F += term.table[term.cells(X)]
    return F


def whole(w: Vector) -> Integers:
    """How many units of 2^-60 there are."""
    return np.floor(np.ldexp(w, _BITS)).astype(np.int64)


def total(x: Any) -> float:
    """The sum, rounded once."""
    return math.fsum(x.ravel().tolist())


# ---------------------------------------------------------------- coefficients


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
            if missing:
                R = np.zeros_like(v) if right is None else right
                alone = (T[0] - T[1]) / 2.0 - R.sum(axis=0)
                b += alone
                v = np.concatenate([v - R, R, alone[None]])
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
    return np.sqrt(np.einsum("ij,ij->i", v, v))[:, None]


# ---------------------------------------------------------------- bounds


def dual_weights(rows: Rows, form: AdditiveModel, at_model: Any) -> Iterator[Any]:
    """From which bounds follow: those of the model, of the witness, and of smaller scores.

    At a penalty they are not made smaller, since every other intercept costs too much.
    """
    claim = rows.claim
    if claim.loss == "hinge":
        yield given_weights(rows), _BITS
        return
    yield at_model
    sources = [form]
    if isinstance(claim.witness, AdditiveModel) and tables_fit(claim.witness, form):
        sources.insert(0, claim.witness)
    for source in sources:
        F = outputs(source, rows.X)
        for tenths in range(10, 0, -1) if claim.penalty is None else (10,):
            if tenths < 10 or source is not form:
                yield rows.at(tenths / 10 * F)[1:]


def given_weights(rows: Rows) -> Integers:
    """Of the hinge; none if there is no witness that makes sense."""
    u, witness = np.zeros((len(rows.y), len(rows.code)), dtype=np.int64), rows.claim.witness
    if isinstance(witness, RowWeights):
        row, k = np.divmod(np.asarray(witness.place, np.int64), u.shape[1] - 1)
        sense = (row >= 0) & (row < len(u)) & (witness.weight >= 0)
        if sense.all() and total(witness.weight) <= 2.0:
            np.add.at(u, (row, k + (k >= rows.y[row])), whole(witness.weight))
    return u


def lower_bounds(
    rows: Rows, u: Integers, bits: int, loss: float, most: float
) -> tuple[list[float], set[int]]:
    """Of the loss of any model, with the claimed cuts and with all, and what is unused."""
    claim = rows.claim
    rows.made_feasible(u)
    unit = int(u.sum()) if claim.loss == "exponential" else 2.0**bits
    entropy, V, found = rows.entropy(u, unit), rows.adjoint(u), []
    largest, squares = edges(rows, V, unit)
    constant = V.sum(axis=0) / unit
    for k in range(2):
        longest = np.maximum(largest[k].max(axis=0), measured(claim, constant[None])[0])
        if claim.penalty is None:
            gain = float((claim.theta or 0.0) * longest.sum())
        else:
            over = max(0.0, float(largest[k].max()) - claim.penalty)
            gain = most / claim.penalty * over if over else 0.0
            if claim.ridge > 0.0:
                gain = min(gain, total(squares[k]) / (2.0 * claim.ridge))
            gain += float(constant @ constant) / (2.0 * claim.intercept_ridge)
        bound = entropy - gain
        bound -= 1e-14 * (1.0 + abs(loss) + abs(bound))
        found.append(max(bound, -math.inf if claim.loss == "exponential" else 0.0))
        if k == 0:
            unused = spared(rows, largest[k], longest, max(0.0, loss - bound))
    return found, set(np.flatnonzero(unused).tolist())


def spared(rows: Rows, largest: Vector, longest: Vector, gap: float) -> NDArray[np.bool_]:
    """Features that no optimal model uses: too far below what is used, and V is near the best.

    How near follows from the gap, by the strong concavity of the dual in u.
    """
    claim, code = rows.claim, rows.code
    if claim.penalty is not None:
        return np.asarray(largest[:, 0] + math.sqrt(gap) < claim.penalty)
    if claim.loss == "hinge":
        return np.asarray(np.isneginf(largest).all(axis=1))
    # The sum of |V| for weights of one, and the largest second derivative of the loss.
    spread = 1.0 if rows.codeword else float(abs(code[:, None] - code).sum(axis=2).max())
    bend = 0.25 if claim.loss == "logistic" else 1.0
    near = spread * math.sqrt(bend * (2.0 * gap + 1e-14))
    return np.asarray((largest < longest - 2.0 * near).all(axis=1))


def edges(rows: Rows, V: Integers, unit: float) -> tuple[Vector, Vector]:
    """Measures of all rules, with the claimed cuts and with all that differ on these rows.

    Of each feature the largest, (2, features, 1 or outputs), and the sum of the squares of what
    they exceed the penalty by. S holds sums of V over the rows up to a place in the order of a
    feature, so that the sum of a rule is made of rows of it.
    """
    claim, (n, n_features), K = rows.claim, rows.X.shape, V.shape[1]
    S = np.zeros((n + 1, K), dtype=np.int64)
    largest = np.full((2, n_features, K if claim.columns == "bits" else 1), -np.inf)
    squares = np.zeros((2, n_features))
    for j in range(n_features):
        levels, x = j in claim.categorical, rows.X[:, j]
        order = np.argsort(x)  # missing values are last
        x = x[order]
        np.cumsum(np.take(V, order, axis=0, out=S[1:]), axis=0, out=S[1:])
        x = x[: n - np.count_nonzero(np.isnan(x))]
        cuts = [np.flatnonzero(x[1:] != x[:-1]) + 1]
        listed = None if claim.cuts == "all" or levels else claim.cuts[j]
        if listed is not None:
            cuts.append(np.searchsorted(x, listed, side="right"))
        for at, which in zip(cuts, (slice(2), slice(1)), strict=False):
            largest[which, j], squares[which, j] = -np.inf, 0.0
            for A in rule_sums(S, at, len(x), levels):
                e = measured(claim, A / unit)
                largest[which, j] = np.maximum(largest[which, j], e.max(axis=0))
                over = np.maximum(e - (claim.penalty or 0.0), 0.0)
                squares[which, j] += float((over * over).sum())
    return largest, squares


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
