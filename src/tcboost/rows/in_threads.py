"""One piece of work for each of some things, in threads of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock, Thread
from typing import Any, TypeVar

R = TypeVar("R")


def in_threads(work: Callable[..., R], n_threads: int, *things: Iterable[Any]) -> list[R]:
    """``list(map(work, *things))``, from up to `n_threads` threads, the caller's among them.

    It pays where the kernels or NumPy do most of the work, which do not hold the interpreter.
    If no more threads are to be had, those there are do it all. After an error no more work is
    begun, and it is raised once what had begun is done.
    """
    if n_threads <= 1:
        return [work(*arguments) for arguments in zip(*things, strict=True)]
    numbered, lock = enumerate(zip(*things, strict=True)), Lock()
    found: dict[int, R] = {}
    errors: list[BaseException] = []

    def take_turns() -> None:
        try:
            while not errors:
                with lock:
                    i, arguments = next(numbered, (-1, ()))
                if i < 0:
                    return
                found[i] = work(*arguments)
        except BaseException as error:
            errors.append(error)

    others: list[Thread] = []
    try:
        for _ in range(n_threads - 1):
            thread = Thread(target=take_turns)
            thread.start()
            others.append(thread)
    except RuntimeError:  # no more threads to be had
        pass
    take_turns()
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]
    return [found[i] for i in range(len(found))]
