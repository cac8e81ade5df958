"""What this system brings to the arena: noisy phase retrieval, and message passing and descent that know the link."""

from __future__ import annotations

from typing import Any

from attnlab.common.arena import STARTS, Entry, Forms
from attnlab.smi.learners.amp import AMP
from attnlab.smi.learners.gradient_descent import GradientDescent
from attnlab.smi.task import Task

TASKS = {"smi.phase": Entry(Task, {"link": "phase_retrieval(noise=0.05)", "d": 24}, {"d": 48})}


def message_passing(task: Any, n: int) -> AMP | None:
    """AMP with the link of the task, which tasks of other systems do not have."""
    return AMP(task.link, damping=0.6, random_state=0) if isinstance(task, Task) else None


def descent(task: Any, n: int) -> GradientDescent | None:
    """Adam on the mean output of the link, from as many starts as all learners with random starts."""
    return GradientDescent(task.link, n_starts=STARTS, random_state=0) if isinstance(task, Task) else None


LEARNERS = {"smi AMP": Forms(message_passing), "smi descent": Forms(descent)}
