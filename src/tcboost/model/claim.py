"""What a fit claims: the loss of its model on its rows, and a bound on that of any other.

All of it is plain data. `tcboost.verify` recomputes both numbers and trusts neither of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .additive import AdditiveModel

Vector = NDArray[np.float64]


class RowWeights(NamedTuple):
    """Dual weights that are not zero, of the hinge, where rows of equal content are one.

    Rows are in ascending order of their values, feature after feature, missing ones last, then
    of their class. Entry `place` is about margin ``place % K`` of row ``place // K``, for K
    margins a row.
    """

    place: NDArray[np.int64]
    weight: Vector


@dataclass(frozen=True, eq=False)
class Claim:
    """The loss of this model on these rows is `primal`, and that of no other is below `dual`.

    Others are all sums of rules of the class that the other fields name, at a `penalty` or
    within a budget `theta`.

    Attributes
    ----------
    loss : str
        "cross-entropy", "exponential" (its logarithm), "logistic", "squared_hinge", "hinge".
    margin : str
        "pairwise" (of the scores; of cross-entropy, too) or "codeword" (of the outputs).
    columns : str
        What the coefficients of a rule may be: "vectors" (any, by their length), "codes" (all
        of -1 and +1, times a number), "listed codes" (those of `codes`), "bits" (a column has a
        rule for each output).
    theta : float or None
        The budget: what all coefficients may sum to.
    penalty : float or None
        At a penalty instead: r of the sum of lengths. Then the claim is about the loss and all
        penalties.
    ridge, intercept_ridge : float
        Half of it times the squares of coefficients, and of the intercept, is added.
    cuts : "all", or tuple of ndarray or None
        Where rules may cut: between all values of the rows, or at these, for each feature.
    categorical : tuple of int
        Features whose rules are one value against all others.
    orders : tuple of (int, tuple of str)
        Features whose levels are cut in an order, with all their levels; cuts are between
        their places 0, 1, ...
    primal, dual : float or None
        The numbers claimed; None where only the class is named.
    hypothesis_class : str
        The class of rules, in words.
    unused_features : tuple of int
        Features that no optimal model uses.
    class_weight : ndarray of shape (n_classes,), or None
        Factors on the weights of the rows of each class.
    n_rows, n_held_out : int
        Rows of positive weight, and how many different ones of them only said when to stop.
    missing_right : tuple of (ndarray or None), or None
        For each term with missing values what its rules of each cut have with missing values on
        their right, (n_cuts, n_outputs): with the others they have half of the jump.
    witness : AdditiveModel, RowWeights or None
        From where the bound comes: other tables than the model's, or dual weights.
    codes : ndarray of shape (n_classes, n_codes), or None
        The listed codes.
    """

    loss: str
    margin: str
    columns: str
    theta: float | None
    penalty: float | None
    ridge: float
    intercept_ridge: float
    cuts: str | tuple[Vector | None, ...]
    categorical: tuple[int, ...]
    primal: float | None
    dual: float | None
    hypothesis_class: str
    unused_features: tuple[int, ...] = ()
    class_weight: Vector | None = None
    n_rows: int = 0
    n_held_out: int = 0
    missing_right: tuple[Vector | None, ...] | None = None
    witness: AdditiveModel | RowWeights | None = None
    codes: NDArray[np.int8] | None = None
    orders: tuple[tuple[int, tuple[str, ...]], ...] = ()

    def without_numbers(self) -> Claim:
        """The class alone, for a model that is another one now."""
        return replace(self, primal=None, dual=None, unused_features=(), missing_right=None)
