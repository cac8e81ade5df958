"""What a system brings to the arena: tasks with settings for each scale, and ways to build its learners.

Its module ``arena`` holds ``TASKS`` (:class:`Entry` by name) and ``LEARNERS`` (:class:`Forms` by name).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

# The same for all learners: random starts, and the folds of a cross-validation.
STARTS = 2
FOLDS = 3
# Numbers of examples. Multiples of three: the folds are then equal, and compiled once.
SCALAR = {"quick": (60, 240, 960), "paper": (60, 240, 960, 3840)}
LAYER = {"quick": (30, 120, 480), "paper": (60, 240, 960)}

Builder = Callable[[Any, int], Any]


class Entry(NamedTuple):
    """A task: ``build(**quick)`` at quick scale, with the changes of ``paper`` at paper scale."""

    build: Callable[..., Any]
    quick: Mapping[str, Any]
    paper: Mapping[str, Any]
    sizes: Mapping[str, tuple[int, ...]] = SCALAR

    def task(self, scale: str) -> Any:
        """The task of a scale."""
        return self.build(**self.quick if scale == "quick" else {**self.quick, **self.paper})


class Declined(Exception):
    """A learner cannot take a task, and the reason in a few words."""


class Forms(NamedTuple):
    """How a learner is built, ``(task, n) -> estimator``, for tasks with one output for each sequence, or with one for
    each token; None where it has no such form. A builder returns None for a task that its learner was not made for.
    ``theory`` is False where an adapter changes what the learner's own theory is about.
    """

    scalar: Builder | None = None
    sequence: Builder | None = None
    theory: bool = True

    def build(self, task: Any, kind: str, n: int) -> Any:
        """The estimator for a task and n examples, or :class:`Declined`."""
        builder = self.scalar if kind == "scalar" else self.sequence
        if builder is None:
            raise Declined("one output per sequence" if self.scalar else "one output per token")
        estimator = builder(task, n)
        if estimator is None:
            raise Declined("made for other tasks")
        return estimator


def query(task: Any) -> str:
    """Where the query is: *given*, token 0 is one; *first*, token 0 asks but is a key too; *none*.

    A task says so by an attribute ``query``: 0 where token 0 is a query, as in rfa's tasks; ``"first"`` where it
    attends to all tokens, itself included, as in row 0 of an attention matrix.
    """
    return {0: "given", "first": "first"}.get(getattr(task, "query", None), "none")
