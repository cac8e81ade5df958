"""A second record of what was committed, beside the store, by which a damaged or missing log is noticed.

SQLite reads its write-ahead log up to the first frame whose checksum is wrong and silently forgets the rest. So each
commit also appends a line to ``<store>.committed``: the number of rows, a digest of all of them, and the row. The lines
are dropped when SQLite has copied its log into the file. A line is written after its commit, so it is never ahead.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MODULUS = 2**256


@dataclass(frozen=True)
class Tally:
    """How many rows there are, and the sum of hashes of their payload hashes, which does not depend on their order."""

    rows: int = 0
    digest: int = 0

    def replaced(self, old: str | None, new: str) -> Tally:
        """After a row was written; ``old`` is the hash of the one it replaced."""
        # a sum can be corrected for one row without reading the others
        change = number(new) - (0 if old is None else number(old))
        return Tally(self.rows + (old is None), (self.digest + change) % MODULUS)

    def __str__(self) -> str:
        return f"{self.rows} {self.digest:064x}"

    @classmethod
    def parse(cls, text: str) -> Tally:
        """The inverse of ``str``."""
        rows, digest = text.split()
        return cls(int(rows), int(digest, 16))


def number(payload: str) -> int:
    """A payload hash as a number; damage may have left something else in its place."""
    return int(hashlib.sha256(payload.encode()).hexdigest(), 16)


class CommitLog:
    """The file ``<store>.committed``."""

    def __init__(self, store: Path) -> None:
        real = store.resolve()
        self.path = real.with_name(real.name + ".committed")
        self._descriptor: int | None = None

    def read(self) -> tuple[Tally | None, dict[str, str]]:
        """The last tally, and the payload hash of every row written since the last reset by its id."""
        tally, rows = None, {}
        try:
            lines = self.path.read_text(errors="replace").splitlines()
        except OSError:
            return None, {}
        for line in lines:
            body, _, check = line.rpartition(" ")
            if check != _check(body):  # cut by a kill, or damaged itself
                continue
            count, digest, id, payload = body.split(" ")
            tally = Tally.parse(f"{count} {digest}")
            if id != "-":  # the line that a reset leaves names no row
                rows[id] = payload
        return tally, rows

    def append(self, tally: Tally, rows: Iterable[tuple[str, str]]) -> None:
        """Add (id, payload hash) of rows that were committed; the tally is the one after all of them."""
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        text = "".join(_line(f"{tally} {id} {payload}") for id, payload in rows)
        # One call: a kill cuts the last line at most, and its check shows that.
        os.write(self._descriptor, text.encode())

    def reset(self, tally: Tally) -> None:
        """Keep the tally alone, once the rows are in the file itself."""
        self.close()
        temporary = self.path.with_suffix(".committed-new")
        temporary.write_text(_line(f"{tally} - -"))
        os.replace(temporary, self.path)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _line(body: str) -> str:
    return f"{body} {_check(body)}\n"


def _check(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:8]
