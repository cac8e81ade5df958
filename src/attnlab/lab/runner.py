"""From figures to records: compute the cells that are missing, commit each, read the table back."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.common.claim import Verdict
from attnlab.common.figure import Cell, Figure
from attnlab.common.records import Records
from attnlab.common.words import many
from attnlab.lab import registry
from attnlab.lab.engine import Engine, SerialEngine
from attnlab.lab.errors import LabError
from attnlab.lab.progress import Reporter, silent
from attnlab.lab.store import Store, StoredCell
from attnlab.lab.store.file import CHUNK

# Rows that a result keeps beside its records.
KEPT = 10_000


@dataclass(frozen=True, repr=False)
class Result:
    """A figure at one scale with what is known of it; ``old`` counts the cells that came from other code."""

    figure: Figure
    scale: str
    records: Records
    verdicts: list[Verdict]
    made: Provenance
    missing: int
    stream: int = 1
    old: int = 0

    @property
    def cells(self) -> list[StoredCell]:
        """The rows behind the records; of a result beyond ``KEPT`` rows they are in the store only."""
        if self.made.count > KEPT:
            raise LabError(f"this result has {self.made.count} cells; read their rows from the store")
        return self.made.cells

    @property
    def count(self) -> int:
        """How many cells are there, finished or failed."""
        return self.made.count

    @property
    def failed(self) -> list[StoredCell]:
        """The cells that ended in an error."""
        return self.made.failed

    @property
    def versions(self) -> list[dict[str, str]]:
        """What computed the cells: each combination of versions and code fingerprint once."""
        return [{**json.loads(versions), "code": code} for versions, code in sorted(self.made.versions)]

    @property
    def seconds(self) -> float:
        """Time spent computing, over all cells."""
        return self.made.seconds

    @functools.cached_property
    def unconverged(self) -> str:
        """How many rows are of a learner or a theory that did not converge, in words; empty where there is none."""
        missed = sum(row.get("converged") is False for row in self.records)
        return f"{missed} of {many(len(self.records), 'row')} did not converge" if missed else ""

    def draw(self) -> Any:
        """The picture, a matplotlib Figure; below it how many rows did not converge.

        A figure of means draws theirs hollow; bars, pixels and distributions have no such form.
        """
        canvas = self.figure.draw(self.records)
        # below the canvas: the style saves with a tight frame, which grows by the text
        if note := self.unconverged:
            canvas.text(0.995, -0.01, note, ha="right", va="top", fontsize="small", color="0.4")
        return canvas

    def to_pandas(self) -> Any:
        """The records as a DataFrame, a row for each cell; needs the extra ``pandas``."""
        from attnlab.lab import frames

        return frames.records(self)

    def __repr__(self) -> str:
        states = ", ".join(f"{v.claim.id} {v.status}" for v in self.verdicts)
        return f"<{self.figure.name}, {self.scale} scale, {many(self.count, 'cell')}{': ' + states if states else ''}>"

    def _repr_html_(self) -> str:
        from attnlab.lab import frames

        return frames.summary(self)


@dataclass
class Provenance:
    """What the rows of a result have in common, gathered as they pass: there may be more than the memory holds."""

    count: int = 0
    seconds: float = 0.0
    cells: list[StoredCell] = field(default_factory=list)
    failed: list[StoredCell] = field(default_factory=list)
    versions: set[tuple[str, str]] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)
    digest: Any = field(default_factory=hashlib.sha256)

    def add(self, row: StoredCell) -> None:
        """Take a row into account."""
        self.count += 1
        self.seconds += row.seconds
        self.versions.add((row.versions, row.code))
        self.devices.add(row.device)
        # rows pass in the order of the figure's cells, so that equal results have an equal digest
        self.digest.update(row.payload_hash.encode())
        if self.count <= KEPT:
            self.cells.append(row)
        else:
            self.cells.clear()  # a part of the rows could be taken for all of them
        if row.status == "failed":
            self.failed.append(row)


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
        # ids are hashes: their first 60 bits spread the cells evenly over the parts
        return int(cell.id[:15], 16) % self.count == self.index - 1


@dataclass(frozen=True)
class Missing(Iterable[Cell]):
    """The cells still to be computed, made and looked for in the store as they are asked for."""

    figures: Sequence[Figure]
    scale: str
    store: Store
    settled: frozenset[str]
    keep_old: bool
    shard: Shard | None
    stream: int

    def __iter__(self) -> Iterator[Cell]:
        return (cell for figure in self.figures for cell in self.of(figure))

    def of(self, figure: Figure) -> Iterator[Cell]:
        """Those of one figure."""
        wanted = iter(figure.cells(self.scale, self.stream))
        while chunk := list(itertools.islice(wanted, CHUNK)):
            # one query for many cells; only one chunk of a figure of millions is held
            known = self.store.status(figure.name, [cell.id for cell in chunk])
            for cell in chunk:
                status, code = known.get(cell.id, ("", ""))
                if status in self.settled and (self.keep_old or code == cell.code):
                    continue
                if self.shard is None or self.shard.holds(cell):
                    yield cell

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        """How many there are of each figure."""
        # kept, because a run makes fewer of them: its total is the number at the start
        return {figure.name: sum(1 for _ in self.of(figure)) for figure in self.figures}

    def __len__(self) -> int:
        return sum(self.counts.values())


def missing_cells(
    figures: Iterable[Figure],
    scale: str,
    store: Store,
    *,
    retry_failed: bool = False,
    keep_old: bool = False,
    shard: Shard | None = None,
    stream: int = 1,
) -> Missing:
    """The cells still to be computed; those of other code than the present count as missing unless ``keep_old``."""
    settled = frozenset({"done"} if retry_failed else {"done", "failed"})
    return Missing(list(figures), scale, store, settled, keep_old, shard, stream)


def compute_cells(
    cells: Iterable[Cell], store: Store, engine: Engine, *, report: Reporter = silent, fail_fast: bool = False
) -> None:
    """Compute and commit; with ``fail_fast`` the first failed cell ends the run."""
    for outcome in engine.outcomes(cells):
        store.put(outcome)  # before it is reported: what was said to be finished must survive a kill
        report(outcome)
        if fail_fast and outcome.status == "failed":
            raise LabError(f"cell {outcome.cell.id[:12]} of {outcome.cell.figure} failed:\n{outcome.answer.error}")


def collect(figure: Figure, scale: str, store: Store, *, keep_old: bool = False, stream: int = 1) -> Result:
    """Read a figure's finished cells back and decide its claims; with ``keep_old`` those of other code too."""
    wanted = old = 0
    made = Provenance()

    def finished() -> Iterator[dict[str, Any]]:
        nonlocal wanted, old
        cells = iter(figure.cells(scale, stream))
        while codes := {cell.id: cell.code for cell in itertools.islice(cells, CHUNK)}:
            wanted += len(codes)
            for row in store.get(codes):
                is_old = row.code != codes[row.id]
                # left out before it is counted: to the result it is a missing cell
                if is_old and not keep_old:
                    continue
                old += is_old
                made.add(row)
                if row.status == "done":
                    yield store.record(row)

    records = Records.of(finished())
    verdicts = figure.decide(records, scale)
    return Result(figure, scale, records, verdicts, made, wanted - made.count, stream, old)


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
