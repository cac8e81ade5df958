"""Predicting fresh outputs: Bayes and plug-in, and what the temperature changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlab.aim import theory
from attnlab.aim.figures.simulate import PAIR, PAPER, SAMPLES, law_of, solve, summary
from attnlab.aim.task import Task
from attnlab.common.claim import Claim, at_most
from attnlab.common.drawing import COLORS, line, panels, points
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.seeds import branch
from attnlab.common.statistics import Statistic, absolute, each, largest, mean, of, ratio_of_means, shifted

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

FRESH = 3000
SOFT = {"channel": "softmax", "beta": [1.0, 5.0], "alpha": [0.05, 0.1, 0.15]}
TEMPERATURES = {"channel": "softmax", "alpha": 0.1, "beta": [0.3, 1.0, 3.0, 10.0]}
PREDICTORS = ("bayes", "plug-in")


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Both prediction errors on fresh sequences, and the theory at the Bayes error."""
    task, model = solve(params, seed)
    X, y = task.sample(FRESH, branch(seed, "test"))
    tested = {}
    for kind in PREDICTORS:
        predicted = model.set_params(prediction=kind).predict(X)
        tested[kind] = float(((y - predicted) ** 2).sum(axis=(1, 2)).mean())
    law = {f"theory {k}": predicted_error(task, params["alpha"], k) for k in PREDICTORS}
    return {**summary(model), **tested, **law}


def predicted_error(task: Task, alpha: float, kind: str) -> float:
    """The prediction error at the Bayes error of this many samples."""
    error = float(theory.mmse(task, alpha))
    return float(theory.generalization_error(task, error, predictor=kind))


def draw(records: Records) -> Canvas:
    """Prediction error against alpha for two temperatures and hardmax."""
    settings = sorted({(row["channel"], row["beta"]) for row in records}, key=lambda s: (s[0] == "hardmax", s[1]))
    canvas, axes = panels(1, len(settings), width=3.5, height=3.3)
    for ax, (channel, beta) in zip(axes[0], settings, strict=True):
        here = records.where(channel=channel, beta=beta)
        law = law_of(here)
        end = float(theory.recovery_threshold(law))
        limit = 1.07 * end if np.isfinite(end) else 1.0
        alpha = np.linspace(0.002, max(limit, 1.02 * max(here.values("alpha"))), 40)
        for color, kind in zip(COLORS, PREDICTORS, strict=False):
            curve = [predicted_error(law, float(a), kind) for a in alpha]
            line(ax, alpha, curve, color=color, label=kind)
            points(ax, here.curve("alpha", kind), color=color)
        ax.set(xlabel=SAMPLES, ylim=(0, None))
        ax.set_title(f"softmax, $\\beta = {beta:g}$" if channel == "softmax" else "hardmax", loc="left")
    axes[0, 0].set_ylabel(r"prediction error $E\|y - \hat y\|^2$")
    axes[0, -1].legend(loc="upper right", title=f"lines: theory\npoints: AMP, $d = {records.values('d')[-1]}$")
    return canvas


def gaps(records: Records) -> Sequence[Statistic]:
    """Distance of mean measured / predicted from 1, for both predictors at each channel, beta and alpha."""
    parts = [absolute(shifted(ratio_of_means(of(kind), of(f"theory {kind}")), -1)) for kind in PREDICTORS]
    return [setting for part in parts for setting in each(part, "channel", "beta", "alpha")(records)]


GENERALIZATION = Figure(
    name="aim.generalization",
    title="Prediction error on fresh sequences",
    paper=PAPER,
    shows="The mean prediction over the posterior (Bayes) is better than the prediction of the estimate.",
    scales={
        "quick": [
            Grid({"d": 60, **PAIR, **SOFT}, seeds=4),
            Grid({"d": 60, **PAIR, "channel": "hardmax", "beta": 1.0, "alpha": [0.1, 0.3]}, seeds=4),
        ],
        "paper": [
            Grid({"d": 150, **PAIR, **SOFT}, seeds=16),
            Grid({"d": 150, **PAIR, "channel": "hardmax", "beta": 1.0, "alpha": [0.1, 0.3, 0.8]}, seeds=16),
        ],
    },
    run=run,
    draw=draw,
    independent_of=("d", "beta: hardmax", "alpha"),
    shape=("d", "alpha", "channel"),
    claims=(
        Claim(
            id="aim.generalization",
            says="The prediction errors of AMP are those of the theory at the Bayes error",
            source=PAPER,
            statistic=largest(gaps),
            holds=at_most(0.12),
            because=(
                "the estimation error at d = 60 is 5 % above its limit and scatters by 4 % over 4 runs; fixed for the "
                "mean over settings instead of the worst"
            ),
            kind="exploratory",
        ),
        Claim(
            id="aim.bayes-plugin",
            says="The Bayes prediction is never worse than the plug-in",
            source="definition",
            statistic=largest(each(ratio_of_means(of("bayes"), of("plug-in")), "channel", "beta")),
            holds=at_most(1.0),
            because="both are measured on the same fresh sequences; the ratio is 0.96 (softmax, beta = 1) and smaller",
        ),
    ),
)


def run_beta(params: Params, seed: np.random.SeedSequence) -> Record:
    """The same tokens and S at another temperature: log outputs keep the indices readable."""
    task, model = solve(params, seed)
    X, y = task.sample(FRESH, branch(seed, "test"))
    test = float(((y - model.predict(X)) ** 2).sum(axis=(1, 2)).mean())
    return {**summary(model), "test": test, "test_theory": predicted_error(task, params["alpha"], "plug-in")}


def draw_beta(records: Records) -> Canvas:
    """Estimation error and prediction error against beta."""
    canvas, axes = panels(1, 2, width=4.0, height=3.3)
    left, right = axes[0]
    points(left, records.curve("beta", "mse"), color=COLORS[0], label=f"AMP, $d = {records.values('d')[-1]}$")
    alpha = records.values("alpha")[0]
    bayes = float(theory.mmse(law_of(records), alpha))
    left.axhline(bayes, color="black", label="Bayes error", gid="theory")
    left.set(xscale="log", xlabel=r"inverse temperature $\beta$", ylabel="estimation error", ylim=(0, 1))
    left.legend()
    points(right, records.curve("beta", "test"), color=COLORS[0])
    beta = np.logspace(np.log10(0.2), np.log10(15), 40)
    curve = [predicted_error(law_of(records, beta=float(b)), alpha, "plug-in") for b in beta]
    line(right, beta, curve, color="black")
    right.set(xscale="log", xlabel=r"inverse temperature $\beta$", ylabel="plug-in prediction error", ylim=(0, None))
    return canvas


def spread(records: Records) -> float:
    """Largest difference of the estimation error between temperatures, within one instance."""
    return float(np.ptp(records.column("mse")))


BETA = Figure(
    name="aim.beta",
    title="Temperature does not matter for estimation",
    paper=PAPER,
    shows=(
        "Softmax outputs give the indices up to a constant at any finite beta, so only the prediction error "
        "depends on it."
    ),
    scales={
        "quick": [Grid({"d": 60, **PAIR, **TEMPERATURES}, seeds=4)],
        "paper": [Grid({"d": 150, **PAIR, **TEMPERATURES}, seeds=8)],
    },
    run=run_beta,
    draw=draw_beta,
    independent_of=("d", "beta: 2 |"),
    shared=("beta",),
    shape=("d",),
    claims=(
        Claim(
            id="aim.beta",
            says="The estimation error of softmax does not depend on beta",
            source=PAPER,
            statistic=mean(spread),
            holds=at_most(2e-3),
            because="exact up to rounding; AMP stops at changes of 1e-6, an error of 1e-3 at most",
        ),
    ),
)
