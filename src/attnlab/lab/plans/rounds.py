"""Cells that depend on the results of cells: round after round, each committed, and replayed from the store."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.lab.engine import DaskEngine, Engine, SerialEngine
from attnlab.lab.runner import Result, collect, compute_cells, missing_cells
from attnlab.lab.store import Store, StoredCell

Say = Callable[[str], None]


def quietly(line: str) -> None:
    """Say nothing."""


@dataclass
class Rounds:
    """Computes points of an experiment when they are asked for.

    The same questions lead to the same cells, so a run that was stopped finds its answers in the store and goes on.

    Parameters
    ----------
    name : under which the cells are stored.
    run : the function of a cell.
    seeds : replicates of every point.
    shared : parameters, or owners of parameters (``learner``), that do not enter the seed.
    """

    name: str
    run: Callable[[Params, np.random.SeedSequence], Record]
    seeds: int
    shared: Sequence[str]
    store: Store
    engine: Engine
    say: Say = quietly
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _held: bool = False

    def __call__(self, points: Sequence[Mapping[str, Any]], about: str = "") -> Result:
        """The results at these points, at every replicate; what is missing is computed and committed."""
        figure = self._figure(points)
        missing = missing_cells([figure], "quick", self.store)
        if missing:
            self.say(f"{len(missing)} cells" + f": {about}" * bool(about))
            self._hold_cluster()
            compute_cells(missing, self.store, self.engine)
        return collect(figure, "quick", self.store)

    def _figure(self, points: Sequence[Mapping[str, Any]]) -> Figure:
        names = {name for point in points for name in point}
        return Figure(
            name=self.name,
            title=self.name,
            paper="",
            shows="",
            scales={"quick": [Grid(point, self.seeds) for point in points]},
            run=self.run,
            draw=_nothing,
            shared=sorted(name for name in names if name in self.shared or name.split(".")[0] in self.shared),
            shape=["learner", "n_train"],
        )

    def _hold_cluster(self) -> None:
        """Open Dask's workers once for all rounds, when the first cell needs them."""
        if isinstance(self.engine, DaskEngine) and not self._held:
            client = self._open.enter_context(self.engine.connect())
            self.engine, self._held = DaskEngine(lambda: contextlib.nullcontext(client)), True

    def close(self) -> None:
        """Let the workers go."""
        self._open.close()


def _nothing(records: Records) -> Any:
    raise NotImplementedError("a round of an adaptive run is not drawn by itself")


@contextlib.contextmanager
def rounds(
    name: str,
    run: Callable[[Params, np.random.SeedSequence], Record],
    *,
    seeds: int,
    shared: Sequence[str] = (),
    store: str | os.PathLike[str] | None = None,
    engine: Engine | None = None,
    say: Say = quietly,
) -> Iterator[Rounds]:
    """Open the store (a temporary one if none is named) and the engine for as long as rounds are run."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Store(store or Path(folder) / "results.sqlite", writable=True) as opened,
    ):
        held = Rounds(name, run, seeds, shared, opened, engine or SerialEngine(), say)
        try:
            yield held
        finally:
            held.close()


def last_line(cell: StoredCell) -> str:
    """What stopped a cell, without its traceback."""
    return cell.error.strip().splitlines()[-1] if cell.error.strip() else "no reason given"
