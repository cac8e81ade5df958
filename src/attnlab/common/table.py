"""Rows of a table too large for a dictionary each: values in columns, a row is a place in them."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

_ABSENT = object()
# Different words of a column that are kept once; beyond that it is taken for one whose words do not repeat.
SHARED = 1000
CODES = {float: "d", int: "q"}


class Repeated:
    """One value in every row: most parameters of a sweep."""

    def __init__(self, value: Any, count: int) -> None:
        self.value, self.count = value, count

    def fits(self, value: Any) -> bool:
        """Whether it is the same value; a zero may have another sign."""
        if not self.count or value is self.value:
            return True
        # 1, 1.0 and True are equal, and not the same value of a record
        if type(value) not in (int, float, str) or type(value) is not type(self.value):
            return False
        return bool(value == self.value) and (value != 0 or str(value) == str(self.value))

    def append(self, value: Any) -> None:
        """Once more."""
        self.value, self.count = value, self.count + 1

    def __getitem__(self, place: int) -> Any:
        return self.value

    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(self.value, self.count)


class Hashes:
    """Words of 64 hexadecimal digits, such as the ids of cells, in 32 bytes each."""

    def __init__(self) -> None:
        self.content = bytearray()

    def fits(self, value: Any) -> bool:
        """Whether it is such a word."""
        if type(value) is not str or len(value) != 64:
            return False
        try:
            # capital letters and spaces would be read and not come back
            return bytes.fromhex(value).hex() == value
        except ValueError:
            return False

    def append(self, value: str) -> None:
        """The word of the next row."""
        self.content += bytes.fromhex(value)

    def __getitem__(self, place: int) -> str:
        return self.content[32 * place : 32 * (place + 1)].hex()

    def __iter__(self) -> Iterator[str]:
        return (self[place] for place in range(len(self.content) // 32))


class Column:
    """One value for each row, as narrow as its values allow: one for all, numbers side by side, hashes, objects."""

    def __init__(self, rows: int) -> None:
        self.values: Any = Repeated(_ABSENT, rows)
        self._words: dict[str, str] = {}

    def append(self, value: Any) -> None:
        """The value of the next row."""
        if not _fits(self.values, value):
            self.values = _widened(self.values, value)
        if isinstance(value, str) and isinstance(self.values, list) and len(self._words) < SHARED:
            # equal words from different rows are different objects: one of them is kept for all
            value = self._words.setdefault(value, value)
        self.values.append(value)


def _fits(values: Any, value: Any) -> bool:
    if isinstance(values, array):
        # an integer may be beyond 64 bits
        return CODES.get(type(value)) == values.typecode and (type(value) is float or -(2**63) <= value < 2**63)
    return isinstance(values, list) or bool(values.fits(value))


def _widened(values: Any, value: Any) -> Any:
    """The same values in the narrowest form that also takes another one."""
    if isinstance(values, Repeated):
        # the value that was repeated must fit as well; otherwise the column becomes a list of objects
        for form in (array("d"), array("q"), Hashes()):
            if _fits(form, value) and _fits(form, values.value):
                for same in values:
                    form.append(same)
                return form
    return list(values)


class Columns:
    """A table that grows row by row."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self.columns: dict[str, Column] = {}
        self.count = 0
        for row in rows:
            self.append(row)

    def append(self, row: Mapping[str, Any]) -> None:
        """Take a row in."""
        # a name that appears late was absent in all rows before
        for name in row:
            if name not in self.columns:
                self.columns[name] = Column(self.count)
        for name, column in self.columns.items():
            column.append(row.get(name, _ABSENT))
        self.count += 1


class PackedRow(Mapping[str, Any]):
    """One row of a table, read as the dictionary it was made from; ``place`` is where it is there."""

    __slots__ = ("_table", "place")

    def __init__(self, table: Columns, place: int) -> None:
        self._table, self.place = table, place

    def __getitem__(self, name: str) -> Any:
        value = self._table.columns[name].values[self.place]
        if value is _ABSENT:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name, column in self._table.columns.items() if column.values[self.place] is not _ABSENT)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    # rows are distinguished by their place, as dictionaries are by their identity
    __hash__ = None  # type: ignore[assignment]


class PackedRows(Sequence[PackedRow]):
    """Rows of a table, each made when it is asked for: an object for each of a million takes 90 MB."""

    def __init__(self, table: Columns, places: Sequence[int]) -> None:
        self.table, self.places = table, places

    def take(self, chosen: Iterable[int]) -> PackedRows:
        """Those at these positions."""
        return PackedRows(self.table, array("q", (self.places[i] for i in chosen)))

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[PackedRow]:
        return (PackedRow(self.table, place) for place in self.places)

    @overload
    def __getitem__(self, index: int) -> PackedRow: ...
    @overload
    def __getitem__(self, index: slice) -> PackedRows: ...
    def __getitem__(self, index: int | slice) -> PackedRow | PackedRows:
        if isinstance(index, slice):
            return PackedRows(self.table, self.places[index])
        return PackedRow(self.table, self.places[index])
