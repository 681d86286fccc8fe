"""The proof that comes with every fit: how far it can be from the best possible."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .losses import Loss


@dataclass(frozen=True)
class Certificate:
    """A duality-gap certificate over a whole class of hypotheses.

    Attributes
    ----------
    primal : float
        The training loss of the fitted model.
    dual : float
        A lower bound on the same of *any* combination of *all* columns of the class whose
        coefficients sum to at most `theta`.
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
        Features that no optimal model uses, as far as the gap is small enough to tell.
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
        self._witnesses: list[Any] = []

    def add(self, best_edge: float, offset: float, witness: Any = None) -> None:
        """Record e* and ``loss(w) + <w, g>`` of a round, and from what they follow."""
        self._edges.append(best_edge)
        self._offsets.append(offset)
        self._witnesses.append(witness)

    def dual(self, theta: float) -> float:
        """The best bound for a budget."""
        return float(np.max(self._bounds(theta)))

    def witness(self, theta: float) -> Any:
        """From what the best bound for a budget follows."""
        return self._witnesses[int(np.argmax(self._bounds(theta)))]

    def _bounds(self, theta: float) -> NDArray[np.float64]:
        edges, offsets = np.frombuffer(self._edges), np.frombuffer(self._offsets)
        return offsets - (theta * edges if theta > 0 else 0.0)


def certificate(
    primal: float, dual: float, theta: float, hypothesis_class: str, loss: Loss
) -> Certificate:
    """The certificate of a model with the given value of a loss, dual bound and budget."""
    if math.isfinite(dual):
        # What the sums behind both values may have lost to rounding.
        slack = 1e-14 * (1.0 + abs(primal) + abs(dual))
        dual = max(min(dual, primal) - slack, loss.infimum)
    return Certificate(primal, dual, primal - dual, theta, hypothesis_class, loss.name)


@dataclass(frozen=True)
class SolvedCertificate:
    """What is proved of a model of rules, and what is expected of it.

    Attributes
    ----------
    status : str
        How the fit ended: "optimal" (the gap is at most what `tol` asks for), "max_rules" (used
        up), "max_iter" (of rounds), "stalled" (no progress), "time" (`max_seconds` was over) or
        "stopped early" (by a callback).
    train_log_loss : float
        `sklearn.metrics.log_loss` of the rows and weights that were fitted.
    cv_log_loss : float
        The log loss of the rows held out when alpha was chosen; NaN if there was no choice.
    n_folds : int
        How often rows were held out.
    objective, lower_bound, gap : float
        The training objective of the model, with its penalty and for rows that weigh one
        together; what no model of any such rules can be below; the difference.
    n_rules, max_rules : int
        Rules of the model, and how many it may have.
    models : str
        The rules that the bound is about.
    features_not_needed : tuple of str or int
        Features that provably no optimal model uses, by name where there are names.
    """

    status: str
    train_log_loss: float
    cv_log_loss: float
    n_folds: int
    objective: float
    lower_bound: float
    gap: float
    n_rules: int
    max_rules: int
    models: str
    features_not_needed: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        lines = [f"Log loss {self.train_log_loss:.3g} on the training rows"]
        if math.isfinite(self.cv_log_loss):
            folds = "1 fold" if self.n_folds == 1 else f"{self.n_folds} folds"
            lines[0] += f", about {self.cv_log_loss:.3g} on new ones ({folds})"
        lines[0] += f". {self.n_rules} of at most {self.max_rules} rules."
        little = ", which proves little" if self.gap >= self.objective else ""
        lines.append(
            f"At this alpha and l1_ratio no other model of rules ({self.models}) can lower the "
            f"training objective of {self.objective:.3g} by more than {self.gap:.2g}{little}."
        )
        if self.status == "time":
            lines.append("Stopped by max_seconds: another run may end elsewhere.")
        if self.features_not_needed:
            lines.append(
                f"Provably not needed: {', '.join(map(str, self.features_not_needed))}."
            )
        return "\n".join(lines)
