"""Stochastic gradient descent of arXiv:2410.01537, section 5, by the exact-in-law chain of the overlaps."""

from __future__ import annotations

import numpy as np

from attnlab.common.claim import Claim, at_least, between
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.seeds import spawn
from attnlab.common.statistics import mean, of
from attnlab.slr import theory
from attnlab.slr.figures.cells import task_of
from attnlab.slr.figures.descent import PAPER, RUN, draw, final_rows, share
from attnlab.slr.sgd import simulate_sgd


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """``runs`` random starts, a fresh batch at every step; the risk is the exact one at the current overlaps."""
    starts, batches = spawn(seed, 2)
    task = task_of(params)
    path = simulate_sgd(
        task,
        theory.initial_overlaps(params["d"], params["runs"], seed=starts),
        lam=params["lam"],
        decay=params["decay"],
        step=params["step"],
        n_steps=params["n_steps"],
        log_every=params["log_every"],
        batch_size=params["batch_size"],
        seed=batches,
    )
    step = np.minimum(np.arange(len(path)) * params["log_every"], params["n_steps"])
    lam = params["lam"] / (1 + params["decay"] * step)
    excess = np.asarray(theory.risk(task, *np.moveaxis(path, 2, 0), lam=lam[:, None])) - task.noise_std**2
    return {"step_number": step, "path": path, "excess": excess, "rows": final_rows(path[-1], excess[-1])}


SETTING = {
    "d": 80,
    "L": 10,
    "gamma": 2**-0.5,
    "noise_std": 0.1,
    "runs": 10,
    "lam": 2.0,
    "decay": 1e-4,
    "step": 1e-3,
    "n_steps": 200_000,
    "log_every": 500,
    "batch_size": 5,
}

SGD = Figure(
    name="slr.sgd",
    title="Stochastic gradient descent with a decaying inverse temperature",
    paper=PAPER,
    shows="With batches of five fresh sequences and a decaying lambda, SGD finds the planted pair.",
    scales={scale: [Grid(SETTING, seeds=3)] for scale in ("quick", "paper")},
    run=run,
    draw=draw,
    independent_of=(
        "noise_std",
        "runs",
        "step",
        "batch_size",
    ),
    claims=(
        Claim(
            id="slr.sgd",
            says="SGD with a decaying lambda finds the planted pair from random starts",
            source="arXiv:2410.01537, section 5",
            statistic=share("oracle"),
            holds=at_least(0.8),
            because="29 successes of 30 have an exact 95 % interval from 0.83",
        ),
        Claim(
            id="slr.sgd_risk",
            says="SGD ends within two per cent of the excess risk 0.184 of our earlier runs (the published run: 0.180)",
            source="setting of arXiv:2410.01537, section 5; value derived here",
            statistic=mean(of("risk"), unit=RUN),
            holds=between(0.180, 0.188),
            because=(
                "the mean of 30 runs varies by 0.001; the published runs span 0.165 to 0.193 on their test batches; "
                "0.184 came from our own earlier runs"
            ),
            kind="exploratory",
        ),
    ),
    minutes={"quick": 0.4, "paper": 0.4},
)
