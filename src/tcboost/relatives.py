"""The relatives whose weak learners tell all classes apart: SAMME, AdaBoost.M1 and M2."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils._param_validation import HasMethods, StrOptions

from .boosting import Task
from .columns import Uncoded
from .estimator import BoostingClassifier
from .losses import LOSSES
from .margins import AgainstAll, Margin, Pairwise
from .named import _BUDGET
from .oracles import MulticlassOracle
from .rows.blocks import LocalRows


class _Multiclass(BoostingClassifier):
    """Columns are hypotheses of all classes, without a code; the variant is a margin."""

    coding = None
    max_bins, n_jobs = "auto", 1  # there are no stumps
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostingClassifier._parameter_constraints,
        **_BUDGET,
        "variant": [StrOptions({"samme", "m1", "m2"})],
        "weak_learner": [None, HasMethods(["fit", "predict"])],
    }

    def _margin(self, n_classes: int, M: NDArray[Any] | None = None) -> Margin:
        if self.variant == "m2":
            return Pairwise(n_classes)
        return AgainstAll(n_classes, 1.0 if self.variant == "m1" else 1.0 / (n_classes - 1))

    def _task(self, rows: LocalRows, seed: int) -> Task:
        n_classes, tree = len(self.classes_), DecisionTreeClassifier(max_depth=1)
        learner = tree if self.weak_learner is None else self.weak_learner
        oracle = MulticlassOracle(rows, learner, np.random.RandomState(seed), n_classes)
        return Task(rows, self._margin(n_classes), LOSSES[self.loss], oracle, Uncoded(oracle))


class AdaBoostSAMME(_Multiclass):
    """SAMME (Zhu and others, 2006), AdaBoost.M1 or AdaBoost.M2: stage-wise.

    Each round adds a classifier of all classes. With ``F_c`` the sum of the coefficients of
    those that say c the loss is

        "samme"   sum_i exp(-mean_{c != y_i} (F_{y_i}(x_i) - F_c(x_i)))
        "m1"      sum_i exp(-(F_{y_i}(x_i) - sum_{c != y_i} F_c(x_i)))
        "m2"      sum_i sum_{c != y_i} exp(-(F_{y_i}(x_i) - F_c(x_i)))

    Parameters
    ----------
    max_iter : int, default=100
        The number of rounds T. The run ends before if a weighted error e reaches ``1 - 1/C``
        ("samme") or 1/2 (the others).
    variant : {"samme", "m1", "m2"}, default="samme"
        SAMME's coefficients are ``(1 - 1/C) (ln((1 - e) / e) + ln(C - 1))``, those of M1
        ``1/2 ln((1 - e) / e)``, those of M2 the same with the pseudo-loss for e. As published
        they are without the factors ``1 - 1/C`` and ``1/2``, which change no prediction.
    weak_learner : classifier, default=None
        Any scikit-learn classifier whose `fit` takes `sample_weight`; by default
        ``DecisionTreeClassifier(max_depth=1)``. In M2 it is given each row once for each class,
        so weighted that its weighted error is the pseudo-loss, up to constants.

    Notes
    -----
    From `random_state` on the parameters are those of `AdaBoostMO`, and so are the attributes,
    without a code. The gap is infinite. A model can be pickled, but not saved to a model file.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tcboost import AdaBoostSAMME
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostSAMME(max_iter=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.94
    True
    """

    _stage_wise = True

    def __init__(
        self,
        max_iter: int = 100,
        *,
        variant: str = "samme",
        weak_learner: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
    ) -> None:
        self._keep_arguments(locals())


class MultiBoostSAMME(_Multiclass):
    """Totally corrective SAMME: Algorithm 3 of the paper with SAMME's margins.

    Solves, over the classifiers that the rounds have added,

        minimise    log sum_i exp(-mean_{c != y_i} (F_{y_i}(x_i) - F_c(x_i)))
        subject to  w >= 0,  sum w <= theta

    with ``F_c`` the sum of the coefficients w of those that say c. If the next one does not
    violate the dual it is fitted again, up to 15 times, to weights disturbed at random.

    Parameters
    ----------
    theta : float, "stagewise", "growing" or "cv", default="stagewise"
        The budget of the coefficients: a number, the sum of those of `AdaBoostSAMME` after as
        many rounds, or as in `MultiBoostMO`.
    max_iter : int, default=100
        The number of rounds T, at the most.

    Notes
    -----
    The other parameters, and the attributes, are those of `AdaBoostSAMME`. The coefficients
    are solved to a duality gap of a tenth of `tol`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tcboost import MultiBoostSAMME
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MultiBoostSAMME(max_iter=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.94
    True
    """

    def __init__(
        self,
        theta: float | str = "stagewise",
        max_iter: int = 100,
        *,
        weak_learner: Any = None,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
    ) -> None:
        self._keep_arguments(locals())
