"""One run of message passing, as the cells of several figures need it, and the laws that their lines are drawn for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.aim import theory
from attnlab.aim.learners.amp import AMP
from attnlab.aim.task import Task
from attnlab.common.figure import Params, Record
from attnlab.common.records import Records
from attnlab.common.seeds import Seed, branch

PAPER = "arXiv:2506.01582"
LAW = ("d", "tokens", "rho", "channel", "beta", "noise", "tied", "attention", "mask")


def task_of(params: Mapping[str, Any], seed: Seed = 0, **changed: Any) -> Task:
    """The task of a cell: those of its parameters that are a task's."""
    given = {name: params[name] for name in LAW if name in params} | changed
    if given.get("channel", "softmax") != "softmax":
        given.pop("beta", None)
    if isinstance(given.get("tokens"), list):
        given["tokens"] = tuple(given["tokens"])
    return Task(**given, seed=seed)


def law_of(records: Records, **changed: Any) -> Task:
    """The task of the first record, for the theory line of a panel; its planted matrix is never drawn."""
    return task_of(next(iter(records)), **changed)


def learner_of(task: Task, **options: Any) -> AMP:
    """AMP that is told the law."""
    told = {name: getattr(task, name) for name in AMP.needs}
    return AMP(**told, **{"tol": 1e-6, "max_iter": 120, **options})


def solve(params: Params, seed: np.random.SeedSequence, **options: Any) -> tuple[Task, AMP]:
    """A planted instance and AMP on it; a run that does not settle says so in its record instead of warning."""
    task = task_of(params, branch(seed, "plant"))
    log = task.law.name == "softmax"  # exact where outputs underflow
    X, y = task.sample(task.n_samples(params["alpha"]), branch(seed, "data"), log=log)
    return task, learner_of(task, **options).fit(X, y, truth=task.S)


def run_amp(params: Params, seed: np.random.SeedSequence) -> Record:
    """Errors and overlaps of the last iterate, beside the state evolution's error."""
    task, model = solve(params, seed)
    return summary(model) | {"se": float(theory.mmse(task, params["alpha"]))}


def summary(model: AMP) -> dict[str, Any]:
    """The last entries of the trace."""
    last = {name: model.trace_[name][-1] for name in ("mse", "overlap", "self_overlap")}
    return last | {"expected": model.predicted_mse_, "converged": model.converged_, "iterations": model.n_iter_}
