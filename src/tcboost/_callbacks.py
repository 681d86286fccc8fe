"""scikit-learn's callbacks, where it has them: version 1.9 and later."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

__all__ = ["CallbackSupportMixin", "reported"]

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""


@contextmanager
def reported(estimator: Any, **data: Any) -> Any:
    """Report a fit to the callbacks; yields a function that reports a round.

    It returns whether to stop. A round is reported when it is over, with the attributes that
    make a fitted estimator of the state at its end.
    """
    if not hasattr(estimator, "_skl_callbacks"):
        yield lambda state: False
        return
    fit = estimator._init_callback_context(max_subtasks=getattr(estimator, "max_iter", None))
    fit.call_on_fit_task_begin(estimator=estimator, **data)

    def report(state: Callable[[], dict[str, Any]]) -> bool:
        one = fit.subcontext(task_name="round")
        one.call_on_fit_task_begin(estimator=estimator, **data)
        return one.call_on_fit_task_end(
            estimator=estimator, reconstruction_attributes=state, **data
        )

    yield report
    fit.call_on_fit_task_end(
        estimator=estimator, reconstruction_attributes=lambda: vars(estimator), **data
    )
