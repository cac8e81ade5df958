"""Cells that depend on the results of other cells: each round is committed, and found again in the store."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.common.figure import Figure, Grid
from attnlab.common.records import Records
from attnlab.lab.engine import DaskEngine, Engine, SerialEngine
from attnlab.lab.request import run_spec
from attnlab.lab.runner import Result, collect, compute_cells, missing_cells
from attnlab.lab.store import Store, StoredCell

Notify = Callable[[str], None]


def silent(line: str) -> None:
    """Print nothing."""


@dataclass
class Measure:
    """Computes grids when they are asked for.

    The same grids are the same cells, so a run that was stopped finds them in the store and goes on.
    """

    name: str
    store: Store
    engine: Engine
    notify: Notify
    workers: contextlib.ExitStack
    _connected: bool = False

    def __call__(self, grids: Sequence[Grid], about: str = "", run: Callable[..., Any] = run_spec) -> Result:
        """The results on these grids; what is missing is computed and committed."""
        # as a figure, so that a round is committed and collected like any other
        figure = Figure(self.name, self.name, "", "", {"quick": grids}, run, _not_drawn, shape=["learner", "n_train"])
        missing = missing_cells([figure], "quick", self.store)
        if missing:
            self.notify(f"{len(missing)} cells" + f": {about}" * bool(about))
            self._connect()
            compute_cells(missing, self.store, self.engine)
        return collect(figure, "quick", self.store)  # all of them, also those of earlier rounds

    def _connect(self) -> None:
        """Open Dask's workers once for all rounds, when the first cell needs them."""
        if isinstance(self.engine, DaskEngine) and not self._connected:
            client = self.workers.enter_context(self.engine.connect())
            # the engine enters and leaves its client in every round; this one stays open until the last
            self.engine, self._connected = DaskEngine(lambda: contextlib.nullcontext(client)), True


def _not_drawn(records: Records) -> Any:
    raise NotImplementedError("a round of an adaptive run is not drawn by itself")


@contextlib.contextmanager
def measuring(
    name: str,
    *,
    store: str | os.PathLike[str] | None = None,
    engine: Engine | None = None,
    notify: Notify = silent,
) -> Iterator[Measure]:
    """Open the store (a temporary one if none is named) and the engine."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Store(store or Path(folder) / "results.sqlite", writable=True) as opened,
        contextlib.ExitStack() as workers,
    ):
        yield Measure(name, opened, engine or SerialEngine(), notify, workers)


def last_line(cell: StoredCell) -> str:
    """The error of a cell without its traceback."""
    return cell.error.strip().splitlines()[-1] if cell.error.strip() else "no reason given"
