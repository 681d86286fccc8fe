"""The proof that comes with every fit: how far it can be from the best possible."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass

import numpy as np

from .losses import Loss


@dataclass(frozen=True)
class Certificate:
    """A duality-gap certificate over a whole class of hypotheses.

    Attributes
    ----------
    primal : float
        The training loss of the fitted model, with the ridge if there is one.
    dual : float
        A lower bound on the same of *any* combination of *all* columns of the class whose
        coefficients (or the lengths of whose class vectors) sum to at most `theta`.
    gap : float
        ``primal - dual``; infinite where the weak learner gives no bound.
    theta : float
        The budget that the bound is for.
    hypothesis_class : str
        The class of columns.
    loss : str
        What the loss is called.
    status : str
        How the fit ended: "optimal" (the gap is at most `tol`), "max_iter" (used up), "stalled"
        (no progress, with rounds left), "stopped early" (by rows held out, or a callback),
        "weak learner" (none is better than guessing), or "unknown" (rounds were left, but the
        class is fitted, not searched).
    unused_features : tuple of int
        Features that no optimal model uses, as far as the gap is small enough to tell; of a
        fit with a price, no model that is optimal at the price.
    """

    primal: float
    dual: float
    gap: float
    theta: float
    hypothesis_class: str
    loss: str
    status: str = "unknown"
    unused_features: tuple[int, ...] = ()

    def __str__(self) -> str:
        if not math.isfinite(self.gap):
            return (
                f"The training {self.loss} is {self.primal:.6g}; {self.hypothesis_class} are "
                "fitted, not searched, so nothing is proved about the best possible."
            )
        little = self.status != "optimal" and self.gap >= abs(self.primal)
        return (
            f"The training {self.loss} {self.primal:.6g} is within {self.gap:.2g} of the best "
            f"that any combination of {self.hypothesis_class} can reach with a budget of "
            f"{self.theta:.6g}{', which proves little' if little else ''}."
        )


class Certifier:
    """Collects a dual bound a round and keeps them all.

    A convex loss is above its tangent: at any coefficients w' with the budget theta it is at
    least ``loss(w) + <w, g> - theta e*``, g being the edges of the columns of w and e* the
    largest edge of the whole class. For the exponential loss that is the dual function
    ``-theta e* - KL(u, s)`` of equation (30). A bound of any round holds for the final budget.
    """

    def __init__(self) -> None:
        self._edges, self._offsets = array("d"), array("d")

    def add(self, best_edge: float, offset: float) -> None:
        """Record e* and ``loss(w) + <w, g>`` of a round."""
        self._edges.append(best_edge)
        self._offsets.append(offset)

    def dual(self, theta: float) -> float:
        """The best bound for a budget."""
        edges, offsets = np.frombuffer(self._edges), np.frombuffer(self._offsets)
        return float(np.max(offsets - (theta * edges if theta > 0 else 0.0)))


def certificate(
    primal: float,
    dual: float,
    theta: float,
    hypothesis_class: str,
    loss: Loss,
    ridge: float = 0.0,
) -> Certificate:
    """The certificate of a model with the given value of a loss, dual bound and budget."""
    if math.isfinite(dual):
        # What the sums behind both values may have lost to rounding.
        slack = 1e-14 * (1.0 + abs(primal) + abs(dual))
        dual = max(min(dual, primal) - slack, loss.infimum)
    name = loss.name if ridge == 0 else f"{loss.name} with its ridge"
    return Certificate(primal, dual, primal - dual, theta, hypothesis_class, name)
