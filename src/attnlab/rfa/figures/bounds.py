"""The excess-risk bounds beside what the norm-constrained learner they are proved for does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most
from attnlab.common.drawing import COLORS, MARKERS, line, panels, points, style
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.statistics import Statistic, decay, deterministic, largest, of, ratio_of_means
from attnlab.rfa.figures.curves import doubling, examples, learner_seed, planted, title
from attnlab.rfa.figures.panels import legend_below, value_ticks
from attnlab.rfa.learners import RandomFeatureAttention
from attnlab.rfa.solvers.erm import LOSSES, NormBall
from attnlab.rfa.task import Task
from attnlab.rfa.theory import excess_risk_bound, learning_curve, witness

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

PAPER = "arXiv:2307.11353"
TARGETS = ("f1_p2", "f2_q1")
DELTA = 0.1
RIDGELESS = 1e-9


LINES = {"prediction": "prediction", "bound": "explicit bound", "paper_bound": "paper's, $C = 1$"}


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Risk under the Huber loss (1-Lipschitz) over the ball of the theorem, and the bounds, for each n."""
    tasks = planted(TARGETS, params, seed)
    sizes, heads = doubling(params["n_max"]), params["heads"]
    X, X_test = examples(tasks["f1_p2"], params, sizes[-1], seed)
    rows = []
    for name, task in tasks.items():
        y, y_test = task.truth(X), task.truth(X_test)
        ball = NormBall(witness(task, heads, delta=DELTA).radius)
        for n in sizes:
            fitted = RandomFeatureAttention(heads, loss="huber", ridge=ball, random_state=learner_seed(seed))
            f = fitted.fit(X[:n], y[:n]).predict(X_test)
            rows.append(
                {
                    "target": name,
                    "n": n,
                    "risk": float(np.mean(LOSSES["huber"].value(f, y_test))),
                    "converged": fitted.converged_,
                    "prediction": risk(task, n, heads),
                    "bound": float(excess_risk_bound(task, n, heads, delta=DELTA)),
                    "paper_bound": float(excess_risk_bound(task, n, heads, form="paper", delta=DELTA)),
                }
            )
    return {"rows": rows}


def risk(task: Task, n: int, heads: int) -> float:
    """Predicted risk: half the square for small residuals, and noiseless labels leave the ball slack."""
    curve = learning_curve(task, n, ridge=RIDGELESS, n_heads=heads, tail="features")
    return float(curve.value * task.variance / 2)


def draw(records: Records) -> Canvas:
    """Risk against n, the bounds as lines above it."""
    with style():
        canvas, grid = panels(1, len(TARGETS), width=3.4, height=3.0)
        for axes, name in zip(grid.flat, TARGETS, strict=True):
            here = records.where(target=name)
            points(axes, here.curve("n", "risk"), color=COLORS[0], fmt=MARKERS[0], label="RFA on the norm ball")
            for i, (column, label) in enumerate(LINES.items()):
                curve = here.curve("n", column)
                line(axes, curve.x, curve.mean, color=COLORS[i + 1], label=label)
            axes.set(xscale="log", yscale="log", title=title(name), xlabel="samples $n$")
            value_ticks(axes, here.values("n"))
        grid[0, 0].set_ylabel("excess risk (Huber)")
        legend_below(canvas, grid[0, 0], 4)
    return canvas


def _over_bound(records: Records) -> list[Statistic]:
    """Risk over the explicit bound, for each target and n."""
    settings = sorted({(row["target"], row["n"]) for row in records})
    return [ratio_of_means(*(of(column, target=t, n=n) for column in ("risk", "bound"))) for t, n in settings]


def _bounds_apart(records: Records) -> float:
    """Largest ratio of the explicit bound to the paper's with constant one."""
    return float(np.max(records.column("bound") / records.column("paper_bound")))


BOUNDS = Figure(
    name="rfa.bounds",
    title="Excess-risk bounds with finitely many heads",
    paper=f"{PAPER}, Theorems 1 and 2",
    shows="The risk of the learner that the theorems are about follows the prediction for its heads and lies below the "
    "bounds at every n, by orders of magnitude: they are for any 1-Lipschitz loss, and their part from finitely many "
    "heads, a Markov inequality, is above the norm of the target at these sizes.",
    scales={
        "quick": [Grid({"d": 16, "n_keys": 16, "heads": 300, "n_max": 1024, "n_test": 500}, seeds=5)],
        "paper": [Grid({"d": 16, "n_keys": 16, "heads": 1000, "n_max": 2048, "n_test": 1000}, seeds=5)],
    },
    run=run,
    draw=draw,
    independent_of=("n_max", "n_test"),
    claims=(
        Claim(
            id="rfa.bound-holds",
            says="The excess risk on the norm ball is below the explicit bound at every n (largest ratio)",
            source=f"{PAPER}, Theorem 2; constants derived here",
            statistic=largest(_over_bound),
            holds=at_most(1),
            because="the bound itself",
        ),
        Claim(
            id="rfa.bound-explicit",
            says="The explicit bound is sharper than the paper's with constant one (largest ratio)",
            source="derived here",
            statistic=deterministic(_bounds_apart, why="a comparison of two formulas"),
            holds=at_most(1),
            because="a comparison of two formulas",
        ),
        Claim(
            id="rfa.bound-rate",
            says="On the quadratic average the risk falls at least as fast as n^{-1/2} (exponent)",
            source=f"{PAPER}, abstract (excess risk of order n^{{-1/2}})",
            statistic=decay(of("risk", target="f1_p2"), "n"),
            holds=at_least(0.5),
            because=(
                "the exponent of the theorem; the learning curve predicts 0.76 from n = 64 to 1024, and 1.0 to 2048"
            ),
        ),
    ),
)
