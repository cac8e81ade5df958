"""The tables of a store and how its file is opened: nothing in the file can act by itself."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from attnlab.lab.errors import StoreDamaged, StoreUnwritable, UsageError

SCHEMA = 3
TABLES = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)",
    "cells": (
        "CREATE TABLE cells (id TEXT PRIMARY KEY, figure TEXT NOT NULL, params TEXT NOT NULL, stream INTEGER NOT NULL,"
        " status TEXT NOT NULL CHECK (status IN ('done', 'failed')), record TEXT NOT NULL, arrays TEXT NOT NULL,"
        " error TEXT NOT NULL, payload_hash TEXT NOT NULL, code TEXT NOT NULL, versions TEXT NOT NULL,"
        " device TEXT NOT NULL, seconds REAL NOT NULL, tries INTEGER NOT NULL, finished TEXT NOT NULL)"
    ),
    # A resumed run asks for these columns of all cells of a figure: the index answers without reading the records.
    "cells_by_figure": "CREATE INDEX cells_by_figure ON cells (figure, id, status, code)",
}


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open a file as ``ro``, ``rw`` or ``rwc``; SQL inside it may call nothing that has effects."""
    address = f"{path.resolve().as_uri()}?mode={mode}"
    db = sqlite3.connect(address, uri=True, isolation_level=None)
    try:
        # SQLite looks at the file at the first query only. A folder that cannot be written has no room for the shared
        # memory of a log; where there is no log either, the file is complete as it stands.
        db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        db.close()
        if mode != "ro" or log_file(path).exists():
            raise
        db = sqlite3.connect(f"{address}&immutable=1", uri=True, isolation_level=None)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA busy_timeout = 30000")
    return db


def create(db: sqlite3.Connection) -> None:
    """The tables of an empty file, in one transaction."""
    db.execute("BEGIN IMMEDIATE")
    if not db.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()[0]:
        for statement in TABLES.values():
            db.execute(statement)
        db.execute("INSERT INTO meta VALUES ('schema', ?)", (str(SCHEMA),))
    db.execute("COMMIT")


def check(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose tables are not exactly ours: a trigger or a view would answer in their place."""
    found = db.execute("SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    tables = {name: sql for name, kind, sql in found}
    if tables.get("meta") == TABLES["meta"]:
        version = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        if version is None or version[0] != str(SCHEMA):
            raise UsageError(f"{path} has schema {version and version[0]}; this attnlab reads schema {SCHEMA}")
    for name, kind, _ in found:
        if tables[name] != TABLES.get(name):
            raise StoreDamaged(f"{path} holds a {kind} {name!r} that attnlab did not make; it is not opened")
    if missing := TABLES.keys() - tables.keys():
        raise StoreDamaged(f"{path} is no store of attnlab: it has no {', '.join(sorted(missing))}")


def refuse_truncated(path: Path) -> None:
    """A file shorter than its header states has lost pages; while there is a log, the header may be ahead of it."""
    log = log_file(path)
    if log.exists() and log.stat().st_size:
        return
    size = path.stat().st_size
    with open(path, "rb") as file:
        header = file.read(100)
    # 65536 does not fit the two bytes of the page size and is written as 1.
    page = int.from_bytes(header[16:18], "big")
    expected = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    if header.startswith(b"SQLite format 3") and size < expected:
        raise sqlite3.DatabaseError(f"it has {size} bytes, its header states {expected}")


def log_file(path: Path) -> Path:
    """SQLite's write-ahead log, which holds the last commits until they are copied into the file."""
    real = path.resolve()
    return real.with_name(real.name + "-wal")


@contextlib.contextmanager
def store_errors(path: Path, intact: Callable[[], str] = str) -> Iterator[None]:
    """Say in one line what happened to the store, and what ``intact`` finds out about the cells committed before.

    By default nothing is found out: ``str()`` is empty.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreUnwritable(f"cannot use the store {path}: {error}{intact()}") from error
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(
            f"the store {path} is damaged: {error}. 'attnlab store salvage {path} NEW' saves what is readable"
        ) from error
    except OSError as error:
        raise StoreUnwritable(f"cannot write to {path.parent}: {error.strerror}{intact()}") from error
