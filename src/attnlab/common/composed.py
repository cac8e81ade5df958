"""Intervals composed of others: extremes over settings, size, exponential and shift of a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.common.intervals import Bounds, Measured, exp


@dataclass(frozen=True)
class Extreme:
    r"""The largest (or smallest) of several measured settings.

    The upper bound of a maximum is the largest of the parts' upper bounds at the same level: it fails only if that of
    the truly largest part fails. The lower bound holds if those of all m parts do, each at level 1 - (1 - level)/m.
    """

    parts: Sequence[Measured]
    largest: bool = True

    @property
    def value(self) -> float:
        """The extreme value over the settings."""
        return (max if self.largest else min)(part.value for part in self.parts)

    @property
    def units(self) -> int:
        """Replicates of the part that has fewest."""
        return min(part.units for part in self.parts)

    def interval(self, level: float) -> Bounds:
        """One side of the extreme part, the other shared out over all parts."""
        plain = [part.interval(level) for part in self.parts]
        # Bonferroni's bound: parts that share replicates are not independent
        strict = [part.interval(1 - (1 - level) / len(self.parts)) for part in self.parts]
        if self.largest:
            return max(low for low, _ in strict), max(high for _, high in plain)
        # min x = -max(-x): the two ends change their roles
        return min(low for low, _ in plain), min(high for _, high in strict)


@dataclass(frozen=True)
class _Image:
    """A function of a measured number, an increasing one unless the interval is written anew."""

    part: Measured

    def at(self, x: float) -> float:
        """The function."""
        raise NotImplementedError

    @property
    def value(self) -> float:
        """The function at the part's value."""
        return self.at(self.part.value)

    @property
    def units(self) -> int:
        """Replicates of the part."""
        return self.part.units

    def interval(self, level: float) -> Bounds:
        """The function at both ends of the part's interval."""
        low, high = self.part.interval(level)
        return self.at(low), self.at(high)


class Magnitude(_Image):
    """The absolute value of a measured number."""

    def at(self, x: float) -> float:
        """The size."""
        return abs(x)

    def interval(self, level: float) -> Bounds:
        """The sizes of the part's interval."""
        low, high = self.part.interval(level)
        sizes = sorted((abs(low), abs(high)))
        # where zero is inside, the part left of it is folded onto the right: every size from 0 up is possible
        return (0.0 if low <= 0 <= high else sizes[0]), sizes[1]


@dataclass(frozen=True)
class Shifted(_Image):
    """A measured number plus a constant."""

    offset: float

    def at(self, x: float) -> float:
        """The sum."""
        return x + self.offset


class Exponential(_Image):
    """The exponential of a measured number."""

    def at(self, x: float) -> float:
        """The exponential."""
        return exp(x)
