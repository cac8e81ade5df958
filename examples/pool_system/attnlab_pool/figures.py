"""The experiments, and what they must show."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.claim import Claim, between
from attnlab.common.drawing import line, panels, points
from attnlab.common.figure import Figure, Grid, Params
from attnlab.common.records import Records
from attnlab.common.seeds import branch
from attnlab.common.statistics import of, ratio_of_means
from attnlab_pool.learners import PooledLeastSquares
from attnlab_pool.task import Task
from attnlab_pool.theory import risk


def run(params: Params, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Fit and test at one point of the grid; theory is asked about the same task."""
    task = Task(params["d"], params["tokens"], params["noise_std"], seed=branch(seed, "plant"))
    learner = PooledLeastSquares().fit(*task.sample(params["n"], branch(seed, "data")))
    X, y = task.sample(2000, branch(seed, "test"))
    error = float(np.mean((learner.predict(X) - y) ** 2))
    return {"error": error, "theory": float(risk(task, params["n"])), "converged": learner.converged_}


def draw(records: Records) -> Any:
    """Points: simulation; line: the exact risk."""
    canvas, ((axes,),) = panels()
    points(axes, records.curve("n", "error"), label="least squares")
    curve = records.curve("n", "theory")
    line(axes, curve.x, curve.mean, label="exact risk")
    axes.set(xlabel="examples n", ylabel="test error", xscale="log", yscale="log")
    axes.legend()
    return canvas


RISK = Figure(
    name="pool.risk",
    title="Least squares on the mean token",
    paper="derived here",
    shows="Points: simulation. Line: the exact risk. The number of tokens changes neither.",
    scales={"quick": [Grid({"d": 8, "tokens": 3, "noise_std": 0.5, "n": [20, 50, 200]}, seeds=20)]},
    run=run,
    draw=draw,
    claims=(
        Claim(
            id="pool.exact",
            says="The test error of least squares is the exact risk",
            source="derived here",
            statistic=ratio_of_means(of("error", n=50), of("theory", n=50)),
            holds=between(0.85, 1.15),
            because="a replicate scatters by 7 % (test set 3.2 %, fit 6.7 %), 20 of them by 2 %: the interval is ±4 %",
            kind="exploratory",
        ),
    ),
    shared=("n",),
    minutes={"quick": 0.05},
)
FIGURES = (RISK,)
