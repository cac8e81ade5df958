"""A figure: a grid of cells, a function that runs one cell, a drawing, and the claims it must show."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.common.claim import Claim, Verdict
from attnlab.common.records import Records
from attnlab.common.seeds import cell_seed, digest
from attnlab.common.validation import integer, one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Params = Mapping[str, Any]
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Grid:
    """A product of parameters, repeated over ``seeds`` replicates. A list is an axis, anything else is fixed.

    >>> [dict(p) for p in Grid({"d": 4, "lam": [0.1, 0.9]}, seeds=1).points()]
    [{'d': 4, 'lam': 0.1, 'seed': 0}, {'d': 4, 'lam': 0.9, 'seed': 0}]
    """

    params: Mapping[str, Any]
    seeds: int = 1

    def points(self) -> Iterator[dict[str, Any]]:
        """All parameter settings, replicate by replicate."""
        axes = [value if isinstance(value, list) else [value] for value in self.params.values()]
        for seed in range(self.seeds):
            for point in itertools.product(*axes):
                yield dict(zip(self.params, point, strict=True)) | {"seed": seed}

    def changed(self, knobs: Mapping[str, Any]) -> Grid:
        """The same grid with some parameters (or ``seeds``) set to other values."""
        here = {name: value for name, value in knobs.items() if name in self.params}
        seeds = integer("seeds", knobs.get("seeds", self.seeds), low=1)
        return Grid({**self.params, **here}, seeds)


@dataclass(frozen=True)
class Cell:
    """One point of a figure's grid at one replicate; its numbers depend on ``params`` and ``seed`` only."""

    figure: str
    params: Params
    seed: np.random.SeedSequence
    id: str
    run: Callable[[Params, np.random.SeedSequence], Record]

    def __call__(self) -> Record:
        """Compute the cell."""
        return self.run(self.params, self.seed)


@dataclass(frozen=True)
class Figure:
    """A published experiment, or one of ours.

    Parameters
    ----------
    name : ``system.word``, as typed on the command line.
    title, paper, shows : what it is, where it comes from, and what one sees, each in a sentence.
    scales : for each scale (``quick``, ``paper``) the grids whose union is computed.
    run : ``(params, seed) -> record``, a module-level function. ``params`` holds the grid's names and ``seed`` (the
        replicate number); the second argument is the SeedSequence of the cell. The record's values are numbers,
        strings, lists and NumPy arrays; a list of dicts under ``rows`` becomes one row each.
    draw : ``Records -> matplotlib Figure``.
    claims : what the figure must show.
    shared : parameters that do not enter the seed: cells that differ only in these see the same data.
    shape : parameters that fix array shapes; cells are run in this order so that compiled code is reused.
    minutes : expected time on two cores, for each scale.
    requires : modules of an optional extra without which the figure is skipped, and the extra's name.
    version : raised when the meaning of a cell changes, so that stored results of the old meaning are not reused.
    """

    name: str
    title: str
    paper: str
    shows: str
    scales: Mapping[str, Sequence[Grid]]
    run: Callable[[Params, np.random.SeedSequence], Record]
    draw: Callable[[Records], Canvas]
    claims: Sequence[Claim] = ()
    shared: Sequence[str] = ()
    shape: Sequence[str] = ()
    minutes: Mapping[str, float] = field(default_factory=dict)
    requires: Mapping[str, str] = field(default_factory=dict)
    version: int = 1

    def knobs(self, scale: str) -> dict[str, Any]:
        """The parameters that can be changed at a scale, with their values."""
        one_of("scale", scale, self.scales)
        merged: dict[str, Any] = {}
        for grid in self.scales[scale]:
            for name, value in grid.params.items():
                merged.setdefault(name, value)
        return merged | {"seeds": max(grid.seeds for grid in self.scales[scale])}

    def changed(self, scale: str, knobs: Mapping[str, Any]) -> Figure:
        """The same figure with knobs set; unknown names are refused with the nearest known one."""
        known = self.knobs(scale)
        for name in knobs:
            one_of(f"knob of {self.name}", name, known)
        return replace(self, scales={**self.scales, scale: [g.changed(knobs) for g in self.scales[scale]]})

    def cells(self, scale: str) -> list[Cell]:
        """The cells of a scale, without repetition, ordered by array shape."""
        one_of("scale", scale, self.scales)
        unique = {cell.id: cell for grid in self.scales[scale] for cell in map(self._cell, grid.points())}
        return sorted(unique.values(), key=lambda cell: tuple(str(cell.params.get(name)) for name in self.shape))

    def _cell(self, params: Params) -> Cell:
        identity = {"figure": self.name, "version": self.version, "params": params}
        seeding = {name: value for name, value in params.items() if name not in self.shared}
        return Cell(self.name, params, cell_seed({"figure": self.name, "params": seeding}), digest(identity), self.run)

    def decide(self, records: Records, scale: str) -> list[Verdict]:
        """The verdict on every claim."""
        settings = tuple(name for name in self.knobs(scale) if name not in ("seed", "seeds"))
        return [claim.decide(replace(records, parameters=settings), scale) for claim in self.claims]

    def missing_extra(self) -> str | None:
        """The name of the extra to install before this figure can run, if any."""
        absent = [extra for module, extra in self.requires.items() if importlib.util.find_spec(module) is None]
        return absent[0] if absent else None
