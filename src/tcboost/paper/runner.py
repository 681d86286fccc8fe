"""Runs the protocol: cells side by side, every result kept at once, a stopped run goes on.

`repetitions.csv` is the record: the rows of a cell are appended when it is finished, and sorted
at the end. What a kill leaves half written does not count and is computed anew.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy
import sklearn

from .. import __version__
from . import protocol
from .protocol import Cell, Outcome, Row

KEY = ("weak_learner", "dataset", "algorithm", "rounds", "repetition")
_NOTES = ("train_error", "test_error", "theta", "n_active", "gap", "n_iter", "min_margin")
COLUMNS = (*KEY, *_NOTES, "zero_from", "r", "excess", "seconds")
_INTEGERS = ("rounds", "repetition", "n_active", "n_iter", "zero_from")
SUMMARY = (
    *("weak_learner", "dataset", "algorithm", "split", "rounds", "mean", "std"),
    *("theta", "n_active", "gap", "repetitions"),
)


def reproduce(
    out: Path,
    cells: Sequence[Cell],
    rounds: Sequence[int] = protocol.ROUNDS,
    jobs: int = 1,
    data_dir: str | None = None,
) -> list[Row]:
    """Run the cells that `out` does not hold yet; return all rows that it then holds."""
    for name in dict.fromkeys(cell.dataset for cell in cells):
        protocol.split(name, 0, data_dir)  # a set that cannot be had ends the run here
    out.mkdir(parents=True, exist_ok=True)
    _check_version(out / "run.json")
    record = Record(out / "repetitions.csv")
    todo = [cell for cell in cells if not record.holds(cell, rounds)]
    print(f"{len(cells) - len(todo)} of {len(cells)} cells are there, {len(todo)} to go")
    run = joblib.delayed(protocol.run)
    outcomes = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(
        run(cell, rounds, data_dir) for cell in todo
    )
    left = set(todo)
    for outcome in outcomes:
        if outcome.history:
            _save_history(out, outcome)
        record.add(outcome)
        left.remove(outcome.cell)
        _say(outcome, len(cells) - len(left), len(cells), record.seconds(left) / jobs)
    record.sort()
    rows = list(record.rows.values())
    _write(out / "errors.csv", SUMMARY, summary(rows))
    return rows


class Record:
    """The rows of `repetitions.csv`, by their key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[tuple[Any, ...], Row] = {}
        if path.exists():
            text = path.read_text(encoding="utf-8")
            whole = text[: text.rfind("\n") + 1]  # a line without its end was cut by a kill
            rows = csv.DictReader(io.StringIO(whole, newline=""))
            if whole and tuple(rows.fieldnames or ()) != COLUMNS:
                raise ValueError(f"{path} holds something else: its first line is not ours")
            self._keep({k: _parse(k, v) for k, v in row.items()} for row in rows)
        self.sort()

    def _keep(self, rows: Iterable[Row]) -> None:
        self.rows |= {tuple(row[name] for name in KEY): row for row in rows}

    def holds(self, cell: Cell, rounds: Sequence[int]) -> bool:
        """Whether all rows of a cell are there."""
        key = cell.learner, cell.dataset, cell.algorithm
        return all((*key, T, cell.repetition) in self.rows for T in rounds)

    def add(self, outcome: Outcome) -> None:
        """Append the rows of a cell."""
        cell = outcome.cell
        names = {"weak_learner": cell.learner, "dataset": cell.dataset}
        names["algorithm"] = cell.algorithm
        rows = [{**names, "repetition": cell.repetition, **row} for row in outcome.rows]
        self._keep(rows)
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            file.write(_lines(COLUMNS, rows))

    def sort(self) -> None:
        """Rewrite the file, its rows in order: there is one file for one set of cells."""
        sets, algorithms = list(protocol.SETS), list(protocol.ALGORITHMS)

        def order(key: tuple[Any, ...]) -> tuple[Any, ...]:
            learner, dataset, algorithm, *numbers = key
            return learner != "stump", sets.index(dataset), algorithms.index(algorithm), numbers

        self.rows = {key: self.rows[key] for key in sorted(self.rows, key=order)}
        _write(self.path, COLUMNS, self.rows.values())

    def seconds(self, cells: Iterable[Cell]) -> float:
        """How long cells will take: as long as others of their kind, or of any kind, did."""
        taken: dict[tuple[Any, ...], dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for row in self.rows.values():
            kind = row["dataset"], row["algorithm"], row["weak_learner"]
            taken[kind][row["repetition"]] += row["seconds"]
        means = {kind: float(np.mean(list(times.values()))) for kind, times in taken.items()}
        usual = float(np.mean(list(means.values()))) if means else 0.0
        return sum(means.get((c.dataset, c.algorithm, c.learner), usual) for c in cells)


def summary(rows: Iterable[Row]) -> list[Row]:
    """Means over the repetitions: the published table's columns, and some more."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in KEY[:-1])].append(row)
    table = []
    for key, group in groups.items():
        n = len(group)
        notes = {
            k: float(np.mean([row[k] for row in group])) for k in ("theta", "n_active", "gap")
        }
        for split in ("train", "test"):
            errors = [row[f"{split}_error"] for row in group]
            std = float(np.std(errors, ddof=1)) if n > 1 else 0.0
            mean = {"split": split, "mean": float(np.mean(errors)), "std": std}
            entry = dict(zip(KEY, key, strict=False)) | mean | notes | {"repetitions": n}
            short = {k: float(f"{v:.6g}") for k, v in entry.items() if isinstance(v, float)}
            table.append(entry | short)
    return table


def read_table(path: Path) -> list[Row]:
    """The rows of a CSV, numbers as numbers."""
    with open(path, encoding="utf-8", newline="") as file:
        return [{k: _parse(k, v) for k, v in row.items()} for row in csv.DictReader(file)]


def _parse(column: str, text: str) -> Any:
    if column in _INTEGERS:
        return int(text) if text else None
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        seconds = {"seconds": f"{row['seconds']:.3f}"} if "seconds" in row else {}
        writer.writerow([{**row, **seconds}[name] for name in columns])  # None is nothing
    return text.getvalue()


def _write(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """All of it or nothing."""
    part = path.with_suffix(".part")
    part.write_text(",".join(columns) + "\n" + _lines(columns, rows), encoding="utf-8")
    os.replace(part, path)


def history_path(out: Path, dataset: str, algorithm: str, learner: str = "stump") -> Path:
    """The file with the curves of a fit."""
    name = "-".join((dataset, algorithm, learner)).replace(", ", "-").replace(" ", "-")
    return out / "history" / f"{name}.npz"


def _save_history(out: Path, outcome: Outcome) -> None:
    cell = outcome.cell
    path = history_path(out, cell.dataset, cell.algorithm, cell.learner)
    path.parent.mkdir(exist_ok=True)
    with open(path.with_suffix(".part"), "wb") as file:
        np.savez_compressed(file, **outcome.history)
    os.replace(path.with_suffix(".part"), path)


def _check_version(path: Path) -> None:
    """Note what the results depend on; results of two versions are not mixed."""
    versions = {"tcboost": __version__, "python": platform.python_version()}
    versions |= {m.__name__: m.__version__ for m in (np, scipy, sklearn)}
    versions |= {"machine": platform.machine(), "seeds": "the number of the repetition"}
    if not path.exists():
        path.write_text(json.dumps(versions, indent=2) + "\n", encoding="utf-8")
    elif (found := json.loads(path.read_text(encoding="utf-8"))["tcboost"]) != __version__:
        raise ValueError(
            f"{path.parent} holds results of tcboost {found}: choose another --out"
        )


def _say(outcome: Outcome, n_done: int, n_all: int, left: float) -> None:
    cell, seconds = outcome.cell, sum(row["seconds"] for row in outcome.rows)
    name = f"{cell.dataset} {cell.repetition}  {cell.algorithm} ({cell.learner})"
    hours, minutes = divmod(round(left / 60), 60)
    print(
        f"{time.strftime('%H:%M:%S')}  {n_done}/{n_all}  {name}  {seconds:.1f} s, "
        f"about {hours} h {minutes:02d} min left",
        flush=True,
    )
