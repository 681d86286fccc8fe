"""The runner of the speed benchmarks: sections outlive a stop, and a failure is not hidden."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"

GOOD = '''"""A claim.

    python benchmarks/master.py
"""
import sys
print("some text", *sys.argv[1:])
print("| a | ratio |")
print("|---|---:|")
print("| b | 7 |")
# "--quick"
'''


@pytest.fixture
def folder(tmp_path):
    for name in ("run.py", "timing.py"):
        (tmp_path / name).write_text((BENCHMARKS / name).read_text(encoding="utf-8"))
    (tmp_path / "master.py").write_text(GOOD)
    (tmp_path / "memory.py").write_text('"""Another."""\nraise SystemExit("no data")\n')
    return tmp_path


def run(folder, *options):
    command = [sys.executable, str(folder / "run.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done, (folder / "RESULTS.md").read_text()


def test_sections_and_failures(folder):
    done, text = run(folder)
    assert done.returncode != 0
    assert "failed: memory" in done.stderr
    assert text.index("## master") < text.index("## memory")
    assert "\nA claim.\n" in text
    assert "```text\nsome text\n```\n\n| a | ratio |\n|---|---:|\n| b | 7 |\n" in text
    assert "**FAILED** with exit code 1" in text
    assert "no data" in text
    # Mended, it is run alone, and the other section stays.
    (folder / "memory.py").write_text('"""Another."""\nprint("| 3 |")\n')
    done, again = run(folder, "--only", "memory")
    assert done.returncode == 0
    assert "FAILED" not in again
    assert text.split("## memory")[0] == again.split("## memory")[0]
    assert run(folder, "--only", "memory")[1] == again


def test_quick_where_it_is_known(folder):
    done, text = run(folder, "--quick", "--only", "master")
    assert done.returncode == 0
    assert "some text --quick" in text
    assert "`python benchmarks/master.py --quick`" in text
    assert "--quick" not in run(folder, "--quick", "--only", "memory")[1].split("## memory")[1]


def test_every_benchmark_of_speed_has_a_claim():
    names = (BENCHMARKS / "run.py").read_text(encoding="utf-8")
    for file in BENCHMARKS.glob("*.py"):
        if f'"{file.stem}",' in names:
            assert file.read_text(encoding="utf-8").startswith('"""'), file
