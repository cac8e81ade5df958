"""Eigenvalues of the estimate, before and after recovery, against the predicted law."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.aim.figures.simulate import PAIR, PAPER, law_of, solve
from attnlab.aim.spectrum import quadrature
from attnlab.aim.task import Task
from attnlab.aim.theory import recovery_threshold
from attnlab.aim.theory.bayes import fixed_point
from attnlab.common.claim import Claim, at_most
from attnlab.common.drawing import COLORS, panels
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.statistics import each, largest, mean, of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

AFTER = 1e-5  # beyond the threshold the noise is zero: the law of S itself, with its delta at zero slightly widened


def law(task: Task, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Predicted eigenvalues of the estimate and their distribution function."""
    delta = max(float(fixed_point(task, np.array([alpha])).delta[0]), AFTER)
    bulk = quadrature(delta, task.rho, 800)
    order = np.argsort(bulk.x[0])
    return bulk.denoised[0][order], np.cumsum((bulk.weights[0] * bulk.density[0])[order])


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Eigenvalues of the estimate and of the truth, and the Kolmogorov distance from the prediction."""
    task, model = solve(params, seed)
    found = np.linalg.eigvalsh(model.S_)
    x, cdf = law(task, params["alpha"])
    predicted = np.interp(found, x, cdf)
    middle = (np.arange(len(found)) + 0.5) / len(found)
    # The delta of S at zero is compared as a whole: within it the order of the eigenvalues means nothing.
    off = np.abs(predicted - middle)[(found > 0.05) | (params["alpha"] < recovery_threshold(task))]
    rows = [{"distance": float(off.max()), "converged": model.converged_}]
    return {"found": found, "truth": np.linalg.eigvalsh(task.S), "rows": rows}


def draw(records: Records) -> Canvas:
    """Histograms and predicted densities."""
    alphas = records.values("alpha")
    canvas, axes = panels(1, len(alphas), width=3.6, height=3.2, sharey=True)
    for ax, alpha in zip(axes[0], alphas, strict=True):
        rows = records.where(alpha=alpha)
        found = np.concatenate([row["found"] for row in rows])
        bins = np.linspace(-0.25, 3.5, 46)
        ax.hist(found, bins, density=True, color=COLORS[5], alpha=0.6, label=r"AMP estimate $\hat S$")
        x, cdf = law(law_of(rows), alpha)
        expected = np.diff(np.interp(bins, x, cdf, left=0, right=1)) / np.diff(bins)
        ax.stairs(expected, bins, color="black", linewidth=1.4, label="predicted")
        ax.set(yscale="log", ylim=(0.02, 12), xlabel="eigenvalue")
        ax.set_title(rf"$\alpha = {alpha:g}$", loc="left")
    axes[0, 0].set_ylabel("density")
    axes[0, 0].legend(loc="upper right")
    return canvas


SPECTRA = Figure(
    name="aim.spectra",
    title="Spectrum of the estimate before and after recovery",
    paper=PAPER,
    shows="With few samples the spectrum is one bulk; beyond the threshold it is the Marchenko-Pastur law of S.",
    scales={
        "quick": [Grid({"d": 160, **PAIR, "alpha": [0.05, 0.15, 0.22]}, seeds=4)],
        "paper": [Grid({"d": 400, **PAIR, "alpha": [0.05, 0.15, 0.22]}, seeds=4)],
    },
    run=run,
    draw=draw,
    independent_of=("d",),
    shape=("d", "alpha"),
    claims=(
        Claim(
            id="aim.spectrum",
            says="The eigenvalues of AMP's estimate follow the shrunken Marchenko-Pastur + semicircle law",
            source=f"{PAPER}; free probability",
            statistic=largest(each(mean(of("distance")), "alpha")),
            holds=at_most(0.08),
            because="rigid eigenvalues are off by a few times 1/d = 0.006, finite-size shifts of the bulk by 0.03",
        ),
    ),
)
