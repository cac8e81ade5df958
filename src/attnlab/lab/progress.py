"""Progress of long work: a bar with rate and time left on a terminal, one plain line a minute in a log."""

from __future__ import annotations

import datetime
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from attnlab.lab.durations import CORES
from attnlab.lab.outcome import Outcome

LOG_SECONDS = 60.0


Reporter = Callable[[Outcome], None]


def silent(outcome: Outcome) -> None:
    """Say nothing."""


# The stated times are worth as much as so many seconds of measured cells when the pace of this machine is judged.
STATED_SECONDS = 30.0


@dataclass
class TimeLeft:
    """Seconds to the end: what the cells to come take, over the cells computed side by side.

    Counting cells alone would mislead: a cell of one figure may take a thousand times that of another. What a figure
    that has begun still takes is the geometric mean of two guesses: its finished cells, continued, which is wrong where
    large sizes come last or first, and its stated time at the pace of the other figures, less what it took so far.

    Parameters
    ----------
    expected : stated seconds of one cell of each figure; zero if not known.
    missing : number of cells to come of each figure.
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
        stated = sum(done * self._stated[name] for name, done in self._done.items())
        # seconds of cells in a second of the clock: the workers that were busy
        side_by_side = taken / max(time.monotonic() - self._start, 1e-9)
        return sum(self._rest(name, taken, stated) for name in self.missing) / max(side_by_side, 1e-9)

    def _rest(self, figure: str, all_taken: float, all_stated: float) -> float:
        """Seconds that all cells to come of a figure take, one after another."""
        count, done, taken, one = (at[figure] for at in (self.missing, self._done, self._taken, self._stated))
        pace = (STATED_SECONDS + all_taken - taken) / (STATED_SECONDS + all_stated - done * one)
        by_pace = pace * one * count - taken
        if not done:
            return by_pace
        continued = taken / done * (count - done)
        # a statement that is used up was too low
        return math.sqrt(continued * max(by_pace, continued * done / count))


def _rounded(seconds: float) -> str:
    return "less than a minute" if seconds < 60 else f"about {seconds / 60:.0f} min"


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
                f"{self.done}/{self.total} cells, {self.failed} failed, {rate:.2g}/s, {_rounded(left)} left",
                highlight=False,
            )


@contextmanager
def reporting(
    console: Console, missing: Mapping[str, int], expected: Mapping[str, float], quiet: bool
) -> Iterator[Reporter]:
    """The reporter that suits the output: nothing, a bar, or lines.

    ``missing`` counts the cells to come of each figure, ``expected`` is the stated time of a figure on two cores over
    its cells, in seconds: half of what one cell takes.
    """
    total = sum(missing.values())
    # the statement counts two cores: one cell alone takes twice as long
    clock = TimeLeft({name: CORES * seconds for name, seconds in expected.items()}, missing)
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
