"""Progress of long work: a bar with rate and time left on a terminal, one plain line a minute in a log."""

from __future__ import annotations

import datetime
import time
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


@dataclass
class TimeLeft:
    """Seconds to the end, from the expected time of a cell of each figure and how fast such time has passed so far.

    Counting cells alone would mislead: a cell of one figure may take a thousand times that of another.
    """

    expected: Mapping[str, float]
    missing: Mapping[str, int]
    done: float = 0.0

    def __post_init__(self) -> None:
        self._start = time.monotonic()
        known = [seconds for seconds in self.expected.values() if seconds > 0]
        # A figure that does not say how long it takes counts as an average one.
        self._unknown = sum(known) / len(known) if known else 1.0
        self._total = sum(count * self._of(name) for name, count in self.missing.items())

    def _of(self, figure: str) -> float:
        return self.expected.get(figure, 0.0) or self._unknown

    def after(self, figure: str) -> float:
        """Count a cell of this figure; the seconds that are left."""
        self.done += self._of(figure)
        return (time.monotonic() - self._start) * (self._total - self.done) / self.done


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
        now, left = time.monotonic(), self.clock.after(outcome.cell.figure)
        if now - self._last >= LOG_SECONDS:
            self._last = now
            rate = self.done / (now - self._start)
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
                left = f"about {datetime.timedelta(seconds=round(clock.after(outcome.cell.figure)))} left"
                progress.update(bar, advance=1, description=outcome.cell.figure, rate=rate, left=left)

            yield advance
