"""Where to look next in a plane: squares whose corners disagree are divided, the others are left alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from attnlab.common.validation import integer, real


class Node(NamedTuple):
    """A point of the finest grid, counted from the lower left corner."""

    i: int
    j: int


class Square(NamedTuple):
    """A square of the grid by its lower left corner and its side."""

    i: int
    j: int
    side: int

    def corners(self) -> list[Node]:
        """Its four corners."""
        return [Node(self.i + a, self.j + b) for a in (0, self.side) for b in (0, self.side)]

    def quarters(self) -> list[Square]:
        """Four squares of half the side."""
        half = self.side // 2
        return [Square(self.i + a, self.j + b, half) for a in (0, half) for b in (0, half)]

    def disagrees(self, side_of: Mapping[Node, bool]) -> bool:
        """Whether points on or inside it, corners of smaller neighbours among them, lie on both sides."""
        inside = {
            side
            for node, side in side_of.items()
            if 0 <= node.i - self.i <= self.side and 0 <= node.j - self.j <= self.side
        }
        return len(inside) > 1


def coarse(columns: int, rows: int, depth: int) -> list[Square]:
    """The squares to begin with; each can be divided ``depth`` times."""
    side = 2**depth
    return [Square(i * side, j * side, side) for i in range(columns) for j in range(rows)]


def divided(squares: list[Square], side_of: Mapping[Node, bool]) -> list[Square] | None:
    """Divide the largest squares that disagree; None when none is left."""
    mixed = [square for square in squares if square.side > 1 and square.disagrees(side_of)]
    if not mixed:
        return None
    # one size at a time: new points may show that a larger neighbour disagrees as well
    largest = max(square.side for square in mixed)
    parted = {square for square in mixed if square.side == largest}
    kept = [square for square in squares if square not in parted]
    return kept + [quarter for square in sorted(parted) for quarter in square.quarters()]


@dataclass(frozen=True)
class Axis:
    """A parameter between two values.

    Parameters
    ----------
    name : as in a cell: ``task.x``, ``learner.x``, ``n_train``, ``alpha``, or what your own function calls it.
    low, high : the ends.
    log : equal ratios instead of equal distances.
    whole : integers only.
    label : for the picture; by default the name.

    >>> Axis("task.d", 10, 1000, log=True, whole=True).value(1, 2)
    100
    """

    name: str
    low: float
    high: float
    log: bool = False
    whole: bool = False
    label: str = ""

    def __post_init__(self) -> None:
        real(f"low end of {self.name}", self.low, low=0 if self.log else -math.inf, open_low=self.log)
        real(f"high end of {self.name}", self.high, low=self.low, open_low=True)
        if self.whole:
            integer(f"low end of {self.name}", self.low), integer(f"high end of {self.name}", self.high)

    def value(self, position: float, count: int) -> float | int:
        """The value at ``position`` of ``count`` equal parts."""
        share = position / count
        value = self.low * (self.high / self.low) ** share if self.log else self.low + (self.high - self.low) * share
        # short decimals make short parameters; ten digits are far below any resolution
        return round(value) if self.whole else float(f"{value:.10g}")
