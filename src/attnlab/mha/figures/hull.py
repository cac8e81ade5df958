"""Watching the affine hull appear: the body's axes against the number of examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most
from attnlab.common.figure import Canvas, Figure, Grid, Params
from attnlab.common.records import Records
from attnlab.common.statistics import FEWEST, geometric_mean, mean, of
from attnlab.mha.figures.instances import PAPER, Examples, planted
from attnlab.mha.figures.ticks import log_values
from attnlab.mha.learners.sculpting import SculptingLearner
from attnlab.mha.sculpting.axes import span_error
from attnlab.mha.sculpting.body import divergence
from attnlab.mha.task import Task

_AXES = 6
_EXAMPLES = 30_000


def run(params: Params, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Sculpt, without any non-convex step."""
    task, examples, _ = planted(seed, params["n"], params)
    return sculpted(task, examples)


def sculpted(task: Task, examples: Examples) -> dict[str, Any]:
    """What phases 1 to 5 find; ``inside`` compares the heads' divergence with that of even attention."""
    learner = SculptingLearner(task.n_heads, holdout=None).fit_span(*examples)
    w_sum = task.W.sum(axis=0)
    size = np.linalg.norm(w_sum)
    even = divergence(learner.body_, np.zeros_like(task.Theta[0]))
    return {
        "span_error": span_error(learner.span_, task.Theta),
        "sum_error": float(np.linalg.norm(learner.w_sum_ - w_sum) / size),
        "crude_error": float(np.linalg.norm(learner.steps_[0].arrays["w_sum"] - w_sum) / size),
        "body_rows": float(len(learner.body_.rows)),
        "inside": max(divergence(learner.body_, head) for head in task.Theta) / even,
        "gap": learner.steps_[-1].summary["gap"],
        "axes": 1 / np.sqrt(np.maximum(learner.curvatures_[:_AXES], 1e-12)),
    }


def draw(records: Records) -> Canvas:
    """Axis lengths, and errors of span and sum, against the number of examples."""
    from attnlab.common.drawing import COLORS, panels, points

    settings = sorted({(r["n_heads"], r["rho"]) for r in records})
    canvas, axes = panels(1, len(settings) + 1, width=3.7)
    for ax, (m, rho) in zip(axes[0], settings, strict=False):
        chosen = records.where(n_heads=m, rho=rho)
        ns = chosen.values("n")
        lengths = np.array([np.mean(np.log(chosen.where(n=n).column("axes")), axis=0) for n in ns])
        for axis in range(lengths.shape[1]):
            long = axis < m - 1
            label = {0: "long axes (m − 1)", m - 1: "next axes"}.get(axis)
            ax.plot(ns, np.exp(lengths[:, axis]), "o-", color=COLORS[1] if long else COLORS[0], label=label)
        ax.set(yscale="log", xlabel="examples n", title=f"m = {m} heads, ρ = {rho:g}")
        log_values(ax, ns)
        ax.legend(loc="center right")
    axes[0, 0].set_ylabel("axis of the body, 1/√curvature")
    ax = axes[0, -1]
    for i, (m, rho) in enumerate(settings):
        for name, marker, text in (("span_error", "o", "span (sine)"), ("sum_error", "s", "sum of W")):
            curve = records.curve("n", name, n_heads=m, rho=rho)
            points(ax, curve, fmt=marker + ":", color=COLORS[2 + i], label=f"{text}, m = {m}")
    ax.set(yscale="log", xlabel="examples n", ylabel="relative error before refinement")
    log_values(ax, records.values("n"))
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return canvas


_LAYER = {"d": 8, "k": 2}


HULL = Figure(
    name="mha.hull",
    title="The body's long axes are the affine hull of the heads",
    paper=PAPER,
    shows=(
        "As agreeing rows accumulate, m - 1 axes of the body stay long and all others shrink: the long ones span the "
        "heads. Phases 1 to 5 of the paper alone, no search and no refinement."
    ),
    scales={
        "quick": [
            Grid({**_LAYER, "n_heads": 2, "rho": 2.0, "n": [3000, _EXAMPLES]}, seeds=10),
            Grid({**_LAYER, "n_heads": 3, "rho": 1.0, "n": 100000}, seeds=10),
            # drawn only
            Grid({**_LAYER, "n_heads": 2, "rho": 2.0, "n": 10000}, seeds=5),
            Grid({**_LAYER, "n_heads": 3, "rho": 1.0, "n": [10000, 30000]}, seeds=5),
        ],
        "paper": [
            Grid({**_LAYER, "n_heads": 2, "rho": 2.0, "n": [2000, 5000, 10000, _EXAMPLES, 100_000]}, seeds=20),
            Grid({**_LAYER, "n_heads": 3, "rho": 1.0, "n": [10000, 20000, 50000, 100000, 200000]}, seeds=20),
        ],
    },
    run=run,
    draw=draw,
    shared=("n",),
    shape=("n",),
    claims=(
        Claim(
            id="mha.hull.span",
            says="sculpting finds the affine hull of two heads before any non-convex step",
            source=f"{PAPER}, section on sculpting",
            statistic=mean(of("span_error", n_heads=2, n=_EXAMPLES)),
            holds=at_most(0.03),
            because="a sine of 0.03 is below the width of the tube the agreement scale of 0.01 allows",
        ),
        Claim(
            id="mha.hull.span.3",
            says="sculpting finds the affine hull of three heads before any non-convex step",
            source=f"{PAPER}, section on sculpting",
            statistic=mean(of("span_error", n_heads=3, n=100000)),
            holds=at_most(0.2),
            because="close enough that every start of the net ends at the planted layer",
        ),
        Claim(
            id="mha.hull.contains",
            says="the examples sculpt a convex body that contains the unknown attention matrices",
            source=f"{PAPER}, abstract",
            statistic=mean(of("inside", n_heads=2, n=_EXAMPLES)),
            holds=at_most(0.05),
            because=(
                "the divergence of the worst head is below a twentieth of that of even attention, so every head lies "
                "in a body that excludes the origin by a factor of 20; fixed before the first run"
            ),
        ),
        Claim(
            id="mha.hull.shrinks",
            says="the body closes in on the hull as examples are added",
            source=f"{PAPER}, error (dk)^-Omega(m)",
            statistic=geometric_mean(of("span_error", n_heads=2, n=_EXAMPLES), of("span_error", n_heads=2, n=FEWEST)),
            holds=at_most(0.5),
            because="half the span error or less over the examples of the figure; fixed before the first run",
        ),
        Claim(
            id="mha.hull.sum",
            says="agreeing rows refine the crude sum of projections",
            source=f"{PAPER}, section on sculpting",
            statistic=mean(of("sum_error", n_heads=2, n=_EXAMPLES)),
            holds=at_most(2e-3),
            because="a hundredth of the crude estimate's error of about 0.18",
        ),
        Claim(
            id="mha.hull.gap",
            says="the gap after m - 1 long axes counts the heads",
            source="derived here",
            statistic=geometric_mean(of("gap", n_heads=2, n=_EXAMPLES)),
            holds=at_least(10.0),
            because="a gap of 10 in curvature cannot be mistaken for the spread among short axes (a factor below 3)",
        ),
    ),
)
