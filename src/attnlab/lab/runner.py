"""From figures to records: compute the cells that are missing, commit each, read the table back."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.common.claim import Verdict
from attnlab.common.figure import Cell, Figure
from attnlab.common.records import Records
from attnlab.lab import registry
from attnlab.lab.engine import Engine, SerialEngine
from attnlab.lab.errors import LabError
from attnlab.lab.progress import Reporter, silent
from attnlab.lab.store import Store, StoredCell


@dataclass(frozen=True)
class Result:
    """A figure at one scale with what is known of it; ``old`` counts the cells that came from other code."""

    figure: Figure
    scale: str
    records: Records
    verdicts: list[Verdict]
    cells: list[StoredCell]
    missing: int
    stream: int = 1
    old: int = 0

    @property
    def failed(self) -> list[StoredCell]:
        """The cells that ended in an error."""
        return [cell for cell in self.cells if cell.status == "failed"]

    @property
    def versions(self) -> list[dict[str, str]]:
        """What computed the cells: each combination of versions and code fingerprint once."""
        return [json.loads(text) for text in sorted({_provenance(cell) for cell in self.cells})]

    @property
    def seconds(self) -> float:
        """Time spent computing, over all cells."""
        return sum(cell.seconds for cell in self.cells)

    def draw(self) -> Any:
        """The picture, a matplotlib Figure."""
        return self.figure.draw(self.records)


@dataclass(frozen=True)
class Shard:
    """Part ``index`` of ``count``, for job arrays without a driver; a cell's part depends on its id alone.

    >>> Shard.parse("2/4")
    Shard(index=2, count=4)
    """

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``i/n`` with 1 <= i <= n."""
        index, slash, count = text.partition("/")
        if not (slash and index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
            raise ValueError(f"shard must be i/n with 1 <= i <= n, for example 2/8, got {text!r}")
        return cls(int(index), int(count))

    def holds(self, cell: Cell) -> bool:
        """Whether the cell belongs to this part."""
        return int(cell.id[:15], 16) % self.count == self.index - 1


def _provenance(cell: StoredCell) -> str:
    return json.dumps({**json.loads(cell.versions), "code": cell.code}, sort_keys=True)


def missing_cells(
    figures: Iterable[Figure],
    scale: str,
    store: Store,
    *,
    retry_failed: bool = False,
    keep_old: bool = False,
    shard: Shard | None = None,
    stream: int = 1,
) -> list[Cell]:
    """The cells still to be computed; those of other code than the present count as missing unless ``keep_old``."""
    known = store.status()
    settled = {"done"} if retry_failed else {"done", "failed"}

    def is_missing(cell: Cell) -> bool:
        status, code = known.get(cell.id, ("", ""))
        return status not in settled or not (keep_old or code == cell.code)

    cells = [cell for figure in figures for cell in figure.cells(scale, stream) if is_missing(cell)]
    return [cell for cell in cells if shard is None or shard.holds(cell)]


def compute_cells(
    cells: Sequence[Cell], store: Store, engine: Engine, *, report: Reporter = silent, fail_fast: bool = False
) -> None:
    """Compute and commit; with ``fail_fast`` the first failed cell ends the run."""
    for outcome in engine.outcomes(cells):
        store.put(outcome)
        report(outcome)
        if fail_fast and outcome.status == "failed":
            raise LabError(f"cell {outcome.cell.id[:12]} of {outcome.cell.figure} failed:\n{outcome.error}")


def collect(figure: Figure, scale: str, store: Store, *, keep_old: bool = False, stream: int = 1) -> Result:
    """Read a figure's finished cells back and decide its claims; with ``keep_old`` those of other code too."""
    wanted = {cell.id: cell for cell in figure.cells(scale, stream)}
    stored = store.get(figure.name, wanted)
    is_old = {id: row.code != wanted[id].code for id, row in stored.items()}
    cells = [stored[id] for id in wanted if id in stored and (keep_old or not is_old[id])]
    records = Records.of(store.record(row) for row in cells if row.status == "done")
    old = sum(is_old[row.id] for row in cells)
    verdicts = figure.decide(records, scale)
    return Result(figure, scale, records, verdicts, cells, len(wanted) - len(cells), stream, old)


def run(
    figure: str | Figure,
    scale: str = "quick",
    *,
    engine: Engine | None = None,
    store: str | os.PathLike[str] | None = None,
    set: Mapping[str, Any] | None = None,
    keep_old: bool = False,
) -> Result:
    """Run one figure and return its records, verdicts and drawing.

    Parameters
    ----------
    figure : a name such as ``"slr.manifold"``, or a Figure of your own.
    scale : ``"quick"`` or ``"paper"``.
    engine : serial by default.
    store : file in which results are kept and found again; by default nothing is kept.
    set : knobs to change, for example ``{"d": 64, "seeds": 10}``.
    keep_old : use stored results of other code than the present instead of computing them again.
    """
    chosen = registry.select([figure])[0] if isinstance(figure, str) else figure
    chosen = chosen.changed(scale, set or {})
    with (
        tempfile.TemporaryDirectory() as folder,
        Store(store or Path(folder) / "results.sqlite", writable=True) as opened,
    ):
        missing = missing_cells([chosen], scale, opened, keep_old=keep_old)
        compute_cells(missing, opened, engine or SerialEngine())
        return collect(chosen, scale, opened, keep_old=keep_old)
