"""The cells that Dask workers are given: how many at a time, and which of them again after a worker died."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from attnlab.common.figure import Cell
from attnlab.lab.outcome import Answer, Outcome, killed

TRIES = 3
# Cells that take no time are sent in batches of about this many seconds, of at most so many cells.
BATCH_SECONDS, BATCH_CELLS = 0.1, 256


@dataclass
class Work:
    """Cells to compute, drawn when there is room for them.

    A cell that was on a worker when it died is tried again with the others, for most deaths have nothing to do with
    the cells (a job's time was over). After a second death it is tried alone: a third one is then its own doing.
    """

    fresh: Iterable[Cell]
    again: deque[Cell] = field(default_factory=deque)
    alone: deque[Cell] = field(default_factory=deque)
    deaths: Counter[str] = field(default_factory=Counter)
    seconds: float = 2 * BATCH_SECONDS  # no batches before the first cells were timed

    def __post_init__(self) -> None:
        self.fresh = iter(self.fresh)

    def batch(self) -> list[Cell]:
        """The next cells that may run beside others; cells that have seen a death are not put together."""
        if self.again:
            return [self.again.popleft()]
        size = min(BATCH_CELLS, max(1, int(BATCH_SECONDS / max(self.seconds, 1e-6))))
        return list(itertools.islice(self.fresh, size))

    def lonely(self) -> list[Cell]:
        """The next cell that must run alone."""
        return [self.alone.popleft()] if self.alone else []

    def returned(self, cells: Iterable[Cell]) -> None:
        """Take back cells that may or may not have run."""
        self.again.extendleft(cells)  # in front: they were drawn before those that wait

    def answered(self, cell: Cell, answer: Answer) -> Outcome:
        """The outcome of a cell; its time sets the size of the next batches."""
        # a mean that forgets: the next figure's cells may take another time
        self.seconds += (answer.seconds - self.seconds) / 16
        return Outcome(cell, answer, self.deaths[cell.id] + 1)

    def died(self, cells: list[Cell]) -> list[Outcome]:
        """After the worker of these cells died: what is settled by it."""
        settled = []
        for cell in cells:
            self.deaths[cell.id] += 1
            if self.deaths[cell.id] >= TRIES:
                settled.append(killed(cell, TRIES))
            else:
                (self.alone if self.deaths[cell.id] == TRIES - 1 else self.again).append(cell)
        return settled
