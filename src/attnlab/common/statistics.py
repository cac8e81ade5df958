"""What a claim measures: a statistic of the records, named by its kind, clustered by the independent unit.

A *quantity* is one number for each replicate: :func:`of` a column, or a function of the records of one replicate.
A *statistic* says how the replicates are combined, and so which interval is right:

>>> print(ratio_of_means(of("error", model="rfmlp"), of("error", model="rfa")))
ratio of means: error[model=rfmlp] / error[model=rfa]
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from attnlab.common.composed import Extreme, Magnitude, Shifted
from attnlab.common.intervals import Fixed, Jackknife, LogRatio, Measured, Middle, Replicates, Share
from attnlab.common.quantities import (
    INSTANCE,
    REPLICATE,
    Column,
    Known,
    Number,
    Quantity,
    Slope,
    Unit,
    by_unit,
    describe,
    known,
    of,
    rows_of,
)
from attnlab.common.records import CONFIDENCE, Estimate, Records, Row

__all__ = [
    "Column",
    "Statistic",
    "absolute",
    "decay",
    "deterministic",
    "difference",
    "estimate",
    "function_of_means",
    "known",
    "largest",
    "mean",
    "median",
    "of",
    "proportion_of",
    "ratio_of_means",
    "shifted",
    "slope",
    "smallest",
]


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
        units = sorted(set.intersection(*(set(column) for column in noisy)), key=repr)
        if not units:
            raise LookupError(f"no replicate holds all of {self.text}")
        columns = iter(noisy)
        return self.infer(*(self._column(q, units, columns, records) for q in self.quantities))

    def _column(
        self, quantity: Number, units: list[Hashable], columns: Iterator[Mapping[Hashable, float]], records: Records
    ) -> np.ndarray:
        if isinstance(quantity, Known):
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
class Proportion:
    """The share of rows with an event, clustered by unit."""

    event: Column
    equals: Any
    trials: str | None
    unit: Unit

    def measure(self, records: Records) -> Measured:
        """The share with its interval."""
        chosen = self.event.rows(records)
        if self.trials is not None:
            hits, total = (round(sum(chosen.column(name))) for name in (self.event.name, self.trials))
            # Independent trials are units of their own.
            return Share(np.repeat([1.0, 0.0], [hits, total - hits]), np.ones(total))
        groups = [rows.column(self.event.name) == self.equals for rows in chosen.groups(self.unit).values()]
        return Share(np.array([np.sum(g) for g in groups], float), np.array([len(g) for g in groups], float))

    def rows(self, records: Records) -> Iterable[Row]:
        """The rows that are read."""
        return self.event.rows(records)

    def __str__(self) -> str:
        event = str(self.event) if self.equals is True or self.trials else f"{self.event} is {self.equals}"
        trials = f" of {self.trials}" if self.trials else ""
        return f"proportion: {event}{trials}, for each {' and '.join(self.unit)}"


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
class FunctionOfMeans:
    """A smooth function of all records, repeated without one replicate each."""

    value: Callable[[Records], float]

    def measure(self, records: Records) -> Measured:
        """The value with the jackknife's interval, over the replicates that every repeated setting has."""
        seeds = records.complete_replicates()
        chosen = records.only(seeds)
        return Jackknife(
            float(self.value(chosen)), np.array([self.value(chosen.without_seed(seed)) for seed in seeds], dtype=float)
        )

    def rows(self, records: Records) -> Iterable[Row]:
        """All rows."""
        return records

    def __str__(self) -> str:
        return f"function of means: {describe(self.value)}"


@dataclass(frozen=True)
class Deterministic:
    """A value without noise, and why there is none."""

    value: Callable[[Records], float]
    why: str

    def measure(self, records: Records) -> Measured:
        """The value."""
        return Fixed(float(self.value(records)))

    def rows(self, records: Records) -> Iterable[Row]:
        """All rows."""
        return records

    def __str__(self) -> str:
        return f"deterministic ({self.why}): {describe(self.value)}"


def mean(quantity: Quantity, *, unit: Unit = REPLICATE) -> ByUnit:
    """The mean over independent units, with Student's interval."""
    return ByUnit("mean", (quantity,), Replicates, describe(quantity), unit)


def median(quantity: Quantity, *, unit: Unit = REPLICATE) -> ByUnit:
    """The median over independent units, between order statistics."""
    return ByUnit("median", (quantity,), Middle, describe(quantity), unit)


def difference(first: Quantity, second: Number, *, unit: Unit = REPLICATE) -> ByUnit:
    """The mean of first - second, paired within units."""
    text = f"{describe(first)} - {describe(second)}"
    return ByUnit("paired difference", (first, second), _paired, text, unit)


def ratio_of_means(
    above: Number | Sequence[Number], below: Number | Sequence[Number], *, unit: Unit = REPLICATE
) -> ByUnit:
    """A ratio of means (or of products of means), paired within units, with Student's interval of the logarithm."""
    tops, bottoms = (tuple(x) if isinstance(x, Sequence) else (x,) for x in (above, below))
    powers = np.repeat([1.0, -1.0], [len(tops), len(bottoms)])
    text = " / ".join(" * ".join(map(describe, side)) for side in (tops, bottoms))
    return ByUnit("ratio of means", (*tops, *bottoms), lambda *x: LogRatio(np.array(x), powers), text, unit)


def slope(y: Column, x: str, *, log: bool = True, unit: Unit = REPLICATE) -> ByUnit:
    """The mean over units of the least-squares slope of y against x, of their logarithms unless ``log`` is False."""
    line = Slope(y, x, log)
    return ByUnit("slope", (line,), Replicates, str(line), unit)


def decay(y: Column, x: str) -> ByUnit:
    """The exponent with which y falls as x grows: minus the slope of the logarithms."""
    line = Slope(y, x, sign=-1)
    return ByUnit("decay exponent", (line,), Replicates, str(line))


def proportion_of(event: Column, *, equals: Any = True, trials: str | None = None, unit: Unit = INSTANCE) -> Proportion:
    """The share of rows in which a column has this value, clustered by planted instance (Clopper-Pearson).

    With ``trials``, the column counts successes among as many independent trials as that other column says.
    """
    return Proportion(event, equals, trials, unit)


def largest(parts: Sequence[Statistic] | Callable[[Records], Sequence[Statistic]]) -> OverSettings:
    """The largest of several statistics, one for each setting."""
    return OverSettings(parts, largest=True)


def smallest(parts: Sequence[Statistic] | Callable[[Records], Sequence[Statistic]]) -> OverSettings:
    """The smallest of several statistics, one for each setting."""
    return OverSettings(parts, largest=False)


def absolute(part: Statistic) -> Derived:
    """The absolute value of a statistic."""
    return Derived(part, Magnitude, f"absolute {part}")


def shifted(part: Statistic, offset: float) -> Derived:
    """A statistic plus a known number."""
    return Derived(part, lambda measured: Shifted(measured, offset), f"{part}, shifted by {offset:+g}")


def function_of_means(value: Callable[[Records], float]) -> FunctionOfMeans:
    """A smooth function of several means, by the jackknife over replicates; not for extremes or quantiles."""
    return FunctionOfMeans(value)


def deterministic(value: Callable[[Records], float], *, why: str) -> Deterministic:
    """A value that repeats exactly; ``why`` says so for the reader."""
    return Deterministic(value, why)


def _paired(first: np.ndarray, second: np.ndarray) -> Measured:
    return Replicates(first - second)


def estimate(statistic: Statistic, records: Records) -> Estimate:
    """The number with its interval at the usual level."""
    measured = statistic.measure(records)
    return Estimate(measured.value, *measured.interval(CONFIDENCE), measured.units)
