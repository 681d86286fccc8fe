"""What a run was like, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .certificate import Certificate
from .correctors import lengths

Vector = NDArray[np.float64]


class History:
    """What the paper plots, round by round."""

    def __init__(self, verbose: int) -> None:
        self.edges: list[float] = []
        self._inner_products: list[Vector] = []
        self.weights: list[Vector] = []
        self.certificates: list[Certificate] = []
        self.validation_loss: list[float] = []
        self._rounds: list[dict[str, float]] = []
        self.verbose = verbose

    def __len__(self) -> int:
        return len(self._rounds)

    @property
    def best(self) -> int:
        """The round of least validation loss, counted from one; 0 if there is none."""
        return 1 + int(np.argmin(self.validation_loss)) if self.validation_loss else 0

    def record(
        self, w: Vector, g: Vector, certificate: Certificate, train_error: float, least: float
    ) -> None:
        """Take down the state after a round, under the dual weights that follow from it.

        Coefficients w, the edges g of their columns, and the `least` of all margins.
        """
        used, inner_products = lengths(w), lengths(g)
        entry = {
            "loss": certificate.primal,
            "train_error": train_error,
            "min_margin": least / max(float(used.sum()), 1e-300),
            "r": max(0.0, float(inner_products.max())),
            "gap": certificate.gap,
            "n_active": int(np.count_nonzero(used)),
        }
        self._rounds.append(entry)
        self._inner_products.append(inner_products)
        self.weights.append(w.copy())
        self.certificates.append(certificate)
        t = len(self._rounds)
        if self.verbose > 1 or (self.verbose == 1 and (t <= 3 or t % 10 == 0)):
            print(
                f"round {t:4d}  loss {entry['loss']:+.6f}  train error "
                f"{entry['train_error']:.4f}  gap {entry['gap']:.3g}  "
                f"active {entry['n_active']}"
            )

    def forget(self) -> None:
        """The last round is to be recorded anew."""
        models = self._rounds, self._inner_products, self.weights, self.certificates
        for entries in (*models, self.validation_loss):
            del entries[-1:]

    def arrays(self) -> dict[str, Any]:
        """One array a quantity; inner products and weights are lists of growing arrays."""
        names = ("loss", "train_error", "min_margin", "r", "gap", "n_active")
        history: dict[str, Any] = {k: np.array([e[k] for e in self._rounds]) for k in names}
        history["edge"] = np.array(self.edges)
        history["inner_products"], history["weights"] = self._inner_products, self.weights
        if self.validation_loss:
            history["validation_loss"] = np.array(self.validation_loss)
        return history
