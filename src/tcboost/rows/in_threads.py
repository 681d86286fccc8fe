"""One piece of work for each of some things, in threads of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

R = TypeVar("R")


def in_threads(work: Callable[..., R], n_threads: int, *things: Iterable[Any]) -> list[R]:
    """``list(map(work, *things))``, in up to `n_threads` threads.

    It pays where the kernels or NumPy do most of the work, which do not hold the interpreter.
    They know what the caller has set: np.errstate, for one, from NumPy 2 on. After an error no
    more work is begun, and it is raised once what had begun is done.
    """
    todo = list(zip(*things, strict=True))
    if min(n_threads, len(todo)) <= 1:
        return [work(*arguments) for arguments in todo]
    contexts = [copy_context() for _ in todo]
    with ThreadPoolExecutor(min(n_threads, len(todo))) as pool:
        return list(pool.map(lambda context, one: context.run(work, *one), contexts, todo))
