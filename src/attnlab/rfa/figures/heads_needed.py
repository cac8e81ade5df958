"""How many heads a sample of n examples deserves: from so many on the error is within ten per cent of the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.common.claim import Claim, at_most, between
from attnlab.common.drawing import COLORS, MARKERS, line, panels, points, style
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.statistics import deterministic, largest, mean, of
from attnlab.rfa.figures.curves import learner, measure, planted, title
from attnlab.rfa.figures.panels import MODEL_NAMES, legend_below, task_of, value_ticks
from attnlab.rfa.learners import AttentionKernelRidge
from attnlab.rfa.theory import heads_needed

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

TARGETS = ("f1_p1", "f1_p2", "f2_q1", "x0_p2")
SIZES = np.unique(np.geomspace(32, 4096, 9).astype(int))
SETTINGS = {"d": 16, "n_keys": 16, "target": list(TARGETS[1:]), "model": ["rfa", "rfmlp"], "excess": 0.1}


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Error with as many heads (units) as are said to be needed, over that of the exact kernel, on the same data."""
    name, model, n = params["target"], params["model"], params["n"]
    tasks = planted([name], params, seed)
    needed = heads_needed(tasks[name], n, params["excess"], model, tail="features")
    heads = int(np.ceil(needed.value / (params["d"] + 1 if model == "rfmlp" else 1)))
    (finite,) = measure(learner(model, {**params, "heads": heads}, seed), tasks, params, [n], seed)
    (limit,) = measure(AttentionKernelRidge(model), tasks, params, [n], seed)
    return {
        "needed": float(needed.value),
        "converged": bool(needed.converged),
        "error": finite["error"],
        "limit": limit["error"],
        "ratio": finite["error"] / limit["error"],
    }


def draw(records: Records) -> Canvas:
    """Heads against examples for each target and model; beside it, whether so many heads are enough."""
    models = [m for m in MODEL_NAMES if m in records.values("model")]
    with style():
        canvas, grid = panels(1, len(models) + 1, width=3.4, height=3.1)
        for axes, model in zip(grid[0], models, strict=False):
            row = records.where(model=model).rows[0]
            for i, name in enumerate(TARGETS):
                needed = heads_needed(task_of(row, name), SIZES, row["excess"], model, tail="features")
                line(axes, SIZES, needed.value, color=COLORS[i], label=title(name))
            parameters = row["d"] + 1 if model == "rfa" else 1
            line(axes, SIZES, SIZES / parameters, color="0.5", linestyle=":", label="as many parameters as examples")
            unit = "heads" if model == "rfa" else "units"
            axes.set(
                xscale="log", yscale="log", xlabel="samples $n$", ylabel=f"{unit} needed", title=MODEL_NAMES[model]
            )
            value_ticks(axes, [32, 128, 512, 2048])
        axes = grid[0, -1]
        for i, name in [(i, name) for i, name in enumerate(TARGETS) if name in records.values("target")]:
            for model, marker in zip(models, MARKERS, strict=False):
                curve = records.where(target=name, model=model).curve("n", "ratio")
                points(axes, curve, color=COLORS[i], fmt=marker, label="_" + name)
        axes.axhline(1 + records.rows[0]["excess"], color="0.5", linestyle=":")
        axes.set(xscale="log", xlabel="samples $n$", ylabel="error / error of the kernel", title="simulated")
        value_ticks(axes, records.values("n"))
        legend_below(canvas, grid[0, 0], 3)
    return canvas


def _growth(records: Records) -> float:
    """Heads for four times the examples over heads, quadratic key average, n = 256 and 1024."""
    row = records.where(target="f1_p2", model="rfa").rows[0]
    few, many = heads_needed(task_of(row, "f1_p2"), [256, 1024], row["excess"], "rfa", tail="features").value
    return float(many / few)


def _ratios(records: Records) -> list[Any]:
    """Error over that of the exact kernel, at every setting."""
    settings = sorted({(row["target"], row["model"], row["n"]) for row in records})
    return [mean(of("ratio", target=t, model=m, n=n)) for t, m, n in settings]


HEADS_NEEDED = Figure(
    name="rfa.heads_needed",
    title="Heads against examples",
    paper="derived here for the model of arXiv:2307.11353",
    shows="Heads (left) and units of RFMLP (middle) from which on the predicted error is within ten per cent of that "
    "of infinitely many; linear targets, whose limit is small, need most. Right: simulated error with so many over "
    "that of the exact kernel on the same data (circles RFA, squares RFMLP); the dotted line is ten per cent.",
    scales={
        "quick": [Grid({**SETTINGS, "n": [64, 256], "n_test": 1000}, seeds=5)],
        "paper": [Grid({**SETTINGS, "n": [64, 256, 512], "n_test": 2000}, seeds=10)],
    },
    run=run,
    draw=draw,
    independent_of=("d: RFMLP | as many", "n_keys: as many", "n", "excess: as many", "n_test"),
    shared=("model", "target"),
    claims=(
        Claim(
            id="rfa.needed-enough",
            says=(
                "With the heads said to be needed for ten per cent the error is within a quarter of the exact "
                "kernel's (largest mean ratio)"
            ),
            source="derived here",
            statistic=largest(_ratios),
            holds=at_most(1.25),
            because=(
                "ten per cent, and the accuracy of the prediction, which is up to a fifth low where the error is "
                "small; fixed before the first run"
            ),
            registered={"quick": "undecided"},
            note=(
                "The first run gave 1.18 for the largest of twelve ratios, of five seeds each, interval up to 1.29; "
                "the ten seeds and larger test sets of the paper scale would decide it."
            ),
        ),
        Claim(
            id="rfa.needed-growth",
            says=(
                "Four times the examples deserve more than four times the heads (quadratic key average, n = 256 to "
                "1024)"
            ),
            source="derived here",
            statistic=deterministic(_growth, why="a prediction, without simulation"),
            holds=between(4, 16),
            because="between linear and quadratic growth; the value 5.5 had been seen when the threshold was fixed",
            kind="exploratory",
        ),
    ),
)
