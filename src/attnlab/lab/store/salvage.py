"""What can still be read from a damaged file, row by row."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attnlab.lab.errors import UsageError
from attnlab.lab.store.arrays import ArrayFolder
from attnlab.lab.store.committed import CommitLog
from attnlab.lab.store.file import Store
from attnlab.lab.store.merging import take_over
from attnlab.lab.store.row import COLUMNS, StoredCell, parsed
from attnlab.lab.store.schema import TABLES, log_file

# No row is smaller: it carries two SHA-256 hashes, versions and a record.
SMALLEST_ROW = 256


def salvage(damaged: Path, target: Store) -> dict[str, int]:
    """Copy every row of a damaged file that can still be read and is what was written; good rows of the target stay.

    ``lost`` counts the rows that were committed and cannot be read. Rows are numbered without gaps, so the largest
    number that the file or the record of commits still names tells how many there were.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(_opened(damaged, Path(folder))) as db:
        remains = _Remains(db, ArrayFolder.beside(damaged), _rows_committed(db, damaged))
        counts = take_over(target, remains.good(), remains.arrays)
    taken = {name: counts[name] for name in ("copied", "healed", "present", "different")}
    return taken | {"lost": max(remains.committed, remains.last) - counts.total()}


@dataclass
class _Remains:
    """The rows of a damaged file by their number."""

    db: sqlite3.Connection
    arrays: ArrayFolder
    committed: int
    last: int = 0

    def good(self) -> Iterator[StoredCell]:
        """Rows that are what was written. A damaged page costs only the rows on it."""
        largest = self.committed or self._pages() * 16
        for number in range(1, largest + 1):
            try:
                # row by row along the table: a damaged index must not hide a row
                query = f"SELECT {COLUMNS} FROM cells NOT INDEXED WHERE rowid = ?"
                values = self.db.execute(query, (number,)).fetchone()
            except sqlite3.DatabaseError:
                continue
            if values is None:
                continue
            self.last = number
            row = parsed(values)
            if row is not None and not row.problem(self.arrays):
                yield row

    def _pages(self) -> int:
        pages, size = (self.db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(pages * size // SMALLEST_ROW)


def _rows_committed(db: sqlite3.Connection, path: Path) -> int:
    """How many rows there were, from all places that say so; 0 if none can be read."""
    tally, _ = CommitLog(path).read()
    found = [tally.rows if tally else 0]
    # the row with the largest number, by the table and by its index, which lie on different pages
    for query in (
        "SELECT MAX(rowid) FROM cells NOT INDEXED",
        "SELECT MAX(rowid) FROM cells INDEXED BY cells_by_figure WHERE figure > ''",
        "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'committed'",
    ):
        with contextlib.suppress(sqlite3.DatabaseError, TypeError):
            found.append(int(db.execute(query).fetchone()[0]))
    return max(found)


def _opened(path: Path, folder: Path) -> sqlite3.Connection:
    """A copy at the length its header states: SQLite reads nothing at all from a file that is too short."""
    copied = folder / "damaged.sqlite"
    shutil.copy(path, copied)
    # the log holds the last commits, which the file itself may lack
    if log_file(path).exists():
        shutil.copy(log_file(path), log_file(copied))
    with open(copied, "r+b") as file:
        header = file.read(100)
        page, pages = int.from_bytes(header[16:18], "big"), int.from_bytes(header[28:32], "big")
        file.truncate(max(copied.stat().st_size, page * pages))
    db = sqlite3.connect(copied)
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        found = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'cells' AND type = 'table'").fetchone()
    except sqlite3.DatabaseError as error:
        db.close()
        raise UsageError(f"nothing can be read from {path}: {error}") from error
    # a view or another table could answer in the place of the rows
    if found is None or found[0] != TABLES["cells"]:
        db.close()
        raise UsageError(f"nothing can be read from {path}: it has no table of cells that attnlab made")
    return db
