"""Model files with random faults: `load` refuses each as a `ModelFileError`, or it predicts.

Faults are of bytes, or of the values of a document that is whole. What loads must predict, be
saved and load again, and if there is `tcboost.verify` that must come to a verdict. No file may
take long or much memory.

    python tests/fuzz_files.py --files 1000000 --jobs 2

goes on where it was stopped. File k depends on k alone. What fails is kept in the folder.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import tcboost

FROZEN = Path(__file__).parent / "model" / "frozen"
SEEDS = [path.read_bytes() for path in sorted(FROZEN.glob("*.json"))]
SECONDS, MEGABYTES, BLOCK = 10.0, 500, 100
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 7, 0.5, -0.0, 1e-300, 1e300, -1.7e308, 5e-324),
    *(
        2**31,
        2**53,
        -(2**53),
        2**53 + 1,
        10**30,
        "",
        "a",
        "all",
        "NaN",
        "Infinity",
        "-Infinity",
    ),
    *([], {}, [[]], [None], [0], [0.5, 0.25], {"a": 1}, "ordered", "levels", "additive"),
    *("columns", "\ud800", "x" * 3000, [1e300] * 3, ["a", "b", "c"], [[1, -1], [-1, 1]]),
]
LITERALS = ["NaN", "Infinity", "-Infinity", "1e999", "1" * 30, "0x1", "nul", "'a'", "01", "1."]


def content_of(number: int) -> bytes:
    """The file of this number."""
    draw = random.Random(number)
    content = draw.choice(SEEDS)
    content = of_bytes(content, draw) if draw.random() < 0.4 else of_values(content, draw)
    if draw.random() < 0.1:
        content = gzip.compress(content, 1, mtime=0)
        if draw.random() < 0.5:
            content = of_bytes(content, draw)
    return content


def of_bytes(content: bytes, draw: random.Random) -> bytes:
    """Some bytes changed, lost, gained, moved or repeated."""
    for _ in range(draw.choice([1, 1, 2, 5])):
        i, j = sorted(draw.choices(range(len(content) + 1), k=2))
        j = min(j, i + draw.choice([1, 4, 30, 300]))
        part = content[i:j]
        new = draw.choice(
            [
                lambda part: bytes(b ^ 1 << draw.randrange(8) for b in part[:2]) + part[2:],
                lambda part: b"",
                lambda part: part + draw.randbytes(draw.choice([1, 4])),
                lambda part: bytes(len(part)),
                lambda part: part * draw.choice([2, 3, 50]),
                lambda part: bytes(draw.choices(b'0123456789eE+-.[]{}",: ', k=len(part))),
                lambda part: draw.choice(LITERALS).encode(),
            ]
        )(part)
        content = content[:i] + new + content[j:]
    return content


def of_values(content: bytes, draw: random.Random) -> bytes:
    """Values changed, lost, gained, moved or repeated, in a document that stays JSON."""
    document = json.loads(content)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        inside, key = draw.choice(places(document))
        other, there = draw.choice(places(document))
        way = draw.randrange(8)
        if way < 3:
            inside[key] = draw.choice(ODD)
        elif way == 3:
            del inside[key]
        elif way == 4:
            inside[key] = json.loads(json.dumps(other[there]))
        elif way == 5 and isinstance(inside, list):
            inside.insert(key, json.loads(json.dumps(inside[key])))
        elif way == 6 and isinstance(inside[key], int | float):
            inside[key] = draw.choice([inside[key] * 2, -inside[key], inside[key] + 1])
        elif way == 7 and isinstance(inside[key], list):
            draw.shuffle(inside[key])
        if not places(document):
            break
    text = json.dumps(document)
    if draw.random() < 0.05:
        text = text.replace("0.", draw.choice(LITERALS), 1)
    return text.encode("utf-8", "backslashreplace")


def places(document: Any) -> list[tuple[Any, Any]]:
    """All containers with each of their keys."""
    if not isinstance(document, dict | list):
        return []
    keys = list(document) if isinstance(document, dict) else range(len(document))
    found = [(document, key) for key in keys]
    for key in keys:
        found += places(document[key])
    return found


def check(content: bytes, path: Path) -> bool:
    """Whether it loads; raises what no file may raise."""
    path.write_bytes(content)
    try:
        model = tcboost.load(path)
    except tcboost.ModelFileError as error:
        message = str(error)
        if len(message) > 2000 or not message.startswith("/"):
            raise
        return False
    form = model if hasattr(model, "terms") else vars(model).get("_model")
    n_features = form.n_features if hasattr(form, "terms") else model.n_features_in_
    if n_features > 50:
        return True
    X = np.random.default_rng(0).normal(2.0, 2.0, size=(20, n_features))
    if getattr(model, "weak_learner", "") != "lda":
        X[::3, 0] = np.nan
    with np.errstate(over="ignore"):  # in discriminants of large coefficients
        scores = (model if form is model else model._ensemble()).scores(X)
    assert np.isfinite(scores).all(), "no scores"
    tcboost.save(model, path)
    again = path.read_bytes()
    tcboost.save(tcboost.load(path), path)
    assert path.read_bytes() == again, "saved again it is another"
    if hasattr(tcboost, "verify"):
        classes = model.classes if form is model else model.classes_
        with suppress(ValueError):  # of these rows, or this kind of model, nothing is claimed
            tcboost.verify(model, X, classes[np.arange(20) % len(classes)])
    return True


def too_long(*_: Any) -> None:
    """Ends what takes more than its time."""
    raise TimeoutError(f"more than {SECONDS} s")


def run_block(task: tuple[int, str]) -> tuple[int, list[str]]:
    """How many of the files of a block load, and what went wrong."""
    first, folder = task
    warnings.simplefilter("error")
    signal.signal(signal.SIGALRM, too_long)
    loaded, failed = 0, []
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # where there is nothing to sync
    with tempfile.TemporaryDirectory(dir=memory) as space:
        for number in range(first, first + BLOCK):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            content = content_of(number)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                loaded += check(content, Path(space, "model.json"))
                grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
                assert grown < MEGABYTES * 1024, "much memory"
            except Exception as error:
                failed.append(f"file {number}: {type(error).__name__}: {str(error)[:300]}")
                Path(folder, f"failed-{number}.json").write_bytes(content)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    return loaded, failed


def main() -> int:
    """Run from where the last run was stopped."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    state = options.folder / "state.json"
    done = {"files": 0, "loaded": 0, "failed": 0, "seconds": 0.0}
    if state.exists():
        done = json.loads(state.read_text())
    blocks = range(done["files"], options.files, BLOCK)
    tasks = [(first, str(options.folder)) for first in blocks]
    with multiprocessing.Pool(options.jobs) as pool:
        start = time.monotonic()
        for loaded, failed in pool.imap(run_block, tasks):
            done["files"] += BLOCK
            done["loaded"] += loaded
            done["failed"] += len(failed)
            done["seconds"] += time.monotonic() - start
            start = time.monotonic()
            new = state.with_suffix(".new")
            new.write_text(json.dumps(done) + "\n")
            new.replace(state)
            for line in failed:
                print(line, flush=True)
    print(json.dumps(done))
    return 1 if done["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
