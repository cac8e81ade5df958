"""One run of message passing, as the cells of several figures need it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from attnlab.aim import theory
from attnlab.aim.learners.amp import AMP
from attnlab.aim.task import Task
from attnlab.common.figure import Params, Record
from attnlab.common.seeds import spawn

PAPER = "arXiv:2506.01582"


def solve(params: Params, seed: np.random.SeedSequence, **options: Any) -> tuple[Task, AMP]:
    """A planted instance and AMP on it; a run that does not settle says so in its record instead of warning."""
    channel = str(params.get("channel", "softmax"))
    for_task, for_data = spawn(seed, 2)
    task = Task(
        params["d"], params["tokens"], params["rho"], channel, beta=float(params.get("beta", 1.0)), seed=for_task
    )
    log = channel == "softmax"
    X, y = task.sample(task.n_samples(params["alpha"]), for_data, log=log)
    options = {"tol": 1e-6, "max_iter": 120, **options}
    model = AMP(params["rho"], channel, beta=task.beta, log_targets=log, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return task, model.fit(X, y, truth=task.S)


def run_amp(params: Params, seed: np.random.SeedSequence) -> Record:
    """Errors and overlaps of the last iterate, beside the state evolution's error."""
    _, model = solve(params, seed)
    return summary(model) | {"se": predicted(params)}


def summary(model: AMP) -> dict[str, Any]:
    """The last entries of the trace."""
    last = {name: model.trace_[name][-1] for name in ("mse", "overlap", "self_overlap")}
    return last | {"expected": model.predicted_mse_, "converged": model.converged_, "iterations": model.n_iter_}


def predicted(params: Params, channel: str | None = None) -> float:
    """The Bayes error at the cell's parameters."""
    channel = channel or str(params.get("channel", "softmax"))
    return float(theory.mmse(params["alpha"], params["rho"], params["tokens"], channel))
