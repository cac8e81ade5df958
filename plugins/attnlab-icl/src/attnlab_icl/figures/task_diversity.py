"""From memorising to learning in context: what more pretraining tasks do, beside two estimators that know the law."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most
from attnlab.common.drawing import COLORS, MARKERS, line, panels, points
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.seeds import branch
from attnlab.common.statistics import Statistic, mean, of, proportion_of, smallest
from attnlab_icl.figures import simulate
from attnlab_icl.figures.published import draw_published
from attnlab_icl.figures.simulate import PAPER, finite_line, law, limit
from attnlab_icl.learners.in_context import DiscreteMMSE, InContext, RidgeInContext
from attnlab_icl.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

KAPPA = np.geomspace(0.1, 60, 300)
# Contexts on which the baselines are tested; query and noise are averaged exactly.
TEST = 256
# Test error above the noise variance that counts as none.
NOISE_REACHED = 1e-6


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """A pretrained layer, and on the first row of panels the two baselines on the same tasks."""
    result: dict[str, Any] = {**simulate.run(params, seed)}
    if params["baselines"]:
        task = law(params, seed)
        result |= _memorisation("dmmse", DiscreteMMSE(task.W, task.noise_std), task, seed)
        result |= _memorisation("ridge", RidgeInContext(noise_std=task.noise_std), task, seed)
    return result


def _memorisation(name: str, learner: InContext, task: Task, seed: np.random.SeedSequence) -> Record:
    """Errors on new and on pretraining tasks, from fresh contexts."""
    new = learner.excess(task, TEST, branch(seed, "test"), "new")
    old = learner.excess(task, TEST, branch(seed, "test"), "pretraining")
    return {f"{name}_g": new - old, f"{name}_excess": old, f"{name}_reaches_noise": old <= NOISE_REACHED}


def draw(records: Records) -> Canvas:
    """Memorisation against the number of tasks: the layer with its baselines, and along longer contexts."""
    canvas, axes = panels(1, 2, width=5.0, height=3.8)
    _with_baselines(axes[0, 0], records.where(baselines=True))
    _longer(axes[0, 1], records.where(baselines=False))
    return canvas


def _with_baselines(ax: Axes, records: Records) -> None:
    first = dict(next(iter(records)))
    line(ax, KAPPA, limit(first, kappa=KAPPA).detail["g_task"], color=COLORS[0], label=r"layer, theory $d \to \infty$")
    finite_line(ax, records, "kappa", "g_task", COLORS[0])
    points(ax, records.curve("kappa", "g_task"), color=COLORS[0], label=f"layer and dotted theory, $d = {first['d']}$")
    for color, name, label in ((COLORS[1], "dmmse_g", "dMMSE"), (COLORS[2], "ridge_g", "ridge in context")):
        points(ax, records.curve("kappa", name), color=color, label=label, fmt="s")
    if (first["alpha"], first["tau"], first["rho"]) == (10, 10, 0.01):
        draw_published(ax, "task_diversity", d=64, over="kappa", name="g_task", setting=first)
    ax.axvline(1, color="gray", linewidth=0.8, linestyle=":")
    ax.set(xscale="log", xlabel=r"pretraining tasks $\kappa = k/d$", ylabel=r"memorisation $e_{ICL} - e_{IDG}$")
    ax.set_title(rf"$\alpha = {first['alpha']:g}$, $\tau = {first['tau']:g}$, $\rho = {first['rho']:g}$", loc="left")
    ax.legend()


def _longer(ax: Axes, records: Records) -> None:
    for color, marker, alpha in zip(COLORS, MARKERS, records.values("alpha"), strict=False):
        chosen = records.where(alpha=alpha)
        first = dict(next(iter(chosen)))
        label = rf"$\alpha = {alpha:g}$, $\tau = {first['tau']:g}$"
        line(ax, KAPPA, limit(first, kappa=KAPPA).detail["g_task"], color=color, label=label)
        finite_line(ax, chosen, "kappa", "g_task", color)
        points(ax, chosen.curve("kappa", "g_task"), color=color, fmt=marker)
    ax.plot(KAPPA, np.maximum(0, 1 - KAPPA), color="black", linestyle="--", label=r"$\alpha, \tau \to \infty$")
    ax.axvline(1, color="gray", linewidth=0.8, linestyle=":")
    ax.set(xscale="log", ylim=(-0.05, 1.6), xlabel=r"pretraining tasks $\kappa = k/d$")
    ax.set_title(f"longer contexts; points and dotted theory: $d = {records.values('d')[0]}$", loc="left")
    ax.legend()


def _grids(d: int, seeds: int) -> list[Grid]:
    kappas = [0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6, 2.0, 4.0, 8.0, 16.0, 32.0]
    fixed: dict[str, Any] = {"d": d, "rho": 0.01}
    longer = [
        Grid(
            {
                **fixed,
                "alpha": a,
                "tau": a / 5,
                "kappa": [0.2, 0.5, 1.0, 10.0, 50.0],
                "ridge": 1e-5,
                "baselines": False,
            },
            4,
        )
        for a in (6.0, 10.0, 20.0, 40.0)
    ]
    first = {**fixed, "alpha": 10.0, "tau": 10.0, "kappa": kappas, "ridge": 1e-6, "baselines": True}
    return [Grid(first, seeds), *longer]


def dmmse_memorisation(records: Records) -> list[Statistic]:
    """g_task of dMMSE at every number of tasks."""
    kappas = records.where(baselines=True).values("kappa")
    return [mean(of("dmmse_g", baselines=True, kappa=kappa)) for kappa in kappas]


FIRST = {"baselines": True, "alpha": 10.0, "tau": 10.0}
CLAIMS = (
    Claim(
        id="icl.memorises",
        says="With a fifth as many tasks as dimensions the layer memorises them",
        source=f"{PAPER}, figure 4",
        statistic=mean(of("g_task", **FIRST, kappa=0.2)),
        holds=at_least(0.7),
        because="the limit is 0.825, and finite layers lie above it",
        replicates=8,
    ),
    Claim(
        id="icl.learns-in-context",
        says="With four times as many tasks as dimensions the layer does not memorise",
        source=f"{PAPER}, figure 4",
        statistic=mean(of("g_task", **FIRST, kappa=4.0)),
        holds=at_most(0.015),
        because="the limit is 0.0092; finite layers of d >= 32 lie at most a tenth above it",
        replicates=8,
    ),
    Claim(
        id="icl.dmmse-memorises",
        says="The posterior mean over the pretraining tasks memorises at any number of tasks",
        source=f"{PAPER}, figure 4; arXiv:2306.15063",
        statistic=smallest(dmmse_memorisation),
        holds=at_least(0.9),
        because="its leading finite-size formula is 0.93 at d = 32, kappa = 32, and larger elsewhere on the grid",
        replicates=8,
    ),
    Claim(
        id="icl.dmmse-in-distribution",
        says="On the pretraining tasks the posterior mean reaches the noise",
        source="arXiv:2306.15063",
        statistic=proportion_of(of("dmmse_reaches_noise", baselines=True)),
        holds=at_least(0.9),
        because="the posterior weight of a wrong task falls exponentially with d, so every planted instance should lie "
        "within 1e-6 of the noise variance; nine of ten is what 96 instances can tell from all. The excess was seen to "
        "be exactly 0 before the share was chosen as the statistic",
        replicates=8,
        kind="exploratory",
    ),
)


TASK_DIVERSITY = Figure(
    name="icl.task_diversity",
    title="From memorisation to in-context learning",
    paper=f"{PAPER}, figure 4",
    shows="With more tasks than dimensions the layer learns in context; the posterior mean over tasks memorises.",
    scales={"quick": _grids(32, 8), "paper": _grids(64, 20)},
    run=run,
    draw=draw,
    independent_of=(
        *(f"{knob}: {line}" for knob in ("d", "kappa") for line in (r"\infty", r"| $\alpha", "theory at $d = 64$")),
        *(rf"{knob}: \tau \to \infty" for knob in ("rho", "alpha", "tau", "ridge")),
    ),
    shape=("d", "tau"),
    claims=CLAIMS,
)
