"""Whether what a model claims of itself is true, recomputed by somebody who trusts nobody.

The mathematics is in ``docs/verify.md``. Only NumPy, `math` and `decimal` are at work here, on
the model's tables and the rows; nothing that fits models is. Taken as the statement to prove:
the loss, the columns, the budget or penalties, and the cuts. Every other number of a claim is
recomputed, or serves as a hint from which any sound bound may follow.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .model.additive import AdditiveModel, Levels, Ordered
from .model.claim import Claim, RowWeights

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]

_BITS = 60  # dual weights are integers that sum to 2^60 at the most, so that no sum overflows
_BLOCK = 1 << 13  # rows, or rules, at a time
_LOSSES = "cross-entropy", "exponential", "logistic", "squared_hinge", "hinge"
_COLUMNS = {
    "vectors": "any class vectors",
    "codes": "all codes",
    "listed codes": "the listed codes",
    "bits": "a rule for every bit of the code",
}


@dataclass(frozen=True)
class Verification:
    """What was found; true as a condition if all that was claimed is proved.

    Attributes
    ----------
    verified : bool
        Whether it is. If not, the claim may still be true.
    loss, bound : float
        What the model's training loss is, with its penalties, and what no other model of the
        claimed class can be below.
    gap, gap_all_thresholds : float
        Their difference; and what it is for rules that cut between any two values of the rows.
    budget : float
        What the coefficients sum to; of listed codes this is what they sum to at the least.
    problems : tuple of str
        The statements that were not proved.
    """

    verified: bool
    loss: float
    bound: float
    gap: float
    gap_all_thresholds: float
    budget: float
    problems: tuple[str, ...]
    summary: str = field(repr=False)

    def __bool__(self) -> bool:
        return self.verified

    def __str__(self) -> str:
        return "\n".join([self.summary, *(f"Not proved: {text}." for text in self.problems)])


class Numbers(NamedTuple):
    """How to calculate: elementwise, on arrays of doubles or of decimals."""

    of: Callable[[Any], Any]
    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    whole: Callable[[Any], Any]  # of numbers that are not negative, rounded down
    total: Callable[[list[Any]], Any]


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
        """Of some rows; that between a row's own class and itself is infinite."""
        y, F = self.y[part], F[part]
        if self.claim.margin == "codeword":
            assert self.code is not None
            return self.code[y] * F
        scores, own = _scores(F, self.code), np.arange(len(y))
        z = scores[own, y][:, None] - scores
        z[own, y] = np.inf
        return z

    def adjoint(self, u: Integers) -> Integers:
        """V with ``<u, margins(F)> = <V, F>`` for every F."""
        if self.claim.margin == "codeword":
            assert self.code is not None
            return self.code[self.y] * u
        V = -u
        V[np.arange(len(u)), self.y] += u.sum(axis=1)
        return V if self.code is None else V @ self.code

    def prior(self, part: slice, width: int) -> Any:
        """What the loss of each margin weighs, or of each row."""
        w = self.w[part][:, None]
        if self.claim.loss in ("cross-entropy", "hinge"):
            return w
        return w / (width if self.claim.margin == "codeword" else width - 1)

    def point(self, F: Vector, part: slice, top: Any) -> tuple[Any, Any]:
        """Terms of the loss at F, of some rows, and minus their slopes."""
        a, z = self.numbers, self.margins(F, part)
        s, z = a.of(self.prior(part, z.shape[1])), a.of(z)
        zero, one = a.of(0.0), a.of(1.0)
        if self.claim.loss == "cross-entropy":
            most = np.maximum((-z).max(axis=1, keepdims=True), zero)
            e = a.exp(-z - most)
            total = a.exp(-most) + e.sum(axis=1, keepdims=True)
            return s * (most + a.log(total)), s * (e / total)
        if self.claim.loss == "exponential":
            e = s * a.exp(-z - a.of(top))
            return e, e
        if self.claim.loss == "logistic":
            e, below = a.exp(-abs(z)), z < 0
            value = np.where(below, -z, zero) + a.log(one + e)
            return s * value, s * (np.where(below, one, e) / (one + e))
        short = np.maximum(one - z, zero)
        if self.claim.loss == "hinge":  # whose slopes are of no use
            return s * short.max(axis=1, keepdims=True), short * zero
        return s * short * short / a.of(2.0), s * short

    def loss(self, F: Vector, top: Any = 0.0) -> Any:
        """Of the outputs F; of the exponential loss divided by exp(top)."""
        a = self.numbers
        return a.total(
            [a.total(self.point(F, p, top)[0].ravel().tolist()) for p in self.parts()]
        )

    def weights(self, F: Vector) -> tuple[float, Integers, int]:
        """The loss, and integers u of which 2^-bits are minus its slopes, rounded down."""
        a, top, bits = self.numbers, 0.0, _BITS
        largest = max(float((-self.margins(F, part)).max()) for part in self.parts())
        if self.claim.loss == "exponential":
            loss = top = float(a.of(largest) + a.log(a.of(self.loss(F, largest))))
        else:
            loss = float(self.loss(F))
        if self.claim.loss == "squared_hinge":  # may weigh more than one
            bits -= math.frexp(max(1.0, 1.0 + largest))[1]
        found = [a.whole(self.point(F, p, top)[1] * a.of(2.0**bits)) for p in self.parts()]
        return loss, np.concatenate(found), bits

    def made_feasible(self, u: Integers, bits: int) -> None:
        """No row of the hinge or of cross-entropy gives more than it weighs, in place."""
        row = np.arange(len(u))
        while (excess := np.maximum(u.sum(axis=1) - _whole(self.w, bits), 0)).any():
            most = u.argmax(axis=1)
            u[row, most] -= np.minimum(excess, u[row, most])

    def entropy(self, u: Integers, bits: int) -> tuple[float, float]:
        """What the weights u bound the loss of no model by, and what rounding may add."""
        a, kind, sums, sizes = self.numbers, self.claim.loss, list[Any](), list[Any]()
        whole = a.of(int(u.sum()) if kind == "exponential" else 2**bits)
        for part in self.parts():
            s, counts = self.prior(part, u.shape[1]), u[part]
            if kind == "cross-entropy":  # a row's own class has what is left
                s = _whole(s, bits)
                counts = np.hstack([counts, s - counts.sum(axis=1, keepdims=True)])
                s = a.of(s) / whole
            s, q = a.of(s), a.of(counts) / whole
            if kind == "hinge":
                terms = q
            elif kind == "squared_hinge":
                terms = q - q * q / (a.of(2.0) * s)
            else:
                terms = -q * _logarithm(a, q, s)
            if kind == "logistic":
                rest = np.maximum(s - q, a.of(0.0))
                terms = terms - rest * _logarithm(a, rest, s)
            flat = terms.ravel().tolist()
            sums.append(a.total(flat))
            sizes.append(a.total([abs(x) for x in flat]))
        return float(a.total(sums)), 2.0**-50 * float(a.total(sizes))


class Edges(NamedTuple):
    """Of all rules: by feature the largest measure, and what measures exceed the penalty."""

    largest: Vector  # (features, 1, or outputs)
    constant: Vector
    excess: float  # the sum of its squares


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
        A fitted estimator with `additive_`, or that.
    X : array-like of shape (n_samples, n_features)
        The rows that the model was fitted to, in any order.
    y : array-like of shape (n_samples,)
        Their classes.
    sample_weight : array-like of shape (n_samples,), optional
        The weights that they had.
    arithmetic : {"float", "decimal"}, default="float"
        "decimal" has 30 digits and trusts no exponential of the machine's, but takes a hundred
        times as long.

    Returns
    -------
    Verification
        True as a condition if everything is proved.

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
    with decimal.localcontext(decimal.Context(prec=30)):
        return _verify(model, X, y, sample_weight, FLOAT if arithmetic == "float" else DECIMAL)


def _verify(model: Any, X: Any, y: Any, sample_weight: Any, numbers: Numbers) -> Verification:
    form = _form(model)
    claim = _checked(form)
    X, given = _rows(form, X, y, sample_weight)
    n_rows, n_held_out = int(np.count_nonzero(given)), 0
    if form is not model:
        given, n_rows, n_held_out = model._weights_of_fit(X, np.asarray(y), given)
    elif claim.n_held_out:
        raise ValueError(
            f"{claim.n_held_out} of the rows only said when to stop, and a model alone does "
            "not know which: give the estimator"
        )
    task = _task(form, X, np.asarray(y), given, numbers)
    F = _outputs(form, task.X)
    rules, b = _decomposed(form, task.X)
    plain, *at_model = task.weights(F)
    loss, budget = plain + _cost(claim, rules, b), _budget(claim, rules, b)
    bounds, unused = [-math.inf, -math.inf], set[int]()
    for u, bits in _dual_weights(task, form, at_model):
        found, names = _bounds(task, u, bits, loss)
        bounds = [max(pair) for pair in zip(bounds, found, strict=True)]
        unused |= names
        if _enough(claim, loss - bounds[0], unused):
            break
    gaps = loss - bounds[0], loss - bounds[1]
    figures = loss, bounds[0], *gaps, budget
    problems = (
        *_differences("rows of positive weight", n_rows, claim.n_rows),
        *_differences("different rows held out", n_held_out, claim.n_held_out),
        *_outside(form),
        *_unproved(claim, loss, gaps[0], budget, unused),
    )
    entropy = replace(claim, loss="cross-entropy", margin="pairwise")
    log_loss = float(task._replace(claim=entropy).loss(F))
    return Verification(
        not problems, *figures, problems, _summary(form, n_rows, figures, log_loss)
    )


def _form(model: Any) -> AdditiveModel:
    if isinstance(model, AdditiveModel):
        return model
    try:
        form = model.additive_
    except AttributeError as error:
        raise ValueError(f"nothing can be verified: {error}") from error
    assert isinstance(form, AdditiveModel)
    return form


def _checked(form: AdditiveModel) -> Claim:
    """The claim, if it is one of those that there is a bound for."""
    claim = form.claim
    if claim is None:
        raise ValueError("the model makes no claim: it was not fitted, or changed since")
    K = form.n_outputs
    positive = [claim.penalty, claim.intercept_ridge, claim.ridge + 1.0]
    if claim.penalty is None:
        positive = [math.nan if claim.theta is None else claim.theta + 1.0]
    known = {
        "loss": claim.loss in _LOSSES,
        "columns": claim.columns in _COLUMNS,
        "margin": claim.margin == "pairwise"
        or (claim.margin == "codeword" and form.decode is not None and claim.loss != "hinge"),
        "penalty or theta": all(0.0 < x < math.inf for x in positive)  # type: ignore[operator]
        and (claim.penalty is None or (claim.theta is None and claim.ridge >= 0.0)),
        "loss and columns at a penalty": claim.penalty is None
        or (claim.loss, claim.columns) == ("cross-entropy", "vectors"),
        "codes": claim.columns != "listed codes" or np.shape(claim.codes)[:1] == (K,),
        "class_weight": claim.class_weight is None
        or np.shape(claim.class_weight) == (len(form.classes),),
        "cuts": claim.cuts == "all" or len(claim.cuts) == form.n_features,
        "terms": all(
            np.shape(t.table) == (*(axis.n_cells for axis in t.axes), K)
            and np.isfinite(t.table).all()
            for t in form.terms
        ),
        "missing_right": claim.missing_right is None
        or [np.shape(R) for R in claim.missing_right]
        == [
            () if R is None else (t.axes[0].n_cells - 2, K)
            for t, R in zip(form.terms, claim.missing_right, strict=False)
        ],
    }
    wrong = [name for name, good in known.items() if not good]
    if wrong:
        raise ValueError(f"no bound is known for what the model claims as its {wrong[0]}")
    if claim.cuts != "all":
        for j, cuts in enumerate(claim.cuts):
            if cuts is not None and not (np.isfinite(cuts).all() and (np.diff(cuts) > 0).all()):
                raise ValueError(f"the claimed cuts of feature {j} do not ascend")
    return claim


def _rows(form: AdditiveModel, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Vector]:
    """Rows as numbers, where they are numbers, and what they weigh."""
    names = getattr(X, "columns", None)
    if names is not None and form.feature_names not in (None, tuple(map(str, names))):
        raise ValueError(f"the features of X are not those of the model: {form.feature_names}")
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != form.n_features or len(X) < 2:
        raise ValueError(
            f"X must be two rows or more of {form.n_features} features, but its shape is "
            f"{X.shape}"
        )
    if X.dtype != np.float64:
        with suppress(TypeError, ValueError):  # else some are words
            X = X.astype(np.float64)
    for j in range(form.n_features):
        if np.isinf(_column(X, j)).any():
            raise ValueError(f"X contains infinity in column {j}")
    if np.shape(y) != (len(X),):
        raise ValueError(f"y must have {len(X)} classes, but its shape is {np.shape(y)}")
    weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if weight.shape != (len(X),):
        raise ValueError(
            f"sample_weight must have {len(X)} numbers, but its shape is {weight.shape}"
        )
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError(
            "sample_weight must be finite and not negative, and not zero everywhere"
        )
    return X, weight


def _task(
    form: AdditiveModel, X: NDArray[Any], y: NDArray[Any], weight: Vector, numbers: Numbers
) -> Task:
    """Rows of positive weight; of the hinge equal ones are one, in the order of a witness."""
    claim = form.claim
    assert claim is not None
    kept = weight > 0
    if not kept.all():
        X, y, weight = X[kept], y[kept], weight[kept]
    of = {label: k for k, label in enumerate(form.classes.tolist())}
    labels = [of.get(label, -1) for label in y.tolist()]
    if min(labels) < 0:
        strange = y[labels.index(-1)]
        raise ValueError(f"y holds {strange!r}, which is not among the classes {[*of]}")
    places = np.array(labels)
    w = weight / weight.max()
    if claim.class_weight is not None:
        w = w * claim.class_weight[places]
    if claim.loss == "hinge":
        columns = [_column(X, j) for j in range(X.shape[1])]
        order = np.lexsort((places, *columns[::-1]))
        new = np.diff(places[order], prepend=-1) != 0
        for x in (x[order] for x in columns):
            new[1:] |= (x[1:] != x[:-1]) & ~(np.isnan(x[1:]) & np.isnan(x[:-1]))
        w = np.add.reduceat(w[order], np.flatnonzero(new))
        X, places = X[order[new]], places[order[new]]
    code = None if form.decode is None else form.decode.astype(np.int64)
    return Task(claim, code, len(of), X, places, w / math.fsum(w.tolist()), numbers)


def _column(X: NDArray[Any], j: int) -> Vector:
    """A feature as numbers; words are numbered."""
    if X.dtype == np.float64:
        return X[:, j]
    try:
        return X[:, j].astype(np.float64)
    except (TypeError, ValueError):
        number: dict[Any, int] = {}
        return np.array(
            [
                math.nan if x is None or x != x else number.setdefault(x, len(number))
                for x in X[:, j].tolist()
            ],
            dtype=np.float64,
        )


def _cells(axis: Any, values: NDArray[Any]) -> NDArray[np.intp]:
    """The cell of each value: 0 if it is missing, else by the cuts below it, or its level."""
    if isinstance(axis, Levels):
        place: dict[Any, int] = {level: k + 1 for k, level in enumerate(axis.levels)}
        return np.array(
            [
                0 if x is None or x != x else place.get(x, len(place) + 1)
                for x in values.tolist()
            ],
            dtype=np.intp,
        )
    x = values.astype(np.float64)
    return np.where(np.isnan(x), 0, 1 + np.searchsorted(axis.cuts, x, side="left"))


def _outputs(form: AdditiveModel, X: NDArray[Any]) -> Vector:
    """F of each row: exact, if all tables are on the unit."""
    F = np.tile(form.intercept, (len(X), 1))
    for term in form.terms:
        places = [_cells(axis, X[:, j]) for j, axis in zip(term.inputs, term.axes, strict=True)]
        for i in range(0, len(X), _BLOCK):
            F[i : i + _BLOCK] += term.table[tuple(at[i : i + _BLOCK] for at in places)]
    return F


def _scores(F: Vector, code: NDArray[np.int64] | None) -> Vector:
    return F if code is None else F @ code.T.astype(np.float64)


def _whole(x: Vector, bits: int) -> Integers:
    """How many units of 2^-bits there are."""
    return np.floor(np.ldexp(x, bits)).astype(np.int64)


def _logarithm(numbers: Numbers, q: Any, s: Any) -> Any:
    """Of q / s; 0 where q is."""
    return numbers.log(np.where(q > 0, q / s, numbers.of(1.0)))


def _lengths(v: Vector) -> Vector:
    return np.sqrt((v * v).sum(axis=1))


def _total(x: Vector) -> float:
    return math.fsum(x.ravel().tolist())


def _dual_weights(task: Task, form: AdditiveModel, at_model: Any) -> Iterator[Any]:
    """Dual weights from which bounds follow, all of them sound: those that promise most first.

    Of the model itself, of the witness, and of both with smaller scores. At a penalty only as
    they are, since other intercepts than the best cost too much.
    """
    witness = task.claim.witness
    if task.claim.loss == "hinge":
        yield _given_weights(task, witness), _BITS
        return
    yield at_model
    scales = range(10, 0, -1) if task.claim.penalty is None else (10,)
    for source in [form] if not isinstance(witness, AdditiveModel) else [witness, form]:
        F = _outputs(source, task.X)
        for scale in scales[source is form :]:
            yield task.weights(scale / 10 * F)[1:]


def _given_weights(task: Task, witness: Any) -> Integers:
    """Of the hinge; there are none if there is no witness."""
    n, n_classes = len(task.y), task.n_classes
    u = np.zeros((n, n_classes), dtype=np.int64)
    if isinstance(witness, RowWeights):
        row, k = np.divmod(np.asarray(witness.place), n_classes - 1)
        weight = np.asarray(witness.weight, dtype=np.float64)
        if not ((row >= 0) & (row < n) & (weight >= 0) & (weight <= 1)).all():
            return u
        np.add.at(u, (row, k + (k >= task.y[row])), _whole(weight, _BITS))
        task.made_feasible(u, _BITS)
    return u


def _bounds(
    task: Task, u: Integers, bits: int, loss: float
) -> tuple[tuple[float, float], set[int]]:
    """Of the loss of any model, over the claimed cuts and over all, and what is unused."""
    if task.claim.loss == "cross-entropy":
        task.made_feasible(u, bits)
    entropy, slip = task.entropy(u, bits)
    unit = 1.0 / int(u.sum()) if task.claim.loss == "exponential" else 2.0**-bits
    claimed, every = _edges(task, task.adjoint(u), unit)
    found = []
    for edges in (claimed, every):
        bound = entropy - _gain(task.claim, edges, min(loss, math.log(task.n_classes)))
        found.append(bound - slip - 1e-14 * (1.0 + abs(loss) + abs(bound)))
    unused = _unused(task, claimed, max(0.0, loss - found[0]))
    infimum = -math.inf if task.claim.loss == "exponential" else 0.0
    bounds = max(found[0], infimum), max(found[1], infimum)
    return bounds, set(np.flatnonzero(unused).tolist())


def _gain(claim: Claim, edges: Edges, most: float) -> float:
    """By how much models of the class can be better than none, to first order."""
    if claim.theta is not None:
        largest = np.maximum(
            edges.largest.max(axis=0), _measured(claim, edges.constant[None])[0]
        )
        return claim.theta * float(largest.sum())
    assert claim.penalty is not None
    over = max(0.0, float(edges.largest.max()) - claim.penalty)
    # The lengths of an optimal model cost no more than all of the loss.
    gain = most / claim.penalty * over if over > 0.0 else 0.0
    if claim.ridge > 0.0:
        gain = min(gain, edges.excess / (2.0 * claim.ridge))
    return gain + float(edges.constant @ edges.constant) / (2.0 * claim.intercept_ridge)


def _unused(task: Task, edges: Edges, gap: float) -> NDArray[np.bool_]:
    """Features whose measures are too small at the optimum, however near the weights are."""
    claim, largest = task.claim, edges.largest
    if claim.penalty is not None:
        return largest[:, 0] + math.sqrt(gap) < claim.penalty
    if claim.loss == "hinge":  # whose weights may be far away
        return np.isneginf(largest).all(axis=1)
    spread = 1.0
    if claim.margin == "pairwise":
        code = np.eye(2, dtype=np.int64) if task.code is None else task.code
        spread = float((np.abs(code[:, None] - code[None]).sum(axis=2)).max())
    bend = {"logistic": 0.25}.get(claim.loss, 1.0)
    near = spread * math.sqrt(bend * (2.0 * gap + 1e-14))
    level = np.maximum(largest.max(axis=0), _measured(claim, edges.constant[None])[0])
    return (largest < level - 2.0 * near).all(axis=1)


def _edges(task: Task, V: Integers, unit: float) -> tuple[Edges, Edges]:
    """Measures of all rules, with the claimed cuts and with all that differ on these rows.

    S has sums over the rows in the order of a feature, so that a rule is one of its rows.
    """
    claim, (n, n_features) = task.claim, task.X.shape
    S = np.zeros((n + 1, V.shape[1]), dtype=np.int64)
    constant = V.sum(axis=0)
    width = V.shape[1] if claim.columns == "bits" else 1
    largest = np.full((2, n_features, width), -np.inf)
    excess, added = [0.0, 0.0], 0.0
    for j in range(n_features):
        x = _column(task.X, j)
        order = np.argsort(x)  # equal values in any order
        x = x[order]
        np.take(V, order, axis=0, out=S[1:])
        np.cumsum(S[1:], axis=0, out=S[1:])
        n_present = n - int(np.isnan(x).sum())
        new = np.flatnonzero(x[1:n_present] != x[: max(n_present - 1, 0)]) + 1
        cuts = [new, new]
        if claim.cuts != "all" and j not in claim.categorical:
            cuts[0] = np.searchsorted(x[:n_present], np.asarray(claim.cuts[j]), side="right")
        for k in (0, 1):
            if k == 1 and cuts[0] is cuts[1]:
                largest[1, j], excess[1] = largest[0, j], excess[1] + added
                continue
            added = 0.0
            for A in _sums(S, cuts[k], n_present, j in claim.categorical):
                measure = _measured(claim, unit * A)
                largest[k, j] = np.maximum(largest[k, j], measure.max(axis=0))
                added += float((np.maximum(measure - (claim.penalty or 0.0), 0.0) ** 2).sum())
            excess[k] += added
    about = unit * constant
    return Edges(largest[0], about, excess[0]), Edges(largest[1], about, excess[1])


def _sums(S: Integers, cuts: Any, n_present: int, categorical: bool) -> Iterator[Integers]:
    """Of all rules of a feature the sums of V times what they say, some rules at a time.

    `cuts` are numbers of rows below, and missing values come last.
    """
    n = len(S) - 1
    if categorical:
        ends = np.append(cuts, [n_present, n] if 0 < n_present < n else [n])
        if len(ends) > 1:
            yield 2 * np.diff(S[ends], axis=0, prepend=S[:1]) - S[n]
    elif n_present:
        missing = S[n] - S[n_present]
        for part in np.split(cuts, range(_BLOCK, len(cuts), _BLOCK)):
            if len(part):
                yield S[n] - 2 * S[part]  # missing values on the right
                if n_present < n:
                    yield S[n_present] - missing - 2 * S[part]
        if n_present < n:
            yield (S[n_present] - missing)[None]


def _measured(claim: Claim, A: Vector) -> Vector:
    """What a unit of the budget, spent on a rule of these sums, can gain; by output for bits."""
    if claim.columns == "vectors":
        return np.sqrt((A * A).sum(axis=1, keepdims=True))
    if claim.columns == "codes":
        return np.abs(A).sum(axis=1, keepdims=True)
    if claim.columns == "listed codes":
        return np.abs(A @ np.asarray(claim.codes, dtype=np.float64)).max(axis=1, keepdims=True)
    return np.abs(A)


def _decomposed(form: AdditiveModel, X: NDArray[Any]) -> tuple[Vector, Vector]:
    """Coefficients of rules, and an intercept, that make the tables on rows like these.

    A jump is twice what rules at its cut have together. What those of them have with missing
    values on their right is anybody's guess, and any guess is right.
    """
    assert form.claim is not None
    b, rules = form.intercept.copy(), [np.zeros((0, form.n_outputs))]
    guess = form.claim.missing_right or [None] * len(form.terms)
    for term, right in zip(form.terms, guess, strict=True):
        T, axis = term.table, term.axes[0]
        if len(term.inputs) > 1:
            continue
        levels = isinstance(axis, Levels)
        missing = bool(np.isnan(_column(X, term.inputs[0])).any())
        if levels:
            v = (T[:-1] - T[-1])[0 if missing else 1 :] / 2.0
            b += T[-1] + v.sum(axis=0)
            rules.append(v)
            continue
        v = np.diff(T[1:], axis=0) / 2.0
        b += (T[1] + T[-1]) / 2.0
        if missing:
            right = np.zeros_like(v) if right is None else right
            alone = (T[0] - T[1]) / 2.0 - right.sum(axis=0)
            b += alone
            rules += [right, alone[None]]
            v = v - right
        rules.append(v)
    return np.concatenate(rules), b


def _cost(claim: Claim, rules: Vector, b: Vector) -> float:
    """What the penalties add to the loss."""
    if claim.penalty is None:
        return 0.0
    squares = claim.ridge * _total(rules * rules) + claim.intercept_ridge * _total(b * b)
    return claim.penalty * _total(_lengths(rules)) + squares / 2.0


def _budget(claim: Claim, rules: Vector, b: Vector) -> float:
    """What the coefficients sum to; a constant is one of them where there is a budget."""
    if claim.penalty is None:
        rules = np.concatenate([rules, b[None]])
    if claim.columns == "vectors":
        return _total(_lengths(rules))
    if claim.columns == "bits":
        return max(_total(np.abs(of_bit)) for of_bit in rules.T)
    return _total(np.abs(rules).max(axis=1))


def _outside(form: AdditiveModel) -> Iterator[str]:
    """What in the model is not of the class that it claims to be of."""
    claim = form.claim
    assert claim is not None
    size = np.abs(form.intercept).max()
    exact = _on_unit(form.intercept, form.unit)
    for term in form.terms:
        size += np.abs(_scores(term.table, form.decode)).max(initial=np.abs(term.table).max())
        exact = exact and _on_unit(term.table, form.unit)
        j = term.inputs[0]
        if len(term.inputs) > 1:
            yield f"no bound is known for models of couples of features, such as {term.inputs}"
            continue
        if isinstance(term.axes[0], Levels) != (j in claim.categorical):
            yield f"feature {j} is of levels in the model or the claim, but not in both"
        elif isinstance(term.axes[0], Ordered) and claim.cuts != "all":
            strange = np.setdiff1d(term.axes[0].cuts, claim.cuts[j])
            if len(strange):
                yield f"the model cuts feature {j} at {strange[0]}, not among the claimed cuts"
    if not (exact and size < math.ldexp(1.0, 53 + form.unit)):
        yield f"tables are no multiples of 2^{form.unit} whose sums are exact"


def _on_unit(x: Vector, unit: int) -> bool:
    units = np.ldexp(x, -unit)
    return bool((units == np.rint(units)).all())


def _differences(what: str, found: int, claimed: int) -> Iterator[str]:
    if found != claimed:
        yield f"there are {found} {what}, not {claimed}"


def _enough(claim: Claim, gap: float, unused: set[int]) -> bool:
    """Whether no other bound is needed."""
    if claim.primal is None or claim.dual is None:
        return False
    return gap <= claim.primal - claim.dual and unused >= {*claim.unused_features}


def _unproved(
    claim: Claim, loss: float, gap: float, budget: float, unused: set[int]
) -> Iterator[str]:
    """Statements about numbers that the numbers found do not prove."""
    if claim.theta is not None and (claim.ridge or claim.intercept_ridge):
        ridge = claim.ridge or claim.intercept_ridge
        yield f"no bound is known for a ridge of {ridge:.17g} within a budget, which has none"
    if not math.isfinite(gap):
        yield "no bound was found"
    if claim.primal is not None and claim.dual is not None:
        if not abs(loss - claim.primal) <= 1e-12 * (1.0 + abs(claim.primal)):
            yield f"the loss is {loss:.17g}, not {claim.primal:.17g}"
        claimed = claim.primal - claim.dual
        if not gap <= claimed + min(1e-9 * (1.0 + abs(loss)), 1e-8):
            yield f"the gap found is {gap:.10g}, the claimed one is {claimed:.10g}"
    if claim.theta is not None and not budget <= claim.theta * (1.0 + 1e-9):
        yield f"the coefficients sum to {budget:.17g}, more than theta, {claim.theta:.17g}"
    missing = sorted({*claim.unused_features} - unused)
    if missing:
        yield f"an optimal model may use the features {missing}, claimed to be unused"


def _summary(
    form: AdditiveModel, n_rows: int, figures: tuple[float, ...], log_loss: float
) -> str:
    """What is proved, about which class."""
    claim, (loss, bound, gap, everywhere, budget) = form.claim, figures
    assert claim is not None
    if claim.penalty is None:
        cost = f"with coefficients that sum to {claim.theta:.6g} at the most"
    else:
        cost = (
            f"with penalties of {claim.penalty:.3g} a unit of length and {claim.ridge / 2:.3g} "
            f"a square, {claim.intercept_ridge / 2:.3g} for the intercept"
        )
    cuts = "all thresholds" if claim.cuts == "all" else "the claimed cuts"
    return (
        f"On {n_rows} rows the {claim.loss} loss of this model is {loss:.10g}, and that of no "
        f"model of stumps on {cuts} with {_COLUMNS[claim.columns]}, {cost}, is below "
        f"{bound:.10g}: a gap of {gap:.3g}, or {everywhere:.3g} where stumps may cut anywhere. "
        f"The coefficients sum to {budget:.6g}"
        f"{' at the least' if claim.columns == 'listed codes' else ''}. "
        f"The log loss of the unscaled probabilities is {log_loss:.6g}."
    )
