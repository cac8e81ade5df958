"""The table a figure draws from: one row per finished cell, its parameters and its results side by side."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from attnlab.common.intervals import Share
from attnlab.common.table import Columns, PackedRow, PackedRows

Row = Mapping[str, Any]
CONFIDENCE = 0.95
# More rows than these share columns: a dictionary for each of a million would take gigabytes.
PACKED = 20_000


class Estimate(NamedTuple):
    """A number with its 95 % interval and the number of independent replicates behind it."""

    value: float
    low: float
    high: float
    runs: int = 1


@dataclass(frozen=True, eq=False)
class Curve:
    """Mean and standard error of a result along one parameter; ``unconverged`` counts runs that did not converge."""

    x: np.ndarray
    mean: np.ndarray
    sem: np.ndarray
    unconverged: np.ndarray | None = None

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.x, self.mean, self.sem))


@dataclass(frozen=True)
class Records:
    """Rows of parameters and results. ``seed`` is the replicate; averages are over it.

    ``parameters`` names the entries that are settings and not results, ``shared`` those of them that do not enter the
    seed, where that is known (:meth:`Figure.decide`).
    """

    rows: Sequence[Row]
    parameters: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Records:
        """Collect rows; a row whose results are a list under ``rows`` becomes one row for each of them."""
        flat: list[Row] = []
        table: Columns | None = None
        for row in rows:
            common = {key: value for key, value in row.items() if key != "rows"}
            for extra in row.get("rows", [{}]):
                whole = {**common, **extra}
                if table is not None:
                    table.append(whole)
                elif len(flat) < PACKED:
                    flat.append(whole)
                else:
                    table, flat = Columns([*flat, whole]), []
        return cls(tuple(flat) if table is None else PackedRows(table, range(table.count)))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def where(self, **conditions: Any) -> Records:
        """Keep the rows with these exact values; an unknown name or an empty answer is an error that says so."""
        rows = self.rows
        places: Sequence[int] = range(len(rows))
        for name, value in conditions.items():  # each over what the last one left: figures ask thousands of times
            places = [i for i in places if rows[i].get(name, _ABSENT) == value]
        if not places:
            words = ", ".join(f"{name} = {value}" for name, value in conditions.items())
            raise LookupError(f"no finished cell with {words}")
        return self._at(places)

    def _only(self, wanted: Callable[[Row], bool]) -> Records:
        return self._at([i for i, row in enumerate(self.rows) if wanted(row)])

    def _at(self, positions: Iterable[int]) -> Records:
        rows = self.rows
        return replace(
            self, rows=rows.take(positions) if isinstance(rows, PackedRows) else tuple(rows[i] for i in positions)
        )

    def split(self, key: Callable[[Row], Hashable]) -> dict[Any, Records]:
        """The rows by what ``key`` says of them, in the order in which its answers come."""
        found: dict[Hashable, array[int]] = {}
        for i, row in enumerate(self.rows):
            found.setdefault(key(row), array("q")).append(i)
        return {answer: self._at(positions) for answer, positions in found.items()}

    def column(self, name: str) -> np.ndarray:
        """All values of one parameter or result, in row order (arrays are stacked)."""
        return np.array([row[name] for row in self.rows])

    def values(self, name: str) -> list[Any]:
        """The different values of a parameter, sorted: numbers, None, names; rows without it are passed over."""
        return sorted({row[name] for row in self.rows if name in row}, key=lambda v: (isinstance(v, str), v is None, v))

    def mean(self, name: str, **conditions: Any) -> float:
        """Mean of a result over the rows with these values."""
        return float(np.mean(self.where(**conditions).column(name)))

    def curve(self, x: str, y: str, **conditions: Any) -> Curve:
        """Mean and standard error of ``y`` for each value of ``x``; the standard error of one run is NaN."""
        chosen = self.where(**conditions)
        xs = chosen.values(x)
        found = chosen.split(lambda row: row.get(x, _ABSENT))
        groups = [found[value] for value in xs]
        samples = [np.array([row[y] for row in group], dtype=float) for group in groups]
        sem = [s.std(ddof=1) / np.sqrt(len(s)) if len(s) > 1 else np.nan for s in samples]
        missed = np.array([sum(row.get("converged") is False for row in group) for group in groups])
        return Curve(np.array(xs, dtype=float), np.array([s.mean() for s in samples]), np.array(sem), missed)

    def groups(self, unit: tuple[str, ...]) -> dict[Hashable, Records]:
        """The rows of each unit: of equal values of these names; ``("instance",)`` is one planted instance."""
        if unit == ("instance",):
            unit = ("seed", *(name for name in self.parameters if name not in self.shared))
        # as text: a parameter that is a list has no hash
        return self.split(lambda row: repr([row.get(name) for name in unit]))

    def complete_replicates(self) -> list[Any]:
        """The replicates that every setting has, apart from settings that were run once: computations without noise."""
        seeds = [{row.get("seed") for row in rows} for rows in self.groups(self.parameters).values()]
        # settings that were run once hold seed 0 alone and would leave no other replicate
        repeated = [group for group in seeds if len(group) > 1] or seeds
        return sorted(set.intersection(*repeated), key=repr) if self.parameters else self.values("seed")

    def only(self, seeds: Iterable[Any]) -> Records:
        """The rows of these replicates, and settings that were run once."""
        return self._of_replicates(set(seeds))

    def without_seed(self, seed: Any) -> Records:
        """All rows but those of one replicate; a setting that was run once stays."""
        return self._of_replicates({row.get("seed") for row in self.rows} - {seed})

    def _of_replicates(self, seeds: set[Any]) -> Records:
        if not self.parameters:
            return self._only(lambda row: row.get("seed") in seeds)
        groups = self.groups(self.parameters).values()
        once = {identity(row) for rows in groups if len({row.get("seed") for row in rows}) == 1 for row in rows}
        return self._only(lambda row: row.get("seed") in seeds or identity(row) in once)


def identity(row: Row) -> int:
    """What tells the rows of a table apart: a packed row is made anew each time it is asked for."""
    return row.place if isinstance(row, PackedRow) else id(row)


# None is a value that a parameter can have
_ABSENT = object()


def proportion(successes: Iterable[bool | np.bool_]) -> Estimate:
    """Share of successes with the exact (Clopper-Pearson) interval.

    >>> share = proportion([True] * 30)
    >>> share.value, round(share.low, 3), share.high
    (1.0, 0.884, 1.0)
    """
    outcomes = np.asarray(list(successes), dtype=float)
    if not len(outcomes):
        raise LookupError("no outcomes to take a share of")
    share = Share(outcomes, np.ones(len(outcomes)))
    return Estimate(share.value, *share.interval(CONFIDENCE), len(outcomes))
