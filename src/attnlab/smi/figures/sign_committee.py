"""The sign committee: first the sum of the directions is learned, then their difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most, between
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.statistics import deterministic, mean, of
from attnlab.smi import theory
from attnlab.smi.figures.overlaps import amp_points, overlap_panel, published_points, theory_line
from attnlab.smi.figures.simulate import AMP_RUN, THEORY, law
from attnlab.smi.figures.simulate import run as simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

PAPER = "arXiv:1806.05451"
LINK = "sign_committee()"
STAIRCASE = "thresholds"
# Public state-evolution data of the paper: alpha and q along (1, 1), and along (1, -1).
PUBLISHED = {
    "plus": ((1.0, 0.4799), (2.0, 0.7035), (2.5, 0.7657)),
    "minus": ((1.0, 0.0), (2.0, 0.0), (2.2, 0.0713), (2.5, 0.2351)),
}
SUM, DIFFERENCE = np.sqrt([0.5, 0.5]), np.array([1.0, -1.0]) / np.sqrt(2)


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Overlaps along the sum and the difference of the directions, or the threshold of specialisation."""
    if params["source"] == STAIRCASE:
        found = theory.thresholds(law(params), draws=params["draws"])
        return {"specialisation": float(found[-1]), "converged": bool(found.converged)}
    record = dict(simulate(params, seed))
    overlap = record["M"] if params["source"] == AMP_RUN else record["Q"]
    record["plus"], record["minus"] = (float(u @ overlap @ u) for u in (SUM, DIFFERENCE))
    return record


def draw(records: Records) -> Canvas:
    """Both overlaps against alpha: state evolution, message passing, published data."""
    canvas, ax = overlap_panel(records, "; x: published")
    for i, (name, text) in enumerate((("plus", "sum"), ("minus", "difference"))):
        theory_line(ax, records, name, i, f"{text} of the directions")
        amp_points(ax, records, name, i)
        published_points(ax, PUBLISHED[name], i)
    step = next(iter(records.where(source=STAIRCASE)))["specialisation"]
    ax.axvline(step, color="gray", linestyle="--", label=f"specialisation {step:.3f}", gid="theory")
    ax.legend()
    return canvas


def specialisation(records: Records) -> float:
    """Threshold of the difference of the directions."""
    return float(records.where(source=STAIRCASE).column("specialisation")[0])


CLAIMS = (
    Claim(
        id="smi.specialisation",
        says="The sign committee specialises from alpha = 2.052 on",
        source=f"{PAPER}, public data: q_- vanishes at 2.052",
        statistic=deterministic(specialisation, why="a quadrature: the same points give the same number"),
        holds=between(2.0424, 2.0624),
        because="within 0.01 of 2.0524",
        kind="exploratory",
    ),
    Claim(
        id="smi.unspecialised",
        says="Below specialisation (alpha = 1.5) message passing learns the sum of the directions only",
        source=PAPER,
        statistic=mean(of("minus", source=AMP_RUN, alpha=1.5)),
        holds=at_most(0.1),
        because="state evolution has 0; finite-size fluctuations at d = 400 are of order 1/sqrt(d) = 0.05",
        replicates=6,
    ),
    Claim(
        id="smi.specialised",
        says="Above specialisation (alpha = 3.5) message passing learns the difference too",
        source=PAPER,
        statistic=mean(of("minus", source=AMP_RUN, alpha=3.5)),
        holds=at_least(0.2),
        because="state evolution has 0.24 at alpha = 2.5 already, and it grows",
        replicates=6,
    ),
)


def _grids(d: int, seeds: int, draws: int, replicates: int, alphas: list[float]) -> list[Grid]:
    return [
        Grid({"source": STAIRCASE, "link": LINK, "draws": 4 * draws}),
        Grid({"source": THEORY, "link": LINK, "alpha": alphas, "draws": draws, "replicates": replicates}),
        Grid({"source": AMP_RUN, "link": LINK, "d": d, "alpha": [0.5, 1.5, 3.5]}, seeds),
    ]


SIGN_COMMITTEE = Figure(
    name="smi.sign_committee",
    title="Specialisation of the sign committee",
    paper=f"{PAPER}, figure 2",
    shows="The difference of the directions is learned from alpha = 2.05 on, by theory and by message passing.",
    scales={
        "quick": _grids(400, 6, 2**10, 4, [0.5, 1.0, 1.5, 2.0, 2.2, 2.5, 3.5]),
        "paper": _grids(2000, 12, 2**13, 8, [0.25, 0.5, 1.0, 1.5, 2.0, 2.1, 2.2, 2.5, 3.0, 3.5]),
    },
    run=run,
    draw=draw,
    shape=("source", "d", "alpha"),
    independent_of=("d", "alpha: specialisation"),
    claims=CLAIMS,
)
