"""The simplest engine, and what all of them have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from attnlab.common.figure import Cell
from attnlab.lab.outcome import Outcome, compute


@runtime_checkable
class Engine(Protocol):
    """Yields the outcome of each cell as it is finished, in any order; cells are drawn as they are needed."""

    def outcomes(self, cells: Iterable[Cell]) -> Iterator[Outcome]:
        """Compute the cells."""
        ...


@dataclass(frozen=True)
class SerialEngine:
    """One cell after another in this process."""

    def outcomes(self, cells: Iterable[Cell]) -> Iterator[Outcome]:
        """Compute the cells in their order."""
        return map(compute, cells)
