"""The threads of the kernels stay: concurrent callers, forks, and the end of a caller."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tcboost import _core

N = 60_000
RNG = np.random.default_rng(0)
Z, WEIGHT = RNG.normal(size=(N, 3)), np.full(N, 1.0 / N)


def integers(n_threads):
    u = np.empty(Z.shape, dtype=np.int64)
    found = _core.dual_integers(Z, WEIGHT, u, n_threads)
    return u.tobytes(), found


def test_any_number_of_threads_gives_the_same_bits():
    expected = integers(1)
    for n_threads in (2, 5, 3, 64, 2):
        assert integers(n_threads) == expected


def test_callers_at_the_same_time_have_threads_of_their_own():
    expected = integers(1)
    with ThreadPoolExecutor(6) as callers:
        for found in callers.map(integers, [1, 2, 3, 4] * 15):
            assert found == expected


FORKED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from test_threads import integers

expected = integers(2)
child = os.fork()
if child == 0:
    os._exit(0 if integers(2) == integers(3) == expected else 1)
assert integers(2) == expected
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_threads_of_its_own():
    here = str(Path(__file__).parent)
    # From Python 3.12 on it warns of any fork where there are threads.
    program = [sys.executable, "-W", "ignore", "-c", FORKED, here]
    subprocess.run(program, check=True, timeout=60)


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_threads_end_with_their_caller():
    def count():
        return len(os.listdir("/proc/self/task"))

    before, within = count(), []

    def call():
        integers(4)
        within.append(count())

    caller = threading.Thread(target=call)
    caller.start()
    caller.join()
    assert within[0] >= before + 3
    deadline = time.monotonic() + 30
    while count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert count() <= before
