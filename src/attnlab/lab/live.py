"""The report while a run goes on: written again each time a figure is finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attnlab.common.figure import Figure
from attnlab.lab.outcome import Outcome
from attnlab.lab.page import report
from attnlab.lab.runner import Result, collect
from attnlab.lab.store import Store


class LivePage:
    """The page of a run, with the figures of earlier runs that are in the same store.

    Parameters
    ----------
    figures : those of this run.
    beside : figures of earlier runs to show too; those without a stored cell are left out.
    """

    def __init__(
        self, figures: Sequence[Figure], beside: Iterable[Figure], scale: str, store: Store, out: Path, keep_old: bool
    ) -> None:
        self.scale, self.store, self.out, self.keep_old = scale, store, out, keep_old
        own = {figure.name: figure for figure in figures}
        stored = store.figures()
        # in the place that the registry gives it, but with the settings of this run
        self.figures = [own.get(f.name, f) for f in beside if f.name in own or f.name in stored]
        self.figures += [figure for figure in figures if figure not in self.figures]
        self.own = set(own)
        self.left: Counter[str] = Counter()
        self.results: dict[str, Result] = {}

    def start(self, cells: Mapping[str, int]) -> None:
        """Take note of the cells to come of each figure; what needs none is shown at once."""
        self.left = Counter({name: count for name, count in cells.items() if count})
        if self.left:
            self.write()

    def __call__(self, outcome: Outcome) -> None:
        """Count a cell; the last one of a figure renews the page."""
        name = outcome.cell.figure
        self.left[name] -= 1
        if not self.left[name]:
            self.results.pop(name, None)  # what was shown of it is from before its last cells
            self.write()

    def write(self) -> Path:
        """Write the page from what is stored; figures whose cells are still to come are named as waiting."""
        waiting = [name for name, left in self.left.items() if left]
        for figure in self.figures:
            if figure.name not in self.results and figure.name not in waiting:
                self.results[figure.name] = self._collect(figure)
        shown = [self.results[f.name] for f in self.figures if f.name in self.results and self.results[f.name].count]
        return report(shown, self.out, waiting=waiting)

    def _collect(self, figure: Figure) -> Result:
        # Results of other code are shown and marked, unless this run has computed them again.
        keep_old = self.keep_old or figure.name not in self.own
        return collect(figure, self.scale, self.store, keep_old=keep_old)
