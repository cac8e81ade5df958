"""Shipped links by name, so that tasks, learners and command lines can write them as text."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from attnlab.common.validation import one_of
from attnlab.smi.link import Link

SHIPPED: dict[str, Callable[..., Link]] = {}


def shipped(make: Callable[..., Link]) -> Callable[..., Link]:
    """Register a link under its name. Equal parameters return the same object, which is compiled once."""
    signature = inspect.signature(make)

    @functools.cache
    def build(parameters: tuple[tuple[str, Any], ...]) -> Link:
        return replace(make(**dict(parameters)), name=make.__name__, parameters=parameters)

    @functools.wraps(make)
    def call(*args: Any, **options: Any) -> Link:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        # With the defaults, in the order of the signature: one key for every way to write the same link.
        return build(tuple(bound.arguments.items()))

    SHIPPED[make.__name__] = call
    return call


def named(text: str, **options: Any) -> Link:
    """The shipped link that a text such as ``attention`` or ``attention(tokens=3)`` names.

    >>> named("attention(tokens=3)")
    smi.links.attention(tokens=3)
    """
    import attnlab.smi.links  # noqa: F401  (fills the list)

    try:
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args:
            # Literals only: a text from a command line runs no code.
            given = {str(pair.arg): ast.literal_eval(pair.value) for pair in call.keywords}
            return _make(call.func.id, given, options)
    except (SyntaxError, ValueError) as problem:
        # These are of the text; a link's own complaint about a parameter passes unchanged.
        if isinstance(problem, SyntaxError) or "malformed" in str(problem):
            raise ValueError(f"link must be a name or name(parameter=value, ...), got {text!r}") from problem
        raise
    return _make(text, {}, options)


def _make(name: str, given: dict[str, Any], options: dict[str, Any]) -> Link:
    make = SHIPPED[one_of("link", name, SHIPPED)]
    known = inspect.signature(make).parameters
    for option in (given | options).keys() - known.keys():
        raise ValueError(f"link {name!r} has no parameter {option!r}; it has {', '.join(known) or 'none'}")
    return make(**(options | given))


def as_link(link: Any) -> Link:
    """A link, its name, or the link of a task."""
    if isinstance(link, Link):
        return link
    if isinstance(link, str):
        return named(link)
    if isinstance(getattr(link, "law", None), Link):
        return link.law
    raise TypeError(f"link must be a smi.Link, the name of one or a smi.Task, got {link!r}")
