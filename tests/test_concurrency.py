"""Fits beside others, in forked processes and in workers of joblib; the threads they start.

What forks is a program of its own: Python, from 3.12 on, warns of it where there are threads.
"""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from tcboost import AdaBoostECC, MultiBoostHinge, TCBoostClassifier
from tcboost.rows.blocks import effective_n_jobs

IRIS = load_iris(return_X_y=True)
CORES = effective_n_jobs(-1)

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
counts = pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
two_cores = pytest.mark.skipif(CORES < 2, reason="needs two cores to tell one thread from all")


def run(program, *arguments, **environment):
    command = [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    result = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": os.path.dirname(__file__), **environment},
        timeout=600,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr


# ---------------------------------------------------------------- forks


FORKS = """
import os, signal, sys, threading, time
import numpy as np
from tcboost import AdaBoostECC, MultiBoostHinge, MultiBoostMO, TCBoostClassifier

n_forks = int(sys.argv[1])
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60_000, 8)), rng.integers(3, size=60_000)
small = X[:60], y[:60]
models = [
    MultiBoostMO(weak_learner="lda", max_iter=2, theta=1.0),
    TCBoostClassifier(1.0, 0.5, 3),
    MultiBoostHinge(max_iter=3),
    AdaBoostECC(max_iter=3, random_state=0),
]
for model in models:
    model.fit(*small)
over = False

def fit_others(models, X, y):
    while not over:
        for model in models:
            model.fit(X, y)  # to predict may start threads of the linear algebra

others = [
    threading.Thread(target=fit_others, args=(models[:1], X, y)),
    threading.Thread(target=fit_others, args=(models[1:], *small)),
]
for other in others:
    other.start()
ends = []
for i in range(n_forks):
    time.sleep(rng.uniform(0, 0.02))
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends one that hangs
        models[i % len(models)].fit(*small).predict(small[0])
        os._exit(0)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if ends[-1]:
        break
over = True
for other in others:
    other.join()
sys.exit(f"the ends of the children: {ends}" if any(ends) else 0)
"""


@forks
@pytest.mark.parametrize("n_forks", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_child_forked_while_others_fit_can_fit(n_forks):
    run(FORKS, n_forks)


# ---------------------------------------------------------------- linear algebra


def blas_threads():
    """Of the libraries that can have several."""
    found = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return {lib["num_threads"] for lib in found if lib["threading_layer"] != "disabled"}


class Paced(DecisionTreeClassifier):
    """Says when it is fitted, and waits for leave: of its thread."""

    def fit(self, X, y, sample_weight=None):
        fit = Fit.of_thread[threading.current_thread()]
        fit.begun.set()
        fit.leave.wait(60)
        return super().fit(X, y, sample_weight)


class Fit:
    """In a thread, from its begin to its end as it is told."""

    of_thread = {}  # noqa: RUF012 - of the class

    def __init__(self):
        self.begun, self.leave = threading.Event(), threading.Event()
        model = AdaBoostECC(weak_learner=Paced(max_depth=1), max_iter=1, random_state=0)
        self.thread = threading.Thread(target=model.fit, args=IRIS, daemon=True)
        self.of_thread[self.thread] = self
        self.thread.start()
        assert self.begun.wait(60)

    def end(self):
        self.leave.set()
        self.thread.join()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_fits_beside_each_other_leave_the_linear_algebra_its_threads(order):
    with threadpool_limits(3, user_api="blas"):
        assert blas_threads() == {3}
        fits = [Fit() for _ in order]
        for i in order:
            assert blas_threads() == {1}
            fits[i].end()
        assert blas_threads() == {3}


FORKED_MEANWHILE = """
import os, sys
from test_concurrency import IRIS, Fit, blas_threads, threadpool_limits
from tcboost import TCBoostClassifier

with threadpool_limits(3, user_api="blas"):
    fit = Fit()
    child = os.fork()
    if child == 0:
        found = [blas_threads()]
        TCBoostClassifier(1.0, 0.5, 2).fit(*IRIS)
        os._exit([*found, blas_threads()] != [{3}, {3}])
    end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = [blas_threads()]
    fit.end()
    found.append(blas_threads())
sys.exit(end or found != [{1}, {3}])
"""


@forks
def test_a_child_has_the_threads_of_the_linear_algebra_that_no_fit_has_taken():
    run(FORKED_MEANWHILE)


# ---------------------------------------------------------------- numbers of threads


X_MANY = np.random.default_rng(0).normal(size=(60_000, 4))
Y_MANY = np.random.default_rng(1).integers(3, size=len(X_MANY))


def native_threads():
    """Those that Python does not know."""
    return len(os.listdir("/proc/self/task")) - threading.active_count()


def started(n_jobs=None, *_):
    """The threads that a fit starts and leaves to the next one."""
    before = native_threads()
    model = AdaBoostECC(max_iter=3, random_state=0, n_jobs=n_jobs).fit(X_MANY, Y_MANY)
    model.predict(X_MANY)
    return native_threads() - before


STARTED = """
import sys
import joblib
from test_concurrency import CORES, started

def most(backend, **settings):
    with joblib.parallel_config(backend, n_jobs=2, **settings):
        return max(joblib.Parallel()(joblib.delayed(started)() for _ in range(2)))

with joblib.parallel_config(n_jobs=1):
    found = [started()]
found += [started(), started(60_000)]
expected = [0, CORES - 1, 0]  # those that are there already
for backend in ("threading", "multiprocessing", "loky"):
    found.append(most(backend))
    expected.append(0)
expected[-1] = CORES // 2 - 1  # joblib gives each process of loky its share
if "inner" in sys.argv:
    found.append(most("loky", inner_max_num_threads=2))
    expected.append(1)
sys.exit(f"{found}, not {expected}" if found != expected else 0)
"""


@counts
@two_cores
@pytest.mark.parametrize("arguments", [[], pytest.param(["inner"], marks=pytest.mark.slow)])
def test_a_fit_starts_no_more_threads_than_cores_and_than_joblib_gives_it(arguments):
    given = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # not counted
    run(STARTED, *arguments, **given)


FEW = TCBoostClassifier(1.0, 0.5, 2), MultiBoostHinge(max_iter=2), AdaBoostECC(max_iter=2)


@pytest.mark.parametrize("n_jobs", [2**16 + 1, 2**31 - 1, 2**31, np.int64(2**40), 10**30])
@pytest.mark.parametrize("model", FEW)
def test_more_threads_than_any_machine_has_cores_are_refused(model, n_jobs):
    with pytest.raises(ValueError, match=f"n_jobs={n_jobs} .* None means all cores"):
        model.set_params(n_jobs=n_jobs).fit(*IRIS)
    model.set_params(n_jobs=1).fit(*IRIS).set_params(n_jobs=n_jobs)
    with pytest.raises(ValueError, match=f"n_jobs={n_jobs} "):
        model.predict(IRIS[0])
