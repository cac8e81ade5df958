"""The normalisation of arXiv:2509.21936: gamma = 1 and a strength nu that is given, in any dimension."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from attnlab.common.law import from_law
from attnlab.slr.task import Task

F = TypeVar("F", bound=Callable[..., Any])


def in_any_dimension(f: F) -> F:
    """``f(task, ...)``, or the parameters of the law without d and gamma; L is 2, or the longest, if not given."""
    # No formula of the follow-up depends on d: any dimension that a task allows will do.
    known = from_law(Task, d=2, gamma=1.0)(f)

    @functools.wraps(known)
    def call(*args: Any, **options: Any) -> Any:
        given = (*args, options.get("task"))
        if not any(isinstance(value, Task) for value in given):
            if "nu" not in options and isinstance(options.get("law", "spiked"), str):
                raise TypeError(f"{f.__name__} needs nu, the strength of the mark")
            options.setdefault("L", max(options.get("lengths") or (2,)))
        return known(*args, **options)

    parameters = inspect.signature(known).parameters
    shown = [
        p.replace(default=2) if p.name == "L" else p.replace(default=p.empty) if p.name == "nu" else p
        for p in parameters.values()
    ]
    call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def check(task: Task, name: str, *, several: bool, lengths: bool) -> None:
    """Refuse by name what a formula of the follow-up does not cover."""
    if task.law_in_force.gamma != 1:
        raise ValueError(f"gamma must be 1 for {name}, got {task.law_in_force.gamma!r}")
    if task.locations > 1 and not several:
        raise ValueError(f"locations must be 1 for {name}: it is not solved for several, got {task.locations}")
    if task.lengths is not None and not lengths:
        raise ValueError(f"lengths must be None for {name}: it is not solved for random lengths, got {task.lengths}")
