"""What theory says of the test errors on attention-indexed models."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from attnlab.aim.channels import NotSolved
from attnlab.aim.deep.task import DeepTask
from attnlab.aim.learners.amp import AMP
from attnlab.aim.learners.deep_amp import DeepAMP
from attnlab.aim.learners.gradient_descent import GradientDescent
from attnlab.aim.task import Task
from attnlab.aim.theory.bayes import mmse
from attnlab.aim.theory.generalization import generalization_error
from attnlab.common.reference import Reference


def null(task: Task, learner: Any, n: int) -> float | None:
    """Predicting the mean output: nothing is known of the indices."""
    return _per_entry(_in_force(task), 0.0, "bayes")


def bayes(task: Task, learner: Any, n: int) -> float | None:
    """The best prediction from n sequences, which Bayes-optimal message passing attains."""
    return _per_entry(_in_force(task), n / task.d**2, "bayes")


def message_passing(task: Task, learner: AMP, n: int) -> float | None:
    """The same for AMP that assumes the law that holds, with its own way of predicting."""
    # needs begins with rho, which is compared below, and the channel, which may be a name or an object.
    if learner.law != task.law or any(getattr(learner, name) != getattr(task, name) for name in AMP.needs[2:]):
        return None
    return _per_entry(_in_force(task), n / task.d**2, learner.prediction) if learner.rho == task.rho else None


def _in_force(task: Task) -> Task:
    """The law with the width in force, round(rho d)/d; the seed does not matter."""
    return replace(task, rho=task.rho if task.rho == float("inf") else task.width / task.d, seed=0)


@functools.lru_cache(maxsize=1024)
def _per_entry(task: Task, alpha: float, predictor: str) -> float | None:
    if not task.law.solved:
        return None  # minutes of integration beside every cell
    try:
        # Without data q = 0 and not that of the prior mean: the null predictor does not look at the tokens.
        error = float(mmse(task, alpha)) if alpha else task.prior.second_moment(task.rho)
        entries = task.layout.queries * task.layout.keys
        return float(generalization_error(task, float(error), predictor=predictor)) / entries
    except NotSolved:
        return None


REFERENCES: tuple[Reference, ...] = (
    Reference("null", Task, "asymptotic", null),
    Reference("Bayes", Task, "asymptotic", bayes),
    Reference("theory", Task, "asymptotic", message_passing, AMP),
)

# Those that learn from examples alone: what a plan compares when no learner is named.
PLANNED = {Task: (AMP, GradientDescent), DeepTask: (DeepAMP,)}
