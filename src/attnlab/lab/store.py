"""The committed results of cells: one SQLite file, arrays beside it; readable anywhere, safe under kill -9."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from attnlab.common.seeds import canonical
from attnlab.lab.errors import StoreDamaged, StoreUnwritable, UsageError
from attnlab.lab.locking import WriterLock, on_network_drive
from attnlab.lab.outcome import Outcome
from attnlab.lab.payload import ArrayFolder, decode, encode, sha256

SCHEMA = 2
COLUMNS = (
    "id, figure, params, stream, status, record, arrays, error, payload_hash,"
    " code, versions, device, seconds, tries, finished"
)
# What the payload hash covers: everything that is a result, nothing that depends on where or when it was computed.
HASHED = ("id", "figure", "params", "stream", "status", "record", "arrays", "error")


@dataclass(frozen=True)
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

    def expected_hash(self) -> str:
        """The hash that an undamaged row carries."""
        return hashlib.sha256("\n".join(str(getattr(self, name)) for name in HASHED).encode()).hexdigest()

    def problem(self, folder: ArrayFolder) -> str:
        """What is wrong with this row or its array file, or the empty string."""
        if self.payload_hash != self.expected_hash():
            return "its record is not what was written"
        if self.arrays:
            try:
                content = folder.read(self.id)
            except OSError as error:
                return f"its array file cannot be read ({error.strerror})"
            if sha256(content) != self.arrays:
                return "its array file is not what was written"
        return ""


class Store:
    """Results of cells by id. Open with ``writable=True`` in the one driver; any number of readers may look on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/results.sqlite", writable=True) as store:
    ...     store.count()
    {}
    """

    def __init__(self, path: str | os.PathLike[str], *, writable: bool = False) -> None:
        self.path = Path(path)
        self.arrays = ArrayFolder.beside(self.path)
        self._lock: WriterLock | None = None
        if writable:
            with _as_store_errors(self.path):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = WriterLock(self.path)
        elif not self.path.exists():
            raise UsageError(f"there is no store at {self.path}")
        try:
            with _as_store_errors(self.path):
                self._db = self._connect(writable)
        except BaseException:
            self._release()
            raise

    def _connect(self, writable: bool) -> sqlite3.Connection:
        mode = "rwc" if writable else "ro"
        db = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)
        db.execute("PRAGMA busy_timeout = 30000")
        if writable:
            network = on_network_drive(self.path)
            # Write-ahead logging shares memory between processes, which network drives cannot.
            db.execute(f"PRAGMA journal_mode = {'DELETE' if network else 'WAL'}")
            db.execute(f"PRAGMA synchronous = {'FULL' if network else 'NORMAL'}")
            db.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT)")
            db.execute(f"INSERT OR IGNORE INTO meta VALUES ('schema', '{SCHEMA}')")
            db.execute(
                "CREATE TABLE IF NOT EXISTS cells (id TEXT PRIMARY KEY, figure TEXT NOT NULL, params TEXT NOT NULL,"
                " stream INTEGER NOT NULL,"
                " status TEXT NOT NULL CHECK (status IN ('done', 'failed')), record TEXT NOT NULL,"
                " arrays TEXT NOT NULL, error TEXT NOT NULL, payload_hash TEXT NOT NULL, code TEXT NOT NULL,"
                " versions TEXT NOT NULL, device TEXT NOT NULL,"
                " seconds REAL NOT NULL, tries INTEGER NOT NULL, finished TEXT NOT NULL)"
            )
        problem = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise sqlite3.DatabaseError(problem)
        found = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        if found is None or found[0] != str(SCHEMA):
            raise UsageError(f"{self.path} has schema {found and found[0]}; this attnlab reads schema {SCHEMA}")
        return db

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let the next driver in."""
        self._db.close()
        self._release()

    def _release(self) -> None:
        if self._lock:
            self._lock.release()

    def put(self, outcome: Outcome) -> None:
        """Commit one outcome. It replaces a failed try and a result of other code, never a finished cell of this."""
        record, arrays = encode(outcome.record)
        row = StoredCell(
            id=outcome.cell.id,
            figure=outcome.cell.figure,
            params=canonical(outcome.cell.params),
            stream=outcome.cell.stream,
            status=outcome.status,
            record=record,
            arrays=sha256(arrays),
            error=outcome.error,
            payload_hash="",
            code=outcome.cell.code,
            versions=json.dumps(outcome.versions, sort_keys=True),
            device=outcome.device,
            seconds=outcome.seconds,
            tries=outcome.tries,
            finished=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )
        self.put_row(replace(row, payload_hash=row.expected_hash()), arrays)

    def put_row(self, row: StoredCell, arrays: bytes) -> None:
        """Commit a row: first its array file, then the row that names it.

        A row of other code is removed before its array file is overwritten: a kill in between leaves the cell missing,
        not damaged.
        """
        names = COLUMNS.split(", ")
        updates = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
        with _as_store_errors(self.path):
            self._db.execute("DELETE FROM cells WHERE id = ? AND code <> ?", (row.id, row.code))
            self.arrays.write(row.id, arrays)
            self._db.execute(
                f"INSERT INTO cells ({COLUMNS}) VALUES ({', '.join('?' * len(names))})"
                f" ON CONFLICT (id) DO UPDATE SET {updates} WHERE cells.status = 'failed'",
                astuple(row),
            )

    def status(self) -> dict[str, tuple[str, str]]:
        """The status of every stored cell by id, and the fingerprint of the code behind it."""
        with _as_store_errors(self.path):
            found = self._db.execute("SELECT id, status, code FROM cells")
            return {cell: (status, code) for cell, status, code in found}

    def count(self) -> dict[str, int]:
        """How many cells there are of each status."""
        with _as_store_errors(self.path):
            return dict(self._db.execute("SELECT status, COUNT(*) FROM cells GROUP BY status ORDER BY status"))

    def figures(self) -> set[str]:
        """The names of the figures that have a row."""
        with _as_store_errors(self.path):
            return {name for (name,) in self._db.execute("SELECT DISTINCT figure FROM cells")}

    def rows(self, figure: str | None = None) -> Iterator[StoredCell]:
        """All rows, unchecked, ordered by figure and id."""
        query = f"SELECT {COLUMNS} FROM cells" + (" WHERE figure = ?" if figure else "") + " ORDER BY figure, id"
        with _as_store_errors(self.path):
            for values in self._db.execute(query, (figure,) if figure else ()):
                yield StoredCell(*values)

    def get(self, figure: str, ids: Iterable[str]) -> dict[str, StoredCell]:
        """The rows of the given cells of a figure that are stored."""
        wanted = set(ids)
        return {row.id: row for row in self.rows(figure) if row.id in wanted}

    def record(self, row: StoredCell) -> dict[str, Any]:
        """A row as a reader wants it: cell, figure, provenance, parameters, results; verified, arrays loaded."""
        if problem := row.problem(self.arrays):
            raise StoreDamaged(
                f"{self.path}: cell {row.id[:12]} of {row.figure} is damaged: {problem}."
                f" 'attnlab store salvage {self.path} NEW' keeps the good cells; the others are then computed again"
            )
        arrays = self.arrays.read(row.id) if row.arrays else b""
        made = {"stream": row.stream, "code": row.code, "version": json.loads(row.versions)["attnlab"]}
        return {"cell": row.id, "figure": row.figure, **made, **json.loads(row.params), **decode(row.record, arrays)}


@contextlib.contextmanager
def _as_store_errors(path: Path) -> Iterator[None]:
    """Say in one line what happened to the store."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreUnwritable(f"cannot use the store {path}: {error}; what was committed is intact") from error
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(
            f"the store {path} is damaged: {error}. 'attnlab store salvage {path} NEW' saves what is readable"
        ) from error
    except OSError as error:
        raise StoreUnwritable(
            f"cannot write to {path.parent}: {error.strerror}; what was committed is intact"
        ) from error
