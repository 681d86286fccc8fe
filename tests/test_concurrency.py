"""Fits beside others, in forked processes.

What forks is a program of its own: Python, from 3.12 on, warns of it where there are threads.
"""

import os
import subprocess
import sys

import pytest

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


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
    TCBoostClassifier(max_iter=3),
    MultiBoostHinge(max_iter=3),
    AdaBoostECC(max_iter=3, random_state=0),
]
for model in models:
    model.fit(*small)
over = False

def fit_others(models, X, y):
    while not over:
        for model in models:
            model.fit(X, y).predict(X)

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
