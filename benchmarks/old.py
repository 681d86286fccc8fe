"""Installs an older commit of this project beside it, as the package `tcboost_old`.

What is measured against an older build needs both in one run. Every word `tcboost` of the
commit's sources is another one in the copy: imports, the name in the package index, the C++
namespace; and its native types are a domain of their own, so that neither build meets the
other's. Needs the whole history (a clone that is not shallow).

    python benchmarks/old.py [COMMIT]
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMIT = "6898d9c"
PARTS = ("src", "cpp", "pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE")
TEXT = {".py", ".pyi", ".cpp", ".hpp", ".toml", ".txt"}


def copy(commit: str, folder: Path) -> None:
    """The sources of a commit, renamed."""
    archive = subprocess.run(
        ["git", "-C", ROOT, "archive", commit, *PARTS], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    (folder / "src" / "tcboost").rename(folder / "src" / "tcboost_old")
    for path in folder.rglob("*"):
        if path.suffix in TEXT:
            text = re.sub(r"\btcboost\b", "tcboost_old", path.read_text(encoding="utf-8"))
            text = text.replace("NB_STATIC", "NB_STATIC NB_DOMAIN tcboost_old")
            path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default=COMMIT, help=f"default: {COMMIT}")
    commit = parser.parse_args().commit
    with tempfile.TemporaryDirectory() as folder:
        copy(commit, Path(folder))
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", folder], check=True)


if __name__ == "__main__":
    main()
