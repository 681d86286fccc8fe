"""The totally corrective update of Algorithm 3: every coefficient, every round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..losses import DualWeights
from .base import Vector
from .master import Master, MasterSolution

# Of the tolerance on the certificate, what the restricted master may use up.
_MASTER_SHARE = 0.1


class TotallyCorrective:
    """All coefficients re-solved under ``sum w <= theta`` when a column is added."""

    def __init__(self, weight: Vector, width: int, theta: float, tol: float) -> None:
        self.w: Vector = np.zeros(0)
        self.z: Vector = np.zeros((len(weight), width))
        # Beyond, double precision does not resolve the gap any further.
        self._theta, self._tol = theta, max(tol, 1e-8 * theta) if theta > 1000 else tol
        self._s = np.repeat(weight / width, width)
        # Margins by column, with room to grow: they are small integers.
        self._P: NDArray[np.int8] = np.empty((self.z.size, 16), dtype=np.int8, order="F")
        self.solution: MasterSolution | None = None

    @property
    def budget(self) -> float:
        """The parameter theta."""
        return self._theta

    def floor(self, r: float) -> float:
        """Step (3) of Algorithm 3: a constraint that is (nearly) satisfied is not added."""
        return r + _MASTER_SHARE * self._tol / self._theta if self._theta > 0 else np.inf

    def done(self, gap: float) -> bool:
        """Stop when the certificate is small."""
        return gap <= self._tol

    def update(self, rho: NDArray[Any], dual: DualWeights) -> bool:
        """Steps (4) and (5) of Algorithm 3."""
        t = len(self.w)
        if t == self._P.shape[1]:
            grown = np.empty((self.z.size, 2 * t), dtype=np.int8, order="F")
            grown[:, :t] = self._P
            self._P = grown
        self._P[:, t] = rho.ravel()
        master = Master(self._P[:, : t + 1], self._s)
        tol = _MASTER_SHARE * self._tol
        self.solution = master.solve(self._theta, np.append(self.w, 0.0), tol)
        self.w = self.solution.w
        self.z = master.margins(self.w).reshape(self.z.shape)
        return True
