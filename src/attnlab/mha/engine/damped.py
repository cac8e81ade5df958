"""Damped steps with acceptance: the loop that every second-order fit of this package shares, and when it ends."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

EXACT_FIT, SETTLED, SEARCHED = "error below tol", "error stopped falling", "all candidates compared"
OUT_OF_STEPS, OUT_OF_TIME = "max_iter reached", "max_seconds reached"


@runtime_checkable
class Point(Protocol):
    """Where a fit stands."""

    @property
    def error(self) -> float:
        """What the steps lower."""
        ...


At = TypeVar("At", bound=Point)
Damping = tuple[float, float, float]  # the first mu, its divisor after a step that is kept, its factor after another
MARQUARDT: Damping = (1e-2, 5.0, 4.0)


@dataclass
class Budget:
    """How long: ``deadline`` on ``time.monotonic()``. Progress goes to the logger ``attnlab.mha``."""

    deadline: float = math.inf

    @classmethod
    def of(cls, seconds: float | None) -> Budget:
        """A budget that starts now."""
        return cls(math.inf if seconds is None else time.monotonic() + seconds)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A block that does not count, such as a compilation: it moves the deadline."""
        begun = time.monotonic()
        yield
        self.deadline += time.monotonic() - begun

    def tell(self, message: str) -> None:
        """Report progress."""
        logging.getLogger("attnlab.mha").info(message)

    @property
    def spent(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.deadline


class StopRule:
    """When an iteration ends: exact, settled, or at the limit of its steps or of its time.

    Parameters
    ----------
    max_iter : steps that are kept.
    tol : stop when the relative squared error is below.
    progress, patience : stop when ``patience`` steps in a row each lower the error by less than this share.
    deadline : value of ``time.monotonic()``; no step is begun that would end after it, judged by the longest so far.
    """

    def __init__(
        self,
        max_iter: int = 120,
        tol: float = 1e-22,
        progress: float = 1e-3,
        patience: int = 8,
        deadline: float = math.inf,
    ) -> None:
        self.max_iter, self.tol, self.progress, self.patience = max_iter, tol, progress, patience
        self.deadline = deadline
        self.slow, self.longest, self.last = 0, 0.0, time.monotonic()

    def reason(self, history: list[float]) -> str:
        """Why to stop after the errors so far; empty to go on."""
        now = time.monotonic()
        # The first call follows no step; from then on what a step takes is known, and an estimate is forgotten.
        if len(history) > 1:
            self.longest = max(self.longest if len(history) > 2 else 0.0, now - self.last)
            self.slow = self.slow + 1 if history[-1] > (1 - self.progress) * history[-2] else 0
        self.last = now
        if history[-1] < self.tol:
            return EXACT_FIT
        if self.slow >= self.patience:
            return SETTLED
        if len(history) > self.max_iter:
            return OUT_OF_STEPS
        return OUT_OF_TIME if now + self.longest > self.deadline else ""


def damped_steps(
    at: At,
    steps_from: Callable[[At], Callable[[float], At | None]],
    watch: StopRule,
    *,
    damping: Damping = MARQUARDT,
    tries: int = 8,
) -> tuple[At, list[float], str]:
    """Steps that lower the error: the last point, the errors on the way, and why it ended.

    ``steps_from(at)`` linearises once and gives the point that a step with damping mu leads to, or None where the
    damped equations have no solution. A step is kept when the error falls, and mu is divided; otherwise mu is
    multiplied and the step is tried again.
    """
    mu, easier, harder = damping
    history = [at.error]
    while not (reason := watch.reason(history)):
        step = steps_from(at)
        for _ in range(tries):
            trial = step(mu)
            if trial is not None and trial.error < history[-1]:
                break
            mu *= harder
        else:
            return at, history, SETTLED
        # A smaller mu is lost to rounding, and too far to come back from in the tries of one step.
        at, mu = trial, max(mu / easier, 1e-15)
        history.append(at.error)
    return at, history, reason
