from importlib.metadata import entry_points

import pytest

from tcboost.cli import main, paper
from tcboost.paper.datasets import DATASETS


def test_datasets_lists_all(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TCBOOST_DATA", "/nowhere")
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache")
    assert main(["datasets", "--data-dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(DATASETS)
    table = {line.split()[0]: line.split()[1:] for line in lines[1:]}
    assert table["iris"] == ["150", "4", "3", "yes", "scikit-learn"]
    assert table["digits"] == ["1797", "64", "10", "yes", "scikit-learn"]
    assert table["glass"][:4] == ["214", "9", "6", "no"]
    assert table["glass"][4].startswith("https://archive.ics.uci.edu/")
    assert table["shuttle"][3:] == ["no", "a", "folder", "only"]


def test_what_the_user_can_mend_is_one_line(capsys, tmp_path):
    assert main(["datasets", "--data-dir", str(tmp_path / "nowhere")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tcboost: there is no folder")
    assert "--data-dir" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "nothing",
        "reproduce --sets digits",
        "reproduce --jobs 0",
        "reproduce --repetitions 20",
    ],
)
def test_wrong_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments.split())
    assert stopped.value.code == 2
    assert "usage: tcboost" in capsys.readouterr().err


def test_what_is_run(monkeypatch, tmp_path):
    from tcboost.paper import report, runner

    asked = []
    monkeypatch.setattr(runner, "reproduce", lambda out, cells, **kw: asked.append((cells, kw)))
    monkeypatch.setattr(report, "write", lambda out: [])
    for options in ([], ["--full"], ["--full", "--sets", "dna", "--repetitions", "3"]):
        main(["reproduce", "--out", str(tmp_path), "--jobs", "3", *options])
    quick, full, one = ([(c.dataset, c.repetition) for c in cells] for cells, _ in asked)
    assert set(quick) == {(name, k) for name in ("wine", "iris") for k in range(5)}
    assert len(full) == 8 * 20 * 11
    assert set(one) == {("dna", 3)}
    assert asked[0][1] == {"jobs": 3, "data_dir": None}


def test_reproduce_from_end_to_end(monkeypatch, tmp_path, capsys):
    from tcboost.paper import runner

    monkeypatch.delenv("TCBOOST_DATA", raising=False)
    monkeypatch.setattr(runner.reproduce, "__defaults__", ((50, 100), 1, None))
    assert (
        main(["reproduce", "--sets", "iris", "--repetitions", "0", "--out", str(tmp_path)]) == 0
    )
    out = capsys.readouterr().out
    assert "11/11" in out
    assert f"wrote {tmp_path / 'report.html'}" in out
    assert {path.name for path in tmp_path.iterdir()} == {
        *("errors.csv", "repetitions.csv", "run.json", "report.html", "report.md"),
        *("figures", "history"),
    }


def test_a_missing_extra_is_named(monkeypatch, capsys):
    def without_pandas(options):
        raise ModuleNotFoundError("No module named 'pandas'")

    monkeypatch.setattr(paper, "list_datasets", without_pandas)
    assert main(["datasets"]) == 1
    assert "pandas': pip install tcboost[paper]" in capsys.readouterr().err


def test_stopping_says_how_to_go_on(monkeypatch, capsys):
    def stopped(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(paper, "list_datasets", stopped)
    assert main(["datasets"]) == 130
    assert "goes on from here" in capsys.readouterr().err


def test_the_command_is_installed():
    (command,) = entry_points(group="console_scripts", name="tcboost")
    assert command.load() is main
