"""The documents speak of things that exist, and what they show is what happens."""

import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tcboost.losses import LOSSES

ROOT = Path(__file__).parent.parent
PAPER_MAP = (ROOT / "docs" / "paper_map.md").read_text()


PAGES = ["README.md", "docs/guide.md", "docs/thinning.md", "docs/verify.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_prints_what_it_says(page, tmp_path, monkeypatch):
    text = (ROOT / page).read_text()
    code, output = re.search(r"```python\n(.*?)```\s+```\n(.*?)```", text, re.DOTALL).groups()
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    number = r"\d[\d.e-]*\d|\d"  # whose last digits are those of the machine
    shown, found = re.findall(number, output), re.findall(number, printed.getvalue())
    assert re.sub(number, "#", printed.getvalue()) == re.sub(number, "#", output)
    assert [float(x) for x in found] == pytest.approx([float(x) for x in shown], rel=0.2)
    assert (tmp_path / "wine.json").exists() == (page == "README.md")


WITH_EXAMPLES = sorted(
    page for page in (ROOT / "docs").rglob("*.md") if "```python" in page.read_text()
)


def test_there_are_pages_with_examples():
    names = {page.name for page in WITH_EXAMPLES}
    assert names >= {"guide.md", "default.md", "ship_it.md", "table.md", "verify.md"}
    assert names >= {"add_a_loss.md", "mo.md", "samme.md"}


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.stem)
def test_the_examples_run(page, tmp_path, monkeypatch):
    text = page.read_text()
    if "TCBOOST_DATA" in text and "TCBOOST_DATA" not in os.environ:
        pytest.skip("TCBOOST_DATA names no folder of data")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()):
        exec("\n".join(blocks), {"__name__": "example"})


def test_the_tutorial_shows_the_loss_that_was_kept():
    """The class of the tutorial is that of the library."""
    text = (ROOT / "docs" / "add_a_loss.md").read_text()
    scope = {"__name__": "example"}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1), scope)
    shown, kept = scope["SquaredHinge"](), LOSSES["squared_hinge"]
    z = np.linspace(-3, 3, 101)
    for a, b in zip(shown.phi(z), kept.phi(z), strict=True):
        np.testing.assert_array_equal(a, b)
    assert (shown.name, shown.bend) == (kept.name, kept.bend)


def test_the_demo_runs(tmp_path):
    figure = tmp_path / "demo.png"
    command = [sys.executable, ROOT / "examples" / "demo.py", "--rounds", "12"]
    subprocess.run([*command, "--figure", figure], check=True, capture_output=True)
    assert figure.exists()


def test_the_comparison_of_thinned_ensembles_runs(tmp_path):
    figure, small = tmp_path / "thin.png", ["--sets", "wine", "--trees", "8", "--splits", "1"]
    command = [sys.executable, ROOT / "benchmarks" / "thin.py", *small, "--figure", figure]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert len(printed.splitlines()) == 5
    assert figure.exists()


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`([a-z_]+\.[A-Za-z_.]+)`", PAPER_MAP)))
)
def test_paper_map_names_exist(name):
    if name.endswith(".py"):
        assert (ROOT / "tests" / name).exists()
        return
    parts = name.split(".")
    for split in range(len(parts) - 1, 0, -1):
        with contextlib.suppress(ModuleNotFoundError):
            thing = importlib.import_module("tcboost." + ".".join(parts[:split]))
            break
    for part in parts[split:]:
        thing = getattr(thing, part)


@pytest.mark.parametrize(("page", "n_tests"), [("paper_map", 20), ("promises", 20)])
def test_the_tests_that_a_page_names_exist(page, n_tests):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    tests = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", text)
    assert len(tests) > n_tests
    for path, function in tests:
        assert f"def {function}" in (ROOT / "tests" / path).read_text(), path
