"""Two test errors: cross-validation sees one of them, and memorisation can be negative."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most, between
from attnlab.common.drawing import COLORS, panels
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.statistics import mean, of, ratio_of_means
from attnlab_icl.figures import simulate
from attnlab_icl.figures.simulate import limit

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

VALIDATION = {"d": 40, "alpha": 2.0, "kappa": 0.5, "tau": 0.5, "rho": 0.1, "ridge": 0.1}
NEGATIVE = {"d": 80, "alpha": 100.0, "kappa": 0.05, "tau": 0.05, "rho": 1.0, "ridge": 1e-6}
BARS = (("icl", "ICL: new task"), ("idg", "IDG: pretraining task"), ("gcv", "cross-validation"))


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """A pretrained layer with its cross-validation."""
    return simulate.run(params, seed, gcv=True)


def draw(records: Records) -> Canvas:
    """Errors of a layer in each setting as points, the limit as a short line."""
    settings = sorted({row["alpha"] for row in records})
    canvas, axes = panels(1, len(settings), width=4.0, height=3.4)
    for ax, alpha in zip(axes[0], settings, strict=True):
        chosen = records.where(alpha=alpha)
        first = dict(next(iter(chosen)))
        theory = {**limit(first).detail, "gcv": np.nan}
        for place, (name, _) in enumerate(BARS):
            values = np.asarray(chosen.column(name), dtype=float)
            jitter = place + np.linspace(-0.12, 0.12, len(values))
            ax.plot(jitter, values, "o", color=COLORS[place], alpha=0.5, markersize=4)
            ax.hlines(theory[name], place - 0.3, place + 0.3, color="black")
        ax.set_xticks(range(len(BARS)), [label.replace(": ", "\n") for _, label in BARS])
        ax.set(ylabel="error", ylim=(0, None))
        ratios = ", ".join(rf"$\{name} = {first[name]:g}$" for name in ("alpha", "kappa", "tau", "rho"))
        ax.set_title(f"$d = {first['d']}$, {ratios}\nlines: limit, points: layers", loc="left", fontsize=9)
    return canvas


CLAIMS = (
    Claim(
        id="icl.gcv",
        says="Generalised cross-validation estimates the error on pretraining tasks",
        source="derived here",
        statistic=ratio_of_means(of("gcv", alpha=2.0), of("idg", alpha=2.0)),
        holds=between(0.9, 1.1),
        because="0.740(14) against 0.734(5) in simulations made before; 10 % is the finite-size term 4/d at d = 40",
        replicates=10,
        kind="exploratory",
    ),
    Claim(
        id="icl.gcv-blind",
        says="Generalised cross-validation does not see the error on new tasks",
        source="derived here",
        statistic=ratio_of_means(of("icl", alpha=2.0), of("gcv", alpha=2.0)),
        holds=at_least(1.4),
        because="the limits are 1.203 and 0.715, a ratio of 1.68",
        replicates=10,
    ),
    Claim(
        id="icl.negative",
        says="With very few contexts of a noisy task, errors on new tasks are smaller than on pretraining tasks",
        source="derived here",
        statistic=mean(of("g_task", alpha=100.0)),
        holds=at_most(-0.5),
        because="the limit is -1.87; simulations made before gave 2.316(14) - 4.176(86)",
        replicates=10,
        kind="exploratory",
    ),
)

TWO_ERRORS = Figure(
    name="icl.two_errors",
    title="Two test errors",
    paper="our own",
    shows="Cross-validation estimates the error on pretraining tasks only, and that error can be the larger one.",
    scales={
        "quick": [Grid(VALIDATION, seeds=20), Grid(NEGATIVE, seeds=20)],
        "paper": [Grid(VALIDATION, seeds=100), Grid(NEGATIVE, seeds=100)],
    },
    run=run,
    draw=draw,
    independent_of=("d",),
    claims=CLAIMS,
    shape=("d",),
)
