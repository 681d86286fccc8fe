"""The relatives of the paper's algorithms, as they were first published, and slow.

Products of stumps: Kegl and Busa-Fekete (2009). AdaBoost.M1 and M2: Freund and Schapire (1996).
AdaBoost.OC: Schapire (1997). SAMME: Zhu, Rosset, Zou and Hastie (2006). The symbols are theirs.
Classes are 0..C-1, s are sample weights. A weak learner of classes is a function of (X, y, D)
that gives predictions on X, or of M2 a function of (X, y, D(i, c)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .algorithms import TIE, Ints, Stump, best_stump, eps_floor, normalised
from .programs import Array

# ---------------------------------------------------------------- products of stumps


def best_product(X: Array, v: Array, m: int) -> tuple[list[Stump], float]:
    """Algorithm "product": m stumps, re-fitted in turn until none of them raises the edge."""
    factors = [Stump(0, -math.inf, 1) for _ in range(m)]
    edge = math.fsum(v)
    while True:
        before = edge
        for j in range(m):
            labels = v.copy()
            for k in range(m):
                if k != j:
                    labels = labels * factors[k].predict(X)
            h, found = best_stump(X, labels)
            if found > edge + TIE * math.fsum(np.abs(v)):
                factors[j], edge = h, found
        if edge == before:
            return factors, edge


# ---------------------------------------------------------------- boosting with whole classes


@dataclass(frozen=True)
class Run:
    """One entry a round: the published coefficient, error or pseudo-loss, predictions."""

    coefficients: list[float]
    errors: list[float]
    predictions: list[Ints]
    D: list[Array]  # the distribution before each round, and the last

    def votes(self, C: int) -> Array:
        """(rounds, N, C): sums of the coefficients of the rounds that said c."""
        rounds = zip(self.coefficients, self.predictions, strict=True)
        return np.cumsum([a * np.eye(C)[h] for a, h in rounds], axis=0)

    def add(self, coefficient: float, error: float, predictions: Ints, D: Array) -> None:
        self.coefficients.append(coefficient)
        self.errors.append(error)
        self.predictions.append(predictions)
        self.D.append(D / math.fsum(D.ravel()))


Learner = Callable[[Array, Ints, Array], Ints]


def samme(X: Array, y: Ints, C: int, T: int, learn: Learner, s: Array | None = None) -> Run:
    """Algorithm 2 (SAMME); coefficients alpha = log((1 - err) / err) + log(C - 1)."""
    w = normalised(y, s)
    floor = eps_floor(w, 1)
    run = Run([], [], [], [w])
    for _ in range(T):
        h = learn(X, y, w)  # (2 a)
        err = max(math.fsum(w[h != y]) / math.fsum(w), floor)  # (2 b)
        if err >= (C - 1) / C - TIE:
            break
        alpha = math.log((1 - err) / err) + math.log(C - 1)  # (2 c)
        w = w * np.exp(alpha * (h != y))  # (2 d)
        run.add(alpha, err, h, w)  # (2 e)
        w = run.D[-1]
    return run


def samme_loss(run: Run, y: Ints, C: int, s: Array | None = None) -> list[float]:
    """log mean exp(-Y . f / C) after each round: f = sum of beta_t g_t, g the coded class."""
    code = np.full((C, C), -1 / (C - 1))
    np.fill_diagonal(code, 1.0)
    f, losses = np.zeros((len(y), C)), []
    for alpha, h in zip(run.coefficients, run.predictions, strict=True):
        f = f + (C - 1) ** 2 / C * alpha * code[h]
        loss = np.exp(-np.sum(code[y] * f, axis=1) / C)
        losses.append(math.log(math.fsum(normalised(y, s) * loss)))
    return losses


def adaboost_m1(X: Array, y: Ints, T: int, learn: Learner, s: Array | None = None) -> Run:
    """Fig. 1 (AdaBoost.M1); coefficients log(1 / beta)."""
    D = normalised(y, s)
    floor = eps_floor(D, 1)
    run = Run([], [], [], [D])
    for _ in range(T):
        h = learn(X, y, D)  # 1. and 2.
        eps = math.fsum(D[h != y])  # 3.
        if eps >= 0.5 - TIE:
            break
        eps = max(eps, floor)
        beta = eps / (1 - eps)  # 4.
        D = D * np.where(h == y, beta, 1.0)  # 5.
        run.add(math.log(1 / beta), eps, h, D)
        D = run.D[-1]
    return run


def adaboost_m2(
    X: Array, y: Ints, C: int, T: int, learn: Learner, s: Array | None = None
) -> Run:
    """Fig. 2 (AdaBoost.M2), h(x, c) being 1 for the predicted class c and 0 for the others.

    D is (N, C), with nothing on the true classes; coefficients log(1 / beta).
    """
    s = normalised(y, s)
    N, floor = len(y), eps_floor(s, C - 1)
    D = np.array([[0.0 if c == y[i] else s[i] / (C - 1) for c in range(C)] for i in range(N)])
    run = Run([], [], [], [D])
    for _ in range(T):
        predicted = learn(X, y, D)  # 1. and 2.
        h = np.eye(C)[predicted]
        own = h[np.arange(N), y][:, None]
        eps = 0.5 * math.fsum((D * (1 - own + h)).ravel())  # 3., the pseudo-loss
        if eps >= 0.5 - TIE:
            break
        eps = max(eps, floor)
        beta = eps / (1 - eps)  # 4.
        D = D * beta ** (0.5 * (1 + own - h))  # 5.
        run.add(math.log(1 / beta), eps, predicted, D)
        D = run.D[-1]
    return run


def expanded(y: Ints, D: Array) -> tuple[Ints, Ints, Array]:
    """Rows, labels and weights whose weighted error is least where the pseudo-loss of M2 is.

    To answer c instead of y_i costs ``D(i, .) + D(i, c)`` (twice the pseudo-loss, less a
    constant). A row is put in once for each class, with what the class saves compared with the
    dearest one; classes that save nothing are left out.
    """
    rows, labels, gains = [], [], []
    for i, d in enumerate(D):
        cost = [0.0 if c == y[i] else math.fsum(d) + d[c] for c in range(len(d))]
        for c in range(len(d)):
            if max(cost) - cost[c] > 0:
                rows.append(i)
                labels.append(c)
                gains.append(max(cost) - cost[c])
    return np.array(rows), np.array(labels), np.array(gains)


# ---------------------------------------------------------------- AdaBoost.OC


@dataclass(frozen=True)
class OutputCodes:
    """A run of AdaBoost.OC; alphas are the published coefficients."""

    alphas: list[float]
    stumps: list[Stump]
    votes: Array  # (N, C)


def adaboost_oc(X: Array, y: Ints, codes: Array, s: Array | None = None) -> OutputCodes:
    """Fig. 1 (AdaBoost.OC); the colouring of round t, of 0 and 1, is (codes[:, t] + 1) / 2."""
    mu = (np.asarray(codes) + 1) // 2
    C, T = mu.shape
    s = normalised(y, s)
    N, floor = len(y), eps_floor(s, C - 1)
    D = np.array([[0.0 if c == y[i] else s[i] / (C - 1) for c in range(C)] for i in range(N)])
    alphas, stumps, votes = [], [], np.zeros((N, C))
    for t in range(T):
        apart = mu[y, t][:, None] != mu[:, t][None, :]
        U = math.fsum(D[apart])
        d = np.sum(D * apart, axis=1) / U
        stump, _ = best_stump(X, d * (2 * mu[y, t] - 1))  # on (x_i, mu(y_i)), d
        h = (stump.predict(X) + 1) // 2
        said = h[:, None] == mu[:, t][None, :]  # h~(x): the labels coloured as h says
        own = said[np.arange(N), y][:, None]
        eps = 0.5 * math.fsum((D * (~own * 1.0 + said)).ravel())
        eps = max(eps, floor)
        alpha = 0.5 * math.log((1 - eps) / eps)
        D = D * np.exp(alpha * (~own * 1.0 + said))
        D = D / math.fsum(D.ravel())
        votes = votes + alpha * said
        alphas.append(alpha)
        stumps.append(stump)
    return OutputCodes(alphas, stumps, votes)
