"""Runs the protocol: cells side by side, every result kept at once, a stopped run goes on.

`repetitions.csv` is the record: the rows of a cell are appended when it is finished, and sorted
at the end. What a kill leaves half written does not count and is computed anew.
"""

from __future__ import annotations

import io
import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import scipy
import sklearn

from .. import __version__
from . import protocol
from .protocol import Cell

KIND = ["weak_learner", "dataset", "algorithm"]
KEY = [*KIND, "rounds", "repetition"]
COLUMNS = [*KEY, *protocol.NOTES]
_TYPES = dict.fromkeys(("rounds", "repetition", "n_active", "n_iter"), "int64")
_TYPES |= {"zero_from": "Int64", "excess": "float64"}  # may be missing


def reproduce(
    out: Path,
    cells: Sequence[Cell],
    rounds: Sequence[int] = protocol.ROUNDS,
    jobs: int = 1,
    data_dir: str | None = None,
) -> None:
    """Run the cells that `out` does not hold yet, and write what it then holds."""
    for name in dict.fromkeys(cell.dataset for cell in cells):
        protocol.split(name, 0, data_dir)  # a set that cannot be had ends the run here
    out.mkdir(parents=True, exist_ok=True)
    _check_version(out / "run.json")
    record = out / "repetitions.csv"
    frame = read(out)
    _write(record, frame)
    there = frame[frame.rounds.isin(rounds)].groupby([*KIND, "repetition"]).size()
    todo = [cell for cell in cells if there.get(_key(cell), 0) < len(rounds)]
    print(f"{len(cells) - len(todo)} of {len(cells)} cells are there, {len(todo)} to go")
    run = joblib.delayed(protocol.run)
    outcomes = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(
        run(cell, rounds, data_dir) for cell in tuple(todo)
    )
    for cell, new, history in outcomes:
        if history:  # before its rows: without them it will be written anew
            path = history_path(out, cell.dataset, cell.algorithm, cell.learner)
            path.parent.mkdir(exist_ok=True)
            np.savez_compressed(path, **history)
        names = dict(zip([*KIND, "repetition"], _key(cell), strict=True))
        rows = pd.DataFrame(new).assign(**names)[COLUMNS].astype(_TYPES)
        rows.to_csv(record, mode="a", header=False, index=False)
        frame = rows if frame.empty else pd.concat([frame, rows])
        todo.remove(cell)
        left = _seconds(frame, todo) / jobs
        done = f"{time.strftime('%H:%M:%S')}  {len(cells) - len(todo)}/{len(cells)}"
        name = ", ".join(map(str, _key(cell)))
        more = f"about {left // 3600:.0f} h {left % 3600 / 60:.0f} min left"
        print(f"{done}  {name}: {rows.seconds.sum():.1f} s, {more}", flush=True)
    frame = read(out)
    _write(record, frame)
    _write(out / "errors.csv", summary(frame), float_format="%.6g")


def read(out: Path) -> pd.DataFrame:
    """The rows of a run in order, without what a kill has cut off."""
    path = out / "repetitions.csv"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1] or ",".join(COLUMNS) + "\n"
    frame = pd.read_csv(io.StringIO(whole), dtype=str)
    if list(frame.columns) != COLUMNS:
        raise ValueError(f"{path} holds something else: choose another --out")
    frame = frame.astype(dict.fromkeys(COLUMNS[3:], float)).astype(_TYPES)
    names = ("stump", "lda", *protocol.SETS, *protocol.ALGORITHMS)
    place = {name: i for i, name in enumerate(names)}
    frame = frame.drop_duplicates(KEY, keep="last")
    return frame.sort_values(KEY, key=lambda column: [place.get(v, v) for v in column])


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over the repetitions: the published table's columns, and some more."""
    parts = []
    for split in ("train", "test"):
        error = f"{split}_error"
        part = frame.assign(split=split).groupby([*KIND, "split", "rounds"], sort=False)
        columns = {"mean": (error, "mean"), "std": (error, "std")}
        columns |= {name: (name, "mean") for name in ("theta", "n_active", "gap")}
        parts.append(part.agg(**columns, repetitions=("repetition", "size")))
    return pd.concat(parts).fillna({"std": 0.0}).reset_index()


def history_path(out: Path, dataset: str, algorithm: str, learner: str = "stump") -> Path:
    """The file with the curves of the first repetition."""
    name = "-".join((dataset, *algorithm.split(", "), learner)).replace(" ", "-")
    return out / "history" / f"{name}.npz"


def _key(cell: Cell) -> tuple[Any, ...]:
    return tuple(vars(cell).values())


def _seconds(frame: pd.DataFrame, cells: Sequence[Cell]) -> float:
    """How long cells will take: as long as others of their kind, or of any kind, did."""
    groups = frame.groupby(KIND)
    means = groups["seconds"].sum() / groups["repetition"].nunique()
    known = means.to_dict()
    return float(sum(known.get(_key(cell)[:-1], means.mean()) for cell in cells))


def _write(path: Path, frame: pd.DataFrame, float_format: str | None = None) -> None:
    """All of it or nothing."""
    frame.to_csv(path.with_suffix(".part"), index=False, float_format=float_format)
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
