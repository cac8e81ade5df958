"""A system's view in the explorer: words, scripts, tables of theory, and stored simulations as points.

A system has a view if its package holds a module ``explorer`` with ``VIEW``. The scripts beside that module define
``attnlab.views.<system>``; ``docs/extending.md`` lists what such a view offers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from attnlab.common.records import Row, proportion

Point = dict[str, Any]


@runtime_checkable
class Cells(Protocol):
    """The finished cells of a store."""

    def of(self, *figures: str) -> list[Row]:
        """The rows of these figures, whatever the scale they were run at."""


@dataclass(frozen=True)
class View:
    """What the explorer shows of a system.

    Parameters
    ----------
    title : the words of its tab.
    question, text : its heading and a short paragraph.
    charts : names of its charts, in the order in which the script returns them; ``wide`` take a whole line.
    sources : arXiv ids of the model.
    scripts : JavaScript files beside the module, in the order in which they build on each other.
    points : stored simulations, ``cells -> {series: points}``.
    tables : theory that the script does not compute, made when the page is built.
    actions : buttons above the charts, by the end of their id.
    extra : an HTML file beside the module, shown below the charts.
    """

    title: str
    question: str
    text: str
    charts: Sequence[str]
    sources: Sequence[str]
    points: Callable[[Cells], Mapping[str, Sequence[Point]]]
    tables: Callable[[], Mapping[str, Any]] = dict
    scripts: Sequence[str] = ("theory.js", "view.js")
    wide: Sequence[str] = ()
    actions: Mapping[str, str] = field(default_factory=dict)
    extra: str = ""


def groups(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of some names, in sorted order."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return {key: found[key] for key in sorted(found)}


def means(rows: Iterable[Row], names: Sequence[str], value: Callable[[Row], float]) -> list[Point]:
    """Mean and standard error of a result for each setting of ``names``; one run has no bar.

    What is not finite, a width of infinity or a run that diverged, has no place on the axes.
    """
    points = []
    for key, chosen in groups(rows, names).items():
        sample = np.array([value(row) for row in chosen], dtype=float)
        sem = sample.std(ddof=1) / np.sqrt(len(sample)) if len(sample) > 1 else 0.0
        if all(np.isfinite(x) for x in (*key, sample.mean()) if not isinstance(x, str)):
            points.append({**dict(zip(names, key, strict=True)), "mean": float(sample.mean()), "sem": float(sem)})
    return points


def shares(rows: Iterable[Row], names: Sequence[str]) -> list[Point]:
    """Share of recovered layers with its exact 95 % interval for each setting of ``names``."""
    points = []
    for key, chosen in groups(rows, names).items():
        share = proportion(row["success"] for row in chosen)
        point = dict(zip(names, key, strict=True))
        points.append({**point, "share": share.value, "low": share.low, "high": share.high})
    return points
