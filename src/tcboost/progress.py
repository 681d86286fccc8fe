"""How far a fit is, for who watches it, and when it has to end."""

from __future__ import annotations

import math
import sys
import time
from threading import Lock

from .class_vectors import Solution

_LIVE, _PLAIN = 0.1, 5.0  # seconds between two lines on a terminal, and elsewhere


class OutOfTimeError(Exception):
    """What was being tried has no time left."""


class Progress:
    """The clock of a fit, which begins with it, and a line on what it is at.

    On a terminal the line is written over and over; elsewhere, a new one now and then.
    """

    def __init__(self, verbose: int, max_seconds: float | None) -> None:
        self._begin, self._verbose = time.monotonic(), verbose
        self._limit = math.inf if max_seconds is None else max_seconds
        self._live = bool(verbose) and sys.stdout.isatty()
        self._shown, self._width, self._lock = 0.0, 0, Lock()

    @property
    def seconds(self) -> float:
        """Since the fit began."""
        return time.monotonic() - self._begin

    @property
    def watched(self) -> bool:
        """Whether there is anything to tell, or a limit."""
        return bool(self._verbose) or math.isfinite(self._limit)

    def is_over(self, share: float = 1.0) -> bool:
        """Whether this share of the time is used up."""
        return self.seconds >= share * self._limit

    def now(self, what: str, found: Solution) -> None:
        """What a solution in the making is like, if it is time to tell."""
        if self._verbose and self.seconds - self._shown >= (_LIVE if self._live else _PLAIN):
            self._shown = self.seconds
            self._write(
                f"{what}: {len(found.model.used)} rules, log loss {found.loss:.4f}, gap "
                f"{found.gap:.2g}, {self.seconds:.0f} s",
                stays=not self._live,
            )

    def tell(self, line: str) -> None:
        """A line that stays."""
        if self._verbose:
            self._write(line, stays=True)

    def _write(self, line: str, stays: bool) -> None:
        with self._lock:
            over = f"\r{line:<{self._width}}" if self._live else line
            print(over, end="\n" if stays else "", flush=True)
            self._width = 0 if stays else len(line)
