"""E4: pure harmonics are learned one after the other, in the order of the kernel's eigenvalues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most
from attnlab.common.drawing import COLORS, MARKERS, line, panels, points, style
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.seeds import spawn
from attnlab.common.statistics import Statistic, absolute, difference, known, largest, of, ratio_of_means, shifted
from attnlab.rfa.figures.curves import attention, doubling, examples, grams, relative_errors, weight_seed
from attnlab.rfa.figures.panels import value_ticks
from attnlab.rfa.task import Task
from attnlab.rfa.theory import learning_curve, pair_eigenvalue

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# In the order in which they are learned at N = 16.
HARMONICS = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (1, 2), (0, 3))


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Errors on every harmonic, from one Gram matrix."""
    planted_seed = int(spawn(seed, 3)[0].generate_state(1)[0])
    d, n_keys, n_max = params["d"], params["n_keys"], params["n_max"]
    tasks = {f"{a},{b}": Task("harmonic", d=d, n_keys=n_keys, harmonic=(a, b), seed=planted_seed) for a, b in HARMONICS}
    X = examples(tasks["0,1"], n_max + params["n_test"], seed)
    heads = attention(params["heads"], d, weight_seed(seed))
    return {"rows": relative_errors(*grams(heads, X, n_max), tasks, X, doubling(n_max))}


def _predicted(records: Records, name: str, sizes: np.ndarray) -> np.ndarray:
    row, (a, b) = records.rows[0], map(int, name.split(","))
    return np.asarray(learning_curve(Task("harmonic", d=row["d"], n_keys=row["n_keys"], harmonic=(a, b)), sizes))


def draw(records: Records) -> Canvas:
    """Error per harmonic against n, with the prediction."""
    with style():
        canvas, grid = panels(width=5.6, height=4.0)
        axes = grid[0, 0]
        for i, (a, b) in enumerate(HARMONICS):
            curve = records.curve("n", "error", target=f"{a},{b}")
            row = records.rows[0]
            eigenvalue = pair_eigenvalue(a, b, row["d"]) / (row["n_keys"] if b else 1)
            label = rf"$({a},{b})$: $\lambda$ = {eigenvalue:.1e}"
            points(axes, curve, color=COLORS[i], fmt=MARKERS[i], label=label)
            sizes = np.geomspace(curve.x[0], curve.x[-1], 30)
            line(axes, sizes, _predicted(records, f"{a},{b}", sizes), color=COLORS[i])
        axes.set(xscale="log", yscale="log", xlabel="samples $n$", ylabel="error / Var $f_*$")
        axes.set_ylim(1e-4, 4)
        value_ticks(axes, records.values("n"))
        canvas.legend(*axes.get_legend_handles_labels(), loc="outside right center", title="degree (query, key)")
    return canvas


def _gaps(records: Records) -> list[Statistic]:
    """Deviation from theory beyond ten per cent, for harmonics of the keys, n from 256 to 2048."""
    found: list[Statistic] = []
    for name in ("0,1", "0,2", "0,3"):
        sizes = np.array([n for n in records.values("n") if 256 <= n <= 2048])
        for n, predicted in zip(sizes, _predicted(records, name, sizes), strict=True):
            measured = of("error", target=name, n=n)
            found.append(shifted(absolute(difference(measured, known(float(predicted)))), -0.1 * float(predicted)))
    return found


STAIRCASE = Figure(
    name="rfa.staircase",
    title="The staircase of harmonics",
    paper="derived here for the model of arXiv:2307.11353",
    shows="Each harmonic of degree (query, key) falls when n passes the number of modes with larger eigenvalues; the "
    "prediction has no fitted constant.",
    scales={
        "quick": [Grid({"d": 16, "n_keys": 16, "heads": 1000, "n_max": 2048, "n_test": 500}, seeds=5)],
        "paper": [Grid({"d": 16, "n_keys": 16, "heads": 1000, "n_max": 4096, "n_test": 1000}, seeds=5)],
    },
    run=run,
    draw=draw,
    minutes={"quick": 0.1, "paper": 0.3},
    claims=(
        Claim(
            "rfa.staircase-order",
            "Harmonics of larger eigenvalue are learned first: at n = 2048 (1,2) has many times the error of (0,2)",
            "derived here",
            ratio_of_means(of("error", target="1,2", n=2048), of("error", target="0,2", n=2048)),
            at_least(5),
            "14 seen in an independent prototype",
            kind="exploratory",
        ),
        Claim(
            "rfa.staircase-theory",
            "The errors on harmonics of the keys follow the prediction",
            "derived here",
            largest(_gaps),
            at_most(0.12),
            "largest |measured - predicted| - 0.1 predicted; about 0.06 seen on one seed of an independent prototype",
            kind="exploratory",
        ),
    ),
)
