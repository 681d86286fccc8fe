"""Files that are replaced in one piece or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO


def replace_file(path: str | os.PathLike[str], content: bytes | memoryview) -> None:
    """Write a file; whoever reads or writes it meanwhile, it is an old one or a new one.

    The content goes to a new file in the same folder, to the disk, and this then takes the
    place of the old file, with its mode. On Linux the new file gets a name of its own only when
    it is whole, an instant before, so that a process that is killed hardly ever leaves it
    behind. Where the system or the file system does not know files without a name, it has one
    from the start.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    mode = None
    with suppress(FileNotFoundError):
        mode = target.stat().st_mode
    if mode is not None and not stat.S_ISREG(mode):
        raise ValueError(f"path must be that of a file, but {path} is none")
    new = target.with_name(f".tcboost-{secrets.token_hex(8)}.partial")
    try:
        with (
            suppress(AttributeError, OSError),
            open(target.parent, "wb", opener=partial(_open, os.O_TMPFILE, mode)) as file,
        ):
            _write(content, mode, file)
            # The link in /proc is followed only if there is a `src_dir_fd`, whatever it is.
            os.link(f"/proc/self/fd/{file.fileno()}", new, src_dir_fd=file.fileno())
        if not new.exists():
            with open(new, "wb", opener=partial(_open, os.O_CREAT | os.O_EXCL, mode)) as file:
                _write(content, mode, file)
        os.replace(new, target)
    finally:
        new.unlink(missing_ok=True)


def _open(kind: int, mode: int | None, path: str, flags: int) -> int:
    """A descriptor of a new file, which nobody may read or write who could not the old one."""
    allowed = 0o666 if mode is None else stat.S_IMODE(mode)
    return os.open(path, flags & ~(os.O_CREAT | os.O_TRUNC) | kind, allowed)


def _write(content: bytes | memoryview, mode: int | None, file: IO[bytes]) -> None:
    """Write to the disk, not only to the system, with the mode that umask may have narrowed."""
    file.write(content)
    file.flush()
    if mode is not None and hasattr(os, "fchmod"):
        os.fchmod(file.fileno(), stat.S_IMODE(mode))
    os.fsync(file.fileno())
