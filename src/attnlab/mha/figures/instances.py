"""What the cells share: a planted task and its examples from a cell's seed, and the verdict on a fitted layer."""

from __future__ import annotations

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


def planted(seed: np.random.SeedSequence, n: int, **task: Any) -> tuple[Task, Examples, int]:
    """A task, n examples of it, and an integer to seed the learner."""
    layer, examples, learner = (int(s.generate_state(1)[0]) for s in spawn(seed, 3))
    law = Task(seed=layer, **task)
    return law, law.sample(n, seed=examples), learner


def race(n_heads: int, seed: int, **options: Any) -> AttentionLearner:
    """Random starts raced by Levenberg-Marquardt, all examples fitted."""
    return AttentionLearner(
        n_heads, starts=("random",), validation_fraction=0.0, certificate_fraction=0.0, random_state=seed, **options
    )


def build(learner: str, n_heads: int, seed: int, starts: int, iterations: int) -> LayerRegressor:
    """A learner by the name it has in the figures, with its budget; sculpting has its own."""
    if learner == "race":
        return race(n_heads, seed, max_starts=starts)
    if learner == "sculpting":
        return SculptingLearner(n_heads, validation_fraction=0.0, certificate_fraction=0.0, random_state=seed)
    return GradientLearner(
        n_heads, method=learner, n_starts=starts, max_iter=iterations, learning_rate=(0.05, 0.01), random_state=seed
    )


def judged(task: Task, learner: LayerRegressor) -> dict[str, Any]:
    """How close the fitted layer is to the planted one."""
    found = align(learner.theta_, learner.w_, task.Theta, task.W, tokens=task.k)
    nmse = task.nmse(learner.theta_, learner.w_)
    success = found.theta_error < THETA_ERROR and nmse < NMSE
    return {"theta_error": min(found.theta_error, 1e3), "nmse": nmse, "success": bool(success)}
