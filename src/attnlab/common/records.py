"""The table a figure draws from: one row per finished cell, its parameters and its results side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

Row = Mapping[str, Any]
CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A number with its 95 % interval and the number of independent runs behind it."""

    value: float
    low: float
    high: float
    runs: int = 1


class Curve(NamedTuple):
    """Mean and standard error of a result along one parameter."""

    x: np.ndarray
    mean: np.ndarray
    sem: np.ndarray


@dataclass(frozen=True)
class Records:
    """Rows of parameters and results. ``seed`` is the replicate; averages are over it.

    ``parameters`` names the entries that are settings and not results, where that is known (:meth:`Figure.decide`).
    """

    rows: tuple[Row, ...]
    parameters: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Records:
        """Collect rows; a row whose results are a list under ``rows`` becomes one row for each of them."""
        flat: list[Row] = []
        for row in rows:
            common = {key: value for key, value in row.items() if key != "rows"}
            flat.extend({**common, **extra} for extra in row.get("rows", [{}]))
        return cls(tuple(flat))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def where(self, **conditions: Any) -> Records:
        """Keep the rows with these exact values; an unknown name or an empty answer is an error that says so."""
        kept = tuple(row for row in self.rows if all(row.get(k, _ABSENT) == v for k, v in conditions.items()))
        if not kept:
            raise LookupError(f"no finished cell with {conditions}")
        return Records(kept)

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
        samples = [np.asarray(chosen.where(**{x: value}).column(y), dtype=float) for value in xs]
        sem = [s.std(ddof=1) / np.sqrt(len(s)) if len(s) > 1 else np.nan for s in samples]
        return Curve(np.array(xs, dtype=float), np.array([s.mean() for s in samples]), np.array(sem))

    def without_seed(self, seed: int) -> Records:
        """All rows but those of one replicate, for the jackknife.

        A setting that was run once stays: it is a computation without noise, beside others that are repeated.
        """
        if not self.parameters:
            return Records(tuple(row for row in self.rows if row.get("seed") != seed))
        settings = [repr([row.get(name) for name in self.parameters]) for row in self.rows]
        elsewhere = {key for key, row in zip(settings, self.rows, strict=True) if row.get("seed") != seed}
        pairs = zip(settings, self.rows, strict=True)
        return Records(tuple(row for key, row in pairs if row.get("seed") != seed or key not in elsewhere))


_ABSENT = object()


def proportion(successes: Iterable[bool | np.bool_]) -> Estimate:
    """Share of successes with the exact (Clopper-Pearson) interval.

    >>> share = proportion([True] * 30)
    >>> share.value, round(share.low, 3), share.high
    (1.0, 0.884, 1.0)
    """
    outcomes = np.asarray(list(successes), dtype=bool)
    interval = stats.binomtest(int(outcomes.sum()), len(outcomes)).proportion_ci(CONFIDENCE, method="exact")
    return Estimate(float(outcomes.mean()), float(interval.low), float(interval.high), len(outcomes))


def jackknife(value: Callable[[Records], float], records: Records) -> Estimate:
    r"""``value`` of all records, with Student's interval around it from leaving out one replicate at a time.

    .. math:: \mathrm{se}^2 = \tfrac{K-1}{K} \sum_k (v_{(k)} - \bar v)^2, \qquad v \pm t_{K-1} \,\mathrm{se}

    K counts the replicates up to the last one on which the value depends: another part of the figure may have more.
    With a single one nothing can be said about the noise: the interval is the value itself, ``runs`` is 1.

    Source: B. Efron and C. Stein, Ann. Statist. 9 (1981) 586.
    """
    full = float(value(records))
    seeds = sorted({row["seed"] for row in records.rows if "seed" in row})
    if len(seeds) < 2:
        return Estimate(full, full, full, 1)
    left_out = np.array([value(records.without_seed(seed)) for seed in seeds])
    felt = np.flatnonzero(left_out != full)
    k = felt[-1] + 1 if len(felt) else len(seeds)
    if k < 2:
        return Estimate(full, full, full, 1)
    left_out = left_out[:k]
    error = np.sqrt((k - 1) / k * np.sum((left_out - left_out.mean()) ** 2))
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, k - 1) * error)
    return Estimate(full, full - half, full + half, int(k))
