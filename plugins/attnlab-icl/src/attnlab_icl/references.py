"""What theory says of the test errors on contexts of the pretraining tasks."""

from __future__ import annotations

from typing import Any

from attnlab.common.reference import Reference
from attnlab_icl.learners.in_context import DiscreteMMSE, RidgeInContext
from attnlab_icl.learners.linear_attention import LinearAttention
from attnlab_icl.task import Task
from attnlab_icl.theory import dmmse_error, finite_size_errors, ridge_error


def null(task: Task, learner: Any, n: int) -> float:
    """Predicting 0."""
    return 1 + task.rho


def pretrained(task: Task, learner: LinearAttention, n: int) -> float:
    """A layer after n contexts, tested on its pretraining tasks."""
    return float(finite_size_errors(task, n, learner.ridge).detail["idg"])


def ridge(task: Task, learner: RidgeInContext, n: int) -> float:
    """Ridge regression on each context."""
    return float(ridge_error(task.alpha, task.rho, learner.ridge))


def mixture(task: Task, learner: DiscreteMMSE, n: int) -> float:
    """The posterior mean over the pretraining tasks, tested on them."""
    return float(dmmse_error(task, "pretraining"))


REFERENCES: tuple[Reference, ...] = (
    Reference("null", Task, "exact", null),
    Reference("theory", Task, "asymptotic", pretrained, LinearAttention),
    Reference("theory", Task, "asymptotic", ridge, RidgeInContext),
    Reference("theory", Task, "asymptotic", mixture, DiscreteMMSE),
)
