"""The proof that comes with every fit: how far it can be from the best possible."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Certificate:
    """A duality-gap certificate over a whole class of hypotheses.

    Attributes
    ----------
    primal : float
        The training log-loss ``log mean exp(-margin)`` of the fitted model.
    dual : float
        A lower bound on the log-loss of *any* combination of *all* columns of the class, if its
        coefficients are nonnegative and sum to at most `theta`.
    gap : float
        ``primal - dual``; infinite where the weak learner gives no bound.
    theta : float
        The budget that the bound is for.
    hypothesis_class : str
        The class of columns.
    """

    primal: float
    dual: float
    gap: float
    theta: float
    hypothesis_class: str

    def __str__(self) -> str:
        if not np.isfinite(self.gap):
            return (
                f"The training log-loss is {self.primal:.6g}; {self.hypothesis_class} are "
                "fitted, not searched, so nothing is proved about the best possible."
            )
        return (
            f"The training log-loss {self.primal:.6g} is within {self.gap:.2g} of the best "
            f"that any combination of {self.hypothesis_class} can reach with a budget of "
            f"{self.theta:.6g}."
        )


class Certifier:
    """Collects a dual bound a round and keeps them all.

    With normalised dual weights u and ``e* = max_j u . rho_j`` over the whole class, the dual
    function (equation (30)) has the value ``-theta e* - KL(u, s)``, a lower bound for every
    theta: the bound of any round holds for the final budget.
    """

    def __init__(self) -> None:
        self._edges: list[float] = []
        self._divergences: list[float] = []

    def add(self, best_edge: float, divergence: float) -> None:
        """Record the largest edge of the class and ``KL(u, s)`` of a round."""
        self._edges.append(best_edge)
        self._divergences.append(divergence)

    def dual(self, theta: float) -> float:
        """The best bound for a budget."""
        edges, divergences = np.array(self._edges), np.array(self._divergences)
        if theta == 0:
            return 0.0
        return float(np.max(-theta * edges - divergences))

    def certificate(self, primal: float, theta: float, hypothesis_class: str) -> Certificate:
        """The certificate of a model with the given log-loss and budget."""
        dual = self.dual(theta)
        # What the sums behind both values may have lost to rounding.
        slack = 1e-14 * (1.0 + abs(primal) + abs(dual)) if np.isfinite(dual) else 0.0
        dual = min(dual, primal) - slack
        return Certificate(primal, dual, primal - dual, theta, hypothesis_class)
