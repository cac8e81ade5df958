"""What the cells share: a planted task and its examples from a cell's seed, and the verdict on a fitted layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from attnlab.common.seeds import spawn
from attnlab.mha.alignment import align
from attnlab.mha.learners.attention_learner import AttentionLearner
from attnlab.mha.learners.base import LayerRegressor
from attnlab.mha.learners.gradient import GradientLearner
from attnlab.mha.learners.sculpting import SculptingLearner
from attnlab.mha.task import Task

# A layer counts as recovered when every head is this close and fresh examples are fitted to this error.
THETA_ERROR, NMSE = 1e-3, 1e-8
PAPER = "arXiv:2402.04084"

Examples = tuple[np.ndarray, np.ndarray]


def law(params: Mapping[str, Any], seed: int = 0) -> Task:
    """The task of a cell or of its record: the parameters that a task has, the others left out."""
    given = {field.name: params[field.name] for field in fields(Task) if field.name in params}
    return Task(**{**given, "seed": seed})


def planted(seed: np.random.SeedSequence, n: int, params: Mapping[str, Any]) -> tuple[Task, Examples, int]:
    """The cell's task, n examples of it, and an integer to seed the learner."""
    layer, examples, learner = (int(s.generate_state(1)[0]) for s in spawn(seed, 3))
    task = law(params, layer)
    return task, task.sample(n, seed=examples), learner


def race(n_heads: int, seed: int, **options: Any) -> AttentionLearner:
    """Random starts raced by Levenberg-Marquardt, all examples fitted."""
    return AttentionLearner(n_heads, starts=("random",), holdout=None, random_state=seed, **options)


def build(learner: str, n_heads: int, seed: int, starts: int, iterations: int) -> LayerRegressor:
    """A learner by the name it has in the figures, with its budget; sculpting has its own."""
    if learner == "race":
        return race(n_heads, seed, n_starts=starts)
    if learner == "sculpting":
        return SculptingLearner(n_heads, holdout=None, random_state=seed)
    return GradientLearner(
        n_heads, method=learner, n_starts=starts, max_iter=iterations, step=(0.05, 0.01), random_state=seed
    )


def judged(task: Task, learner: LayerRegressor) -> dict[str, Any]:
    """How close the fitted layer is to the planted one."""
    found = align(learner.theta_, learner.w_, task.Theta, task.W, tokens=task.k)
    nmse = task.nmse(learner.theta_, learner.w_)
    success = found.theta_error < THETA_ERROR and nmse < NMSE
    error = min(found.theta_error, 1e3)
    return {"theta_error": error, "nmse": nmse, "success": bool(success), "converged": learner.converged_}
