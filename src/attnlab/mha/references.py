"""Which theory stands beside which learner."""

from __future__ import annotations

from typing import Any

from attnlab.common.reference import Reference
from attnlab.mha.learners.attention_learner import AttentionLearner
from attnlab.mha.learners.gradient import GradientLearner
from attnlab.mha.learners.holdout import NOTHING
from attnlab.mha.learners.moment import MomentLearner
from attnlab.mha.task import Task
from attnlab.mha.theory.learning import bayes_error, least_squares_error


def bayes(task: Task, learner: Any, n: int) -> float:
    """The error of a predictor that knows the layer."""
    return float(bayes_error(task))


def least_squares(task: Task, learner: AttentionLearner, n: int) -> float | None:
    """Least squares on the examples that the learner fits; None where the formula does not hold."""
    error = least_squares_error(task, n * (learner.holdout or NOTHING).fitted)
    return float(error) if error.converged else None


REFERENCES: tuple[Reference, ...] = (
    Reference("Bayes", Task, "exact", bayes),
    Reference("theory", Task, "asymptotic", least_squares, AttentionLearner),
)

# Those that learn from examples alone: what a plan compares when no learner is named.
PLANNED = {Task: (AttentionLearner, MomentLearner, GradientLearner)}
