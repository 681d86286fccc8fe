"""The margins of the paper, and their adjoints.

A column of the problem maps a row x to a vector of outputs o(x); its margins are a linear map
of o(x) that depends on the class y. Pricing needs only the adjoint of that map: the edge of a
column is ``sum_ik u_ik rho_ik = sum_ij V_ij o_j(x_i)`` with ``V = adjoint(u)``.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ._core import pairwise_margins, pairwise_wrong

Labels = NDArray[np.intp]

_PART = 1 << 18  # margins decoded at a time
TIE = 1e-9  # of the largest margin: so much better a later class has to be


class Margin(Protocol):
    """Contract of a margin; `width` is K, the number of margins of one row."""

    width: int
    n_outputs: int
    # The sum of |V| for a sum of |u| of one, and the margin of outputs -1 and +1, at the most.
    spread: float
    per_score: float  # margin between two classes, for a difference of one in their scores
    against: float  # how large a wrong margin is, where a right one is one

    def apply(self, outputs: NDArray[Any], y: Labels, n_threads: int = 1) -> NDArray[Any]:
        """Margins (rows, width) of the outputs."""

    def adjoint(self, u: NDArray[Any], y: Labels) -> NDArray[Any]:
        """V (rows, outputs) with ``<u, apply(o, y)> = <V, o>`` for every o."""

    def scores(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """Class scores (rows, classes) of the outputs; the largest is the prediction."""

    def wrong(self, z: NDArray[Any], y: Labels, n_threads: int = 1) -> NDArray[np.bool_]:
        """Which rows are misclassified, from their margins z, if these tell."""


class Codeword:
    """Margins ``rho_il = M[y_i, l] o_l(x_i)`` over the bits l of a code, as in AdaBoost.MO.

    The loss is equation (3) of the paper, the margin of a row (23), the prediction (1).
    """

    against = 1.0

    def __init__(self, M: NDArray[np.int8]) -> None:
        self.M = np.ascontiguousarray(M, dtype=np.int8)  # as the kernels want it
        self.width = self.n_outputs = M.shape[1]
        self.spread = 1.0
        # Scores differ by twice the sum of the margins of the bits that tell two classes apart;
        # what counts is their mean. The number of such bits is a mean, too, if it varies.
        n_pairs = len(M) * (len(M) - 1) / 2
        ones = (M > 0).sum(axis=0)
        self.per_score = float(n_pairs / (2 * ones @ (len(M) - ones)))

    def apply(self, outputs: NDArray[Any], y: Labels, n_threads: int = 1) -> NDArray[Any]:
        """Margins (rows, bits)."""
        return self.M[y] * outputs

    def adjoint(self, u: NDArray[Any], y: Labels) -> NDArray[Any]:
        """The map is diagonal, so it is its own adjoint."""
        return self.M[y] * u

    def scores(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """``M(c, :) F(x)`` for every class c."""
        return outputs @ self.M.T.astype(outputs.dtype)

    def wrong(self, z: NDArray[Any], y: Labels, n_threads: int = 1) -> NDArray[np.bool_]:
        """By decoding: ``F_l = M[y, l] z_l``, of some rows at a time.

        Of classes that score alike the first is the prediction. With few stumps there often are
        some, and rounding must not decide.
        """
        n, largest = max(1, _PART // self.width), max(z.max(), -z.min())
        later = TIE * largest * np.arange(len(self.M))
        parts = [slice(i, i + n) for i in range(0, len(y), n)]
        best = [(self.scores(self.M[y[p]] * z[p]) - later).argmax(axis=1) for p in parts]
        return np.concatenate(best) != y


@cache
def other_classes(n_classes: int) -> NDArray[np.intp]:
    """For each class all others, in ascending order: those of pairwise margins."""
    k = np.arange(n_classes - 1)
    return k + (k >= np.arange(n_classes)[:, None])


class Pairwise:
    """Margins ``rho_ic = o_y(x_i) - o_c(x_i)`` over the classes c != y_i, as in AdaBoost.ECC.

    Of a hypothesis h with the code column m the outputs are ``m h(x)``, which gives the paper's
    ``(M(y_i, t) - M(c, t)) h(x_i)``. The c run over all classes but y_i, in ascending order.
    The loss is equation (18), the margin of a row (17), the prediction (2).
    """

    against = 1.0

    def __init__(self, n_classes: int) -> None:
        self.width, self.n_outputs, self.per_score = n_classes - 1, n_classes, 1.0
        self.spread = 2.0

    def _below(self, y: Labels) -> NDArray[np.bool_]:
        """Which margins are about a class c < y; margin k is about the class k or k + 1."""
        return np.arange(self.width) < y[:, None]

    def apply(self, outputs: NDArray[Any], y: Labels, n_threads: int = 1) -> NDArray[Any]:
        """Margins (rows, classes - 1)."""
        if outputs.dtype in (np.int8, np.float64):
            return pairwise_margins(outputs, y, n_threads)
        own = outputs[np.arange(len(y)), y][:, None]
        return own - np.where(self._below(y), outputs[:, :-1], outputs[:, 1:])

    def adjoint(self, u: NDArray[Any], y: Labels) -> NDArray[Any]:
        """``V_ic = [c = y_i] sum_c' u_ic' - u_ic``; every row of V sums to zero."""
        V, below = np.zeros((len(y), self.width + 1), dtype=u.dtype), self._below(y)
        np.negative(u, out=V[:, :-1], where=below)
        np.negative(u, out=V[:, 1:], where=~below)
        V[np.arange(len(y)), y] = u.sum(axis=1)
        return V

    def scores(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """The outputs are the class scores."""
        return outputs

    def wrong(self, z: NDArray[Any], y: Labels, n_threads: int = 1) -> NDArray[np.bool_]:
        """Where another class scores higher, or as high with a smaller index."""
        return pairwise_wrong(np.ascontiguousarray(z), y, n_threads)


class PairwiseCode(Pairwise):
    """Margins ``rho_ic = (M(y_i, :) - M(c, :)) o(x_i)`` of a fixed code, Sec. III-D.

    Pairwise margins of the decoded outputs ``M o(x)``: those of the hinge loss, equation (24),
    and of the mixture of AdaBoost.MO and AdaBoost.ECC that the paper leaves open.
    """

    def __init__(self, M: NDArray[np.int8]) -> None:
        super().__init__(len(M))
        self.M, self.n_outputs = M, M.shape[1]
        self.spread = float(M.shape[1] - (M.astype(np.intp) @ M.T).min())

    def apply(self, outputs: NDArray[Any], y: Labels, n_threads: int = 1) -> NDArray[Any]:
        """Margins (rows, classes - 1)."""
        return super().apply(self.scores(outputs), y)

    def adjoint(self, u: NDArray[Any], y: Labels) -> NDArray[Any]:
        """``V_il = sum_c u_ic (M(y_i, l) - M(c, l))``, as in (28) and (29)."""
        return super().adjoint(u, y) @ self.M.astype(u.dtype)

    def scores(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """``M(c, :) F(x)`` for every class c; sums of many bits do not fit into 8."""
        return outputs @ self.M.T.astype(np.promote_types(outputs.dtype, np.int16))


class AgainstAll:
    """One margin a row, ``rho_i = o_y(x_i) - share sum_{c != y_i} o_c(x_i)``, as in SAMME.

    Outputs are one-hot: 1 for the class that a hypothesis says, 0 for the others. SAMME's loss
    is ``exp(-Y_i . f(x_i) / C)``, with 1 and -1/(C-1) in Y_i and in the hypotheses g of f. As
    Y_i sums to zero and ``g = (C o - 1) / (C - 1)``, that is ``Y_i . g / C = rho_i / (C - 1)``
    for the share 1/(C-1). A share of 1 makes margins of -1 and +1: AdaBoost.M1.
    """

    def __init__(self, n_classes: int, share: float) -> None:
        self.width, self.n_outputs, self.against = 1, n_classes, share
        self.spread = 1.0 + share * (n_classes - 1)
        self.per_score = (1.0 + share) / 2.0  # as the outputs sum to a constant

    def apply(self, outputs: NDArray[Any], y: Labels, n_threads: int = 1) -> NDArray[Any]:
        """Margins (rows, 1)."""
        own = np.take_along_axis(outputs, y[:, None], axis=1)
        return own - self.against * (outputs.sum(axis=1, keepdims=True) - own)

    def adjoint(self, u: NDArray[Any], y: Labels) -> NDArray[Any]:
        """``V_ic = u_i`` for the class c = y_i, ``-share u_i`` for the others."""
        V = np.repeat(-self.against * u, self.n_outputs, axis=1)
        np.put_along_axis(V, y[:, None], u.astype(float), axis=1)
        return V

    def scores(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """The outputs are the class scores."""
        return outputs

    def wrong(self, z: NDArray[Any], y: Labels, n_threads: int = 1) -> NDArray[np.bool_]:
        """One margin does not tell which class scores highest."""
        raise NotImplementedError
