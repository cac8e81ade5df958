"""Double descent in the number of contexts: the peak stands where the layer can just fit them, n = d(d + 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.common.drawing import COLORS, line, panels, points
from attnlab.common.figure import Figure, Grid
from attnlab.common.records import Records
from attnlab_icl.figures.simulate import PAPER, limit, run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

TAU = np.sort(np.r_[np.geomspace(0.1, 4, 160), 1 + np.linspace(-0.05, 0.05, 40)])


def draw(records: Records) -> Canvas:
    """ICL and IDG errors against tau for each context length; the ridge that removes the peak."""
    canvas, axes = panels(1, 3, width=4.0, height=3.5)
    least = min(records.values("ridge"))
    for ax, name in zip(axes[0], ("icl", "idg"), strict=False):
        few = records.where(kappa=_few(records), ridge=least)
        _curves(ax, few, name, "alpha", r"$\alpha = {:g}$")
        ax.set_title(f"{name.upper()} error, $\\kappa = {few.values('kappa')[0]:g}$, ridge {least:g}", loc="left")
    _curves(axes[0, 2], records.where(kappa=None), "icl", "ridge", r"ridge ${:g}$")
    axes[0, 2].set_title("a new task for every context: ridge", loc="left")
    return canvas


def _few(records: Records) -> float:
    """kappa of the panels with a finite number of tasks."""
    return next(kappa for kappa in records.values("kappa") if kappa is not None)


def _curves(ax: Axes, records: Records, name: str, over: str, label: str) -> None:
    for color, value in zip(COLORS, records.values(over), strict=False):
        chosen = records.where(**{over: value})
        first = dict(next(iter(chosen)))
        line(ax, TAU, limit(first, tau=TAU).detail[name], color=color, label=label.format(value))
        points(ax, chosen.curve("tau", name), color=color)
    ax.axvline(1, color="gray", linewidth=0.8, linestyle=":")
    ax.set(xscale="log", yscale="log", xlabel=r"contexts $\tau = n/d^2$", ylabel="test error")
    ax.legend(title=f"lines: $d \\to \\infty$, points: $d = {records.values('d')[0]}$")


def _grids(d: int, seeds: int) -> list[Grid]:
    # The peak of a layer of d(d + 1) parameters, beside the taus of the paper.
    taus = [0.2, 0.5, 0.85, 1 + 1 / d, 1.15, 1.5, 2.0]
    common: dict[str, Any] = {"d": d, "rho": 0.01}
    return [
        Grid({**common, "kappa": 0.5, "alpha": [1, 10, 100], "tau": taus, "ridge": 1e-5}, seeds),
        Grid({**common, "kappa": None, "alpha": 10, "tau": [*taus, 1.0], "ridge": [1e-5, 0.1, 1.0]}, seeds),
    ]


DOUBLE_DESCENT = Figure(
    name="icl.double_descent",
    title="Double descent in pretraining",
    paper=f"{PAPER}, figure 1",
    shows="Errors peak where the number of contexts equals the number of parameters, and a ridge removes the peak.",
    scales={"quick": _grids(32, 8), "paper": _grids(100, 10)},
    run=run,
    draw=draw,
    shape=("d", "tau"),
    minutes={"quick": 0.5, "paper": 40},
)
