"""The command line: `tcboost datasets`, `tcboost reproduce`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import __version__
from . import paper

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what the user can mend is said in one line."""
    parser = argparse.ArgumentParser(prog="tcboost", description="Totally corrective boosting.")
    parser.add_argument("--version", action="version", version=f"tcboost {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    paper.add_commands(commands)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (OSError, ValueError, ModuleNotFoundError) as e:
        missing = isinstance(e, ModuleNotFoundError)
        print(f"tcboost: {e}{': pip install tcboost[paper]' * missing}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tcboost: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0
