"""Files with random faults: some here, many more by `make fuzz`."""

import json
import subprocess
import sys

import pytest

import fuzz_files


@pytest.mark.parametrize("blocks", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_files_with_faults_are_refused_or_predict(blocks, tmp_path):
    """Each fault is drawn from its number: the oracle is what `check` says of any file."""
    loaded = 0
    for k in range(blocks):
        here, failed = fuzz_files.run_block((k * fuzz_files.BLOCK, str(tmp_path)))
        assert not failed
        loaded += here
    assert 0.02 < loaded / (blocks * fuzz_files.BLOCK) < 0.8


def test_it_goes_on_where_it_was_stopped(tmp_path):
    def run(files):
        command = [sys.executable, fuzz_files.__file__, "--files", str(files), "--jobs", "1"]
        subprocess.run([*command, "--folder", tmp_path], check=True, capture_output=True)
        return json.loads((tmp_path / "state.json").read_text())

    assert run(1)["files"] == fuzz_files.BLOCK
    first = run(2 * fuzz_files.BLOCK)
    assert first["files"] == 2 * fuzz_files.BLOCK
    assert run(2 * fuzz_files.BLOCK) == first


def test_a_fault_of_the_loader_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz_files, "BLOCK", 5)
    monkeypatch.setattr(fuzz_files.tcboost, "load", lambda path: {}[path])
    _, failed = fuzz_files.run_block((0, str(tmp_path)))
    assert len(failed) == len(list(tmp_path.glob("failed-*.json"))) == 5
    assert all("KeyError" in line for line in failed)
