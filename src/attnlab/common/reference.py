"""A reference is the theory of the test error on a task; a learner's measured error is compared with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attnlab.common.prediction import Prediction, Status


@dataclass(frozen=True)
class Reference:
    """The expected squared test error, per entry of ``y``, of one learner or of all.

    Parameters
    ----------
    name : a word for legends and columns, such as ``null``, ``Bayes`` or ``theory``.
    task : the task it applies to.
    status : what the value is, as in the theory function behind it.
    error : ``(task, learner, n) -> error`` after n examples. ``learner`` is the estimator with its parameters, or None
        where the reference holds for every learner. None is returned where the theory does not reach.
    learner : the estimator it predicts; None for what holds whatever is fitted (null, Bayes).
    """

    name: str
    task: type
    status: Status
    error: Callable[[Any, Any, int], float | Prediction | None]
    learner: type | None = None

    def applies_to(self, task: Any, learner: Any) -> bool:
        """Whether it is about this task, and about this learner or about all."""
        return type(task) is self.task and (self.learner is None or type(learner) is self.learner)


@dataclass(frozen=True)
class Capacity:
    """The size of a learner, such as its number of heads, that theory needs after n examples.

    Parameters
    ----------
    parameter : of the learner.
    task, learner : the classes it is about.
    needed : ``(task, learner, n) -> size``, or None where the theory does not reach.
    """

    parameter: str
    task: type
    learner: type
    needed: Callable[[Any, Any, int], float | Prediction | None]

    def applies_to(self, task: Any, learner: Any) -> bool:
        """Whether it is about this task and this learner."""
        return type(task) is self.task and type(learner) is self.learner
