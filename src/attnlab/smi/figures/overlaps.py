"""Pictures of overlaps: state evolution as lines, message passing as points, published values as crosses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.drawing import COLORS, MARKERS, line, panels, points
from attnlab.common.records import Records
from attnlab.smi.figures.simulate import AMP_RUN, THEORY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


def overlap_panel(records: Records, note: str = "") -> tuple[Canvas, Axes]:
    """An empty panel of overlaps over alpha; the title names the link and the size of the runs."""
    canvas, axes = panels(width=5.2, height=3.8)
    ax, d = axes[0, 0], ", ".join(map(str, sorted(records.where(source=AMP_RUN).values("d"))))
    ax.set(xlabel=r"sequences per dimension $\alpha = n/d$", ylabel="overlap", ylim=(-0.03, 1.05))
    ax.set_title(f"{records.values('link')[0]}; points: AMP, $d = {d}${note}", loc="left")
    return canvas, ax


def theory_line(ax: Axes, records: Records, column: str, i: int, label: str) -> None:
    """An overlap of state evolution with its standard error; a fixed point that was not reached leaves a gap."""
    rows = sorted(records.where(source=THEORY), key=lambda row: row["alpha"])
    alpha, q, error = (
        np.array([row.get(name, 0.0) if row["converged"] else np.nan for row in rows])
        for name in ("alpha", column, f"{column}_error")
    )
    line(ax, alpha, q, color=COLORS[i], label=label, marker=".")
    ax.fill_between(alpha, q - error, q + error, color=COLORS[i], alpha=0.2, linewidth=0, gid="theory")


def amp_points(ax: Axes, records: Records, column: str, i: int) -> None:
    """An overlap of message passing: mean and standard error over runs."""
    points(ax, records.where(source=AMP_RUN).curve("alpha", column), color=COLORS[i], fmt=MARKERS[i])


def published_points(ax: Axes, values: Sequence[tuple[float, float]], i: int, label: str | None = None) -> None:
    """Values of a paper's public data."""
    ax.plot(*zip(*values, strict=True), linestyle="", marker="x", color=COLORS[i], gid="published", label=label)
