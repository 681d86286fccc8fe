"""One piece of work for each of some things, in threads of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar, copy_context
from threading import Lock, Thread
from typing import Any, TypeVar

R = TypeVar("R")

# The errors so far of the work that the present one is a part of.
_errors: ContextVar[Sequence[BaseException]] = ContextVar("errors", default=())


class CancelledError(Exception):
    """Other work that this was a part of has failed, or was interrupted."""


def checkpoint() -> None:
    """Long work comes by here now and then, kernels too: end it where its result is not needed.

    An interrupt of the main thread is met here as well, since Python sees it between two steps.
    """
    if _errors.get():
        raise CancelledError


def in_threads(work: Callable[..., R], n_threads: int, *things: Iterable[Any]) -> list[R]:
    """``list(map(work, *things))``, from up to `n_threads` threads, the caller's among them.

    It pays where the kernels or NumPy do most of the work, which do not hold the interpreter.
    If no more threads are to be had, those there are do it all. After an error no more work is
    begun, and it is raised once what had begun is done.
    """
    todo = list(zip(*things, strict=True))
    if min(n_threads, len(todo)) <= 1:
        return [work(*arguments) for arguments in todo]
    numbers, lock = iter(range(len(todo))), Lock()
    found: dict[int, R] = {}
    errors: list[BaseException] = []

    def take_turns() -> None:
        outer = _errors.set(errors)
        try:
            while not errors:
                with lock:
                    i = next(numbers, None)
                if i is None:
                    return
                found[i] = work(*todo[i])
        except BaseException as error:
            errors.append(error)
        finally:
            _errors.reset(outer)

    others: list[Thread] = []

    def join() -> None:
        for thread in others:
            thread.join()

    try:
        for _ in range(min(n_threads, len(todo)) - 1):
            # With what the caller has set: np.errstate, for one, from NumPy 2 on.
            thread = Thread(target=copy_context().run, args=(take_turns,))
            try:
                thread.start()
            except RuntimeError:
                break  # no more threads to be had
            others.append(thread)
        take_turns()
        join()
    except BaseException as error:  # an interrupt, outside of the work
        errors.append(error)
        join()
    try:
        if errors:
            raise errors[0]
        return [found[i] for i in range(len(todo))]
    finally:
        errors.clear()  # they hold frames, and those hold them
