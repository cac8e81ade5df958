"""What this system brings to the arena: contexts of its pretraining tasks, and its own learners."""

from __future__ import annotations

from typing import Any

from attnlab.common.arena import Entry, Forms
from attnlab_icl.learners.in_context import RidgeInContext
from attnlab_icl.learners.linear_attention import LinearAttention
from attnlab_icl.task import Task

_PARAMS = {"d": 8, "l": 40, "k": 16, "noise_std": 0.1}
TASKS = {"icl.contexts": Entry(Task, _PARAMS, {"d": 16, "l": 80, "k": 32})}


def linear_attention(task: Any, n: int) -> LinearAttention | None:
    """One layer of linear attention; it reads tokens (x, y) with the query last, as no other task has them."""
    return LinearAttention(ridge=1e-2) if isinstance(task, Task) else None


def ridge_in_context(task: Any, n: int) -> RidgeInContext | None:
    """Ridge regression on each context, which knows the variance of the noise."""
    return RidgeInContext(noise_std=task.noise_std) if isinstance(task, Task) else None


LEARNERS = {"linear attention": Forms(linear_attention), "ridge in context": Forms(ridge_in_context)}
