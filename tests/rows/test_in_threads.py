"""Work in threads of Python: its order, its errors, and threads that cannot be had."""

import contextlib
import gc
import threading
import time
import weakref
from contextvars import ContextVar

import pytest

from tcboost.rows.in_threads import in_threads


@pytest.mark.parametrize("n_threads", [1, 2, 7, 40])
def test_results_are_in_the_order_of_the_things(n_threads):
    found = in_threads(divmod, n_threads, range(20), [3] * 20)
    assert found == [divmod(i, 3) for i in range(20)]
    assert in_threads(divmod, n_threads, [], []) == []


def test_the_threads_work_at_the_same_time():
    together = threading.Barrier(3, timeout=60)  # breaks if fewer than three get there
    assert (
        len({*in_threads(lambda _: (together.wait(), threading.get_ident()), 3, range(3))}) == 3
    )


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("error", [ValueError, IndexError, StopIteration, KeyboardInterrupt])
def test_an_error_is_raised_and_no_more_is_begun(n_threads, error):
    begun, before = [], threading.active_count()

    def work(i):
        begun.append(i)
        if i == 0:
            raise error("of the work")
        time.sleep(1e-3)

    with pytest.raises(error, match="of the work"):
        in_threads(work, n_threads, range(1000))
    assert len(begun) < 500
    assert threading.active_count() == before


def test_an_error_in_another_thread_is_raised():
    together, caller = threading.Barrier(2, timeout=60), threading.get_ident()

    def work(_):
        together.wait()
        if threading.get_ident() != caller:
            raise ValueError("elsewhere")

    with pytest.raises(ValueError, match="elsewhere"):
        in_threads(work, 2, range(2))


def test_an_interrupt_while_waiting_ends_it(monkeypatch):
    """What has begun is done before it is raised, and nothing is left behind."""
    done, before, join = [], threading.active_count(), threading.Thread.join
    caller, waits = threading.get_ident(), iter([True])

    def interrupted(thread):
        if next(waits, False):
            raise KeyboardInterrupt
        join(thread)

    def work(i):
        if threading.get_ident() != caller:
            time.sleep(0.1)
        done.append(i)

    monkeypatch.setattr("threading.Thread.join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        in_threads(work, 2, range(2))
    assert threading.active_count() == before
    assert sorted(done) in ([0], [1], [0, 1])


def test_an_error_leaves_nothing_in_memory():
    class Thing:
        pass

    thing = Thing()
    seen = weakref.ref(thing)

    def work(i, thing=thing):
        raise ValueError

    with contextlib.suppress(ValueError):
        in_threads(work, 2, range(4))
    gc.disable()
    try:
        del work, thing
        assert seen() is None
    finally:
        gc.enable()


def test_no_more_threads_than_things_which_know_what_the_caller_has_set():
    together = threading.Barrier(2, timeout=60)
    setting = ContextVar("setting", default="none")

    def work(_):
        together.wait()
        return threading.get_ident(), setting.get()

    token = setting.set("of the caller")
    found = in_threads(work, 50, range(2))
    setting.reset(token)
    assert {known for _, known in found} == {"of the caller"}
    assert len({thread for thread, _ in found}) == 2


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        in_threads(divmod, 2, [1, 2], [3])


def test_without_more_threads_the_caller_does_it_all(monkeypatch):
    def none(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", none)
    assert in_threads(lambda i: (i, threading.get_ident()), 4, range(9)) == [
        (i, threading.get_ident()) for i in range(9)
    ]
