"""A row of the store, its hash, and how it is checked before anything believes it."""

from __future__ import annotations

import functools
import hashlib
import json
import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from attnlab.lab.store.arrays import HASH, ArrayFolder
from attnlab.lab.store.payload import decode, sha256

# What the payload hash covers: everything that is a result, nothing that depends on where or when it was computed.
HASHED = ("id", "figure", "params", "stream", "status", "record", "arrays", "error")


@dataclass(frozen=True, slots=True)
class StoredCell:
    """A row of the store; ``arrays`` is the SHA-256 of its array file, or empty, ``code`` the code's fingerprint."""

    id: str
    figure: str
    params: str
    stream: int
    status: str
    record: str
    arrays: str
    error: str
    payload_hash: str
    code: str
    versions: str
    device: str
    seconds: float
    tries: int
    finished: str

    @property
    def attnlab_version(self) -> str:
        """Of the attnlab that computed it."""
        return _attnlab_version(self.versions)

    def expected_hash(self) -> str:
        """The hash that an undamaged row carries."""
        return hashlib.sha256("\n".join(str(getattr(self, name)) for name in HASHED).encode()).hexdigest()

    def problem(self, folder: ArrayFolder) -> str:
        """What is wrong with this row or its array file, or the empty string."""
        if not HASH.fullmatch(self.id):
            return "its id is not 64 hexadecimal digits"
        if self.payload_hash != self.expected_hash():
            return "its record is not what was written"
        if not self.arrays:
            return ""
        if not HASH.fullmatch(self.arrays):
            return "the name of its array file is not 64 hexadecimal digits"
        try:
            content = folder.read(self.arrays)
        except OSError as error:
            return f"its array file cannot be read ({error.strerror})"
        return "" if sha256(content) == self.arrays else "its array file is not what was written"

    def results(self, folder: ArrayFolder) -> dict[str, Any]:
        """Cell, figure, provenance, parameters, results; of a row that was checked."""
        content = folder.read(self.arrays) if self.arrays else b""
        made = {"stream": self.stream, "code": self.code, "version": self.attnlab_version}
        params = json.loads(self.params)
        return {"cell": self.id, "figure": self.figure, **made, **params, **decode(self.record, content)}


@functools.lru_cache(maxsize=100)  # the same text for millions of rows
def _attnlab_version(versions: str) -> str:
    return str(json.loads(versions).get("attnlab", "unknown"))


COLUMNS = ", ".join(field.name for field in fields(StoredCell))
# dataclasses.astuple copies every value deeply
values_of = operator.attrgetter(*COLUMNS.split(", "))
_TYPES: list[Any] = [{"str": str, "int": int, "float": (float, int)}[str(field.type)] for field in fields(StoredCell)]


def parsed(values: Sequence[Any]) -> StoredCell | None:
    """A row as SQLite gives it; None where a column holds another type than ours: SQLite lets any type in anywhere."""
    return StoredCell(*values) if all(map(isinstance, values, _TYPES)) else None
