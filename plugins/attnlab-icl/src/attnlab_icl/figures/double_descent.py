"""Double descent in the number of contexts: the peak stands where the layer can just fit them, n = d(d + 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most
from attnlab.common.drawing import COLORS, line, panels, points
from attnlab.common.figure import Figure, Grid
from attnlab.common.records import Records
from attnlab.common.statistics import Statistic, absolute, difference, known, largest, mean, of
from attnlab_icl.figures.simulate import PAPER, limit, run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

TAU = np.sort(np.r_[np.geomspace(0.1, 4, 160), 1 + np.linspace(-0.05, 0.05, 40)])


def draw(records: Records) -> Canvas:
    """ICL and IDG errors against tau for each context length; the ridge that removes the peak."""
    few = [kappa for kappa in records.values("kappa") if kappa is not None]
    fresh = None in records.values("kappa")
    canvas, axes = panels(1, 2 * bool(few) + fresh, width=4.0, height=3.5)
    if few:
        shown = records.where(kappa=few[0])
        least = min(shown.values("ridge"))
        for ax, name in zip(axes[0], ("icl", "idg"), strict=False):
            _curves(ax, shown.where(ridge=least), name, "alpha", r"$\alpha = {:g}$")
            ax.set_title(f"{name.upper()} error, $\\kappa = {few[0]:g}$, ridge {least:g}", loc="left")
    if fresh:
        _curves(axes[0, -1], records.where(kappa=None), "icl", "ridge", r"ridge ${:g}$")
        axes[0, -1].set_title("a new task for every context: ridge", loc="left")
    return canvas


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


def peak(records: Records) -> float:
    """ICL error at n = d(d + 1) over the larger of those at tau = 0.5 and 2 (alpha = 10, kappa = 0.5)."""
    few = records.where(kappa=0.5, alpha=10)
    highest = 1 + 1 / few.values("d")[0]
    return few.mean("icl", tau=highest) / max(few.mean("icl", tau=0.5), few.mean("icl", tau=2.0))


def away_from_the_peak(records: Records) -> list[Statistic]:
    """d |simulation / finite-size theory - 1| for every setting with |tau - 1| >= 0.5."""
    chosen = {(row["kappa"], row["alpha"], row["tau"], row["ridge"]) for row in records if abs(row["tau"] - 1) >= 0.5}
    names = ("kappa", "alpha", "tau", "ridge")
    places = [dict(zip(names, values, strict=True)) for values in sorted(chosen, key=repr)]
    return [absolute(difference(of("scaled_ratio", **place), known(of("d", **place)))) for place in places]


CLAIMS = (
    Claim(
        id="icl.peak",
        says="Without a strong ridge the ICL error peaks where contexts and parameters are equally many, n = d(d + 1)",
        source=f"{PAPER}, figure 1",
        statistic=mean(peak),
        holds=at_least(3.0),
        because="a factor of three is beyond any effect of noise; the limit at ridge 1e-5 is a factor of more than ten",
        replicates=5,
    ),
    Claim(
        id="icl.finite-theory",
        says="Away from the peak a layer of size d lies within 4/d of its deterministic equivalent",
        source="derived here",
        statistic=largest(away_from_the_peak),
        holds=at_most(4.0),
        because="d (simulation / theory - 1) was 0.1 to 2.8 in earlier simulations at d = 20, 40 and 80",
        replicates=5,
        kind="exploratory",
    ),
)


DOUBLE_DESCENT = Figure(
    name="icl.double_descent",
    title="Double descent in pretraining",
    paper=f"{PAPER}, figure 1",
    shows="Errors peak where the number of contexts equals the number of parameters, and a ridge removes the peak.",
    scales={"quick": _grids(32, 12), "paper": _grids(100, 10)},
    run=run,
    draw=draw,
    shape=("d", "tau"),
    claims=CLAIMS,
    minutes={"quick": 0.5, "paper": 40},
)
