"""Progress of long work: a bar with rate and time left on a terminal, one plain line a minute in a log."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from attnlab.lab.outcome import Outcome

LOG_SECONDS = 60.0


Reporter = Callable[[Outcome], None]


def silent(outcome: Outcome) -> None:
    """Say nothing."""


# So many cells of a figure are worth as much as its stated time when its cells to come are judged.
PRIOR_CELLS = 3


@dataclass
class TimeLeft:
    """Seconds to the end: cells to come of each figure, times what one takes, over the cells computed side by side.

    Counting cells alone would mislead: a cell of one figure may take a thousand times that of another. A figure's
    stated time is scaled by what the others took against theirs, and gives way to its own cells as they are measured.
    """

    expected: Mapping[str, float]
    missing: Mapping[str, int]

    def __post_init__(self) -> None:
        self._start = time.monotonic()
        known = [seconds for seconds in self.expected.values() if seconds > 0]
        # A figure that does not say how long it takes counts as an average one.
        unknown = sum(known) / len(known) if known else 1.0
        self._stated = {name: self.expected.get(name, 0.0) or unknown for name in self.missing}
        self._done: Counter[str] = Counter()
        self._taken: dict[str, float] = dict.fromkeys(self.missing, 0.0)

    def count(self, figure: str, seconds: float) -> None:
        """Take note of a finished cell."""
        self._done[figure] += 1
        self._taken[figure] += seconds

    def left(self) -> float:
        """The seconds that are left, after at least one cell."""
        taken = sum(self._taken.values())
        pace = taken / sum(count * self._stated[name] for name, count in self._done.items())
        work = sum((count - self._done[name]) * self._one(name, pace) for name, count in self.missing.items())
        return work * (time.monotonic() - self._start) / max(taken, 1e-9)

    def _one(self, figure: str, pace: float) -> float:
        """Seconds of one more cell of a figure."""
        prior = PRIOR_CELLS * pace * self._stated[figure]
        return (self._taken[figure] + prior) / (self._done[figure] + PRIOR_CELLS)


@dataclass
class LogLines:
    """One line a minute, for logs of batch jobs."""

    console: Console
    total: int
    clock: TimeLeft
    done: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        self._start = self._last = time.monotonic()

    def __call__(self, outcome: Outcome) -> None:
        """Count, and print once a minute."""
        self.done += 1
        self.failed += outcome.status == "failed"
        self.clock.count(outcome.cell.figure, outcome.answer.seconds)
        now = time.monotonic()
        if now - self._last >= LOG_SECONDS:
            self._last = now
            rate, left = self.done / (now - self._start), self.clock.left()
            self.console.print(
                f"{self.done}/{self.total} cells, {self.failed} failed, {rate:.2g}/s, about {left / 60:.0f} min left",
                highlight=False,
            )


@contextmanager
def reporting(
    console: Console, missing: Mapping[str, int], expected: Mapping[str, float], quiet: bool
) -> Iterator[Reporter]:
    """The reporter that suits the output: nothing, a bar, or lines.

    ``missing`` counts the cells to come of each figure, ``expected`` the seconds of one cell.
    """
    total, clock = sum(missing.values()), TimeLeft(expected, missing)
    if quiet or total == 0:
        yield silent
    elif not console.is_terminal:
        yield LogLines(console, total, clock)
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        start = time.monotonic()
        with Progress(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("cells", total=total, rate="", left="")

            def advance(outcome: Outcome) -> None:
                done = progress.tasks[bar].completed + 1
                rate = f"{done / (time.monotonic() - start):.2g}/s"
                clock.count(outcome.cell.figure, outcome.answer.seconds)
                left = f"about {datetime.timedelta(seconds=round(clock.left()))} left"
                progress.update(bar, advance=1, description=outcome.cell.figure, rate=rate, left=left)

            yield advance
