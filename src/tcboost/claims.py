"""What fits claim, as data that others can check: see `model.claim` and `verify`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .boosting import Model, Run
from .certificate import SolvedCertificate
from .class_vectors import Solution
from .columns import FixedCode, RandomCode
from .ensemble import Ensemble
from .features import CellTable
from .frames import ORDER
from .losses import LOSSES
from .margins import Codeword
from .model.additive import AdditiveModel, Ordered, Term, on_unit
from .model.claim import Claim, RowWeights
from .rows.blocks import LocalRows
from .step_functions import Steps
from .training import TrainingRows

Vector = NDArray[np.float64]


def claim_at_penalty(
    found: Solution,
    certificate: SolvedCertificate,
    rows: TrainingRows,
    cells: CellTable,
    unused: NDArray[np.bool_],
) -> Claim:
    """That of `TCBoostClassifier`, but for what its terms have of missing values."""
    factor = None if (rows.of_class == 1.0).all() else rows.of_class
    return Claim(
        loss="cross-entropy",
        margin="pairwise",
        columns="vectors",
        theta=None,
        penalty=found.penalty.l1,
        ridge=found.penalty.ridge,
        intercept_ridge=found.penalty.intercept,
        cuts="all" if cells.exact else tuple(getattr(f, "cuts", None) for f in cells.features),
        categorical=tuple(j for j, f in enumerate(cells.features) if not f.ordered),
        primal=certificate.objective,
        dual=certificate.lower_bound,
        hypothesis_class=cells.describe(),
        unused_features=tuple(np.flatnonzero(unused).tolist()),
        class_weight=factor,
        n_rows=len(rows.labels),
        orders=tuple((j, c.levels) for j, c in enumerate(rows.columns) if c.kind == ORDER),
    )


def missing_right(
    terms: Sequence[Term], steps: Steps, vectors: Vector
) -> tuple[Vector | None, ...]:
    """For each term the coefficients, by cut, of rules with missing values on their right."""
    found: list[Vector | None] = []
    v = steps.sign[:, None] * vectors
    for term in terms:
        axis, right = term.axes[0], None
        if isinstance(axis, Ordered) and term.weight is not None and term.weight[0] > 0:
            right = np.zeros((len(axis.cuts), v.shape[1]))
            mine = (steps.feature == term.inputs[0]) & steps.missing_right
            mine &= np.isin(steps.threshold, axis.cuts)
            np.add.at(right, np.searchsorted(axis.cuts, steps.threshold[mine]), v[mine])
        found.append(right)
    return tuple(found)


def claim_within_budget(run: Run, model: Model, form: AdditiveModel) -> Claim:
    """That of the paper's estimators with stumps; `form` is the model, without its claim."""
    task, proof = run.task, model.certificate
    chooser, binning = task.chooser, task.rows.binning
    codes = getattr(chooser, "_codes", None) if isinstance(chooser, RandomCode) else None
    columns = "codes" if codes is None else "listed codes"
    steps = Ensemble(model.columns, model.w, task.margin).steps
    right = steps and missing_right(form.terms, steps[0], on_unit(steps[1], form.unit))
    held_out = 0 if run.held_out is None else len(run.held_out.rows)
    return Claim(
        loss=next(name for name, loss in LOSSES.items() if loss.name == task.loss.name),
        margin="codeword" if isinstance(task.margin, Codeword) else "pairwise",
        columns="bits" if isinstance(chooser, FixedCode) else columns,
        theta=proof.theta,
        penalty=None,
        ridge=0.0,
        intercept_ridge=0.0,
        cuts="all" if binning.exact else binning.cuts,
        categorical=(),
        primal=proof.primal,
        dual=proof.dual,
        hypothesis_class=proof.hypothesis_class,
        unused_features=proof.unused_features,
        n_rows=task.rows.n_given,
        n_held_out=held_out,
        missing_right=right,
        witness=_witness(run, model, form),
        codes=codes,
    )


def _witness(run: Run, model: Model, form: AdditiveModel) -> AdditiveModel | RowWeights | None:
    """From where the bound comes, unless it is the model itself."""
    found: Any = run.witness(model.theta)
    if isinstance(found, RowWeights):
        rows, width = run.task.rows, run.task.margin.width
        row = np.empty(len(rows), dtype=np.int64)
        row[content_order(rows)] = np.arange(len(rows))
        place = row[found.place // width] * width + found.place % width
        order = np.argsort(place)
        return RowWeights(place[order], found.weight[order])
    columns, w = found
    if len(w) == len(model.w) and np.array_equal(w, model.w):
        return None
    about: dict[str, Any] = {
        "n_features": form.n_features,
        "feature_names": None,
        "classes": form.classes,
    }
    return Ensemble(columns[: len(w)], w, run.task.margin).additive(**about)


def content_order(rows: LocalRows) -> NDArray[np.intp]:
    """Ascending by the features, one after the other, missing values last; then by class."""
    return np.lexsort((rows.y, *rows.X.T[::-1]))
