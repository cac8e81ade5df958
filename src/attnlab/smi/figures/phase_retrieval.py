"""Phase retrieval: a first-order transition with a phase in which learning is possible but hard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import CubicSpline

from attnlab.common.claim import Claim, at_least, at_most, between
from attnlab.common.drawing import COLORS, line
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.statistics import deterministic, mean, of
from attnlab.smi import theory
from attnlab.smi.figures.overlaps import amp_points, overlap_panel
from attnlab.smi.figures.simulate import AMP_RUN, law
from attnlab.smi.figures.simulate import run as simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

BRANCH = "branch"
LINK = "phase_retrieval(noise=0.0)"


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Message passing, or the branch alpha(q) with its transitions."""
    if params["source"] == AMP_RUN:
        return simulate(params, seed)
    found = theory.transitions(law(params), draws=params["draws"])
    curve = found.curve
    assert curve is not None
    names = ("spinodal", "it", "alg")
    values = {name: float(value) for name, value in zip(names, found.value, strict=True)}
    # S is smooth in v = -log(1 - q); a spline between the computed overlaps draws the turn of the branch.
    v = -np.log1p(-curve.q)
    fine = np.linspace(v[0], v[-1], 400)
    q = -np.expm1(-fine)
    return {**values, "q": q, "branch": q / CubicSpline(v, curve.S)(fine), "converged": bool(found.converged)}


def draw(records: Records) -> Canvas:
    """Overlap against alpha: the branch with its unstable part, message passing, the hard phase shaded."""
    canvas, ax = overlap_panel(records)
    theory_row = next(iter(records.where(source=BRANCH)))
    q, alpha = np.asarray(theory_row["q"]), np.asarray(theory_row["branch"])
    stable = np.gradient(alpha, q) > 0
    line(ax, np.where(stable, alpha, np.nan), q, color=COLORS[0], label="stable")
    line(ax, np.where(stable, np.nan, alpha), q, color=COLORS[0], linestyle=":", label="unstable")
    if theory_row["converged"]:
        hard = [theory_row["it"], theory_row["alg"]]
        ax.fill_between(hard, -0.03, 1.05, color=COLORS[4], alpha=0.25, lw=0, label="hard phase", gid="theory")
    amp_points(ax, records, "cos2_1", 1)
    ax.legend(loc="upper left")
    return canvas


def algorithmic(records: Records) -> float:
    """Algorithmic transition, the maximum of alpha(q)."""
    return float(records.where(source=BRANCH).column("alg")[0])


CLAIMS = (
    Claim(
        id="smi.phase-alg",
        says="Message passing recovers the signal of phase retrieval from alpha = 1.13 on",
        source="arXiv:2006.05228",
        statistic=deterministic(algorithmic, why="a quadrature: the same points give the same number"),
        holds=between(1.1265, 1.1305),
        because="1.12847 by quadrature in another program, within 2e-3",
        kind="exploratory",
    ),
    Claim(
        id="smi.phase-hard",
        says="In the hard phase (alpha = 1.05) message passing does not reach the Bayes-optimal overlap 1",
        source="arXiv:2006.05228",
        statistic=mean(of("cos2_1", source=AMP_RUN, alpha=1.05)),
        holds=at_most(0.8),
        because="state evolution ends at 0.57; 0.8 leaves room for runs that escape at finite d",
        replicates=6,
    ),
    Claim(
        id="smi.phase-easy",
        says="Above the hard phase (alpha = 1.35) message passing recovers the signal exactly",
        source="arXiv:2006.05228",
        statistic=mean(of("cos2_1", source=AMP_RUN, alpha=1.35)),
        holds=at_least(0.9),
        because="six of six runs at d = 1000 and alpha = 1.3 did; one failure in ten is allowed at smaller d",
        replicates=6,
    ),
)


def _grids(d: int, seeds: int, draws: int, alphas: list[float]) -> list[Grid]:
    return [
        Grid({"source": BRANCH, "link": LINK, "draws": draws}),
        Grid({"source": AMP_RUN, "link": LINK, "d": d, "alpha": alphas}, seeds),
    ]


PHASE_RETRIEVAL = Figure(
    name="smi.phase_retrieval",
    title="The hard phase of phase retrieval",
    paper="arXiv:2006.05228",
    shows="Between alpha = 1 and 1.128 exact recovery is possible, and message passing does not find it.",
    scales={
        "quick": _grids(500, 8, 2**12, [0.6, 0.9, 1.05, 1.15, 1.35]),
        "paper": _grids(2000, 16, 2**14, [0.6, 0.8, 0.9, 1.05, 1.15, 1.35, 1.5]),
    },
    run=run,
    draw=draw,
    shape=("source", "d", "alpha"),
    independent_of=("d", "alpha"),
    claims=CLAIMS,
)
