"""E4: pure harmonics are learned one after the other, in the order of the kernel's eigenvalues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_least
from attnlab.common.drawing import COLORS, MARKERS, line, panels, points, style
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.seeds import Seed, branch
from attnlab.common.statistics import of, ratio_of_means
from attnlab.rfa.figures.curves import INFINITE, doubling, learner, measure, prediction, with_theory
from attnlab.rfa.figures.panels import CAPTION, LIMIT, value_ticks
from attnlab.rfa.figures.theory_claims import theory_claims
from attnlab.rfa.targets import Harmonic
from attnlab.rfa.task import Task
from attnlab.rfa.theory import pair_eigenvalue

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# In the order in which they are learned at N = 16.
HARMONICS = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (1, 2), (0, 3))


def _tasks(params: Params, seed: Seed) -> dict[str, Task]:
    sizes = {"d": params["d"], "n_keys": params["n_keys"]}
    return {f"{a},{b}": Task(Harmonic((a, b)), **sizes, seed=seed) for a, b in HARMONICS}


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Errors on every harmonic, from one Gram matrix."""
    tasks = _tasks(params, branch(seed, "cell"))
    rows = measure(learner("rfa", params, seed), tasks, params, doubling(params["n_max"]), seed)
    return {"rows": with_theory(rows, tasks, "rfa", params["heads"])}


def draw(records: Records) -> Canvas:
    """Error per harmonic against n, with the prediction."""
    with style():
        canvas, grid = panels(width=5.6, height=4.0)
        axes = grid[0, 0]
        tasks = _tasks(records.rows[0], 0)
        for i, (a, b) in enumerate(HARMONICS):
            curve = records.curve("n", "error", target=f"{a},{b}")
            row = records.rows[0]
            eigenvalue = pair_eigenvalue(a, b, row["d"]) / (row["n_keys"] if b else 1)
            label = rf"$({a},{b})$: $\lambda$ = {eigenvalue:.1e}"
            points(axes, curve, color=COLORS[i], fmt=MARKERS[i], label=label)
            sizes, task = np.geomspace(curve.x[0], curve.x[-1], 30), tasks[f"{a},{b}"]
            line(axes, sizes, prediction(task, sizes, "rfa", row["heads"]).value, color=COLORS[i])
            limit = prediction(task, sizes, "rfa", INFINITE).value
            line(axes, sizes, limit, color=COLORS[i], label=f"_{label}, $M = \\infty$", **LIMIT)
        axes.set(xscale="log", yscale="log", xlabel="samples $n$", ylabel="error / Var $f_*$")
        axes.set_ylim(1e-4, 4)
        value_ticks(axes, records.values("n"))
        canvas.legend(*axes.get_legend_handles_labels(), loc="outside right center", title="degree (query, key)")
    return canvas


STAIRCASE = Figure(
    name="rfa.staircase",
    title="The staircase of harmonics",
    paper="derived here for the model of arXiv:2307.11353",
    shows="Each harmonic of degree (query, key) falls when n passes the number of modes with larger eigenvalues; the "
    "prediction has no fitted constant. " + CAPTION,
    scales={
        "quick": [Grid({"d": 16, "n_keys": 16, "heads": 400, "n_max": 2048, "n_test": 500}, seeds=20)],
        "paper": [Grid({"d": 16, "n_keys": 16, "heads": 1000, "n_max": 4096, "n_test": 1000}, seeds=20)],
    },
    run=run,
    draw=draw,
    independent_of=("heads: infty", "n_max", "n_test"),
    claims=(
        Claim(
            id="rfa.staircase-order",
            says=(
                "Harmonics of larger eigenvalue are learned first: at n = 2048 (1,2) has many times the error of (0,2)"
            ),
            source="derived here",
            statistic=ratio_of_means(of("error", target="1,2", n=2048), of("error", target="0,2", n=2048)),
            holds=at_least(5),
            because="14 seen in an independent prototype",
            kind="exploratory",
        ),
        *theory_claims("rfa.staircase", "on every harmonic", "target", "n"),
    ),
)
