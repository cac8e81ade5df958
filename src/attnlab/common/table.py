"""Rows of a table too large for a dictionary each: values in columns, a row is a place in them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any

_ABSENT = object()
# Different values of a column that are kept once; beyond that it is taken for one whose values do not repeat.
SHARED = 1000


class Column:
    """One value for each row: numbers side by side as long as all are of one kind, otherwise objects."""

    def __init__(self, rows: int) -> None:
        self.values: Any = [_ABSENT] * rows
        self._known: dict[Any, Any] = {}

    def append(self, value: Any) -> None:
        """The value of the next row."""
        code = {float: "d", int: "q"}.get(type(value), "")
        if not len(self.values) and code:
            self.values = array(code)
        if isinstance(self.values, array):
            try:
                if self.values.typecode == code:
                    return self.values.append(value)
            except OverflowError:  # an integer beyond 64 bits
                pass
            self.values = list(self.values)
        if isinstance(value, str) and len(self._known) < SHARED:
            value = self._known.setdefault(value, value)
        self.values.append(value)
        return None


class Columns:
    """A table that grows row by row."""

    def __init__(self) -> None:
        self.columns: dict[str, Column] = {}
        self.rows = 0

    def append(self, row: Mapping[str, Any]) -> PackedRow:
        """Take a row in; the answer looks like it."""
        for name in row:
            if name not in self.columns:
                self.columns[name] = Column(self.rows)
        for name, column in self.columns.items():
            column.append(row.get(name, _ABSENT))
        self.rows += 1
        return PackedRow(self, self.rows - 1)


class PackedRow(Mapping[str, Any]):
    """One row of a table, read as the dictionary it was made from."""

    __slots__ = ("_place", "_table")

    def __init__(self, table: Columns, place: int) -> None:
        self._table, self._place = table, place

    def __getitem__(self, name: str) -> Any:
        value = self._table.columns[name].values[self._place]
        if value is _ABSENT:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        place = self._place
        return (name for name, column in self._table.columns.items() if column.values[place] is not _ABSENT)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    # rows are told apart by identity, as dictionaries are
    __hash__ = None  # type: ignore[assignment]
