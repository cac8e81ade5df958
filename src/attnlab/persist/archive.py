"""The file around a learner: an uncompressed zip of plain arrays, written whole or not at all, read with suspicion.

A file may come from anywhere, so none of its claims is believed: sizes are compared with the bytes that are there
before memory is allocated, and nothing is unpickled.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import secrets
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

KINDS = "biufcU"  # dtype kinds that are plain bytes: booleans, numbers, text

_MEMBER = re.compile(r"(header\.json|a(0|[1-9][0-9]*))\.npy", re.ASCII)
# The only opening that numpy.save writes for plain arrays; reading it needs no evaluation.
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '([<>|][a-zA-Z][0-9]{1,9})', 'fortran_order': (?:True|False), "
    rb"'shape': \(((?:[0-9]{1,18}, ?)*(?:[0-9]{1,18})?)\), \} *\n",
    re.DOTALL,
)
# How the readers of zip, npy and JSON say that their input is broken.
DAMAGE = (ValueError, TypeError, RuntimeError, EOFError, OSError, struct.error, zipfile.BadZipFile)


class BadFile(ValueError):
    """The file is not one that :func:`~attnlab.persist.save` wrote; nothing of it was used."""


def write(path: Path, members: Mapping[str, np.ndarray]) -> None:
    """All members to a neighbour of ``path``, then one rename."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(draft, "xb") as file:
            np.savez(file, **members)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def opened(file: IO[bytes], max_bytes: int) -> Iterator[Arrays]:
    """The members of a file of at most ``max_bytes``; all of them must have been read in the end."""
    size = file.seek(0, os.SEEK_END)
    if size > max_bytes:
        raise BadFile(f"{size} bytes are more than max_bytes={max_bytes}")
    with zipfile.ZipFile(file) as archive:
        arrays = Arrays(archive, size)
        yield arrays
    arrays.finish()


class Arrays:
    """The members of an archive, each read at most once and only after its size is known to be true."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self.archive = archive
        self.left: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            if not _MEMBER.fullmatch(info.orig_filename) or info.filename in self.left:
                raise BadFile(f"it holds a member {info.orig_filename[:80]!r}")
            # Stored members cannot be larger than the file, so no file unpacks to more than its own size.
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
                raise BadFile(f"its member {info.filename!r} is compressed or encrypted")
            self.left[info.filename] = info
        if sum(info.file_size for info in self.left.values()) > size:
            raise BadFile("its members claim more bytes than the file has")

    def take(self, name: str, dtype: str, shape: list[Any]) -> np.ndarray:
        """An array that the header describes."""
        array = self.read(name)
        if array.dtype != plain_dtype(dtype) or list(array.shape) != shape:
            raise BadFile(f"array {name} is {array.dtype} {array.shape}, not {dtype[:80]} {str(shape)[:80]}")
        return array

    def read(self, name: str, limit: int | None = None) -> np.ndarray:
        """A member, once its own header, its dtype and its length agree."""
        info = self.left.pop(f"{name}.npy", None)
        if info is None:
            raise BadFile(f"member {name[:80]!r} is missing or used twice")
        with self.archive.open(info) as member:
            head = _NPY.match(member.read(1024))
        if not head or head.end() != 10 + int.from_bytes(head[1], "little"):
            raise BadFile(f"member {name} is not a plain array")
        dtype, shape = plain_dtype(head[2].decode()), [int(n) for n in head[3].replace(b",", b" ").split()]
        length = info.file_size - head.end()
        if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != length:
            raise BadFile(f"member {name} of {length} bytes claims to be {dtype} of shape {shape}")
        if limit is not None and length > limit:
            raise BadFile(f"member {name} has {length} bytes, at most {limit} are allowed")
        with self.archive.open(info) as member:
            array: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        return array

    def finish(self) -> None:
        """Nothing may be left that the header does not mention."""
        if self.left:
            raise BadFile(f"member {min(self.left)!r} is not mentioned in the header")


def plain_dtype(text: str) -> np.dtype:
    """A dtype whose values are plain bytes; text such as '<f8' only."""
    dtype = np.dtype(text)
    if dtype.kind not in KINDS or dtype.str != text:
        raise BadFile(f"dtype {text[:80]!r} is not allowed")
    return dtype
