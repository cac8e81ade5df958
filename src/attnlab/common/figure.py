"""A figure: a grid of cells, a function that runs one cell, a drawing, and the claims it must show."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from attnlab.common.cell import Cell as Cell
from attnlab.common.cell import Params as Params
from attnlab.common.cell import Record as Record
from attnlab.common.cell import code_of
from attnlab.common.claim import Claim, Verdict
from attnlab.common.records import Records
from attnlab.common.seeds import canonical
from attnlab.common.validation import integer, one_of

if TYPE_CHECKING:
    import matplotlib.figure

    Canvas = matplotlib.figure.Figure
else:
    Canvas = Any  # what figures import: matplotlib is loaded when one is drawn

# Cells of which it is worth finding out whether any can repeat another.
MANY = 100_000


@dataclass(frozen=True)
class Grid:
    """A product of parameters, repeated over ``seeds`` replicates. A list is an axis, anything else is fixed.

    >>> [dict(p) for p in Grid({"d": 4, "lam": [0.1, 0.9]}, seeds=1).points()]
    [{'d': 4, 'lam': 0.1, 'seed': 0}, {'d': 4, 'lam': 0.9, 'seed': 0}]
    """

    params: Mapping[str, Any]
    seeds: int = 1

    def __post_init__(self) -> None:
        for name, value in self.params.items():
            if value == []:
                raise ValueError(f"{name} must have at least one value, got []")

    @property
    def size(self) -> int:
        """The number of points, without building any."""
        return math.prod(len(axis) for axis in self._axes()) * self.seeds

    def points(self) -> Iterator[dict[str, Any]]:
        """All parameter settings, replicate by replicate."""
        axes = self._axes()
        for seed in range(self.seeds):
            for point in itertools.product(*axes):
                yield dict(zip(self.params, point, strict=True)) | {"seed": seed}

    def _axes(self) -> list[list[Any]]:
        """The different values of each parameter."""
        return [_different(value) if isinstance(value, list) else [value] for value in self.params.values()]

    def slices(self, names: Sequence[str]) -> dict[tuple[str, ...], Grid]:
        """The grid cut along some parameters: a grid for each of their settings, by the settings as text."""
        axes = dict(zip(self.params, self._axes(), strict=True))
        cut = [name for name in names if name in axes]
        found = {}
        for point in itertools.product(*(axes[name] for name in cut)):
            # a value that is a list itself stays one setting
            fixed = {
                name: [value] if isinstance(value, list) else value for name, value in zip(cut, point, strict=True)
            }
            # keys are sorted across grids, and values of different types have no order
            key = tuple(str(fixed.get(name)) for name in names)
            found[key] = replace(self, params={**self.params, **fixed})
        return found

    def changed(self, knobs: Mapping[str, Any]) -> Grid:
        """The same grid with some parameters (or ``seeds``) set to other values."""
        here = {name: value for name, value in knobs.items() if name in self.params}
        seeds = integer("seeds", knobs.get("seeds", self.seeds), low=1)
        return replace(self, params={**self.params, **here}, seeds=seeds)

    def cells(self, figure: Figure, stream: int) -> Iterator[Cell]:
        """The cells of a figure at these points.

        The text behind an id is put together from the texts of the values, written once for each value: with millions
        of cells, writing each from its parameters would take most of the time of a resumed run.
        """
        axes = {name: axis for name, axis in zip(self.params, self._axes(), strict=True) if name != "seed"}
        names = list(axes)
        # tuples, of which product makes no copy, and bytes, which are shorter than text: an axis may be a million long
        values = [tuple(axis) for axis in axes.values()]
        keys = [f"{_text(name)}:" for name in names]
        texts = [tuple((key + _text(v)).encode() for v in axis) for key, axis in zip(keys, values, strict=True)]
        # canonical JSON has its keys sorted; the replicate takes its place among them
        place = sorted(range(len(names) + 1), key=[*names, "seed"].__getitem__)
        before, after = canonical({"figure": figure.name, "params": {}, "stream": stream}).encode().split(b"{}")
        common = {"figure": figure.name, "run": figure.run, "stream": stream, "shared": tuple(figure.shared)}
        common["code"] = code_of(figure.run)
        for seed in range(self.seeds):
            own = b'"seed":%d' % seed
            for point, parts in zip(itertools.product(*values), itertools.product(*texts), strict=True):
                ordered = (*parts, own)
                text = b"%b{%b}%b" % (before, b",".join([ordered[i] for i in place]), after)
                params = dict(zip(names, point, strict=True))
                params["seed"] = seed
                # the constructor of a frozen dataclass sets its fields one by one, in three times the time
                cell = object.__new__(Cell)
                cell.__dict__.update(common, params=params, id=hashlib.sha256(text).hexdigest())
                yield cell


def _different(axis: list[Any]) -> list[Any]:
    """The values of an axis without repetition, told apart by their text."""
    # an axis may have a million values, whose texts would take a hundred megabytes
    if all(type(value) is int for value in axis) and all(low < high for low, high in itertools.pairwise(axis)):
        return axis
    # as values 1, 1.0 and True are equal; as text they are three cells
    return list({_text(value): value for value in axis}.values())


def _text(value: Any) -> str:
    """A value as it stands in the text behind a cell's id; an object, which has none, by what it prints."""
    if type(value) is int:  # an axis may have a million of them
        return str(value)
    try:
        return canonical({"": value})[4:-1]  # without the '{"":' and '}' around it
    except TypeError:
        return repr(value)


@dataclass(frozen=True)
class Cells(Iterable[Cell]):
    """The cells of grids, each made when it is asked for, without repetition and ordered by array shape.

    It is no sequence: a cell is reached by making those before it.
    """

    figure: Figure
    grids: Sequence[Grid]
    stream: int

    def __iter__(self) -> Iterator[Cell]:
        slices = [grid.slices(self.figure.shape) for grid in self.grids]
        seen: set[bytes] = set()
        for key in sorted({key for parts in slices for key in parts}):
            for part in (parts[key] for parts in slices if key in parts):
                for cell in part.cells(self.figure, self.stream):
                    if self._distinct:
                        yield cell
                    # 32 bytes for each cell in place of 64 letters
                    elif (id := bytes.fromhex(cell.id)) not in seen:
                        seen.add(id)
                        yield cell

    @functools.cached_property
    def _distinct(self) -> bool:
        """Whether it is known that no cell repeats another: none does within a grid of plain points.

        Elsewhere the first replicates tell it for all. That is looked at where remembering each cell takes memory.
        """
        # exactly Grid: two points of a subclass may ask for the same experiment
        if len(self.grids) == 1 and type(self.grids[0]) is Grid:
            return True
        if sum(grid.size for grid in self.grids) < MANY:
            return False
        firsts = (replace(grid, seeds=1).cells(self.figure, self.stream) for grid in self.grids)
        ids = [bytes.fromhex(cell.id) for cell in itertools.chain.from_iterable(firsts)]
        return len(set(ids)) == len(ids)

    @functools.cached_property
    def _length(self) -> int:
        return sum(grid.size for grid in self.grids) if self._distinct else sum(1 for _ in self)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> list[Cell]: ...
    def __getitem__(self, index: int | slice) -> Cell | list[Cell]:
        return list(self)[index]


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
    independent_of : knobs that move no theory line, or ``knob: text`` for the lines whose name (or whose panel's name)
        contains the text; a test changes every knob and checks that all other theory lines move.
    requires : modules of an optional extra without which the figure is skipped, and the extra's name.
    unjudged : why there are no claims, where settings were changed.
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
    independent_of: Sequence[str] = ()
    requires: Mapping[str, str] = field(default_factory=dict)
    unjudged: str = ""

    def knobs(self, scale: str) -> dict[str, Any]:
        """The parameters that can be changed at a scale, with their values."""
        one_of("scale", scale, self.scales)
        merged: dict[str, Any] = {}
        for grid in self.scales[scale]:
            for name, value in grid.params.items():
                merged.setdefault(name, value)
        return merged | {"seeds": max(grid.seeds for grid in self.scales[scale])}

    def changed(self, scale: str, knobs: Mapping[str, Any]) -> Figure:
        """The same figure with knobs set; unknown names are refused with the nearest known one.

        Thresholds are registered for the figure's own settings: with others it has no claims. More or fewer ``seeds``
        change the precision only.
        """
        known = self.knobs(scale)
        for name, value in knobs.items():
            _same_kind(name, value, known[one_of(f"knob of {self.name}", name, known)])
        grids = self.scales[scale]
        # Grids may have different values of a knob, of which ``known`` holds the first.
        other = [n for n, v in knobs.items() if n != "seeds" and any(g.params.get(n, v) != v for g in grids)]
        here = replace(self, scales={**self.scales, scale: [g.changed(knobs) for g in grids]})
        if not other:
            return here
        why = f"{' and '.join(other)} changed; the thresholds of the claims are registered for other settings"
        return replace(here, claims=(), unjudged=why if self.claims else "")

    def size(self, scale: str) -> int:
        """How many cells there are at most (grids may share some), without building any."""
        one_of("scale", scale, self.scales)
        return sum(grid.size for grid in self.scales[scale])

    def cells(self, scale: str, stream: int = 1) -> Cells:
        """The cells of a scale, without repetition, ordered by array shape; another stream has fresh numbers."""
        one_of("scale", scale, self.scales)
        return Cells(self, self.scales[scale], stream)

    def decide(self, records: Records, scale: str) -> list[Verdict]:
        """The verdict on every claim."""
        # the replicate is no setting: statistics combine over it
        settings = tuple(name for name in self.knobs(scale) if name not in ("seed", "seeds"))
        known = replace(records, parameters=settings, shared=tuple(self.shared))
        return [claim.decide(known, scale) for claim in self.claims]

    def missing_extra(self) -> str | None:
        """The name of the extra to install before this figure can run, if any."""
        absent = [extra for module, extra in self.requires.items() if importlib.util.find_spec(module) is None]
        return absent[0] if absent else None


def _same_kind(name: str, value: Any, default: Any) -> None:
    """Refuse a knob's value of another kind than its default; one value in place of a list is a list of one."""
    examples = default if isinstance(default, list) else [default]
    for item in value if isinstance(value, list) else [value]:
        kinds = {_kind(example) for example in examples if example is not None}
        if kinds and not (_kind(item) in kinds or (_kind(item) == "whole number" and "number" in kinds)):
            raise ValueError(f"{name} must be a {' or a '.join(sorted(kinds))}, got {item!r}")


def _kind(value: Any) -> str:
    kinds = {bool: "truth value (true or false)", int: "whole number", float: "number", str: "word"}
    return kinds.get(type(value), type(value).__name__)
