"""What theory says of the test errors on attention-indexed models, for outputs without noise."""

from __future__ import annotations

import functools
from typing import Any

from attnlab.aim.channels import Channel, UserChannel
from attnlab.aim.learners.amp import AMP
from attnlab.aim.spectrum import second_moment
from attnlab.aim.task import Task
from attnlab.aim.theory.bayes import mmse
from attnlab.aim.theory.generalization import generalization_error
from attnlab.common.reference import Reference


def null(task: Task, learner: Any, n: int) -> float | None:
    """Predicting the mean output: nothing is known of the indices."""
    if not _reached(task):
        return None
    return _per_entry(second_moment(_rho(task)), _rho(task), task.tokens, task.law, "bayes")


def bayes(task: Task, learner: Any, n: int) -> float | None:
    """The best prediction from n sequences, which Bayes-optimal message passing attains."""
    return _after(task, n, "bayes") if _reached(task) else None


def message_passing(task: Task, learner: AMP, n: int) -> float | None:
    """The same for AMP that assumes the law that holds, with its own way of predicting."""
    if not _reached(task) or learner.law != task.law or learner.rho != task.rho or learner.start is not None:
        return None
    return _after(task, n, learner.prediction)


def _reached(task: Task) -> bool:
    return task.noise == 0 and not isinstance(task.law, UserChannel)


def _rho(task: Task) -> float:
    """The width in force, round(rho d)/d."""
    return task.rho if task.rho == float("inf") else task.width / task.d


def _after(task: Task, n: int, predictor: str) -> float:
    error = _estimation_error(n / task.d**2, _rho(task), task.tokens, task.law)
    return _per_entry(error, _rho(task), task.tokens, task.law, predictor)


@functools.lru_cache(maxsize=1024)
def _estimation_error(alpha: float, rho: float, tokens: int, law: Channel) -> float:
    return float(mmse(alpha, rho, tokens, law))


@functools.lru_cache(maxsize=1024)
def _per_entry(error: float, rho: float, tokens: int, law: Channel, predictor: str) -> float:
    return generalization_error(error, rho, tokens, law, predictor=predictor) / tokens**2


REFERENCES: tuple[Reference, ...] = (
    Reference("null", Task, "asymptotic", null),
    Reference("Bayes", Task, "asymptotic", bayes),
    Reference("theory", Task, "asymptotic", message_passing, AMP),
)
