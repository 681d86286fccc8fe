"""What a fit tells while it runs, a limit of its time, and an end by the keyboard."""

import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.datasets import load_wine

from tcboost import TCBoostClassifier
from tcboost.rows.in_threads import CancelledError, checkpoint, in_threads

X, y = load_wine(return_X_y=True)
RNG = np.random.RandomState(0)


def many(n=60_000):
    """A table whose fit takes many seconds."""
    X = RNG.randn(n, 25)
    return X, (X[:, 0] * X[:, 1] > 0) + (X[:, 2] > 1).astype(int)


@pytest.mark.parametrize("parameters", [{}, {"alpha": 0.5, "l1_ratio": 0.5}])
def test_a_limit_that_is_not_reached_changes_nothing(parameters):
    one = TCBoostClassifier(**parameters).fit(X, y)
    other = TCBoostClassifier(**parameters, max_seconds=1e6).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.certificate_ == other.certificate_


@pytest.mark.parametrize("seconds", [1e-9, 1.0])
@pytest.mark.parametrize("parameters", [{}, {"alpha": 1.0, "l1_ratio": 0.01}])
def test_a_fit_ends_in_its_time_with_what_it_has(seconds, parameters):
    data = many()
    begin = time.monotonic()
    model = TCBoostClassifier(**parameters, max_rules=2000, max_seconds=seconds, tol=1e-9)
    model.fit(*data)
    took, proof = time.monotonic() - begin, model.certificate_
    assert took < seconds + 20  # a busy machine may be slow, but not that slow
    assert proof.status == "time"
    assert "Stopped by max_seconds" in str(proof)
    assert 0 <= proof.lower_bound <= proof.objective
    assert model.predict(data[0][:5]).shape == (5,)
    again = TCBoostClassifier(model.alpha_, model.l1_ratio_, tol=1e-3, max_rules=2000)
    objective = again.fit(*(part[:5000] for part in data)).certificate_.objective
    assert np.isfinite(objective)
    results = model.cv_results_
    assert {len(column) for column in results.values()} <= {len(results.get("alpha", ()))}


def test_the_bound_holds_for_a_fit_that_ran_out_of_time():
    data = many(20_000)
    given = {"alpha": 30.0, "l1_ratio": 0.5, "max_bins": 64}
    short = TCBoostClassifier(**given, max_seconds=0.2).fit(*data).certificate_
    best = TCBoostClassifier(**given).fit(*data).certificate_
    assert short.lower_bound <= best.objective
    assert best.lower_bound <= short.objective


def test_plain_lines_where_there_is_no_terminal(capsys):
    TCBoostClassifier(verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("alpha ")
    assert "log loss" in lines[0]
    assert lines[-1].startswith("final fit: ")
    assert not any("\r" in line for line in lines)
    TCBoostClassifier().fit(X, y)
    assert capsys.readouterr().out == ""


def test_a_live_line_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    TCBoostClassifier(verbose=1).fit(*many(5000))
    shown = capsys.readouterr().out
    assert shown.count("\r") > shown.count("\n") > 2
    assert "gap" in shown


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from tcboost import TCBoostClassifier
rng = np.random.RandomState(0)
X = rng.randn(150_000, 25)
y = (X[:, 0] * X[:, 1] > 0) + (X[:, 2] > 1).astype(int)
model = TCBoostClassifier(alpha=1.0, l1_ratio=0.01, n_jobs={n_jobs}).fit(X[:300], y[:300])
before = model.predict_proba(X[:10])
model.set_params(alpha="auto", l1_ratio="auto")
sent = []

def interrupt():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer({wait}, interrupt).start()
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print(time.monotonic() - sent[0], np.array_equal(model.predict_proba(X[:10]), before))
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("wait", [1.0, 2.5])
def test_an_interrupt_ends_a_long_fit_at_once(n_jobs, wait):
    code = INTERRUPTED.format(n_jobs=n_jobs, wait=wait)
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert float(found[0]) < 5.0  # half a second, on a machine with nothing else to do
    assert found[1] == "True"


def test_work_beside_that_fails_is_ended():
    ended = []

    def work(i):
        if i == 0:
            raise ValueError("that one")
        try:
            for _ in range(10_000):
                time.sleep(0.001)
                checkpoint()
        except CancelledError:
            ended.append(i)
            raise

    with pytest.raises(ValueError, match="that one"):
        in_threads(work, 2, [1, 0])
    assert ended == [1]
    checkpoint()  # outside of any work there is nothing to end


@pytest.mark.parametrize("bad", [0, -1, "long"])
def test_a_limit_is_a_number_above_zero(bad):
    with pytest.raises(ValueError, match="max_seconds"):
        TCBoostClassifier(max_seconds=bad).fit(X, y)
