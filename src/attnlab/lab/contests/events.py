r"""The tasks of the arena: tasks of the systems with parameters set, some seen through an adapter.

============  ===============================================================================================
view          what learners are given
============  ===============================================================================================
(none)        the task as it is
weight        one attention weight of an aim task, y[:, 0, 1]: a scalar task. The weight and not its logit: it is what
              attention puts out, and bounded; the logit is a plain quadratic form with heavy tails.
layer         an aim task as a multi-head layer (:func:`attnlab.lab.contests.adapters.as_layer`): a sequence task
============  ===============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import numpy as np

from attnlab.lab import registry
from attnlab.lab.contests.adapters import ReadOut, as_layer
from attnlab.lab.trial import predictions

VIEWS: dict[str, Callable[[Any], Any]] = {"": lambda task: task, "weight": ReadOut, "layer": as_layer}


@dataclass(frozen=True)
class Stage:
    """A task of the arena as its learners meet it.

    ``query`` says where the query is: *given*, token 0 is one; *first*, token 0 asks but is a key too; *none*.
    """

    task: Any
    source: Any
    view: str
    kind: str
    query: str

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return int(self.task.d)

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return int(self.task.tokens)

    @property
    def heads(self) -> int:
        """Heads of the planted layer; 1 where nothing is said."""
        return int(getattr(self.task, "n_heads", 1))

    @property
    def outputs(self) -> int:
        """Width of the output of one token."""
        return int(self.task.sample(1, 0)[1].shape[-1])

    def references(self, learner: Any, n: int) -> dict[str, float]:
        """What theory says of the test error after n examples: null and Bayes, and of the learner where it can."""
        if self.view == "weight":
            return _weight_references(self.source, n)
        if self.view == "layer":
            return {"Bayes": self.tokens * predictions(self.source, None, n)["Bayes"]}
        return predictions(self.task, learner, n)


def _weight_references(task: Any, n: int) -> dict[str, float]:
    r"""Null and Bayes of one weight of a two-token softmax task.

    A weight is the logistic function of one index difference, so that a sequence holds one linear measurement of z
    instead of two: with :math:`\hat q = 2 \alpha k / V` the error of S is that of the whole output at half the
    examples. By symmetry all four weights are predicted equally well. Derived here.  Status: asymptotic.
    """
    if task.tokens != 2:
        return {}
    return {name: predictions(task, None, max(1, n // 2))[name] for name in ("null", "Bayes")}


@dataclass(frozen=True)
class Event:
    """A task of the arena.

    Parameters
    ----------
    name : as shown and as typed.
    task : the name of a registered task; ``params`` its parameters by scale.
    view : how it is seen, see above.
    sizes : numbers of training examples by scale.
    """

    name: str
    task: type
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    view: str = ""
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def stage(self, scale: str, seed: int) -> Stage:
        """The task with its planted part drawn from ``seed``."""
        given = dict(self.params.get(scale, {}))
        if "seed" in getattr(self.task, "__dataclass_fields__", {}):
            given.setdefault("seed", seed)
        source = self.task(**given)
        seen = VIEWS[self.view](source)
        return Stage(seen, source, self.view, _kind(self.name, seen), _query(source, self.view))

    def __reduce__(self) -> tuple[Any, ...]:
        """A user's task travels to workers by value: they cannot import a user's file."""
        return unpacked, (_event, cloudpickle.dumps((self.name, self.task, self.params, self.view, self.sizes)))


def _event(content: tuple[Any, ...]) -> Event:
    return Event(*content)


def unpacked(make: Callable[[Any], Any], content: bytes) -> Any:
    """Undo ``cloudpickle.dumps``."""
    return make(cloudpickle.loads(content))


def _kind(name: str, task: Any) -> str:
    """``scalar`` for one output per sequence, ``sequence`` for one per token."""
    X, y = task.sample(2, 0)
    if np.ndim(X) != 3:
        raise ValueError(f"task {name} must sample tokens of shape (n, tokens, d), got {np.shape(X)}")
    if np.ndim(y) == 1:
        return "scalar"
    if np.ndim(y) == 3 and y.shape[1] == X.shape[1]:
        return "sequence"
    raise ValueError(f"the arena takes y of shape (n,) or (n, tokens, k), task {name} gives {np.shape(y)}")


def _query(task: Any, view: str) -> str:
    """Token 0 is a query in rfa's tasks and in your own with an attribute ``query = 0``; in row 0 of an attention
    matrix it attends to all tokens, itself included.
    """
    if hasattr(task, "n_keys") or getattr(task, "query", None) == 0:
        return "given"
    return "first" if view == "weight" else "none"


# Multiples of three: the folds of a cross-validation are then equal, and compiled once.
SCALAR = {"quick": (60, 240, 960), "paper": (60, 240, 960, 3840)}
LAYER = {"quick": (30, 120, 480), "paper": (60, 240, 960)}


def events() -> dict[str, Event]:
    """All tasks by name, and the user's own (:func:`attnlab.lab.add`) with their defaults."""
    known = registry.tasks()
    found = {}
    for name, task, view, quick, paper, sizes in _EVENTS:
        found[name] = Event(name, known[task], {"quick": quick, "paper": {**quick, **paper}}, view, sizes)
    for name, item in known.items():
        if name.startswith("own."):
            found[name] = Event(name, item, sizes=SCALAR)
    return found


_PLANTED = {"d": 8, "k": 4, "n_heads": 2, "rho": 2.0}
# name, task, view, parameters at quick scale, what paper scale changes, numbers of examples
_EVENTS: tuple[tuple[str, str, str, Mapping[str, Any], Mapping[str, Any], Mapping[str, tuple[int, ...]]], ...] = (
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
