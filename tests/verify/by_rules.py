"""Models made of rules one by one, and what the best of their class costs, by Clarabel."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
from scipy.special import logsumexp

from tcboost.model.additive import AdditiveModel, Levels, Ordered, Term
from tcboost.model.claim import Claim, RowWeights

UNIT = -20
THETA_LOSSES = ["exponential", "logistic", "squared_hinge", "hinge"]


@dataclass(frozen=True)
class Rule:
    """+1 above a cut, with missing values on one side; at a level; or where all is missing."""

    feature: int
    cut: float | None = None
    missing_right: bool = False
    level: float | None = None

    def signs(self, x):
        if self.level is not None:
            yes = np.isnan(x) if np.isnan(self.level) else x == self.level
        elif self.cut is None:
            yes = np.isnan(x)
        else:
            yes = (x > self.cut) | (np.isnan(x) & self.missing_right)
        return np.where(yes, 1.0, -1.0)


def rules_of(X, categorical=(), cuts="all"):
    """Every rule of the class, one after the other."""
    found = []
    for j, x in enumerate(X.T):
        values, missing = np.unique(x[~np.isnan(x)]), np.isnan(x).any()
        if j in categorical:
            levels = [*values, *[math.nan] * int(missing)]
            found += [Rule(j, level=level) for level in levels if len(levels) > 1]
            continue
        if len(values) == 0:
            continue
        at = (values[1:] + values[:-1]) / 2 if isinstance(cuts, str) else cuts[j]
        sides = (False, True) if missing else (False,)
        found += [Rule(j, float(t), side) for t in at for side in sides]
        found += [Rule(j)] if missing else []
    return found


def signs_of(rules, X):
    """(rows, rules)."""
    return np.array([r.signs(X[:, r.feature]) for r in rules]).reshape(len(rules), len(X)).T


def tables_of(rules, V, b, X, categorical, **about):
    """The model ``b + sum_t h_t v_t``; of each term what missing values have on their right."""
    terms, right = [], []
    for j in sorted({r.feature for r in rules}):
        mine = [(r, v) for r, v in zip(rules, V, strict=True) if r.feature == j]
        if j in categorical:
            levels = sorted({r.level for r, _ in mine if not np.isnan(r.level)})
            axis = Levels(tuple(levels))
            values = np.array([np.nan, *levels, 1e9])
            guess = None
        else:
            cuts = sorted({r.cut for r, _ in mine if r.cut is not None})
            axis = Ordered(np.array(cuts))
            values = np.array([np.nan, *cuts, 1e9])
            guess = np.zeros((len(cuts), V.shape[1]))
            for r, v in mine:
                if r.missing_right:
                    guess[cuts.index(r.cut)] += v
        table = sum(r.signs(values)[:, None] * v for r, v in mine)
        terms.append(Term((j,), (axis,), table))
        right.append(guess if np.isnan(X[:, j]).any() else None)
    model = AdditiveModel(
        n_features=X.shape[1],
        feature_names=None,
        terms=tuple(terms),
        intercept=b,
        unit=UNIT,
        **about,
    )
    return model, tuple(right)


@dataclass(frozen=True)
class Problem:
    """Rows, a claim without numbers about a random model, and the rules of its class."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    model: AdditiveModel
    rules: list[Rule]
    H: np.ndarray
    V: np.ndarray  # coefficients of all rules, mostly zero
    b: np.ndarray

    @property
    def s(self):
        s = self.weight
        if self.claim.class_weight is not None:
            s = s * self.claim.class_weight[self.y]
        return s / s.sum()

    @property
    def claim(self):
        return self.model.claim

    def claiming(self, **changes):
        return replace(self.model, claim=replace(self.claim, **changes))

    def signed(self):
        """For each margin which combination of the outputs it is: (rows, margins, outputs)."""
        M, n = self.model.decode, len(self.y)
        if self.claim.margin == "codeword":
            return M[self.y][:, :, None] * np.eye(M.shape[1])
        M = np.eye(len(self.model.classes)) if M is None else M.astype(float)
        others = [[c for c in range(len(M)) if c != k] for k in range(len(M))]
        return np.array([M[self.y[i]] - M[others[self.y[i]]] for i in range(n)])

    def loss(self, F):
        """Of outputs, by NumPy."""
        z, s, kind = np.einsum("nkl,nl->nk", self.signed(), F), self.s, self.claim.loss
        if kind == "cross-entropy":
            return float(s @ logsumexp(np.hstack([-z, np.zeros((len(z), 1))]), axis=1))
        if kind == "hinge":
            return float(s @ np.maximum(0, 1 - z.min(axis=1)))
        s = np.repeat(s[:, None] / z.shape[1], z.shape[1], axis=1)
        if kind == "exponential":
            return float(logsumexp(-z, b=s))
        phi = np.logaddexp(0, -z) if kind == "logistic" else np.maximum(0, 1 - z) ** 2 / 2
        return float((s * phi).sum())

    def cost(self):
        """What its penalties are, and what its coefficients sum to."""
        claim, V, b = self.claim, self.V, self.b
        if claim.penalty is None:
            V = np.vstack([V, b])
        if claim.columns == "vectors":
            budget = np.linalg.norm(V, axis=1).sum()
        elif claim.columns == "bits":
            budget = np.abs(V).sum(axis=0).max()
        else:
            budget = np.abs(V).max(axis=1).sum()
        if claim.penalty is None:
            return 0.0, budget
        squares = claim.ridge * (V**2).sum() + claim.intercept_ridge * (b**2).sum()
        return claim.penalty * budget + squares / 2, budget

    def at(self, V, b):
        """The same claim of another model, rounded to the unit."""
        V, b = on_unit(V), on_unit(b)
        about = {"classes": self.model.classes, "decode": self.model.decode}
        model, right = tables_of(self.rules, V, b, self.X, self.claim.categorical, **about)
        model = replace(model, claim=replace(self.claim, missing_right=right, witness=None))
        return replace(self, model=model, V=V, b=b)

    def solved(self, some=slice(None)):
        """The least that a model of some of the rules costs, its coefficients and intercept."""
        claim, K = self.claim, self.model.n_outputs
        n, H = len(self.y), self.H[:, some]
        n_rules = H.shape[1]
        H = H if n_rules else np.zeros((n, 1))
        T = H.shape[1]
        V, b = cp.Variable((T, K)), cp.Variable((1, K))
        F, limits, cost = np.ones((n, 1)) @ b + H @ V, [], 0.0
        if claim.penalty is not None:
            cost += claim.penalty * cp.sum(cp.norm(V, 2, axis=1))
            cost += claim.ridge / 2 * cp.sum_squares(V)
            cost += claim.intercept_ridge / 2 * cp.sum_squares(b)
        elif claim.columns == "listed codes":
            W = cp.Variable((T + 1, claim.codes.shape[1]))
            limits = [cp.vstack([V, b]) == W @ claim.codes.T, cp.sum(cp.abs(W)) <= claim.theta]
        else:
            A = cp.abs(cp.vstack([V, b]))
            spent = cp.sum(A, axis=0) if claim.columns == "bits" else cp.sum(cp.max(A, axis=1))
            limits = [spent <= claim.theta]
        z = [
            cp.sum(cp.multiply(self.signed()[:, k], F), axis=1)
            for k in range(self.signed().shape[1])
        ]
        s, parts = self.s, len(z)
        if claim.loss == "cross-entropy":
            cost += s @ cp.log_sum_exp(cp.vstack([np.zeros(n), *[-one for one in z]]), axis=0)
        elif claim.loss == "hinge":
            cost += s @ cp.pos(1 - cp.min(cp.vstack(z), axis=0))
        elif claim.loss == "exponential":
            cost += cp.log_sum_exp(cp.hstack([np.log(s / parts) - one for one in z]))
        elif claim.loss == "logistic":
            cost += sum(s @ cp.logistic(-one) for one in z) / parts
        else:
            cost += sum(s @ cp.square(cp.pos(1 - one)) for one in z) / parts / 2
        problem = cp.Problem(cp.Minimize(cost), limits)
        tight = dict.fromkeys(["tol_gap_abs", "tol_gap_rel", "tol_feas"], 1e-9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an inaccurate solution, near enough
            problem.solve(solver=cp.CLARABEL, **tight)
        return float(problem.value), V.value[:n_rules], b.value[0]


def on_unit(x):
    return np.ldexp(np.rint(np.ldexp(x, -UNIT)), UNIT)


def random_problem(seed, loss, columns, most=14):
    """Ties, missing values, levels, weights, few rules or all of them, a witness or none."""
    rng = np.random.default_rng(seed)
    C = int(rng.integers(2, 5))
    n, D = int(rng.integers(C + 2, most)), int(rng.integers(1, 4))
    X = np.round(rng.normal(size=(n, D)), int(rng.integers(0, 2))) + 0.0
    X[rng.random((n, D)) < rng.choice([0.0, 0.3])] = np.nan
    y = np.append(np.arange(C), rng.integers(0, C, n - C))
    weight = [np.ones(n), rng.random(n) + 0.01, 10.0 ** rng.uniform(-3, 0, n)][rng.integers(3)]
    at_penalty = columns == "vectors"
    categorical = tuple(j for j in range(D) if at_penalty and rng.random() < 0.3)
    cuts = (
        "all"
        if rng.random() < 0.5
        else tuple(
            None if j in categorical else np.unique(np.round(rng.normal(size=2), 2))
            for j in range(D)
        )
    )
    decode, codes, margin = None, None, "pairwise"
    if columns == "bits":
        decode = rng.choice([-1, 1], size=(C, int(rng.integers(1, 4)))).astype(np.int8)
        margin = "pairwise" if loss == "hinge" else str(rng.choice(["codeword", "pairwise"]))
    if columns == "listed codes":
        codes = rng.choice([-1, 1], size=(C, int(rng.integers(1, 4)))).astype(np.int8)
    K = C if decode is None else decode.shape[1]
    rules = rules_of(X, categorical, cuts)
    size = 10.0 ** rng.uniform(-2, 0.5)

    def model():
        V = on_unit(size * rng.normal(size=(len(rules), K)))
        V[rng.random(len(rules)) < 0.6] = 0.0
        b = on_unit(size * rng.normal(size=K))
        chosen = [t for t in range(len(rules)) if V[t].any()]
        about = {"classes": np.arange(C), "decode": decode}
        used = [rules[t] for t in chosen]
        return V, b, *tables_of(used, V[chosen], b, X, categorical, **about)

    V, b, found, right = model()
    witness = model()[2] if rng.random() < 0.4 else None
    if loss == "hinge":
        count = int(rng.integers(0, n))
        place = rng.integers(0, n * (C - 1), count)
        witness = RowWeights(place, rng.random(count) / rng.choice([n, 1]))
    penalty = 10.0 ** rng.uniform(-3, -0.5) if at_penalty else None
    claim = Claim(
        loss=loss,
        margin=margin,
        columns=columns,
        theta=None if at_penalty else 10.0 ** rng.uniform(-1, 1),
        penalty=penalty,
        ridge=penalty * rng.choice([0.0, 1.0, 30.0]) if at_penalty else 0.0,
        intercept_ridge=10.0 ** rng.uniform(-3, 0) if at_penalty else 0.0,
        cuts=cuts,
        categorical=categorical,
        primal=None,
        dual=None,
        hypothesis_class="rules",
        class_weight=rng.random(C) + 0.1 if at_penalty and rng.random() < 0.4 else None,
        n_rows=n,
        missing_right=right,
        witness=witness,
        codes=codes,
    )
    found = replace(found, claim=claim)
    return Problem(X, y, weight, found, rules, signs_of(rules, X), V, b)
