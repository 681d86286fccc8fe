"""What a run was like, round by round."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .certificate import Certificate

Vector = NDArray[np.float64]


class Round(NamedTuple):
    """The state after a round, under the dual weights that follow from it."""

    w: Vector  # coefficients
    inner_products: Vector  # the edges of their columns
    certificate: Certificate
    train_error: float
    least: float  # of all margins

    def figures(self) -> dict[str, float]:
        """What the paper plots."""
        return {
            "loss": self.certificate.primal,
            "train_error": self.train_error,
            "min_margin": self.least / max(float(self.w.sum()), 1e-300),
            "r": max(0.0, float(self.inner_products.max())),
            "gap": self.certificate.gap,
            "n_active": int(np.count_nonzero(self.w)),
        }


class History:
    """The rounds. Figures are made of them in the end, or when they are to be printed."""

    def __init__(self, verbose: int) -> None:
        self.edges: list[float] = []
        self.rounds: list[Round] = []
        self.validation_loss: list[float] = []
        self.verbose = verbose

    def __len__(self) -> int:
        return len(self.rounds)

    @property
    def best(self) -> int:
        """The round of least validation loss, counted from one; 0 if there is none."""
        return 1 + int(np.argmin(self.validation_loss)) if self.validation_loss else 0

    def record(
        self, w: Vector, g: Vector, certificate: Certificate, train_error: float, least: float
    ) -> None:
        """Take down the state after a round: coefficients w, the edges g of their columns."""
        self.rounds.append(Round(w.copy(), g, certificate, train_error, least))
        t = len(self)
        if self.verbose > 1 or (self.verbose == 1 and (t <= 3 or t % 10 == 0)):
            now = self.rounds[-1].figures()
            print(
                f"round {t:4d}  loss {now['loss']:+.6f}  train error "
                f"{now['train_error']:.4f}  gap {now['gap']:.3g}  active {now['n_active']}"
            )

    def forget(self) -> None:
        """The last round is to be recorded anew."""
        del self.rounds[-1:], self.validation_loss[-1:]

    def arrays(self) -> dict[str, Any]:
        """One array a quantity; inner products and weights are lists of growing arrays."""
        names = ("loss", "train_error", "min_margin", "r", "gap", "n_active")
        figures = [a_round.figures() for a_round in self.rounds]
        history: dict[str, Any] = {k: np.array([f[k] for f in figures]) for k in names}
        history["edge"] = np.array(self.edges)
        history["inner_products"] = [a_round.inner_products for a_round in self.rounds]
        history["weights"] = [a_round.w for a_round in self.rounds]
        if self.validation_loss:
            history["validation_loss"] = np.array(self.validation_loss)
        return history
