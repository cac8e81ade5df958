"""One picture of a run: ratios to the alternatives on a logarithmic axis, shares of the hardware's rates below."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attnlab.common.drawing import COLORS, panels, style
from benchmarks.results import Results
from benchmarks.rows import Row, limit

MET, MISSED, UNDECIDED = COLORS[0], COLORS[1], COLORS[7]


def save(results: Results, path: Path, gpu: Results | None = None) -> None:
    """Draw and write the file; its ending says which format."""
    canvas = draw(results, gpu)
    path.parent.mkdir(parents=True, exist_ok=True)
    with style():
        canvas.savefig(path)


def draw(results: Results, gpu: Results | None = None) -> Any:
    """Two panels of named points with their spread, and the targets as ticks."""
    ratios = _of_kind(results, "ratio")
    shares = [*_of_kind(results, "share"), *(_of_kind(gpu, "share") if gpu else [])]
    places = max(len(ratios), len(shares), 4)
    canvas, ((top,), (bottom,)) = panels(2, 1, width=7.2, height=0.9 + 0.25 * places)
    _points(top, ratios, places)
    top.set_xscale("log")
    top.axvline(1.0, color="0.7", linewidth=0.8, zorder=0)
    top.set_xlabel("times faster (or smaller) than the alternative")
    _points(bottom, shares, places)
    bottom.set_xlim(0, max([1.0, *(1.08 * row.value for row in shares)]))
    bottom.axvline(1.0, color="0.7", linewidth=0.8, zorder=0)
    bottom.set_xlabel("share of the rate measured in the same run")
    _legend(canvas)
    return canvas


def _of_kind(results: Results, kind: str) -> list[Row]:
    return [row for row in results.all_rows() if row.kind == kind]


def _points(axes: Any, rows: list[Row], places: int) -> None:
    """From top to bottom in the order they were measured."""
    for place, row in enumerate(rows):
        color = {True: MET, False: MISSED, None: UNDECIDED}[row.met]
        axes.errorbar(row.value, place, xerr=row.spread or 0.0, fmt="o", color=color, capsize=2, elinewidth=1)
        if (goal := limit(row.target)) is not None:
            axes.plot([goal, goal], [place - 0.38, place + 0.38], color="black", linewidth=1.6, zorder=1)
    axes.set_yticks(range(len(rows)), [_label(row.name) for row in rows], fontsize=7)
    axes.set_ylim(places - 0.4, -0.6)
    axes.grid(axis="y", color="0.92")
    if not rows:
        axes.text(0.5, 0.5, "nothing of this kind was measured", transform=axes.transAxes, ha="center", color="0.5")


def _label(name: str, width: int = 46) -> str:
    """A name broken into at most two lines."""
    if len(name) <= width:
        return name
    lengths = itertools.accumulate(len(word) + 1 for word in name.split())
    breaks = [length for length in lengths if length < len(name)]
    at = min(breaks, key=lambda length: abs(length - len(name) / 2)) if breaks else len(name)
    return f"{name[:at].rstrip()}\n{name[at:]}"


def _legend(canvas: Any) -> None:
    from matplotlib.lines import Line2D

    def handles() -> Iterable[Line2D]:
        for color, text in ((MET, "target met"), (MISSED, "target missed"), (UNDECIDED, "no target")):
            yield Line2D([], [], marker="o", linestyle="", color=color, label=text)
        yield Line2D([], [], marker="|", linestyle="", color="black", markersize=9, markeredgewidth=1.6, label="target")

    canvas.legend(handles=list(handles()), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
