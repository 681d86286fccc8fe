"""A property that is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class kept_property(Generic[T]):  # noqa: N801 - a decorator
    """A property whose value is kept by its object once it is computed.

    Threads that ask for it at the same time may compute it each for itself. The one of
    `functools` has a lock in Python 3.11, which a process that is forked meanwhile waits for
    without end.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> T:
        # From now on the object's own attribute of that name is found first.
        value = vars(instance)[self._name] = self._compute(instance)
        return value
