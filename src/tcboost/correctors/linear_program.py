"""The totally corrective update for the hinge loss: a linear program, solved in its dual.

With weights s of the rows the dual of Theorem 3 is

    maximise  sum_ic u_ic - theta r   subject to  sum_c u_ic <= s_i,  rho_j . u <= r,  u, r >= 0

over c != y_i: the paper's u_{i,y_i} is what a row has left, and the paper's value is what is
missing to N. The r >= 0 is that of ``sum w <= theta``. A new column is one row more, which the
last u violates, and the dual simplex method goes on from there; its multiplier is w_j.

An optimal u is rarely the only one, and which one prices next decides the run. It is the vertex
that HiGHS reaches from the last basis, a function of the columns and that basis alone: the
solver is cleared before every solve, rows come in canonical order, and one thread does it all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..losses import DualWeights, Hinge
from ..margins import Margin
from ..oracles import Column, Prices
from .base import Columns, ColumnStore, Predictions, Vector
from .totally_corrective import TotallyCorrective

_OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "solver": "simplex",
    "presolve": "off",  # it would give up the basis
    "parallel": "off",
    "simplex_scale_strategy": 0,  # margins are of one size, and scales would outlive a clearing
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}


class LinearProgram(TotallyCorrective):
    """All coefficients re-solved for the hinge loss under ``sum w <= theta``."""

    def __init__(
        self, margin: Margin, y: NDArray[np.intp], weight: Vector, theta: float, tol: float
    ) -> None:
        super().__init__(margin, y, weight, theta, tol)
        self._weight = weight
        self._P = ColumnStore(self.z.size, np.int8)
        self._highs: Any = None
        self._put_away: tuple[list[Any], list[Any]] | None = None  # its basis, with a copy

    def prune(self) -> NDArray[np.bool_]:
        """Forget columns without weight; return which were kept."""
        self._highs = self._put_away = None
        return super().prune()

    def update(
        self, columns: Columns, predictions: Predictions, dual: DualWeights, prices: Prices
    ) -> bool:
        """Steps (4) and (5) of Algorithm 3; a column that is there already cannot help."""
        (of_rows,) = predictions()
        outputs = columns[0].coded(of_rows)
        rho = self._margin.apply(outputs, self._y).reshape(-1, 1)
        if (self._P.matrix == rho).all(axis=0).any():
            return False
        return super().update(columns, lambda: [of_rows], dual, prices)

    def _add(self, column: Column, predictions: NDArray[np.int8]) -> None:
        self._P.append(self._margin.apply(column.coded(predictions), self._y).ravel())

    def _keep(self, kept: NDArray[np.bool_]) -> None:
        self._P.keep(kept)

    def _solve(self) -> None:
        import highspy  # here: it would be a fifth of the time to import tcboost

        n, width = self.z.shape
        highs = self._program()
        highs.changeColCost(n * width, self.theta)
        basis = highs.getBasis()  # of the last solve, and new rows are basic
        highs.clearSolver()
        if basis.valid:
            highs.setBasis(basis)
        highs.run()
        if (
            highs.getModelStatus() != highspy.HighsModelStatus.kOptimal
        ):  # the last coefficients stay, and the certificate is for them
            return
        solution = highs.getSolution()
        w = np.maximum(0.0, -np.array(solution.row_dual)[-len(self.w) :])
        self.w = w * min(1.0, self.theta / max(float(w.sum()), 1e-300))
        self.z = (self._P.matrix.astype(float) @ self.w).reshape(self.z.shape)
        u = np.maximum(0.0, np.array(solution.col_value)[:-1]).reshape(self.z.shape)
        self.dual = Hinge().shared_out(u / (n * self._weight)[:, None], self.z, self._weight)

    def _program(self) -> Any:
        """HiGHS with all columns so far. Weights are N s_i, one on average, as in the paper."""
        import highspy

        n, width = self.z.shape
        if self._highs is None:
            self._highs = highs = highspy.Highs()  # type: ignore[no-untyped-call]
            for name, value in _OPTIONS.items():
                highs.setOptionValue(name, value)
            size, own = n * width, n * self._weight
            upper = np.append(np.repeat(own, width), highspy.kHighsInf)
            highs.addVars(size + 1, np.zeros(size + 1), upper)
            every, ones = np.arange(size + 1, dtype=np.int32), np.ones(size)
            highs.changeColsCost(size + 1, every, np.append(-ones, self.theta))
            if width > 1:
                below, starts = np.full(n, -highspy.kHighsInf), every[:size:width]
                highs.addRows(n, below, own, size, starts, every[:-1], ones)
        n_caps = n if width > 1 else 0
        for rho in self._P.matrix.T[self._highs.getNumRow() - n_caps :]:
            row = np.append(rho, -1.0)
            used = np.flatnonzero(row).astype(np.int32)
            self._highs.addRow(-highspy.kHighsInf, 0.0, len(used), used, row[used])
        if self._put_away:
            basis = highspy.HighsBasis()
            basis.col_status, of_rows = self._put_away
            new = self._highs.getNumRow() - len(of_rows)
            basis.row_status = of_rows + new * [highspy.HighsBasisStatus.kBasic]
            self._highs.setBasis(basis)
            self._put_away = None
        return self._highs

    def __getstate__(self) -> dict[str, Any]:
        """HiGHS itself is built anew when it is needed."""
        put_away = self._put_away
        if self._highs is not None and (basis := self._highs.getBasis()).valid:
            put_away = list(basis.col_status), list(basis.row_status)
        return {**self.__dict__, "_highs": None, "_put_away": put_away}
