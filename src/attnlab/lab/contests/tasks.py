r"""The tasks of the arena: tasks of the systems with parameters set, some seen through an adapter.

============  ===============================================================================================
view          what learners are given
============  ===============================================================================================
(none)        the task as it is
weight        one attention weight of an aim task, y[:, 0, 1]: a scalar task. The weight and not its logit: it is what
              attention puts out, and bounded; the logit is a plain quadratic form with heavy tails.
layer         an aim task as a multi-head layer (:class:`attnlab.lab.contests.readings.Layer`): a sequence task
============  ===============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from attnlab.lab import registry
from attnlab.lab.contests.readings import Layer, ReadOut

VIEWS: dict[str, Callable[[Any], Any]] = {"": lambda task: task, "weight": ReadOut, "layer": Layer}
# Multiples of three: the folds of a cross-validation are then equal, and compiled once.
SCALAR = {"quick": (60, 240, 960), "paper": (60, 240, 960, 3840)}
LAYER = {"quick": (30, 120, 480), "paper": (60, 240, 960)}


class Posed(NamedTuple):
    """A task of the arena at one scale, with the numbers of examples by default."""

    task: Any
    sizes: tuple[int, ...]


def posed(scale: str) -> dict[str, Posed]:
    """All tasks by name, and the user's own (:func:`attnlab.lab.add`) with their defaults."""
    known = registry.tasks()
    found = {}
    for name, task, view, quick, paper, sizes in _TASKS:
        params = quick if scale == "quick" else {**quick, **paper}
        found[name] = Posed(VIEWS[view](known[task](**params)), sizes[scale])
    for room in registry.arenas():
        for name, (task, params, sizes) in room.TASKS.items():
            found[name] = Posed(task(**params[scale]), sizes[scale])
    return found | {name: Posed(item(), SCALAR[scale]) for name, item in known.items() if name.startswith("own.")}


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


def query(task: Any) -> str:
    """Where the query is: *given*, token 0 is one; *first*, token 0 asks but is a key too; *none*.

    Token 0 is a query in rfa's tasks and in your own with an attribute ``query = 0``; in row 0 of an attention matrix
    it attends to all tokens, itself included.
    """
    if hasattr(task, "n_keys") or getattr(task, "query", None) == 0:
        return "given"
    return "first" if isinstance(task, ReadOut) else "none"


_PLANTED = {"d": 8, "k": 4, "n_heads": 2, "rho": 2.0}
# name, task, view, parameters at quick scale, what paper scale changes, numbers of examples
_TASKS: tuple[tuple[str, str, str, Mapping[str, Any], Mapping[str, Any], Mapping[str, tuple[int, ...]]], ...] = (
    ("rfa.key_power", "rfa.Task", "", {"target": "key_power", "p": 2, "d": 16, "n_keys": 8}, {"n_keys": 16}, SCALAR),
    ("rfa.corr_power", "rfa.Task", "", {"target": "corr_power", "q": 1, "d": 16, "n_keys": 8}, {"n_keys": 16}, SCALAR),
    ("rfa.softmax", "rfa.Task", "", {"target": "softmax", "d": 16, "n_keys": 8}, {"n_keys": 16}, SCALAR),
    ("slr.spiked", "slr.Task", "", {"d": 24, "L": 5, "noise_std": 0.1}, {"d": 40}, SCALAR),
    (
        "slr.max",
        "slr.Task",
        "",
        {"d": 16, "L": 4, "law": "max", "gamma": 1.0, "nu": float("inf"), "noise_std": 0.1},
        {"d": 40},
        SCALAR,
    ),
    ("aim.weight", "aim.Task", "weight", {"d": 16, "rho": 0.5}, {"d": 32}, SCALAR),
    (
        "aim.layer",
        "aim.Task",
        "layer",
        {"d": 24, "rho": 0.5},
        {"d": 48},
        {"quick": (60, 120, 240, 480, 960), "paper": (240, 480, 960, 1920, 3840)},
    ),
    ("mha.layer", "mha.Task", "", _PLANTED, {"d": 12, "n_heads": 3}, LAYER),
    ("mha.noisy", "mha.Task", "", {**_PLANTED, "noise_std": 0.3}, {"d": 12, "n_heads": 3}, LAYER),
)
