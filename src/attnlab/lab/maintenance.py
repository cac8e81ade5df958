"""Looking after stores: verify, merge, salvage, export."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from attnlab.common.records import Records
from attnlab.lab.errors import UsageError
from attnlab.lab.payload import ArrayFolder
from attnlab.lab.store import COLUMNS, Store, StoredCell


def verify(store: Store) -> list[tuple[StoredCell, str]]:
    """The damaged cells, each with what is wrong."""
    return [(row, problem) for row in store.rows() if (problem := row.problem(store.arrays))]


def merge(target: Store, sources: Iterable[Store]) -> dict[str, int]:
    """Copy the good rows of several stores into one.

    A finished cell beats a failed one, the first finished one stays. The answer counts rows copied, damaged rows
    left out, and cells that two stores finished with different results (other hardware may round differently).
    """
    counts = {"copied": 0, "damaged": 0, "different": 0}
    known = {row.id: row for row in target.rows()}
    for source in sources:
        for row in source.rows():
            if row.problem(source.arrays):
                counts["damaged"] += 1
                continue
            here = known.get(row.id)
            if here is None or here.status == "failed":
                copy(row, source.arrays, target)
                known[row.id] = row
                counts["copied"] += 1
            elif row.status == "done" and row.payload_hash != here.payload_hash:
                counts["different"] += 1
    return counts


def salvage(damaged: str | os.PathLike[str], target: Store) -> dict[str, int]:
    """Copy every row of a damaged file that can still be read and is what was written."""
    counts = {"copied": 0, "lost": 0}
    folder = ArrayFolder.beside(Path(damaged))
    for row in _readable_rows(Path(damaged)):
        if row is None or row.problem(folder):
            counts["lost"] += 1
        else:
            copy(row, folder, target)
            counts["copied"] += 1
    return counts


def copy(row: StoredCell, folder: ArrayFolder, target: Store) -> None:
    """Take over a verified row with its arrays."""
    target.put_row(row, folder.read(row.id) if row.arrays else b"")


# No row is smaller: it carries two SHA-256 hashes, versions and a record.
SMALLEST_ROW = 256


def _readable_rows(path: Path) -> Iterator[StoredCell | None]:
    """Rows one by one by rowid; None for one that cannot be read. A damaged page costs only the rows on it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(sqlite3.connect(_padded(path, folder))) as db:
        try:
            db.execute("SELECT 1 FROM cells LIMIT 0")
        except sqlite3.DatabaseError as error:
            raise UsageError(f"nothing can be read from {path}: {error}") from error
        for rowid in range(1, path.stat().st_size // SMALLEST_ROW + 2):
            try:
                values = db.execute(f"SELECT {COLUMNS} FROM cells WHERE rowid = ?", (rowid,)).fetchone()
            except sqlite3.DatabaseError:
                yield None
                continue
            if values is not None:
                yield StoredCell(*values) if all(v is not None for v in values) else None


def _padded(path: Path, folder: str) -> Path:
    """A copy at the length its header states: SQLite reads nothing at all from a file that is too short."""
    copied = Path(folder) / path.name
    shutil.copy(path, copied)
    log = path.with_name(path.name + "-wal")
    if log.exists():
        shutil.copy(log, folder)
    with open(copied, "r+b") as file:
        header = file.read(100)
        page, pages = int.from_bytes(header[16:18], "big"), int.from_bytes(header[28:32], "big")
        file.truncate(max(copied.stat().st_size, page * pages))
    return copied


def table(records: Records) -> list[dict[str, Any]]:
    """Flat rows for export: cell, figure, parameters and results; arrays are given by their shape."""
    return [{name: _cell_text(value) for name, value in row.items()} for row in records]


def export_csv(rows: list[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Write flat rows; the same bytes whatever the history of the run."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns(rows), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def export_parquet(rows: list[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Write flat rows as Parquet; a column of mixed types becomes text."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise UsageError("--parquet needs the extra: pip install 'attnlab[parquet]'") from error
    arrays = {}
    for name in columns(rows):
        values = [row.get(name) for row in rows]
        kinds = {type(value) for value in values if value is not None}
        mixed = len(kinds) > 1 and kinds != {int, float}
        arrays[name] = pa.array([None if v is None else str(v) for v in values] if mixed else values)
    pq.write_table(pa.table(arrays), path)


def columns(rows: list[dict[str, Any]]) -> list[str]:
    """``cell`` and ``figure`` first, the others by name; ``code`` and ``version`` say what computed each row."""
    names = {name for row in rows for name in row} - {"cell", "figure"}
    return ["cell", "figure", *sorted(names)]


def _cell_text(value: Any) -> Any:
    if hasattr(value, "shape"):
        return f"array{value.shape}"
    return json.dumps(value) if isinstance(value, dict | list) else value
