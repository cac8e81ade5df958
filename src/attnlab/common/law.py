"""Theory takes the task, or the parameters of the law, from which it builds the task."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Set
from typing import Any, TypeVar

from attnlab.common.patience import announced

F = TypeVar("F", bound=Callable[..., Any])


def from_law(law: type, /, *order: str, **fixed: Any) -> Callable[[F], F]:
    """A second way to call ``f(task, ...)``: with the parameters of the law in the place of the task.

    The parameters of ``f`` come first, then those named in ``order``; all others of the law are keywords. ``fixed``
    fills what the law requires and the formula does not depend on, such as a dimension that goes to infinity. A
    parameter that is given with a task is an error: the task already has it.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Law:
    ...     d: int
    ...     rho: float = 0.5
    >>> @from_law(Law, "rho", d=10**6)
    ... def mean(task, alpha):
    ...     return alpha * task.rho
    >>> mean(Law(10, 0.25), 4), mean(4, 0.25), mean(4, rho=0.25)
    (1.0, 1.0, 1.0)
    >>> mean(Law(10), 4, rho=0.25)
    Traceback (most recent call last):
    ...
    TypeError: mean: rho is given twice, the task has it
    """

    def decorate(f: F) -> F:
        first, *own = inspect.signature(f).parameters.values()
        # the system's name, of a package of its own too, which is called attnlab_ and the name
        system = f.__module__.removeprefix("attnlab").lstrip("._").partition(".")[0]
        name = f"{system}.theory.{f.__name__}"
        known = inspect.signature(law).parameters
        # theory depends on no seed
        theirs = {name: known[name] for name in known if name not in fixed and name != "seed"}
        places = [p.name for p in own if p.kind is p.POSITIONAL_OR_KEYWORD] + list(order)

        @functools.wraps(f)
        def call(*args: Any, **options: Any) -> Any:
            if first.name in options:  # task= as a keyword
                args = (options.pop(first.name), *args)
            if args and isinstance(args[0], law):
                _refuse(f, theirs.keys() & options.keys(), ", the task has it")
            else:
                if len(args) > len(places):
                    raise TypeError(f"{f.__name__} takes at most {len(places)} positional arguments, got {len(args)}")
                _refuse(f, set(places[: len(args)]) & options.keys())
                options |= dict(zip(places, args, strict=False))
                args = (law(**fixed, **{key: options.pop(key) for key in theirs if key in options}),)
            with announced(name):
                return f(*args, **options)

        call.law = law  # type: ignore[attr-defined]  # where the types of its parameters are found
        call.__signature__ = inspect.Signature([*_positional(own, order, theirs), *_keywords(own, order, theirs)])  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def _refuse(f: Callable[..., Any], twice: Set[str], reason: str = "") -> None:
    if twice:
        raise TypeError(f"{f.__name__}: {', '.join(sorted(twice))} is given twice{reason}")


def _positional(own: list[inspect.Parameter], order: tuple[str, ...], theirs: Any) -> list[inspect.Parameter]:
    """Own parameters, then the ordered ones of the law; a required one after a default becomes a keyword."""
    found = [p for p in own if p.kind is p.POSITIONAL_OR_KEYWORD]
    defaulted = any(p.default is not p.empty for p in found)
    for name in order:
        p = theirs[name]
        if not (defaulted and p.default is p.empty):
            defaulted |= p.default is not p.empty
            found.append(p.replace(kind=p.POSITIONAL_OR_KEYWORD))
    return found


def _keywords(own: list[inspect.Parameter], order: tuple[str, ...], theirs: Any) -> list[inspect.Parameter]:
    placed = {p.name for p in _positional(own, order, theirs)}
    rest = [p for p in theirs.values() if p.name not in placed] + [p for p in own if p.kind is p.KEYWORD_ONLY]
    return [p.replace(kind=p.KEYWORD_ONLY) for p in rest]
