"""The page "Ship it": its examples run, in their languages, and all say the same."""

import contextlib
import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "ship_it.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """The folder that the page writes to, and what it prints."""
    folder = tmp_path_factory.mktemp("page")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec("\n".join(blocks("python")), {"__name__": "page"})
    return folder, printed.getvalue().splitlines()


def test_of_python(shipped):
    line, *others = shipped[1]
    assert set(others) == {line}
    (label, p), (shown, probability) = line.split(), blocks("text")[0].split()
    assert label == shown
    assert float(p) == pytest.approx(float(probability), abs=0.02)


def test_of_c(shipped):
    folder, (line, *_) = shipped
    compiler = shutil.which("gcc") or pytest.skip("there is no gcc")
    (folder / "main.c").write_text(*blocks("c"))
    files = ["main.c", "model.c", "-o", "main", "-lm"]
    subprocess.run([compiler, "-std=c99", "-O3", *files], cwd=folder, check=True)
    assert subprocess.check_output([folder / "main"], text=True).strip() == line


def test_of_javascript(shipped):
    folder, (line, *_) = shipped
    node = shutil.which("node") or pytest.skip("there is no node, of Debian's package nodejs")
    (folder / "main.mjs").write_text(*blocks("js"))
    assert subprocess.check_output([node, "main.mjs"], cwd=folder, text=True).strip() == line
