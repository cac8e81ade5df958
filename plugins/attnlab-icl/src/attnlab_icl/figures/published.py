"""Runs published with the paper (MIT licence), drawn beside the theory at their own dimension."""

from __future__ import annotations

import csv
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab_icl import theory
from attnlab_icl.figures.simulate import contexts, law

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Planted instances over which the theory of a finite layer is averaged.
INSTANCES = 4
# Points of a line of theory.
POINTS = 24


def published(figure: str) -> list[dict[str, float]]:
    """Means and standard errors of the runs; the file says where they come from."""
    text = (resources.files("attnlab_icl") / f"published_{figure}.csv").read_text()
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return [{name: float(value) for name, value in row.items()} for row in rows]


def draw_published(ax: Axes, figure: str, *, d: int, over: str, name: str, setting: dict[str, Any]) -> None:
    """The published runs at dimension d as crosses, and as a dotted line the theory of layers of that size."""
    rows = [row for row in published(figure) if row["d"] == d]
    x = [row[over] for row in rows]
    mean, sem = ([row[key] for row in rows] for key in (name, f"{name}_sem"))
    ax.errorbar(x, mean, yerr=sem, fmt="x", color="black", zorder=5, label=f"published runs, $d = {d}$")
    grid = np.geomspace(min(x), max(x), POINTS)
    line = _theory_line(over, grid, name, {**setting, "d": d})
    ax.plot(grid, line, color="black", linestyle=":", linewidth=1, label=f"theory at $d = {d}$")


def _theory_line(over: str, x: np.ndarray, name: str, setting: dict[str, Any]) -> np.ndarray:
    """Mean of the finite-size theory over planted instances, at each x."""
    points = [{**setting, over: value} for value in x]
    found = [
        [
            theory.finite_size_errors(law(point, seed), contexts(point), point["ridge"]).detail[name]
            for seed in range(INSTANCES)
        ]
        for point in points
    ]
    return np.asarray(np.mean(found, axis=1))
