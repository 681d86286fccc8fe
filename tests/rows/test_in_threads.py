"""Work in threads of Python: its order, its errors, and threads that cannot be had."""

import threading

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
        raise error("of the work")

    with pytest.raises(error, match="of the work"):
        in_threads(work, n_threads, range(1000))
    assert len(begun) <= n_threads
    assert threading.active_count() == before


def test_without_more_threads_the_caller_does_it_all(monkeypatch):
    def none(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", none)
    assert in_threads(lambda i: (i, threading.get_ident()), 4, range(9)) == [
        (i, threading.get_ident()) for i in range(9)
    ]
