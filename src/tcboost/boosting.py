"""The one loop behind all algorithms: price, certify, correct (Algorithm 3 of the paper).

With the stage-wise corrector it is Algorithm 1 (codeword margins) or Algorithm 2 (pairwise
margins); with the totally corrective one it is MultiBoost.MO or MultiBoost.ECC.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .certificate import Certificate, Certifier, certificate
from .columns import Chooser, Priced, Wanted
from .correctors import (
    SMALL,
    Corrector,
    LookedUp,
    Products,
    StageWise,
    TotallyCorrective,
)
from .correctors.looked_up import MANY, ROWS_PER_CELL
from .correctors.products import EVEN, WORTH
from .ensemble import Ensemble
from .history import History
from .losses import DualWeights, Exponential, Hinge, Loss, SmoothLoss, weigh
from .margins import Codeword, Margin, Pairwise
from .model.claim import RowWeights
from .oracles import Column, MulticlassOracle, Oracle, Prices
from .oracles.stump import StumpOracle
from .rows.blocks import LocalRows

Vector = NDArray[np.float64]


class Task(NamedTuple):
    """What is to be learned: rows, margins, loss, and where columns come from."""

    rows: LocalRows
    margin: Margin
    loss: Loss
    oracle: Oracle
    chooser: Chooser

    def price(self, u: NDArray[np.int64]) -> Prices:
        """All hypotheses under the dual weights u; stumps have most adjoints built in."""
        if not isinstance(self.oracle, StumpOracle):
            return self.oracle.price(self.rows, self.margin.adjoint(u, self.rows.y))
        if type(self.margin) in (Pairwise, Codeword):
            M = getattr(self.margin, "M", None)
            return self.oracle.price(self.rows, u, self.rows.y, M=M)
        V = self.margin.adjoint(u, self.rows.y)
        return self.oracle.price(self.rows, V)

    def stage_wise(self, pseudo_loss: bool = False) -> StageWise:
        """The corrector of Algorithms 1 and 2; on many rows it keeps no margins.

        For that it needs sums that are few for the rows there are: every thread has its own.
        """
        rows, margin, oracle, loss = self.rows, self.margin, self.oracle, self.loss
        assert isinstance(loss, SmoothLoss)
        kept: Products | LookedUp | None = None
        if isinstance(loss, Exponential) and isinstance(oracle, StumpOracle):
            n_margins, n_cells = len(rows) * margin.width, rows.groups.first[-1]
            if type(margin) is Pairwise and margin.width > 1 and n_margins >= WORTH:
                few_cells = 32 * n_cells <= len(rows) * len(rows.groups.first)
                if few_cells and rows.weight.max() <= EVEN * rows.weight.min():
                    kept = Products(rows, oracle, margin)
            enough = n_margins >= MANY and len(rows) >= ROWS_PER_CELL * n_cells
            if isinstance(margin, Codeword) and enough:
                kept = LookedUp(rows, oracle, margin)
        return StageWise(margin, rows.y, rows.weight, loss, pseudo_loss, rows.n_threads, kept)

    def weigh_and_price(self, z: Vector) -> tuple[DualWeights, Prices]:
        """The dual weights at the margins z, and all hypotheses under them.

        Where stumps have the adjoint built in, and the loss the weights, both are one kernel.
        """
        prices: Prices | None = None
        rows, margin, oracle = self.rows, self.margin, self.oracle

        def at_once(z: Vector, weight: Vector) -> tuple[None, tuple[float, int, int, float]]:
            nonlocal prices
            assert isinstance(oracle, StumpOracle)
            M = getattr(margin, "M", None)
            prices, found = oracle.weigh_and_price(rows, z, M)
            return None, found

        built_in = isinstance(oracle, StumpOracle) and type(margin) in (Pairwise, Codeword)
        if built_in and len(rows.blocks) == 1:
            dual = self.loss.dual_weights(z, rows.weight, at_once)
        else:
            in_turn = partial(weigh, n_threads=rows.n_threads)
            dual = self.loss.dual_weights(z, rows.weight, in_turn)
        if dual.u is not None:
            return dual, self.price(dual.u)
        assert prices is not None
        return dual, prices

    def wrong(self, z: Vector, columns: list[Column], w: Vector) -> NDArray[np.bool_]:
        """Which rows are misclassified: by their margins, or by scores if these do not tell."""
        if isinstance(self.oracle, MulticlassOracle):
            F = sum(a * H for a, H in zip(w, self.oracle.predictions(columns), strict=True))
            return self.margin.scores(np.asarray(F)).argmax(axis=1) != self.rows.y
        return self.margin.wrong(z, self.rows.y, self.rows.n_threads)


class HeldOut(NamedTuple):
    """Rows that only say when to stop: when `patience` rounds have not lowered their loss."""

    rows: LocalRows
    patience: int

    def loss(self, task: Task, columns: list[Column], w: Vector) -> float:
        """The loss of the present model."""
        F = Ensemble(columns, w, task.margin).outputs(self.rows.X)
        z = task.margin.apply(F, self.rows.y)
        return task.loss.dual_weights(z, self.rows.weight).loss


class Model(NamedTuple):
    """What a run has found, with its certificate."""

    columns: list[Column]
    w: Vector
    theta: float
    certificate: Certificate


class Run:
    """A run of column generation.

    It may be continued, `boost` again with more rounds, but not as if nothing had been between:
    the last round is polished. `paused` is the run before that, if it was asked for.
    """

    def __init__(
        self,
        task: Task,
        corrector: Corrector,
        verbose: int = 0,
        held_out: HeldOut | None = None,
    ) -> None:
        self.task, self.corrector, self.held_out = task, corrector, held_out
        self.columns: list[Column] = []
        self.history = History(verbose)
        self.certificate: Certificate
        self.paused: Run | None = None
        self.over = False
        self._ended = "unknown"
        self.budgets: list[float] = []  # of the rounds to come, where theta is to grow
        self._certifier, self._open = Certifier(), np.inf
        self._z: Vector
        self._priced: tuple[Prices, float]

    @property
    def w(self) -> Vector:
        """Coefficients: one number a column."""
        return self.corrector.w

    def copy(self) -> Run:
        """Where the run stands, to go on from. Draws of codes and of fits are part of that."""
        task = self.task
        shared: list[Any] = [task.rows, task.margin, task.loss, *self.columns]
        if task.oracle.exact:  # nothing is drawn in a search
            shared.append(task.oracle)
        return deepcopy(self, {id(thing): thing for thing in shared})

    def boost(
        self,
        max_iter: int,
        pause: bool = False,
        watch: Callable[[Run], bool] = lambda run: False,
    ) -> Run:
        """Add columns until there are `max_iter`, the certificate is small, or `watch` says so.

        Step numbers are those of Algorithm 3. The round after the last one only certifies: the
        bound at the final coefficients needs the best edge under the final dual weights.
        """
        task, corrector = self.task, self.corrector
        columns, history = self.columns, self.history
        watched, stop = len(history.edges), False
        self.over, self._ended = False, "unknown"
        while True:
            room = corrector.room = max_iter - len(columns)
            batch = corrector.batch()
            if room < max(batch, corrector.lead) and pause and self.paused is None:
                self.paused = self.copy()
            dual, g, priced = self._price(min(room, batch))
            if len(history) < len(history.edges):
                told = self.certificate, self.train_error(), self._least
                history.record(self.w, g, *told)
                if self.held_out:
                    history.validation_loss.append(self.held_out.loss(task, columns, self.w))
                    if len(history) - history.best >= self.held_out.patience:
                        self._ended = "stopped early"
                        break
            if watched < len(history.edges):
                watched, stop = len(history.edges), watch(self)
            gap = self.certificate.gap
            if self.budgets and not priced.columns and room > 0:  # (3) at this budget only
                self._grow()
                history.forget()
                continue
            done = corrector.done(gap) and not self.budgets
            if done or room <= 0 or stop or not priced.columns:  # (3), (6)
                # If the master was solved too loosely, now as well as the class, to go on.
                loose = room > 0 and len(columns) > SMALL and not (done or stop)
                if not corrector.polish(gap if loose else 0.0):
                    left = "stopped early" if stop else self._stuck
                    self._ended = left if room > 0 else "max_iter"
                    break
                history.forget()
                continue
            if self.budgets:
                self._grow(solve=False)
            predictions = partial(task.oracle.predictions, priced.columns)
            self._z = np.empty(0)  # the next ones need the room
            if not corrector.update(priced.columns, predictions, dual, self._priced[0]):
                self._ended = self._stuck
                break  # after (4), (5)
            columns.extend(priced.columns)
            history.edges.append(priced.edge / dual.scale)
            del dual, predictions
        self.over = True
        if task.oracle.exact:
            unused = tuple(np.flatnonzero(self._unused(dual.scale)).tolist())
            self.certificate = replace(self.certificate, unused_features=unused)
        return self

    def _unused(self, scale: float) -> NDArray[np.bool_]:
        """Features whose best edges stay below those of the optimum, whatever the optimum is.

        The dual weights of the optimum are near the present ones, so their edges are too, by
        the strong concavity of the dual (`Loss.spread`). Those of the optimum are only known to
        be as near.
        """
        task = self.task
        prices, bound = self._priced
        n_features = len(task.rows.binning.cuts)
        best = prices.best_of_features(task.chooser.measure, n_features) / scale
        spread = task.loss.spread(task.margin)
        # How far an edge can be from what it is at the optimum; a feature without a stump is
        # below that, too.
        near = np.minimum(spread * np.sqrt(2.0 * max(0.0, self._open) + 1e-14), 1e300)
        level = best.max(axis=0) if best.shape[1] > 1 else np.array([bound])
        return (best < level - 2.0 * near).all(axis=1)

    @property
    def _stuck(self) -> str:
        """How a run ends that finds nothing to add, with rounds left."""
        if isinstance(self.corrector, StageWise):
            return "weak learner"
        return "stalled" if self.task.oracle.exact else "unknown"

    def train_error(self) -> float:
        """The weight of the misclassified rows."""
        task, corrector = self.task, self.corrector
        if isinstance(corrector, StageWise) and corrector.kept:
            return corrector.kept.error
        return float(task.rows.weight @ task.wrong(self._z, self.columns, self.w))

    def model(self) -> Model:
        """The last model, or the one that was the best on the rows held out.

        Its coefficients are those of its round, and a dual bound of any round is one for it.
        """
        t, ended = self.history.best, self._ended
        columns, w, certificate = self.columns, self.w, self.certificate
        if self.held_out is not None and t < len(self.history):
            w, _, certificate, *_ = self.history.rounds[t - 1]
            columns, ended = columns[: len(w)], "stopped early"
            then = certificate
            certificate = self._certificate(then.primal, then.theta, then.dual)
        status = "optimal" if certificate.gap <= self.corrector.tol else ended
        return Model(columns, w, certificate.theta, replace(certificate, status=status))

    def witness(self, theta: float) -> Any:
        """What the bound for a budget follows from: columns and w, or dual weights."""
        return self._certifier.witness(theta)

    def set_budget(self, theta: float) -> None:
        """Go on with another budget, without the columns that have no weight."""
        assert isinstance(self.corrector, TotallyCorrective)
        kept = self.corrector.prune()
        self.columns = list(compress(self.columns, kept.tolist()))
        self.history = History(self.history.verbose)
        if self.columns:  # the first entry is for the columns that stay
            self.history.edges.append(np.nan)
        self.corrector.set_budget(theta)

    def _grow(self, solve: bool = True) -> None:
        """Take the budget of the next round."""
        assert isinstance(self.corrector, TotallyCorrective)
        self.corrector.set_budget(self.budgets.pop(0), solve)

    def _weigh_and_price(self) -> tuple[DualWeights, Prices]:
        """The dual weights of the present coefficients, and all hypotheses under them."""
        task, corrector = self.task, self.corrector
        if isinstance(corrector, StageWise) and corrector.kept:
            assert isinstance(task.oracle, StumpOracle)
            sums, dual = corrector.kept.weigh()
            return dual, task.oracle.prices(sums)
        z = self._z = corrector.z
        if corrector.dual and corrector.dual.u is not None:
            return corrector.dual, task.price(corrector.dual.u)
        return task.weigh_and_price(z)

    def _price(self, limit: int) -> tuple[DualWeights, Vector, Priced]:
        """Step (2), and the certificate at the present coefficients.

        Without room for a column there is nothing to draw or to fit.
        """
        task, corrector = self.task, self.corrector
        dual, prices = self._weigh_and_price()
        w, scale = corrector.w, float(dual.scale)
        g = task.chooser.edges(prices, self.columns) / scale if self.columns else 0.0 * w
        self._least = float(self._z.min() if dual.least is None else dual.least)
        floor = np.inf
        if limit > 0:
            floor = corrector.floor(max(0.0, float(g.max(initial=0.0))))
        if limit > 0 or task.oracle.exact:
            wanted = Wanted(floor * scale, corrector.slack * scale, self.columns, max(1, limit))
            priced = task.chooser.choose(prices, wanted)
        else:
            priced = Priced((), 0.0, np.inf)
        offset = dual.offset
        if offset is None:  # a convex loss is above its tangent
            offset = dual.loss + float((w * g).sum())
        # Rounding u to integers adds a little, where a loss is steep in proportion.
        n_margins = len(task.rows) * task.margin.width
        offset -= 2.0 * n_margins * max(1.0, 1.0 - self._least) / scale
        bound, theta = priced.bound / scale, corrector.theta
        gain = theta * bound if theta > 0 else 0.0
        self._priced = prices, bound
        witness: Any = self.columns, w
        if isinstance(task.loss, Hinge):  # which has no gradient where margins tie
            assert dual.u is not None
            place = np.flatnonzero(dual.u)
            witness = RowWeights(place, dual.u.ravel()[place] / scale)
        self._certifier.add(bound, offset, witness)
        self._open = dual.loss - offset + gain
        self.certificate = self._certificate(dual.loss, theta, offset - gain)
        return dual, g, priced

    def _certificate(self, loss: float, theta: float, bound: float) -> Certificate:
        """With the best bound of all rounds, that of this one among them."""
        dual = max(bound, self._certifier.dual(theta))
        task = self.task
        return certificate(loss, dual, theta, task.chooser.hypothesis_class, task.loss)
