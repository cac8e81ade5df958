"""The store: one writer, any number of readers, every outcome committed before the next."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.common.seeds import canonical
from attnlab.lab.errors import StoreDamaged, StoreUnwritable, UsageError
from attnlab.lab.store import schema
from attnlab.lab.store.arrays import ArrayFolder
from attnlab.lab.store.committed import CommitLog, Tally
from attnlab.lab.store.locking import OpenFile
from attnlab.lab.store.payload import sha256
from attnlab.lab.store.recovery import clear_log, lost_rows, missing_log, recover
from attnlab.lab.store.row import COLUMNS, StoredCell, parsed, values_of
from attnlab.lab.store.schema import store_errors

if TYPE_CHECKING:
    from attnlab.lab.outcome import Outcome

# Rows asked for in one query, and commits between two copies of SQLite's log into the file.
CHUNK, BETWEEN_COPIES = 500, 1000
_NAMES = COLUMNS.split(", ")
_INSERT = f"INSERT INTO cells ({COLUMNS}) VALUES ({', '.join('?' * len(_NAMES))})"
_UPDATE = f"UPDATE cells SET {', '.join(f'{name} = ?' for name in _NAMES)} WHERE id = ?"


class Store:
    """Results of cells by id. Open with ``writable=True`` in the one driver; reading is always allowed.

    ``notes`` lists what happened to the file since it was closed: rows lost with a damaged or missing log.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/results.sqlite", writable=True) as store:
    ...     store.count()
    {}
    """

    def __init__(self, path: str | os.PathLike[str], *, writable: bool = False) -> None:
        self.path = Path(path)
        self.arrays = ArrayFolder.beside(self.path)
        self.notes: list[str] = []
        self.tally = Tally()
        self._commits = CommitLog(self.path)
        self._uncopied = 0
        if not writable and not self.path.exists():
            raise UsageError(f"there is no store at {self.path}")
        with store_errors(self.path):
            if writable:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.touch()  # the lock is on the file itself, which must be there
            self._file = OpenFile.use(self.path)
        self._writable = False
        try:
            if writable and not self._file.lock():
                raise self._file.refusal(self.path)
            self._writable = writable
            with store_errors(self.path):
                self._open()
        except BaseException:
            self._leave()
            raise

    def _open(self) -> None:
        schema.refuse_truncated(self.path)
        without_log = missing_log(self.path)
        self._db = schema.connect(self.path, "rw" if self._writable else "ro")
        try:
            if self._writable:
                self._file.sign()
                # Write-ahead logging shares memory between processes, which network drives cannot.
                self._db.execute(f"PRAGMA journal_mode = {'DELETE' if self._file.network else 'WAL'}")
                # with a log NORMAL keeps the file sound: a power cut costs the last commits at most
                self._db.execute(f"PRAGMA synchronous = {'FULL' if self._file.network else 'NORMAL'}")
                schema.create(self._db)
            schema.check(self._db, self.path)
            self.tally = _stored_tally(self._db)
            # while a driver writes, rows come between the two looks, and a reader would see losses that are none
            if self._writable or not self._file.has_driver:
                lost = lost_rows(self._db, self._commits, self.tally)
                self.notes = lost.notes(self._db, self.path, without_log=without_log)
                if self._writable:
                    self.tally = recover(self._db, lost, self.tally)
                    # From here on until it is closed, the file without its log may be incomplete.
                    self._set("open", "" if self._file.network else "1")
                    self._copy_log()
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let the next driver in."""
        if self._writable and not self._file.moved:
            with contextlib.suppress(sqlite3.Error, OSError):  # a full disk: the log stays, and is read next time
                self._set("open", "")
                self._copy_log()
        self._db.close()
        self._leave()

    def _leave(self) -> None:
        self._commits.close()
        if self._writable:
            self._file.unlock()
        self._file.leave()

    def put(self, outcome: Outcome) -> None:
        """Commit one outcome. It replaces a failed try and a result of other code, never a finished cell of this."""
        answer = outcome.answer
        row = StoredCell(
            id=outcome.cell.id,
            figure=outcome.cell.figure,
            params=canonical(outcome.cell.params),
            stream=outcome.cell.stream,
            status=answer.status,
            record=answer.record,
            arrays=sha256(answer.arrays),
            error=answer.error,
            payload_hash="",
            code=outcome.cell.code,
            versions=answer.versions,
            device=answer.device,
            seconds=answer.seconds,
            tries=outcome.tries,
            finished=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )
        self.put_rows([(replace(row, payload_hash=row.expected_hash()), answer.arrays)])

    def put_rows(self, rows: Sequence[tuple[StoredCell, bytes]], *, heal: bool = False) -> None:
        """Commit rows together: first their array files, then the rows that name them.

        With ``heal`` they replace whatever is there: the caller has found it damaged.
        """
        if self._file.moved:
            raise StoreUnwritable(f"the store {self.path} was moved, removed or replaced while it was open")
        tally, written = self.tally, []
        with store_errors(self.path, self._intact), self._transaction():
            for row, content in rows:
                query = "SELECT payload_hash, status, code FROM cells WHERE id = ?"
                old, status, code = self._db.execute(query, (row.id,)).fetchone() or (None, "", "")
                if old is not None and status == "done" and code == row.code and not heal:
                    continue
                self.arrays.write(content)
                self._db.execute(
                    _INSERT if old is None else _UPDATE, (*values_of(row), *([row.id] * (old is not None)))
                )
                tally = tally.replaced(old, row.payload_hash)
                written.append((row.id, row.payload_hash))
            self._set("committed", str(tally))
        self.tally = tally  # not before COMMIT: a write that failed leaves the old one in force
        with store_errors(self.path, self._intact):
            self._commits.append(tally, written)
            self._uncopied += 1
            if self._uncopied >= BETWEEN_COPIES:
                self._copy_log()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        # the write lock at once: a transaction that begins by reading may fail to get it later
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite ends it by itself when the disk is full
                self._db.execute("ROLLBACK")
            raise

    def _set(self, key: str, value: str) -> None:
        self._db.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                         (key, value))  # fmt: skip

    def _copy_log(self) -> None:
        """Bring the log into the file; once all of it is there, the second record of the commits starts anew."""
        self._uncopied = 0
        if clear_log(self._db):
            self._commits.reset(self.tally)

    def _intact(self) -> str:
        """The state of the file, read again after a write has failed."""
        with contextlib.suppress(sqlite3.Error), contextlib.closing(schema.connect(self.path, "ro")) as db:
            same = _stored_tally(db) == self.tally
            if same and db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok":
                return f"; what was committed is intact ({self.tally.rows} cells, checked)"
        return f"; what was committed could not be checked: run 'attnlab store verify {self.path}'"

    def status(self, figure: str, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Status and code of those of these cells that are stored, at most ``CHUNK`` of them."""
        places = ", ".join("?" * len(ids))
        query = f"SELECT id, status, code FROM cells INDEXED BY cells_by_figure WHERE figure = ? AND id IN ({places})"
        with store_errors(self.path):
            return {id: (status, code) for id, status, code in self._db.execute(query, (figure, *ids))}

    def count(self) -> dict[str, int]:
        """How many cells there are of each status."""
        with store_errors(self.path):
            return dict(self._db.execute("SELECT status, COUNT(*) FROM cells GROUP BY status ORDER BY status"))

    def figures(self) -> set[str]:
        """The names of the figures that have a row."""
        with store_errors(self.path):
            return {name for (name,) in self._db.execute("SELECT DISTINCT figure FROM cells")}

    def provenance(self) -> list[tuple[Any, ...]]:
        """Figure, stream, status, versions and code, and how many cells there are of each combination."""
        names = "figure, stream, status, versions, code"
        with store_errors(self.path):
            return self._db.execute(f"SELECT {names}, COUNT(*) FROM cells GROUP BY {names} ORDER BY {names}").fetchall()

    def integrity(self) -> list[str]:
        """SQLite's check of every page and index; ``["ok"]`` for a sound file."""
        try:
            return [str(text) for (text,) in self._db.execute("PRAGMA integrity_check")]
        except sqlite3.DatabaseError as error:
            return [str(error)]

    def counted(self) -> Tally:
        """The tally of the rows as they are."""
        tally = Tally()
        with store_errors(self.path):
            # from the table: an index could be sound while rows are lost
            for (payload,) in self._db.execute("SELECT payload_hash FROM cells NOT INDEXED"):
                tally = tally.replaced(None, payload)
        return tally

    def recount(self) -> None:
        """Take the rows as they are for what was committed, after damaged ones were replaced."""
        self.tally = self.counted()
        with store_errors(self.path):
            self._set("committed", str(self.tally))

    def rows(self, figure: str | None = None) -> Iterator[StoredCell]:
        """All rows, unchecked, ordered by figure and id."""
        query = f"SELECT {COLUMNS} FROM cells" + (" WHERE figure = ?" if figure else "") + " ORDER BY figure, id"
        with store_errors(self.path):
            yield from map(self._parsed, self._db.execute(query, (figure,) if figure else ()))

    def get(self, ids: Iterable[str]) -> Iterator[StoredCell]:
        """The rows of these cells that are stored, in this order."""
        waiting = iter(ids)
        while chunk := list(itertools.islice(waiting, CHUNK)):
            query = f"SELECT {COLUMNS} FROM cells WHERE id IN ({', '.join('?' * len(chunk))})"
            with store_errors(self.path):
                found = {values[0]: self._parsed(values) for values in self._db.execute(query, chunk)}
            yield from (found[id] for id in chunk if id in found)

    def _parsed(self, values: Sequence[Any]) -> StoredCell:
        if (row := parsed(values)) is None:
            raise StoreDamaged(f"{self.path}: row {values[0]!r} holds other types than attnlab writes")
        return row

    def record(self, row: StoredCell) -> dict[str, Any]:
        """A row for reading: cell, figure, provenance, parameters, results; verified, arrays loaded."""
        problem = row.problem(self.arrays)
        try:
            if not problem:
                return row.results(self.arrays)
        except ValueError as error:
            problem = str(error)
        raise StoreDamaged(
            f"{self.path}: cell {row.id[:12]} of {row.figure} is damaged: {problem}."
            f" 'attnlab store salvage {self.path} NEW' keeps the good cells; the others are then computed again"
        )

    def copy_to(self, target: Path) -> None:
        """SQLite's own copy of all rows committed so far, while a driver may be writing; arrays are not included."""
        with store_errors(target), contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copied:
            self._db.backup(copied)
            # the copy is whole without a log, which a file marked as open would be asked for
            copied.execute("UPDATE meta SET value = '' WHERE key = 'open'")
            # one file without a log beside it, so that it can be renamed
            copied.execute("PRAGMA journal_mode = DELETE")


def _stored_tally(db: sqlite3.Connection) -> Tally:
    found = db.execute("SELECT value FROM meta WHERE key = 'committed'").fetchone()
    return Tally.parse(found[0]) if found else Tally()
