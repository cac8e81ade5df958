"""The kinds of statistics: how the numbers of the independent units are combined, and which interval follows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from attnlab.common.composed import Extreme
from attnlab.common.intervals import Fixed, Jackknife, Measured, Share
from attnlab.common.quantities import REPLICATE, Column, Known, Number, Unit, by_unit, describe, rows_of
from attnlab.common.records import Records, Row


@runtime_checkable
class Statistic(Protocol):
    """What a claim measures; ``str`` describes it."""

    def measure(self, records: Records) -> Measured:
        """The number with its interval."""

    def rows(self, records: Records) -> Iterable[Row]:
        """The rows that are read."""


@dataclass(frozen=True)
class ByUnit:
    """One number for each independent unit and each quantity, combined by ``infer``."""

    kind: str
    quantities: tuple[Number, ...]
    infer: Callable[..., Measured]
    text: str
    unit: Unit = REPLICATE

    def measure(self, records: Records) -> Measured:
        """The number with its interval. A unit counts if all quantities are complete in it."""
        noisy = [by_unit(q, records, self.unit) for q in self.quantities if not isinstance(q, Known)]
        # sorted: rounding must not depend on the order in which rows were stored
        units = sorted(set.intersection(*(set(column) for column in noisy)), key=repr)
        if not units:
            raise LookupError(f"no replicate holds all of {self.text}")
        columns = iter(noisy)
        return self.infer(*(self._column(q, units, columns, records) for q in self.quantities))

    def _column(
        self, quantity: Number, units: list[Hashable], columns: Iterator[Mapping[Hashable, float]], records: Records
    ) -> np.ndarray:
        if isinstance(quantity, Known):
            # from all records: taken by unit it would add to the spread
            return np.full(len(units), quantity(records))
        column = next(columns)
        return np.array([column[unit] for unit in units])

    def rows(self, records: Records) -> Iterable[Row]:
        """The rows that are read; all of them, where a function reads them."""
        return [row for q in self.quantities for row in rows_of(q, records)]

    def __str__(self) -> str:
        unit = "" if self.unit == REPLICATE else f", for each {' and '.join(self.unit)}"
        return f"{self.kind}: {self.text}{unit}"


@dataclass(frozen=True)
class Event:
    """What is counted among the rows of a column: one value, or those above or below a bound."""

    equals: Any = True
    above: float | None = None
    below: float | None = None

    def seen(self, value: Any) -> bool:
        """Whether a row has it."""
        if self.above is not None:
            return bool(value > self.above)
        return bool(value < self.below) if self.below is not None else bool(value == self.equals)

    def __str__(self) -> str:
        if self.above is not None:
            return f" > {self.above:g}"
        if self.below is not None:
            return f" < {self.below:g}"
        return "" if self.equals is True else f" is {self.equals}"


@dataclass(frozen=True)
class Proportion:
    """The share of rows with an event, clustered by unit."""

    column: Column
    event: Event
    unit: Unit

    def measure(self, records: Records) -> Measured:
        """The share with its interval."""
        groups = self.column.rows(records).groups(self.unit).values()
        seen = [[self.event.seen(value) for value in self.column.values(rows)] for rows in groups]
        return Share(np.array([sum(g) for g in seen], float), np.array([len(g) for g in seen], float))

    def rows(self, records: Records) -> Iterable[Row]:
        """The rows that are read."""
        return self.column.rows(records)

    def __str__(self) -> str:
        return f"proportion: {self.column}{self.event}, for each {' and '.join(self.unit)}"


@dataclass(frozen=True)
class Counted:
    """The share of successes that a column counts among as many independent trials as another column gives."""

    column: Column
    trials: str

    def measure(self, records: Records) -> Measured:
        """The share with its interval."""
        chosen = self.column.rows(records)
        hits, total = round(sum(self.column.values(chosen))), round(sum(chosen.column(self.trials)))
        # Independent trials are units of their own.
        return Share(np.repeat([1.0, 0.0], [hits, total - hits]), np.ones(total))

    def rows(self, records: Records) -> Iterable[Row]:
        """The rows that are read."""
        return self.column.rows(records)

    def __str__(self) -> str:
        return f"proportion: {self.column} of {self.trials}"


@dataclass(frozen=True)
class Within:
    """A statistic of the rows with some values."""

    part: Statistic
    where: tuple[tuple[str, Any], ...]

    def measure(self, records: Records) -> Measured:
        """The number with its interval."""
        return self.part.measure(records.where(**dict(self.where)))

    def rows(self, records: Records) -> Iterable[Row]:
        """The rows of the part among these."""
        return self.part.rows(records.where(**dict(self.where)))


@dataclass(frozen=True)
class Each:
    """The same statistic at each setting that its rows have of some parameters."""

    part: Statistic
    names: tuple[str, ...]

    def __call__(self, records: Records) -> Sequence[Statistic]:
        """One statistic for each setting."""
        read = Records(tuple(self.part.rows(records)))
        found = itertools.product(*(read.values(name) for name in self.names))
        settings = [tuple(zip(self.names, values, strict=True)) for values in found]
        # the product gives a fixed order; a grid that is no full product lacks some of the settings
        there = {tuple(row[name] for name in self.names) for row in read}
        return [Within(self.part, setting) for setting in settings if tuple(v for _, v in setting) in there]

    def __str__(self) -> str:
        return f"{self.part}, at each {' and '.join(self.names)}"


@dataclass(frozen=True)
class OverSettings:
    """The extreme of several statistics, one for each setting."""

    parts: Sequence[Statistic] | Callable[[Records], Sequence[Statistic]]
    largest: bool

    def _parts(self, records: Records) -> Sequence[Statistic]:
        return self.parts(records) if callable(self.parts) else self.parts

    def measure(self, records: Records) -> Measured:
        """The extreme with its interval."""
        return Extreme([part.measure(records) for part in self._parts(records)], self.largest)

    def rows(self, records: Records) -> Iterable[Row]:
        """The rows of all parts."""
        return [row for part in self._parts(records) for row in part.rows(records)]

    def __str__(self) -> str:
        text = describe(self.parts) if callable(self.parts) else "; ".join(map(str, self.parts))
        return f"{'largest' if self.largest else 'smallest'} over settings: {text}"


@dataclass(frozen=True)
class Derived:
    """A monotone or folding function of another statistic, which carries over to its interval."""

    part: Statistic
    make: Callable[[Measured], Measured]
    text: str

    def measure(self, records: Records) -> Measured:
        """The derived number with its interval."""
        return self.make(self.part.measure(records))

    def rows(self, records: Records) -> Iterable[Row]:
        """The rows of the part."""
        return self.part.rows(records)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _OfAll:
    """A function of all records."""

    value: Callable[[Records], float]

    def rows(self, records: Records) -> Iterable[Row]:
        """All rows."""
        return records


class FunctionOfMeans(_OfAll):
    """A smooth function of several means, by the jackknife over replicates; not for extremes or quantiles."""

    def measure(self, records: Records) -> Measured:
        """The value with the jackknife's interval, over the replicates that every repeated setting has."""
        # a replicate that some settings lack would change only some of the means when it is left out
        seeds = records.complete_replicates()
        chosen = records.only(seeds)
        return Jackknife(
            float(self.value(chosen)), np.array([self.value(chosen.without_seed(seed)) for seed in seeds], dtype=float)
        )

    def __str__(self) -> str:
        return f"function of means: {describe(self.value)}"


@dataclass(frozen=True)
class Deterministic(_OfAll):
    """A value that repeats exactly; ``why`` gives the reason."""

    why: str

    def measure(self, records: Records) -> Measured:
        """The value."""
        return Fixed(float(self.value(records)))

    def __str__(self) -> str:
        return f"deterministic ({self.why}): {describe(self.value)}"
