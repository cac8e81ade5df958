"""Gradient descent, single and averaged, beside AMP and the Bayes error (right panel of figure 2)."""

from __future__ import annotations

import csv
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from attnlab.aim import theory
from attnlab.aim.figures.simulate import ERROR, PAPER, law_of, run_amp, task_of
from attnlab.aim.learners.gradient_descent import Adam, GradientDescent, matrix
from attnlab.common.claim import Claim, at_least, between
from attnlab.common.drawing import COLORS, MARKERS, line, panels, points
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Curve, Records, Row
from attnlab.common.seeds import branch
from attnlab.common.statistics import FEWEST, MOST, difference, mean, of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

GD, AMP = {"learner": "gd", "rho": 0.5}, {"learner": "amp", "rho": 0.5}
MANY = {"scaled": [0.2, 0.4, 0.6], "inits": 32, "steps": 1000}
GRID = "gradient_descent_d200.csv"  # measured once on a GPU (benchmarks/gpu_grid.py); its first lines say how


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """One dataset at a rescaled number of samples: AMP, or gradient descent from many initialisations."""
    cell = {**params, "alpha": params["scaled"] / float(theory.scaled_alpha(task_of(params), 1.0))}
    if params["learner"] == "amp":
        return run_amp(cell, seed)
    task = task_of(params, branch(seed, "plant"))
    X, y = task.sample(task.n_samples(cell["alpha"]), branch(seed, "data"))
    model = GradientDescent(
        task.width, params["inits"], optimizer=Adam(n_steps=params["steps"]), random_state=branch(seed, "learner")
    ).fit(X, y)
    single = [((matrix(W) - task.S) ** 2).sum() / task.d for W in model.weights_]
    return {
        "single": float(np.mean(single)),
        "averaged": float(((model.S_ - task.S) ** 2).sum() / task.d),
        "loss": float(model.loss_.max()),
        "converged": model.converged_,
        "se": float(theory.mmse(task, cell["alpha"])),
    }


def draw(records: Records) -> Canvas:
    """This run's points; beside them the grid at d = 200."""
    canvas, axes = panels(1, 2, width=4.8, height=3.6, sharey=True)
    first, largest = axes[0, 0], records.values("d")[-1]
    if "gd" in records.values("learner"):
        descent = records.where(learner="gd")
        largest = descent.values("d")[-1]
        for i, tokens in enumerate(descent.where(d=largest).values("tokens")):
            for marker, kind in (("+", "single"), ("x", "averaged")):
                curve = descent.curve("scaled", kind, tokens=tokens, d=largest)
                label = f"{kind} GD, $T = {tokens}$"
                points(first, curve, fmt=marker, color=COLORS[i], markersize=6, label=label)
    if "amp" in records.values("learner"):
        amp = records.where(learner="amp")
        for i, tokens in enumerate(amp.values("tokens")):
            curve = amp.curve("scaled", "mse", tokens=tokens)
            points(first, curve, fmt=MARKERS[i], color="black", markersize=3.5, label=f"AMP, $T = {tokens}$")
    first.set_title(f"$d = {largest}$", loc="left")
    _draw_grid(axes[0, 1], read_grid())
    for ax in axes[0]:
        law = law_of(records) if ax is first else task_of({"d": 200, "rho": 0.5})  # the grid's law beside it
        alpha, error = theory.parametric_curve(law, np.logspace(-5, 3, 100))
        end, scale = (float(f) for f in (theory.recovery_threshold(law), theory.scaled_alpha(law, 1.0)))
        line(ax, np.r_[1, scale * end, scale * alpha], np.r_[0, 0, error], color="black", label="Bayes error", zorder=0)
        ax.set(xlabel=r"rescaled samples $\alpha\,(T^2 + T - 2)$", xlim=(0, 1), ylim=(0, 2.1))
        ax.legend(loc="upper right", fontsize=7.5)
    first.set_ylabel(ERROR)
    return canvas


def _draw_grid(ax: Axes, shipped: Records) -> None:
    for i, tokens in enumerate(shipped.values("tokens")):
        for marker, kind in (("+", "single"), ("x", "averaged")):
            alpha, mean, sem = shipped.curve("alpha", kind, tokens=tokens)
            label = f"$T = {tokens:g}$" if kind == "single" else None
            curve = Curve(alpha * (tokens**2 + tokens - 2), mean, sem)
            points(ax, curve, fmt=marker, color=COLORS[i], markersize=5, label=label)
    ax.set_title("$d = 200$, GPU run (+ single, × averaged over 32)", loc="left")


def read_grid() -> Records:
    """The records of the grid at d = 200 that ship with the package."""
    text = resources.files(__package__).joinpath(GRID).read_text()
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return Records.of({name: float(value) for name, value in row.items()} for row in rows)


def ratio(row: Row) -> float:
    """Error of single over that of averaged gradient descent, mean over the settings."""
    return float(row["single"] / row["averaged"])


def gap(row: Row) -> float:
    """Error of averaged gradient descent minus the Bayes error, mean over the settings."""
    return float(row["averaged"] - row["se"])


def relative(row: Row) -> float:
    """AMP's error over the Bayes error, mean over rescaled alpha."""
    return float(row["mse"] / row["se"])


DESCENT = Figure(
    name="aim.gradient_descent",
    title="Gradient descent, averaged gradient descent and AMP",
    paper=f"{PAPER}, figure 2 right",
    shows=(
        "On the scale alpha (T^2 + T - 2) all T agree; averaging many solutions of gradient descent comes "
        "close to Bayes."
    ),
    scales={
        "quick": [
            Grid({**GD, "d": [30, 50], "tokens": 2, "scaled": [0.2, 0.4, 0.6], "inits": 16, "steps": 1000}, seeds=4),
            Grid({**GD, "d": 50, "tokens": 3, "scaled": 0.4, "inits": 16, "steps": 1000}, seeds=4),
            Grid({**AMP, "d": 60, "tokens": [2, 3, 4], "scaled": [0.3, 0.5]}, seeds=32),
        ],
        "paper": [  # a run at d = 200 takes sixteen times as long as one at d = 100
            Grid({**GD, **MANY, "d": [50, 100, 200], "tokens": 2}, seeds=4),
            Grid({**GD, **MANY, "d": 100, "tokens": [3, 6]}, seeds=4),
            Grid({**AMP, "d": 150, "tokens": [2, 3, 4], "scaled": [0.2, 0.3, 0.5, 0.6]}, seeds=20),
        ],
    },
    run=run,
    draw=draw,
    independent_of=("d", "tokens", "rho: GPU run", "scaled", "inits", "steps"),
    shape=("learner", "d", "tokens", "scaled"),
    claims=(
        Claim(
            id="aim.collapse",
            says="The error depends on alpha (T^2 + T - 2) only, whatever the number of tokens",
            source=PAPER,
            statistic=difference(of(relative, learner="amp", tokens=MOST), of(relative, learner="amp", tokens=FEWEST)),
            holds=between(-0.12, 0.12),
            because=(
                "the Bayes error collapses exactly; finite-size excesses of 8 % may differ by half, noise 3 %; fixed "
                "after a first look at pilot runs"
            ),
            kind="exploratory",
        ),
        Claim(
            id="aim.gd-single",
            says="A single solution of gradient descent has about twice the error of the average of many",
            source=f"{PAPER}, figure 2 right",
            statistic=mean(of(ratio, learner="gd")),
            holds=between(1.5, 2.4),
            because=(
                "2 would be a posterior sample against the posterior mean; the published points run from 1.6 to 2.3"
            ),
        ),
        Claim(
            id="aim.gd-averaged",
            says="Averaged gradient descent is close to the Bayes error",
            source=f"{PAPER}, abstract (gradient descent can reach optimal performance) and figure 2 right",
            statistic=mean(of(gap, learner="gd")),
            holds=between(0.0, 0.15),
            because="no estimator beats Bayes; the published gap is 0.05 to 0.06 at d = 200 and grows as d falls",
        ),
        Claim(
            id="aim.gd-approach",
            says="Averaged gradient descent approaches the Bayes error as d grows",
            source=f"{PAPER}, figure 2 right",
            statistic=difference(of(gap, learner="gd", tokens=2, d=FEWEST), of(gap, learner="gd", tokens=2, d=MOST)),
            holds=at_least(0.0),
            because="the gap must shrink from the smallest to the largest d",
            registered={"quick": "undecided", "paper": "undecided"},
            note=(
                "Two sizes a factor two apart and 4 datasets do not resolve a gap of 0.05; d = 400 and 16 datasets "
                "would."
            ),
        ),
    ),
)
