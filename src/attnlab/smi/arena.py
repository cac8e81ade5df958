"""What this system brings to the arena: noisy phase retrieval, and message passing and descent that know the link."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attnlab.smi.learners.amp import AMP
from attnlab.smi.learners.gradient_descent import GradientDescent
from attnlab.smi.task import Task

_LINK = {"link": "phase_retrieval(noise=0.05)"}
TASKS: Mapping[str, tuple[type, Mapping[str, Mapping[str, Any]], Mapping[str, tuple[int, ...]]]] = {
    "smi.phase": (
        Task,
        {"quick": {**_LINK, "d": 24}, "paper": {**_LINK, "d": 48}},
        {"quick": (60, 240, 960), "paper": (60, 240, 960, 3840)},
    )
}


def message_passing(task: Any, n: int) -> AMP | None:
    """AMP with the link of the task, which tasks of other systems do not have."""
    return AMP(task.link, damping=0.6, random_state=0) if isinstance(task, Task) else None


def descent(task: Any, n: int) -> GradientDescent | None:
    """Adam on the mean output of the link, from two starts as all learners with random starts."""
    return GradientDescent(task.link, n_starts=2, random_state=0) if isinstance(task, Task) else None


LEARNERS: Mapping[str, Callable[[Any, int], Any]] = {"smi AMP": message_passing, "smi descent": descent}
