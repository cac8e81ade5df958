"""The tasks of the arena: those that the systems bring (their modules ``arena``), and your own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from attnlab.common.arena import SCALAR
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
