"""The tasks and learners of the arena: those that the systems bring (their modules ``arena``), and your own.

All learners see the same examples and choose their knob in the same way: from five settings, by leave-one-out where it
is exact and cheap (ridge regression), otherwise by three-fold cross-validation, always on the training examples alone.
Learners of layers have no such knob. Random starts are two. Every learner of a layer has the number of heads, and for
aim's layer its rank.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from attnlab.common.arena import SCALAR, Forms
from attnlab.lab import registry


class ArenaTask(NamedTuple):
    """A task of the arena at one scale, with the numbers of examples by default."""

    task: Any
    sizes: tuple[int, ...]


def arena_tasks(scale: str) -> dict[str, ArenaTask]:
    """All tasks by name, and the user's own (:func:`attnlab.lab.add`) with their defaults."""
    entries = {name: entry for room in registry.arenas() for name, entry in room.TASKS.items()}
    found = {name: ArenaTask(entry.task(scale), entry.sizes[scale]) for name, entry in entries.items()}
    own = {name: item for name, item in registry.tasks().items() if name.startswith("own.")}
    return found | {name: ArenaTask(item(), SCALAR[scale]) for name, item in own.items()}


def kind(name: str, task: Any) -> str:
    """``scalar`` for one output per sequence, ``sequence`` for one per token."""
    X, y = task.sample(2, 0)
    if np.ndim(X) != 3:
        raise ValueError(f"task {name} must sample tokens of shape (n, tokens, d), got {np.shape(X)}")
    if np.ndim(y) == 1:
        return "scalar"
    if np.ndim(y) == 3 and y.shape[1] == X.shape[1]:
        return "sequence"
    raise ValueError(f"the arena takes y of shape (n,) or (n, tokens, k), task {name} gives {np.shape(y)}")


def arena_learners() -> dict[str, Forms]:
    """All learners by name, and the user's own (:func:`attnlab.lab.add`).

    A learner of your own enters scalar tasks; with a class attribute ``takes = "sequence"`` those with an output for
    each token, with ``takes = "both"`` all.
    """
    brought = {name: forms for room in registry.arenas() for name, forms in room.LEARNERS.items()}
    return brought | {name: _own(item) for name, item in registry.learners().items() if name.startswith("own.")}


def _own(item: type) -> Forms:
    """A learner of the user's own with its defaults; ``takes`` is the kind of its tasks."""
    takes = getattr(item, "takes", "scalar")

    def build(task: Any, n: int) -> Any:
        # The class and not an object: what it needs of the law is told by each replicate, which plants its own truth.
        return item

    return Forms(build if takes != "sequence" else None, build if takes != "scalar" else None)
