"""What a claim measures: a statistic of the records, named by its kind, clustered by the independent unit.

A *quantity* is one number for each replicate: :func:`of` a column, or a function of the records of one replicate.
A *statistic* defines how the replicates are combined, and so which interval is right:

>>> print(ratio_of_means(of("error", model="rfmlp"), of("error", model="rfa")))
ratio of means: error[model=rfmlp] / error[model=rfa]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlab.common.composed import Exponential, Magnitude, Shifted
from attnlab.common.intervals import LogRatio, Measured, Middle, Replicates
from attnlab.common.kinds import (
    ByUnit,
    Counted,
    Derived,
    Deterministic,
    Each,
    Event,
    FunctionOfMeans,
    OverSettings,
    Proportion,
    Statistic,
)
from attnlab.common.quantities import (
    FEWEST,
    INSTANCE,
    MOST,
    REPLICATE,
    Column,
    Number,
    Quantity,
    Slope,
    Unit,
    describe,
    known,
    of,
)
from attnlab.common.records import CONFIDENCE, Estimate, Records

__all__ = [
    "FEWEST",
    "INSTANCE",
    "MOST",
    "Column",
    "Statistic",
    "absolute",
    "counted",
    "decay",
    "deterministic",
    "difference",
    "each",
    "estimate",
    "function_of_means",
    "geometric_mean",
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

counted, function_of_means, deterministic = Counted, FunctionOfMeans, Deterministic


def mean(quantity: Quantity, *, unit: Unit = REPLICATE) -> ByUnit:
    """The mean over independent units, with Student's interval."""
    return ByUnit("mean", (quantity,), Replicates, describe(quantity), unit)


def median(quantity: Quantity, *, unit: Unit = REPLICATE) -> ByUnit:
    """The median over independent units, between order statistics."""
    return ByUnit("median", (quantity,), Middle, describe(quantity), unit)


def geometric_mean(above: Quantity, below: Quantity | None = None, *, unit: Unit = REPLICATE) -> ByUnit:
    """The geometric mean of a quantity (or of a ratio of two) over units, with Student's interval of the logarithm."""
    quantities = (above,) if below is None else (above, below)
    text = " / ".join(map(describe, quantities))
    return ByUnit("geometric mean", quantities, _geometric, text, unit)


def difference(first: Quantity, second: Number, *, unit: Unit = REPLICATE) -> ByUnit:
    """The mean of first - second, paired within units."""
    text = f"{describe(first)} - {describe(second)}"
    return ByUnit("paired difference", (first, second), _paired, text, unit)


def ratio_of_means(
    above: Number | Sequence[Number], below: Number | Sequence[Number], *, unit: Unit = REPLICATE
) -> ByUnit:
    """A ratio of means (or of products of means), paired within units, with Student's interval of the logarithm."""
    tops, bottoms = (tuple(x) if isinstance(x, Sequence) else (x,) for x in (above, below))
    # products of means as a sum of signed logarithms, see LogRatio
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


def proportion_of(
    column: Column,
    *,
    equals: Any = True,
    above: float | None = None,
    below: float | None = None,
    unit: Unit = INSTANCE,
) -> Proportion:
    """The share of rows in which a column has this value or passes this bound (Clopper-Pearson).

    Rows of one unit, by default one planted instance, may depend on each other.
    """
    return Proportion(column, Event(equals, above, below), unit)


def each(part: Statistic, *names: str) -> Each:
    """A statistic at each setting of some parameters, for :func:`largest` and :func:`smallest`."""
    return Each(part, names)


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


def _geometric(above: np.ndarray, below: np.ndarray | float = 1.0) -> Measured:
    # the logarithm of the ratio in each unit: what both quantities share there cancels before the spread is taken
    return Exponential(Replicates(np.log(above) - np.log(below)))


def _paired(first: np.ndarray, second: np.ndarray) -> Measured:
    return Replicates(first - second)


def estimate(statistic: Statistic, records: Records) -> Estimate:
    """The number with its interval at the usual level."""
    measured = statistic.measure(records)
    return Estimate(measured.value, *measured.interval(CONFIDENCE), measured.units)
