"""One thread in the linear algebra, so that a result never depends on their number."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock, get_ident
from typing import Any

from threadpoolctl import ThreadpoolController

_libraries = cache(ThreadpoolController)  # of NumPy and SciPy, there from the start


def _set(numbers: Iterable[tuple[Any, int]]) -> None:
    for library, number in numbers:
        # Newer versions of threadpoolctl listen to one thread only, until it is let go.
        let_go = getattr(library, "clear_controlling_thread", lambda force: None)
        let_go(force=True)
        library.set_num_threads(number)
        let_go(force=True)


class _Limits:
    """The numbers of threads of the libraries, and the fits that want them to be one.

    Most libraries have one number for the process: the last fit to end sets it back to what the
    first one found. With OpenMP each thread has its own. No process is forked in the middle of
    that, and a forked one has the fits of the thread that forked it, and no others.
    """

    def __init__(self) -> None:
        self._lock = RLock()  # the handler of a signal may fork, too, and must not wait for it
        self._fits: dict[object, int] = {}  # and their threads
        self._before: list[tuple[Any, int]] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire,
                after_in_parent=self._lock.release,
                after_in_child=self._forked,
            )

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        fit = object()
        own: list[tuple[Any, int]] = []
        shared: list[tuple[Any, int]] = []
        try:
            with self._lock:
                self._fits[fit] = get_ident()
                libraries = _libraries().lib_controllers
                for library in libraries:
                    openmp = getattr(library, "threading_layer", None) == "openmp"
                    (own if openmp else shared).append((library, library.num_threads))
                if len(self._fits) == 1:
                    self._before = shared
                _set((library, 1) for library in libraries)
            yield
        finally:
            with self._lock:
                self._fits.pop(fit, None)
                _set(own)
                self._set_back()

    def _set_back(self) -> None:
        if not self._fits:
            _set(self._before)
            self._before = []

    def _forked(self) -> None:
        self._fits = {fit: i for fit, i in self._fits.items() if i == get_ident()}
        self._set_back()
        self._lock.release()


one_blas_thread = _Limits().one_thread
