"""Progress of long work: a bar with rate and time left on a terminal, one plain line a minute in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from attnlab.lab.outcome import Outcome

LOG_SECONDS = 60.0


Reporter = Callable[[Outcome], None]


def silent(outcome: Outcome) -> None:
    """Say nothing."""


@dataclass
class LogLines:
    """One line a minute, for logs of batch jobs."""

    console: Console
    total: int
    done: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        self._start = self._last = time.monotonic()

    def __call__(self, outcome: Outcome) -> None:
        """Count, and speak once a minute."""
        self.done += 1
        self.failed += outcome.status == "failed"
        now = time.monotonic()
        if now - self._last >= LOG_SECONDS:
            self._last = now
            rate = self.done / (now - self._start)
            left = (self.total - self.done) / rate
            self.console.print(
                f"{self.done}/{self.total} cells, {self.failed} failed, {rate:.2g}/s, about {left / 60:.0f} min left",
                highlight=False,
            )


@contextmanager
def reporting(console: Console, total: int, quiet: bool) -> Iterator[Reporter]:
    """The reporter that suits the output: nothing, a bar, or lines."""
    if quiet or total == 0:
        yield silent
    elif not console.is_terminal:
        yield LogLines(console, total)
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        start = time.monotonic()
        with Progress(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("cells", total=total, rate="")

            def advance(outcome: Outcome) -> None:
                done = progress.tasks[bar].completed + 1
                rate = f"{done / (time.monotonic() - start):.2g}/s"
                progress.update(bar, advance=1, description=outcome.cell.figure, rate=rate)

            yield advance
