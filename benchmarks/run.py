"""Run the speed benchmarks and write what they print into benchmarks/RESULTS.md.

Each benchmark is a file of its own that prints its table; the first paragraphs of its
docstring are the claim. A section is written as soon as its benchmark has ended, the others
stay as they are, so that a stopped run loses nothing: go on with ``--only``. A benchmark that
fails is written down as failed, and makes this command fail.

    python benchmarks/run.py [--quick] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import time
from pathlib import Path

from timing import machine, versions

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
NAMES = (
    "master",
    "corrective",
    "stumps",
    "predict",
    "writers",
    "growth",
    "threads",
    "memory",
    "verify",
    "startup",
    "theta_cv",
    "theta_path",
)
HEADER = """# Speed: what was measured

Written by `make bench`, or section by section by `python benchmarks/run.py --only NAME`. Every
ratio is of one run on one machine; absolute times are no claims.
"""


def sections() -> dict[str, str]:
    """Those that are there, by name."""
    if not RESULTS.exists():
        return {}
    parts = re.split(r"^## (\w+)\n", RESULTS.read_text(encoding="utf-8"), flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def write(found: dict[str, str]) -> None:
    ordered = [n for n in NAMES if n in found] + sorted(set(found) - set(NAMES))
    text = "\n".join(f"## {name}\n{found[name].rstrip()}\n" for name in ordered)
    RESULTS.write_text(f"{HEADER}\n{text}", encoding="utf-8")


def claim(source: str) -> str:
    """The docstring without its indented command lines."""
    paragraphs = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")
    return "\n\n".join(p for p in paragraphs if not p.startswith("    "))


def run(name: str, quick: bool) -> tuple[str, bool]:
    """The section of a benchmark, and whether it went well; its lines show as they come."""
    file = HERE / f"{name}.py"
    source = file.read_text(encoding="utf-8")
    options = ["--quick"] if quick and '"--quick"' in source else []
    command = " ".join(["python", f"benchmarks/{name}.py", *options])
    print(f"{time.strftime('%H:%M:%S')}  {command}", flush=True)
    start, lines = time.perf_counter(), []
    with subprocess.Popen(
        [sys.executable, "-u", str(file), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(f"    {line}", end="", flush=True)
            lines.append(line)
    minutes, good = (time.perf_counter() - start) / 60, process.returncode == 0
    status = "" if good else f"\n**FAILED** with exit code {process.returncode}.\n"
    note = f"`{command}`, {time.strftime('%Y-%m-%d')}, {minutes:.1f} minutes; {machine()};"
    used = versions("tcboost", "numpy", "scipy", "scikit-learn")
    text = f"\n{claim(source)}\n\n{note} {used}.\n{status}\n{output(''.join(lines))}\n"
    return text, good


def output(text: str) -> str:
    """What was printed: Markdown tables as they are, all else as it was typed."""
    parts = re.split(r"((?:^\|.*\n?)+)", text, flags=re.M)
    fenced = [
        p if p.startswith("|") else f"```text\n{p.strip()}\n```" for p in parts if p.strip()
    ]
    return "\n\n".join(p.strip() for p in fenced)


def main() -> None:
    there = [name for name in NAMES if (HERE / f"{name}.py").exists()]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=there, default=there, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small versions, where there are")
    options = parser.parse_args()
    failed = []
    for name in options.only:
        section, good = run(name, options.quick)
        write({**sections(), name: section})
        failed += [] if good else [name]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; see {RESULTS}")


if __name__ == "__main__":
    main()
