import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from tcboost.paper import protocol, runner
from tcboost.paper.protocol import Cell, cells

ROUNDS = (3, 6)
SOME = [Cell("stump", "iris", "AdaBoost.MO", k) for k in (1, 0)] + [
    Cell("lda", "iris", "AdaBoost.ECC", 0),
    Cell("stump", "wine", "MultiBoost.ECC, learned codes", 0),
]


@pytest.fixture(autouse=True)
def _bundled(monkeypatch):
    monkeypatch.delenv("TCBOOST_DATA", raising=False)


def without_seconds(path):
    with open(path, newline="") as file:
        return [row[:-1] for row in csv.reader(file)]


def test_the_record_does_not_depend_on_the_workers(tmp_path, capsys):
    for jobs, order in ((1, SOME), (2, SOME[::-1])):
        runner.reproduce(tmp_path / str(jobs), order, ROUNDS, jobs=jobs)
    one, two = (without_seconds(tmp_path / str(j) / "repetitions.csv") for j in (1, 2))
    assert one == two
    assert len(one) == 1 + len(SOME) * len(ROUNDS)
    assert [row[:5] for row in one[1:3]] == [
        ["stump", "wine", "MultiBoost.ECC, learned codes", "3", "0"],
        ["stump", "wine", "MultiBoost.ECC, learned codes", "6", "0"],
    ]
    errors = [(tmp_path / str(j) / "errors.csv").read_bytes() for j in (1, 2)]
    assert errors[0] == errors[1]
    assert "4/4" in capsys.readouterr().out


def test_a_repetition_on_its_own_gives_the_same_bytes(tmp_path):
    runner.reproduce(tmp_path / "all", SOME, ROUNDS)
    runner.reproduce(tmp_path / "one", SOME[:1], ROUNDS)
    rows = without_seconds(tmp_path / "all" / "repetitions.csv")
    _, *one = without_seconds(tmp_path / "one" / "repetitions.csv")
    assert one == [row for row in rows if row[4] == "1"]


@pytest.mark.parametrize("cut", [0, 5, 200, 260, 400, -1, -30])
def test_a_cut_record_is_mended(tmp_path, monkeypatch, cut):
    runner.reproduce(tmp_path, SOME, ROUNDS)
    record = tmp_path / "repetitions.csv"
    whole = record.read_bytes()
    record.write_bytes(whole[:cut])
    done = []
    plain = protocol.run
    monkeypatch.setattr(protocol, "run", lambda c, *a: done.append(c) or plain(c, *a))
    kept = whole[:cut].count(b"\n") - 1
    runner.reproduce(tmp_path, SOME, ROUNDS)
    assert without_seconds(record) == [
        r.split(",")[:-1] for r in whole.decode().split()[:0]
    ] or ([r[:-1] for r in csv.reader(whole.decode().splitlines())] == without_seconds(record))
    assert len(done) == len(SOME) - max(0, kept) // len(ROUNDS)  # the others were kept


def test_results_of_another_kind_are_not_mixed(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"tcboost": "0.0.1"}))
    with pytest.raises(ValueError, match=r"results of tcboost 0\.0\.1: choose another --out"):
        runner.reproduce(tmp_path, SOME, ROUNDS)
    (tmp_path / "run.json").unlink()
    (tmp_path / "repetitions.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="something else"):
        runner.reproduce(tmp_path, SOME, ROUNDS)


def test_a_set_that_is_not_there_ends_the_run_before_it_starts(tmp_path):
    (tmp_path / "glass").mkdir()
    wanted = [*SOME, Cell("stump", "glass", "AdaBoost.MO", 0)]
    with pytest.raises(FileNotFoundError, match=r"glass.data.*--data-dir"):
        runner.reproduce(tmp_path / "out", wanted, ROUNDS, data_dir=str(tmp_path))
    assert not (tmp_path / "out").exists()


def test_summary():
    rows = cells(["iris"], range(3))[:1] * 3
    frame = pd.DataFrame([vars(c) for c in rows]).rename(columns={"learner": "weak_learner"})
    frame["rounds"], frame["repetition"] = 50, range(3)
    frame["train_error"], frame["test_error"] = 0.0, [0.1, 0.2, 0.6]
    frame["theta"], frame["n_active"], frame["gap"] = 2.0, [1, 2, 3], [1.0, np.inf, 1.0]
    train, test = runner.summary(frame).to_dict("records")
    assert train["mean"] == train["std"] == 0
    assert test["split"] == "test"
    assert test["mean"] == pytest.approx(0.3)
    assert test["std"] == pytest.approx(np.std([0.1, 0.2, 0.6], ddof=1))
    assert (test["theta"], test["n_active"], test["gap"]) == (2, 2, np.inf)
    published = pd.read_csv(
        os.path.join(os.path.dirname(runner.__file__), "published_errors.csv")
    )
    assert list(train)[:7] == list(published.columns)
    assert len(published) == 288
    assert runner.summary(frame[:1])["std"].tolist() == [0, 0]  # of one repetition


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_at_any_moment_it_ends_with_the_same_record(tmp_path, jobs):
    code = "import sys; from tcboost.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "reproduce", "--sets", "iris"]
    command += ["--repetitions", "0", "--jobs", jobs, "--out"]
    subprocess.run([*command, tmp_path / "whole"], check=True, stdout=subprocess.DEVNULL)
    random = np.random.default_rng(0)
    for n_cells in (0, 1, 2, 1, 99):  # that it may finish before it is killed
        process = subprocess.Popen(
            [*command, tmp_path / "killed"],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for _ in range(1 + n_cells):
            process.stdout.readline()
        if n_cells < 99:
            time.sleep(random.uniform(0.0, 1.0))
            os.killpg(process.pid, signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        process.communicate()
    assert process.returncode == 0
    for name in ("errors.csv", "figures/figure2.svg", "history/iris-AdaBoost.MO-stump.npz"):
        a, b = (tmp_path / run / name for run in ("whole", "killed"))
        assert a.read_bytes() == b.read_bytes()
    a, b = (without_seconds(tmp_path / r / "repetitions.csv") for r in ("whole", "killed"))
    assert a == b
