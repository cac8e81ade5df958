"""What this system brings to the arena: a planted layer, with and without noise, and its learners from examples.

Every learner of a layer has the number of heads, so that no examples are held back to choose it.
"""

from __future__ import annotations

from typing import Any

from attnlab.common.arena import LAYER, STARTS, Declined, Entry, Forms
from attnlab.mha.learners.attention_learner import AttentionLearner
from attnlab.mha.learners.gradient import GradientLearner
from attnlab.mha.learners.moment import MomentLearner
from attnlab.mha.learners.sculpting import SculptingLearner
from attnlab.mha.task import Task
from attnlab.mha.theory import examples_needed

MOMENT_WIDTH = 16  # MomentLearner refuses wider tokens

_PLANTED = {"d": 8, "k": 4, "n_heads": 2, "rho": 2.0}
_PAPER = {"d": 12, "n_heads": 3}
TASKS = {
    "mha.layer": Entry(Task, _PLANTED, _PAPER, LAYER),
    "mha.noisy": Entry(Task, {**_PLANTED, "noise_std": 0.3}, _PAPER, LAYER),
}


def _race(task: Any, n: int) -> Any:
    _enough(task, n)
    return AttentionLearner(n_heads=_heads(task), n_starts=STARTS, holdout=None)


def _sculpting(task: Any, n: int) -> Any:
    _enough(task, n)
    # As sculpting.agreement.rows_needed counts.
    needed = 6 * task.d**2 // (task.tokens - 1) + 20
    if n * task.tokens < needed:
        raise Declined(f"needs {needed} rows")
    return SculptingLearner(n_heads=_heads(task), holdout=None)


def _moments(task: Any, n: int) -> Any:
    _enough(task, n)
    if task.d > MOMENT_WIDTH:
        raise Declined(f"needs d ≤ {MOMENT_WIDTH}")
    return MomentLearner(n_heads=_heads(task))


def _gradient(task: Any, n: int) -> Any:
    return GradientLearner(n_heads=_heads(task), n_starts=STARTS)


def _enough(task: Any, n: int) -> None:
    # The task may be another system's: only its sizes enter the count.
    law = Task(task.d, task.tokens, _heads(task), d_out=task.sample(1, 0)[1].shape[-1])
    needed = examples_needed(law)
    if n < needed:
        raise Declined(f"needs n ≥ {int(needed)}")


def _heads(task: Any) -> int:
    """Heads of the planted layer; 1 where the task does not have any."""
    return int(getattr(task, "n_heads", 1))


LEARNERS = {
    "race": Forms(None, _race),
    "sculpting": Forms(None, _sculpting),
    "moments": Forms(None, _moments),
    "gradient": Forms(None, _gradient),
}
