"""The commands that repeat the paper."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..paper import datasets, protocol

QUICK_SETS, QUICK_REPETITIONS = ("wine", "iris"), range(5)


def add_commands(commands: Any) -> None:
    """`datasets` and `reproduce`."""
    listing = commands.add_parser("datasets", help="list the data sets, and which are at hand")
    listing.set_defaults(run=list_datasets)
    again = commands.add_parser(
        "reproduce",
        help="repeat the paper's experiments and write a report",
        description="Without options: iris and wine, five repetitions, a minute or two. A "
        "stopped run goes on when it is started again with the same --out.",
    )
    again.add_argument("--full", action="store_true", help="eight data sets, 20 repetitions")
    again.add_argument(
        "--out", type=Path, default=Path("reproduced"), help="default: reproduced"
    )
    jobs = {"type": _count, "metavar": "N", "default": 2}
    again.add_argument("--jobs", **jobs, help="processes; default: 2")
    again.add_argument("--sets", nargs="+", choices=protocol.SETS, metavar="SET")
    some = {"type": int, "choices": range(protocol.REPETITIONS), "metavar": "N", "nargs": "+"}
    again.add_argument("--repetitions", **some, help="only these, counted from 0")
    again.set_defaults(run=reproduce)
    for command in (listing, again):
        command.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)


def list_datasets(options: argparse.Namespace) -> None:
    """A line for each data set."""
    print(f"{'name':10} {'rows':>7} {'attributes':>10} {'classes':>7}  at hand  from")
    for name, data in datasets.DATASETS.items():
        place = datasets.locate(name, options.data_dir)
        at_hand = "yes" if place.at_hand else "no"
        sizes = f"{data.n_rows:7} {data.n_features:10} {data.n_classes:7}"
        print(f"{name:10} {sizes}  {at_hand:7}  {place.origin}")


def reproduce(options: argparse.Namespace) -> None:
    """Run what is missing, then write the tables and the report."""
    from ..paper import report, runner

    sets = options.sets or (protocol.SETS if options.full else QUICK_SETS)
    every = range(protocol.REPETITIONS) if options.full else QUICK_REPETITIONS
    cells = protocol.cells(list(sets), list(options.repetitions or every))
    runner.reproduce(options.out, cells, jobs=options.jobs, data_dir=options.data_dir)
    for path in report.write(options.out):
        print(f"wrote {path}")
