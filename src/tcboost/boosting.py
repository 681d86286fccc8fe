"""The one loop behind all algorithms: price, certify, correct (Algorithm 3 of the paper).

With the stage-wise corrector it is Algorithm 1 (codeword margins) or Algorithm 2 (pairwise
margins); with the totally corrective one it is MultiBoost.MO or MultiBoost.ECC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .certificate import Certificate, Certifier
from .columns import Chooser
from .correctors import Corrector
from .losses import exponential
from .margins import Margin
from .oracles import Column, Oracle
from .rows.blocks import LocalRows

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """What is to be learned: rows, margins, and where columns come from."""

    rows: LocalRows
    margin: Margin
    oracle: Oracle
    chooser: Chooser


@dataclass(frozen=True)
class Fit:
    """A finished run."""

    columns: list[Column]
    w: Vector
    history: dict[str, Any]
    certificate: Certificate


def boost(task: Task, corrector: Corrector, max_iter: int, verbose: int = 0) -> Fit:
    """Add up to `max_iter` columns.

    Step numbers are those of Algorithm 3. The round after the last one only certifies: the
    bound at the final coefficients needs the best edge under the final dual weights.
    """
    rows, margin = task.rows, task.margin
    log_s = np.log(rows.weight / margin.width)[:, None]
    columns: list[Column] = []
    history, certifier = _History(verbose), Certifier()
    while True:
        dual = exponential(corrector.z, log_s)
        prices = task.oracle.price(rows, margin.adjoint(dual.u, rows.y))
        g = prices.edges(columns) / dual.total if columns else np.zeros(0)
        r = max(0.0, float(g.max(initial=0.0)))
        priced = task.chooser.choose(prices, corrector.floor(r) * dual.total)  # (2)
        # KL(u, s) follows from log u = log s - z - loss; rounding u to integers adds a little.
        divergence = -float(corrector.w @ g) - dual.log_loss + dual.u.size * 2.0**-59
        certifier.add(priced.bound / dual.total, divergence)
        certificate = certifier.certificate(
            dual.log_loss, corrector.budget, task.chooser.hypothesis_class
        )
        if columns:
            history.record(task, corrector, certificate, r, g)
        finished = len(columns) == max_iter or corrector.done(certificate.gap)
        if finished or priced.column is None:  # (3), (6)
            break
        rho = margin.apply(priced.column.outputs(rows.X), rows.y)
        if not corrector.update(rho, dual):  # (4), (5)
            break
        columns.append(priced.column)
        history.edges.append(priced.edge / dual.total)
    return Fit(columns, corrector.w, history.arrays(), certificate)


class _History:
    """What the paper plots, round by round."""

    def __init__(self, verbose: int) -> None:
        self.edges: list[float] = []
        self.inner_products: list[Vector] = []
        self._rounds: list[dict[str, float]] = []
        self._verbose = verbose

    def record(
        self, task: Task, corrector: Corrector, certificate: Certificate, r: float, g: Vector
    ) -> None:
        """Take down the state after a round, under the dual weights that follow from it."""
        z, w = corrector.z, corrector.w
        wrong = task.margin.wrong(z, task.rows.y)
        entry = {
            "loss": certificate.primal,
            "train_error": float(task.rows.weight @ wrong),
            "min_margin": float(z.min()) / max(float(w.sum()), 1e-300),
            "r": r,
            "gap": certificate.gap,
            "n_active": int(np.count_nonzero(w)),
        }
        self._rounds.append(entry)
        self.inner_products.append(g)
        t = len(self._rounds)
        if self._verbose > 1 or (self._verbose == 1 and (t <= 3 or t % 10 == 0)):
            print(
                f"round {t:4d}  log-loss {entry['loss']:+.6f}  train error "
                f"{entry['train_error']:.4f}  gap {entry['gap']:.3g}  "
                f"active {entry['n_active']}"
            )

    def arrays(self) -> dict[str, Any]:
        """One array a quantity; the inner products are a list, one longer each round."""
        names = ("loss", "train_error", "min_margin", "r", "gap", "n_active")
        history: dict[str, Any] = {k: np.array([e[k] for e in self._rounds]) for k in names}
        history["edge"] = np.array(self.edges)
        history["inner_products"] = self.inner_products
        return history
