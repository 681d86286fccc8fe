"""Archives of arrays from anywhere: npz, without pickle, and no longer than was asked for."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray


class TooLongError(ValueError):
    """There is more than was asked for."""


def read_members(content: bytes, max_bytes: int) -> dict[str, bytes]:
    """The members of an archive by their names, all together no longer than `max_bytes`.

    What counts is what is decompressed, since the sizes that an archive declares may be wrong.
    """
    members, left = {}, max_bytes
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            # Of other ways to compress, Python decompresses any amount at once.
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{info.filename} is not compressed by deflate")
            with archive.open(info) as member:
                part = member.read(left + 1)
            left -= len(part)
            if left < 0:
                raise TooLongError
            members[info.filename.removesuffix(".npy")] = part
    return members


def read_array(name: str, content: bytes) -> NDArray[Any]:
    """An array in the npy format, as long as its shape says, of values that are some."""
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("another version of the npy format")
        # What is parsed is short, so that it cannot be nested too deeply.
        described = np.lib.format.read_array_header_1_0(stream, max_header_size=1000)
        shape, by_column, dtype = described
        array = np.frombuffer(content, dtype, offset=stream.tell())
        array = array.reshape(shape, order="F" if by_column else "C").copy()
        if dtype.kind == "U":
            array.tolist()  # fails at what is no character
        if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise ValueError("neither true nor false")
    except Exception as e:
        raise ValueError(f"{name} is not an array in the npy format, or not all of it") from e
    return array
