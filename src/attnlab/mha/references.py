"""What theory says of the test errors on planted attention layers."""

from __future__ import annotations

from typing import Any

from attnlab.common.reference import Reference
from attnlab.mha.counting import examples_needed, unknowns
from attnlab.mha.learners.attention_learner import AttentionLearner
from attnlab.mha.task import Task

# How often the examples must outnumber those that counting asks for before least squares is in its large-n regime.
PLENTY = 4


def bayes(task: Task, learner: Any, n: int) -> float:
    """Whoever knows the layer errs by the noise."""
    return task.noise_std**2


def least_squares(task: Task, learner: AttentionLearner, n: int) -> float | None:
    r"""Least squares that has found the layer: :math:`\sigma^2(1 + P/(n k o))` with P the numbers in the layer.

    Classical for a well-specified model as n grows, whatever the model; the share of the examples that the learner
    holds back does not count.
    """
    if task.k < 2 or not task.equivalences.unique:
        return None
    used = n * (1 - learner.validation_fraction - learner.certificate_fraction)
    if used < PLENTY * examples_needed(task.n_heads, task.d, task.k, task.d_out):
        return None
    return task.noise_std**2 * (1 + unknowns(task.n_heads, task.d, task.d_out) / (used * task.k * task.outputs))


REFERENCES: tuple[Reference, ...] = (
    Reference("Bayes", Task, "exact", bayes),
    Reference("theory", Task, "asymptotic", least_squares, AttentionLearner),
)
