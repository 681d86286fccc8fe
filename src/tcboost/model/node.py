"""Values of a document with the place where each stands, so that an error can name it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from types import NoneType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
T = TypeVar("T")

MOST = sys.float_info.max
WHOLE = 2**53  # integers up to it are doubles
LISTED = 10**6  # of a list of other things than numbers
LONGEST = 2000  # characters of a message
_REALS: dict[Any, Any] = {None: math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class ModelFileError(ValueError):
    """What is wrong with a model file, after the place of it as a JSON pointer."""

    def __init__(self, message: str) -> None:
        cut = len(message) > LONGEST
        super().__init__(message[: LONGEST - 3] + "..." if cut else message)


class Node:
    """A value of a document and where it is. A check that fails says so."""

    __slots__ = "at", "value"

    def __init__(self, value: Any, at: str = "") -> None:
        self.value, self.at = value, at

    def fail(self, why: str) -> ModelFileError:
        """The error of this place."""
        return ModelFileError(f"{self.at or '/'}: {why}")

    def _of(self, kind: type, called: str) -> Any:
        if type(self.value) is not kind:
            raise self.fail(f"must be {called}")
        return self.value

    @contextmanager
    def blamed(self, *errors: type[Exception]) -> Iterator[None]:
        """Errors of these kinds are about what is here."""
        try:
            yield
        except errors as e:
            raise self.fail(str(e)) from None

    def child(self, key: object) -> Node:
        """What is there, or null."""
        known = self.value.get(key) if isinstance(self.value, dict) else self.value[key]
        return Node(known, f"{self.at}/{str(key).replace('~', '~0').replace('/', '~1')}")

    def entries(self) -> Iterator[tuple[str, Node]]:
        """Those of an object."""
        return ((name, self.child(name)) for name in self._of(dict, "an object"))

    def __getitem__(self, name: str) -> Node:
        """An entry of an object; one that is not there is null."""
        self._of(dict, "an object")
        return self.child(name)

    def items(self, *lengths: int) -> Iterator[Node]:
        """Those of a list, one by one: nodes take more memory than what they hold."""
        of = " of " * bool(lengths) + " or ".join(map(str, lengths))
        if len(self._of(list, f"a list{of}")) not in (lengths or {len(self.value)}):
            raise self.fail(f"must be a list{of}")
        return (self.child(k) for k in range(len(self.value)))

    def maybe(self, read: Callable[..., T], *arguments: Any, **limits: Any) -> T | None:
        """Null, or what is read so."""
        return None if self.value is None else read(self, *arguments, **limits)

    def values(self, *types: type) -> list[Any]:
        """A list of values of these types."""
        if len(self._of(list, "a list")) > LISTED:
            raise self.fail(f"must be a list of at most {LISTED}")
        if not set(map(type, self.value)) <= {*types}:
            odd = next(k for k, one in enumerate(self.value) if type(one) not in types)
            raise self.child(odd).fail(f"must be {' or '.join(one.__name__ for one in types)}")
        return list(self.value)

    def text(self, *allowed: str) -> str:
        """A string, one of these if there are any."""
        if not isinstance(self.value, str) or (allowed and self.value not in allowed):
            raise self.fail(f"must be {' or '.join(map(repr, allowed)) or 'a string'}")
        return self.value

    def flag(self) -> bool:
        """True or false."""
        return bool(self._of(bool, "true or false"))

    def whole(self, low: int = 0, high: int = WHOLE) -> int:
        """An integer."""
        if type(self.value) is not int or not low <= self.value <= high:
            raise self.fail(f"must be an integer from {low} to {high}")
        return self.value

    def number(self, low: float = -MOST, high: float = MOST) -> float:
        """A finite number; the parser takes no others."""
        if type(self.value) not in (int, float):
            raise self.fail("not a finite number")
        if not low <= self.value <= high:
            raise self.fail(f"must be from {low:g} to {high:g}")
        return float(self.value)

    def real(self) -> float:
        """A number, which may be infinite, or not known: see `plain_number`."""
        named = self.value is None or isinstance(self.value, str)
        value: Any = _REALS.get(self.value) if named else self.value
        if type(value) not in (int, float):
            raise self.fail("not a number")
        return float(value)

    def reals(self) -> Vector:
        """A list of such numbers."""
        found = [_REALS.get(x, x) for x in self.values(int, float, str, NoneType)]
        for k, x in enumerate(found):
            if isinstance(x, str):
                raise self.child(k).fail("not a number")
        return np.array(found, dtype=np.float64)

    def numbers(self, *shape: int | None, low: float = -MOST, high: float = MOST) -> Vector:
        """An array of finite numbers; lists of None may have any length, all the same."""
        values, lengths = [self.value], list[int]()
        for n in shape:
            if n is None:
                n = len(values[0]) if values and type(values[0]) is list else 0
            for k, value in enumerate(values):
                if type(value) is not list or len(value) != n:
                    raise self._inside(k, lengths).fail(f"must be a list of {n}")
            values, lengths = list(chain.from_iterable(values)), [*lengths, n]
        if not set(map(type, values)) <= {int, float}:
            k = next(k for k, x in enumerate(values) if type(x) not in (int, float))
            raise self._inside(k, lengths).fail("not a finite number")
        array = np.array(values, dtype=np.float64).reshape(lengths)
        self._refuse((array < low) | (array > high), f"must be from {low:g} to {high:g}")
        return array

    def wholes(self, *shape: int | None, low: int, high: int) -> NDArray[np.int64]:
        """An array of integers."""
        array = self.numbers(*shape, low=low, high=high)
        self._refuse(array != np.rint(array), "not an integer")
        return array.astype(np.int64)

    def signs(self, *shape: int | None) -> NDArray[np.int8]:
        """An array of -1 and +1."""
        array = self.wholes(*shape, low=-1, high=1)
        self._refuse(array == 0, "must be -1 or 1")
        return array.astype(np.int8)

    def on_unit(self, unit: int, *shape: int | None) -> Vector:
        """An array of multiples of 2^unit, each below 2^53 of them."""
        array = self.numbers(*shape)
        with np.errstate(over="ignore", under="ignore"):
            times = np.ldexp(array, -unit)
            odd = (times != np.rint(times)) | (np.ldexp(times, unit) != array)
        odd |= np.abs(times) >= WHOLE
        self._refuse(odd, f"must be a multiple of 2^{unit}, and below 2^{unit + 53}")
        return array

    def ascending(self) -> Vector:
        """A list of finite numbers, each above the one before it."""
        array = self.numbers(None)
        odd = np.append(False, array[1:] <= array[:-1])
        self._refuse(odd[: len(array)], "must be above the one before it")
        return array

    def places(self, n: int, least: int = 0) -> tuple[int, ...]:
        """Places among n, in ascending order."""
        found = self.wholes(None, low=0, high=n - 1)
        if len(found) < least or (found[1:] <= found[:-1]).any():
            raise self.fail(f"must ascend, and be {least} or more")
        return tuple(found.tolist())

    def gathered(self, name: str) -> Node:
        """An entry of each of a list of objects, as a list."""
        return Node([one[name].value for one in self.items()], f"{self.at}/*/{name}")

    def _refuse(self, odd: NDArray[np.bool_], why: str) -> None:
        """Name the first of the entries that are not right."""
        if odd.any():
            raise self._inside(int(odd.argmax()), odd.shape).fail(why)

    def _inside(self, k: int, lengths: Any) -> Node:
        """The place of entry k of a nested list."""
        index = [str(i) for i in np.unravel_index(k, lengths)] if len(lengths) else []
        at = self.at.replace("*", index.pop(0)) if "/*/" in self.at and index else self.at
        return Node(None, "/".join([at, *index]))
