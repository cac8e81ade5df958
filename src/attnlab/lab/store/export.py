"""Finished cells as a flat table in CSV or Parquet, one row after another: the table may be larger than the memory."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from attnlab.common.records import Records, Row
from attnlab.lab.errors import StoreUnwritable, UsageError
from attnlab.lab.store.file import Store

# A spreadsheet takes text that begins with one of these for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


class StoredTable:
    """The finished cells of a store, or of one figure, as flat rows; read from the file each time it is iterated."""

    def __init__(self, store: Store, figure: str | None = None) -> None:
        self.store, self.figure = store, figure

    def __iter__(self) -> Iterator[Row]:
        for row in self.store.rows(self.figure):
            if row.status == "done":
                yield from Records.of([self.store.record(row)])


def export_csv(rows: Iterable[Row], path: str | os.PathLike[str]) -> int:
    """Write flat rows, passing over them twice; the same bytes whatever the history of the run. Counts the rows."""
    names, count = columns(rows), 0
    try:
        # a lone surrogate has no UTF-8 form; lines end alike on every system
        with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(map(_safe, names))
            for count, row in enumerate(rows, 1):  # noqa: B007  # the count is wanted after the loop
                writer.writerow([_safe(_plain(row.get(name))) for name in names])
    except OSError as error:
        raise StoreUnwritable(f"cannot write {path}: {error.strerror}") from error
    return count


def export_parquet(rows: Iterable[Row], path: str | os.PathLike[str]) -> int:
    """Write flat rows as Parquet; a column of mixed types becomes text."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise UsageError("--parquet needs the extra: pip install 'attnlab[parquet]'") from error
    table = [{name: _plain(value) for name, value in row.items()} for row in rows]
    arrays = {}
    for name in columns(rows):
        values = [row.get(name) for row in table]
        kinds = {type(value) for value in values if value is not None}
        # whole numbers among floats are numbers still
        mixed = len(kinds) > 1 and kinds != {int, float}
        arrays[name] = pa.array([None if v is None else str(v) for v in values] if mixed else values)
    try:
        pq.write_table(pa.table(arrays), path)
    except OSError as error:
        raise StoreUnwritable(f"cannot write {path}: {error.strerror or error}") from error
    return len(table)


def columns(rows: Iterable[Row]) -> list[str]:
    """``cell`` and ``figure`` first, the others by name; ``code`` and ``version`` say what computed each row."""
    names = {name for row in rows for name in row} - {"cell", "figure"}
    return ["cell", "figure", *sorted(names)]


def _plain(value: Any) -> Any:
    """A value for one field; arrays are given by their shape."""
    if hasattr(value, "shape"):
        return f"array{value.shape}"
    return json.dumps(value) if isinstance(value, dict | list) else value


def _safe(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
