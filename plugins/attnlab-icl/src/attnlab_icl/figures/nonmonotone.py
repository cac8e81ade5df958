"""Where a longer context stops to help, in theory: the best length over the number of tasks and the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_most
from attnlab.common.drawing import panels
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.statistics import deterministic
from attnlab_icl import theory
from attnlab_icl.figures.simulate import PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

KAPPAS = np.linspace(0.1, 2.1, 41)
NOISES = np.geomspace(0.01, 1, 15)


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """The map of best context lengths, and the number of tasks at which it becomes infinite, for each noise."""
    best = np.array(
        [[float(theory.best_context_length(kappa, params["tau"], rho)) for kappa in KAPPAS] for rho in NOISES]
    )
    # The first number of tasks of the grid from which longer contexts always help.
    boundary = np.array([KAPPAS[np.isinf(row).argmax()] if np.isinf(row).any() else np.inf for row in best])
    return {"best": np.minimum(best, 1e6), "boundary": boundary, "converged": True}


def draw(records: Records) -> Canvas:
    """Best length as colour; the line is the limit of long contexts, kappa = min(tau, 1)."""
    taus = records.values("tau")
    canvas, axes = panels(1, len(taus), width=4.6, height=3.5)
    for ax, tau in zip(axes[0], taus, strict=True):
        row = next(iter(records.where(tau=tau)))
        mesh = ax.pcolormesh(KAPPAS, NOISES, np.log10(row["best"]), vmin=0, vmax=4, cmap="cividis", gid="theory")
        ax.axvline(min(tau, 1), color="white", linestyle="--")
        ax.set(yscale="log", xlabel=r"pretraining tasks $\kappa = k/d$", ylabel=r"noise variance $\rho$")
        ax.set_title(rf"best $\alpha = l/d$, $\tau = {tau:g}$; dashed: $\kappa = \min(\tau, 1)$", loc="left")
        canvas.colorbar(mesh, ax=ax, label=r"$\log_{10}$ of the best $\alpha$ (4: at least $10^4$)")
    return canvas


def boundary_gap(records: Records) -> float:
    """Largest distance of the boundary at the smallest noise from kappa = min(tau, 1)."""
    return max(abs(float(row["boundary"][0]) - float(min(row["tau"], 1))) for row in records)


CLAIM = Claim(
    id="icl.boundary",
    says="For small noise a finite context is the best exactly below kappa = min(tau, 1)",
    source=f"{PAPER}, figure 3; the boundary is derived here",
    statistic=deterministic(boundary_gap, why="theory on a fixed grid"),
    holds=at_most(0.15),
    because="three steps of 0.05 of the grid: at noise variance 0.01 the boundary lies above its limit of zero noise",
)


NONMONOTONE = Figure(
    name="icl.nonmonotone",
    title="When a longer context hurts",
    paper=f"{PAPER}, figure 3",
    shows="Below kappa = min(tau, 1), and with noise somewhat above, some finite context is the best; theory only.",
    scales={"quick": [Grid({"tau": [0.5, 20.0]})], "paper": [Grid({"tau": [0.5, 20.0]})]},
    run=run,
    draw=draw,
    claims=(CLAIM,),
)
