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
from .features import CellTable, Rule
from .losses import LOSSES
from .margins import Codeword
from .model.additive import AdditiveModel, Ordered, Term
from .model.claim import Claim, RowWeights
from .rows.blocks import LocalRows
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
    )


def missing_right(
    terms: Sequence[Term], rules: Sequence[Rule], coef: Vector
) -> tuple[Vector | None, ...]:
    """For each term the class vectors, by cut, of rules with missing values on their right."""
    found: list[Vector | None] = []
    for term in terms:
        axis = term.axes[0]
        vectors = None
        if isinstance(axis, Ordered) and term.weight is not None and term.weight[0] > 0:
            vectors = np.zeros((len(axis.cuts), coef.shape[1]))
            place = {cut: k for k, cut in enumerate(axis.cuts.tolist())}
            for rule, vector in zip(rules, coef, strict=True):
                if (rule.feature,) == term.inputs and rule.missing_right:
                    k = place.get(rule.threshold)
                    if k is not None:
                        vectors[k] += vector
        found.append(vectors)
    return tuple(found)


def claim_within_budget(run: Run, model: Model, form: AdditiveModel) -> Claim:
    """That of the paper's estimators with stumps; `form` is the model, without its claim."""
    task, proof = run.task, model.certificate
    chooser, binning = task.chooser, task.rows.binning
    codes = getattr(chooser, "_codes", None) if isinstance(chooser, RandomCode) else None
    columns = "codes" if codes is None else "listed codes"
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
