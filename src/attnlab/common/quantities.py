"""A quantity is one number for each independent unit: a column, a slope, or a function of the unit's records."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnlab.common.records import Records, Row

Unit = tuple[str, ...]
REPLICATE: Unit = ("seed",)
INSTANCE: Unit = ("instance",)  # a replicate at one setting of the parameters that enter the seed


class End(enum.Enum):
    """The end of a parameter's values, where they differ between scales."""

    SMALLEST = "smallest"
    LARGEST = "largest"

    def of(self, values: Sequence[Any]) -> Any:
        """The value at this end."""
        return values[0] if self is End.SMALLEST else values[-1]

    def __str__(self) -> str:
        return self.value


FEWEST, MOST = End.SMALLEST, End.LARGEST


@dataclass(frozen=True)
class Column:
    """The mean over the chosen rows of a replicate of a column, or of a function of the row.

    A function that gives None leaves the row out.
    """

    name: str | Callable[[Row], Any]
    where: tuple[tuple[str, Any], ...] = ()

    def rows(self, records: Records) -> Records:
        """The rows that are read."""
        chosen = records.where(**{name: value for name, value in self.where if not isinstance(value, End)})
        # after the exact values: the largest n is meant among the rows that are left
        for name, value in self.where:
            if isinstance(value, End):
                chosen = chosen.where(**{name: value.of(chosen.values(name))})
        if not callable(self.name):
            return chosen
        kept = tuple(row for row in chosen if self.name(row) is not None)
        if not kept:
            raise LookupError(f"no finished cell for {self}")
        return replace(chosen, rows=kept)

    def values(self, records: Records) -> list[Any] | np.ndarray:
        """The numbers of these rows."""
        return [self.name(row) for row in records] if callable(self.name) else records.column(self.name)

    def __call__(self, records: Records) -> float:
        """The mean."""
        return float(np.mean(self.values(self.rows(records))))

    def __str__(self) -> str:
        chosen = ", ".join(f"{name}={value}" for name, value in self.where)
        return f"{describe(self.name)}[{chosen}]" if chosen else describe(self.name)


def of(name: str | Callable[[Row], Any], **where: Any) -> Column:
    """A column of the records (or a function of a row), averaged over the rows of a replicate with these values.

    A value :data:`FEWEST` or :data:`MOST` stands for the smallest or largest that there is.
    """
    return Column(name, tuple(where.items()))


@dataclass(frozen=True)
class Known:
    """A number without noise, such as a prediction, beside one that is measured: computed once, from all records."""

    quantity: Quantity | float

    def __call__(self, records: Records) -> float:
        """The number."""
        return float(self.quantity(records)) if callable(self.quantity) else float(self.quantity)

    def __str__(self) -> str:
        return f"known {describe(self.quantity)}"


Quantity = Column | Callable[[Records], float]
Number = Quantity | Known
known = Known


@dataclass(frozen=True)
class Slope:
    """The least-squares slope of one column against another within a replicate."""

    y: Column
    x: str
    log: bool = True
    sign: int = 1

    def rows(self, records: Records) -> Records:
        """The rows that are read."""
        return self.y.rows(records)

    def __call__(self, records: Records) -> float:
        """The slope."""
        chosen = self.rows(records)
        x, y = (np.asarray(part, dtype=float) for part in (chosen.column(self.x), self.y.values(chosen)))
        if len(np.unique(x)) < 2:
            raise LookupError(f"a slope needs two values of {self.x}")
        x, y = (np.log(x), np.log(y)) if self.log else (x, y)
        # with sign = -1 the exponent of a decay comes out positive
        return float(self.sign * np.polyfit(x, y, 1)[0])

    def __str__(self) -> str:
        return f"log {self.y} against log {self.x}" if self.log else f"{self.y} against {self.x}"


def describe(quantity: Any) -> str:
    """What a quantity is, in words: its own text, or the first line of its docstring."""
    if inspect.isfunction(quantity):
        return (quantity.__doc__ or quantity.__name__).strip().splitlines()[0].rstrip(".")
    return str(quantity)


def by_unit(quantity: Quantity, records: Records, unit: Unit) -> Mapping[Hashable, float]:
    """One number for each unit; units in which rows are missing are left out."""
    groups = (quantity.rows(records) if isinstance(quantity, Column | Slope) else records).groups(unit)
    if isinstance(quantity, Column | Slope):
        # A failed or unfinished cell would shift the mean over settings, so its replicate does not count.
        full = max(len(rows) for rows in groups.values())
        groups = {key: rows for key, rows in groups.items() if len(rows) == full}
    found: dict[Hashable, float] = {}
    for key, rows in groups.items():
        try:
            found[key] = float(quantity(rows))
        except LookupError:
            continue
    return found


def rows_of(quantity: Number, records: Records) -> Iterable[Row]:
    """The rows that a quantity reads; all of them, where a function reads them."""
    inner = quantity.quantity if isinstance(quantity, Known) else quantity
    return inner.rows(records) if isinstance(inner, Column | Slope) else records
