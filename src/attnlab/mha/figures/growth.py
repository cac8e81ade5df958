"""Work of recovery against width and heads: polynomial at a fixed number of heads, for both laws of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most
from attnlab.common.figure import Canvas, Figure, Grid, Params
from attnlab.common.records import Records
from attnlab.common.statistics import of, proportion_of, slope
from attnlab.mha.engine.race import long_rows
from attnlab.mha.figures.instances import PAPER, judged, law, planted, race
from attnlab.mha.figures.ticks import log_values
from attnlab.mha.theory import step_flops


def run(params: Params, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Race random starts until one is exact; count the steps, and their operations as if each saw all rows."""
    m, d, k = params["n_heads"], params["d"], params["k"]
    task, (X, y), start = planted(seed, long_rows(m, d, k) // k + 1, params)
    learner = race(m, start).fit(X, y)
    operations = learner.n_iter_ * float(step_flops(task, len(X) * k))
    return {**judged(task, learner), "steps": learner.n_iter_, "operations": operations}


def draw(records: Records) -> Canvas:
    """Operations and steps against the width; lines are ten steps of the counted operations."""
    from attnlab.common.drawing import COLORS, MARKERS, line, panels, points

    canvas, axes = panels(1, 2, height=4.0)
    settings = sorted({(r["tokens_law"], r["n_heads"], r["k"]) for r in records})
    for i, (tokens_law, m, k) in enumerate(settings):
        look = {"color": COLORS[i % len(COLORS)], "fmt": MARKERS[i % len(MARKERS)]}
        chosen = records.where(tokens_law=tokens_law, n_heads=m, k=k)
        points(axes[0, 0], chosen.curve("d", "operations"), label=f"m = {m}, {tokens_law}", **look)
        points(axes[0, 1], chosen.curve("d", "steps"), **look)
        if tokens_law == "boolean":
            widths = np.arange(min(chosen.values("d")), max(chosen.values("d")) + 1)
            row = dict(next(iter(chosen)))
            counted = [10 * step_flops(law({**row, "d": int(d)}), long_rows(m, int(d), k)).value for d in widths]
            line(axes[0, 0], widths, counted, color=COLORS[i % len(COLORS)])
    line(axes[0, 0], [], [], color="0.3", label="ten steps, counted")
    axes[0, 0].set(yscale="log", ylabel="floating-point operations until exact")
    axes[0, 1].set(ylabel="Levenberg-Marquardt steps, all starts", ylim=(0, None))
    for ax in axes[0]:
        ax.set(xlabel="width d")
        log_values(ax, records.values("d"))
    canvas.legend(loc="outside lower center", ncols=3)
    return canvas


_LAYER = {"k": 4, "rho": 4.0}

GROWTH = Figure(
    name="mha.growth",
    title="Work of recovery against width and heads",
    paper=PAPER,
    shows=(
        "On generic layers the work of Levenberg-Marquardt from random starts (ours) grows as a power of the width; "
        "the number of steps hardly grows at all."
    ),
    scales={
        "quick": [
            Grid({**_LAYER, "tokens_law": "boolean", "n_heads": [1, 2, 3], "d": [4, 6, 8, 12]}, seeds=10),
            Grid({**_LAYER, "tokens_law": "gaussian", "n_heads": 2, "d": [4, 6, 8, 12]}, seeds=10),
        ],
        "paper": [
            Grid({**_LAYER, "tokens_law": "boolean", "n_heads": [1, 2, 3, 4], "d": [4, 6, 8, 12, 16, 24]}, seeds=20),
            Grid({**_LAYER, "tokens_law": "gaussian", "n_heads": [2, 3], "d": [4, 6, 8, 12, 16]}, seeds=20),
        ],
    },
    run=run,
    draw=draw,
    independent_of=("rho",),
    shape=("n_heads", "d"),
    claims=(
        Claim(
            id="mha.polynomial",
            says=(
                "the steps of Levenberg-Marquardt until a layer of two heads is exact, all starts counted, grow at "
                "most as the square root of the width: the work is polynomial"
            ),
            source="derived here: a step takes order m^3 d^6 operations",
            statistic=slope(of("steps", tokens_law="boolean", n_heads=2), "d"),
            holds=at_most(0.5),
            because=(
                "half a power for the number of steps beside the counted operations of a step; the form was fixed "
                "after earlier runs, which had bounded an exponent of operations by the formula that counted them"
            ),
            kind="exploratory",
        ),
        Claim(
            id="mha.polynomial.heads",
            says=(
                "on generic layers the steps of Levenberg-Marquardt, all starts counted, grow at most in proportion "
                "to the number of heads: the lower bound is a worst case"
            ),
            source="derived here: a step takes order m^3 d^6 operations",
            statistic=slope(of("steps", tokens_law="boolean", d=8), "n_heads"),
            holds=at_most(1.0),
            because="one power for the number of steps; the form was fixed after earlier runs, as for the width",
            kind="exploratory",
        ),
        Claim(
            id="mha.gaussian",
            says="Levenberg-Marquardt learns from Gaussian tokens what it learns from Boolean ones",
            source="derived here",
            statistic=proportion_of(of("success", tokens_law="gaussian")),
            holds=at_least(0.9),
            because="the exact 95 % interval of 40 successes in 40 begins at 0.91",
        ),
    ),
)
