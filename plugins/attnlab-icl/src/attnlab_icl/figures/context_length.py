"""A longer context is not always better: the error against the number of examples in a context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_least
from attnlab.common.drawing import COLORS, line, panels, points
from attnlab.common.figure import Figure, Grid
from attnlab.common.records import Records
from attnlab.common.statistics import of, ratio_of_means, smallest
from attnlab_icl.figures.simulate import PAPER, finite_line, limit, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

ALPHA = np.geomspace(0.5, 2000, 200)
LENGTHS = [1, 2, 4.7, 10, 30, 100, 300, 1000]
# Panels of the paper: the error shown, tau, rho, and the numbers of tasks.
PANELS = (
    ("idg", 0.5, 0.5, [0.1, 0.3, 0.5, 0.7, 2.0]),
    ("icl", 0.5, 0.1, [0.2, 0.4, 0.5, 0.6, 1.5]),
    ("icl", 20.0, 0.5, [0.25, 0.75, 1.0, 1.1, 2.0]),
)


def draw(records: Records) -> Canvas:
    """One panel for each error and tau."""
    settings = sorted({(row["panel"], row["tau"], row["rho"]) for row in records})
    canvas, axes = panels(1, len(settings), width=4.0, height=3.5)
    for ax, (panel, tau, rho) in zip(axes[0], settings, strict=True):
        chosen = records.where(panel=panel, tau=tau, rho=rho)
        name = panel.split()[0]
        for color, kappa in zip(COLORS, chosen.values("kappa"), strict=False):
            curve = chosen.where(kappa=kappa)
            first = dict(next(iter(curve)))
            line(ax, ALPHA, limit(first, alpha=ALPHA).detail[name], color=color, label=rf"$\kappa = {kappa:g}$")
            finite_line(ax, curve, "alpha", name, color)
            points(ax, curve.curve("alpha", name), color=color)
        ax.set(xscale="log", yscale="log", xlabel=r"examples in a context $\alpha = l/d$", ylabel="test error")
        ax.set_title(rf"{name.upper()} error, $\tau = {tau:g}$, $\rho = {rho:g}$", loc="left")
        d = chosen.values("d")[0]
        ax.legend(title=f"lines: $d \\to \\infty$; dotted: theory\nat $d = {d}$; points: layers of it")
    return canvas


def _grids(d: int, seeds: int) -> list[Grid]:
    return [
        Grid(
            {
                "panel": f"{name} {index}",
                "d": d,
                "tau": tau,
                "rho": rho,
                "kappa": kappas,
                "alpha": LENGTHS,
                "ridge": 1e-6,
            },
            seeds,
        )
        for index, (name, tau, rho, kappas) in enumerate(PANELS)
    ]


FEW = {"panel": "icl 2", "kappa": 0.25}
MANY = {"panel": "icl 2", "kappa": 2.0}
CLAIMS = (
    Claim(
        id="icl.longer-hurts",
        says="With fewer tasks than dimensions and noisy labels, a longer context raises the ICL error",
        source=f"{PAPER}, figure 2",
        statistic=ratio_of_means(of("icl", **FEW, alpha=100), of("icl", **FEW, alpha=4.7)),
        holds=at_least(1.3),
        because="the limits are 2.60 at alpha = 100 and 1.41 at 4.7; 1.3 is half of that rise",
        replicates=4,
    ),
    Claim(
        id="icl.longer-helps",
        says="With twice as many tasks as dimensions, a longer context lowers the ICL error",
        source=f"{PAPER}, figure 2",
        statistic=smallest(
            [
                ratio_of_means(of("icl", **MANY, alpha=short), of("icl", **MANY, alpha=long))
                for short, long in ((1, 4.7), (4.7, 100))
            ]
        ),
        holds=at_least(1.1),
        because="the limits are 1.233, 0.843 and 0.568 at alpha = 1, 4.7 and 100",
        replicates=4,
    ),
)


CONTEXT_LENGTH = Figure(
    name="icl.context_length",
    title="The best length of a context",
    paper=f"{PAPER}, figure 2",
    shows="With few tasks and noisy labels the error first falls and then grows with the length of the context.",
    scales={"quick": _grids(24, 4), "paper": _grids(100, 5)},
    run=run,
    draw=draw,
    independent_of=(
        "d: | $\\kappa",
        "alpha: | $\\kappa",
    ),
    shape=("d", "tau"),
    claims=CLAIMS,
)
