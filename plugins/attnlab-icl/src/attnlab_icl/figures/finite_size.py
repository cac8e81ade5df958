"""How a finite layer differs from the limit, and how much of it the finite-size theory explains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_most
from attnlab.common.drawing import COLORS, MARKERS, line, panels, points
from attnlab.common.figure import Figure, Grid
from attnlab.common.records import Curve, Records
from attnlab.common.statistics import absolute, difference, known
from attnlab_icl.figures.simulate import limit, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# alpha, kappa, tau, rho, ridge
SETTINGS = (
    (1.0, 0.5, 0.5, 0.01, 1e-8),
    (1.0, 0.5, 2.0, 0.01, 1e-8),
    (10.0, 0.5, 2.0, 0.01, 1e-8),
    (10.0, 1.0, 10.0, 0.01, 1e-6),
)
EXTRAPOLATED = [16, 32]  # the sizes of the claim icl.limit


def draw(records: Records) -> Canvas:
    """ICL error over the limit (left) and over the finite-size theory (right), against 1/d."""
    canvas, axes = panels(1, 2, width=4.6, height=3.6)
    settings = sorted({(row["alpha"], row["kappa"], row["tau"], row["ridge"]) for row in records})
    for color, marker, (alpha, kappa, tau, ridge) in zip(COLORS, MARKERS, settings, strict=False):
        chosen = records.where(alpha=alpha, kappa=kappa, tau=tau, ridge=ridge)
        label = rf"$\alpha = {alpha:g}$, $\kappa = {kappa:g}$, $\tau = {tau:g}$"
        limiting = float(limit(dict(next(iter(chosen)))))
        raw, ratio, finite = (chosen.curve("d", name) for name in ("icl", "ratio", "finite_icl"))
        inverse = Curve(1 / raw.x, raw.mean / limiting, raw.sem / limiting, raw.unconverged)
        points(axes[0, 0], inverse, color=color, fmt=marker, label=label)
        line(axes[0, 0], 1 / finite.x, finite.mean / limiting, color=color)
        points(axes[0, 1], Curve(1 / ratio.x, ratio.mean, ratio.sem, ratio.unconverged), color=color, fmt=marker)
    for ax, title in zip(
        axes[0], ("over the limit; lines: finite-size theory", "over the finite-size theory"), strict=True
    ):
        ax.axhline(1, color="gray", linewidth=0.8, linestyle=":")
        ax.set(xlabel="$1/d$", ylabel="ICL error of the layer, relative")
        ax.set_title(title, loc="left")
    inverse_d = np.linspace(0, 1 / min(records.values("d")), 2)
    line(axes[0, 1], inverse_d, 1 + 4 * inverse_d, color="gray", linestyle="--", label="$1 + 4/d$")
    axes[0, 0].legend()
    axes[0, 1].legend()
    return canvas


def _grids(sizes: list[int], few: int, many: int) -> list[Grid]:
    """``few`` replicates of each point; ``many`` of the two sizes of the last setting that the claim extrapolates."""
    names = ("alpha", "kappa", "tau", "rho", "ridge")
    *others, last = ({"d": sizes, **dict(zip(names, setting, strict=True))} for setting in SETTINGS)
    rest = [d for d in sizes if d not in EXTRAPOLATED]
    return [
        *(Grid(law, few) for law in others),
        Grid({**last, "d": EXTRAPOLATED}, many),
        Grid({**last, "d": rest}, few),
    ]


def extrapolated(records: Records) -> float:
    """(2 e(2d) - e(d)) / limit for the ICL error at alpha = 10, kappa = 1, tau = 10 (d = 16 and 32)."""
    chosen = records.where(alpha=10.0, kappa=1.0, tau=10.0)
    value = 2 * chosen.mean("icl", d=32) - chosen.mean("icl", d=16)
    return value / float(limit(dict(next(iter(chosen)))))


def one(records: Records) -> float:
    """1."""
    return 1.0


CLAIM = Claim(
    id="icl.limit",
    says="The error extrapolated in 1/d agrees with the asymptotic theory",
    source="derived here",
    statistic=absolute(difference(extrapolated, known(one))),
    holds=at_most(0.1),
    because="the term in 1/d cancels; the rest is of order 1/d^2 with a coefficient of order ten, 0.02 at d = 16, 32",
    replicates=16,
)


FINITE_SIZE = Figure(
    name="icl.finite_size",
    title="Finite layers against theory",
    paper="our own",
    shows="The exact moments of the planted tasks explain most of the distance from the limit; the rest falls as 1/d.",
    scales={"quick": _grids([16, 32, 48], 10, 32), "paper": _grids([16, 32, 64, 128], 20, 20)},
    run=run,
    draw=draw,
    independent_of=(
        "alpha: $1 + 4/d$",
        "kappa: $1 + 4/d$",
        "tau: $1 + 4/d$",
        "rho: $1 + 4/d$",
        "ridge: $1 + 4/d$",
    ),
    shape=("d", "tau"),
    claims=(CLAIM,),
)
