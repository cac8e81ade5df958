"""What a user adds without editing attnlab: tasks, learners, parts of laws, references, theory, figures, claims."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from attnlab.common.validation import one_of
from attnlab.lab.errors import UsageError

Item = TypeVar("Item")
KINDS = ("task", "learner", "part", "reference", "theory", "figure", "claim")


def nothing() -> dict[str, dict[str, Any]]:
    """No item of any kind."""
    return {kind: {} for kind in KINDS}


# By kind and name, for as long as this process lives.
things = nothing()


def add(item: Item, *, figure: str = "") -> Item:
    """Make something of your own known to the lab and the command line; usable as a decorator.

    ===========================================  ==========  ======================================================
    item                                         known as    where
    ===========================================  ==========  ======================================================
    frozen dataclass with ``sample(n, seed)``    own.Name    task of sweeps, arena, planner, phase diagrams
    scikit-learn estimator                       own.Name    learner of the same; can be saved (attnlab.persist)
    other dataclass, other function              own.Name    part of a law: ``channel = "own.Name"`` in a request
    a ``common.reference.Reference``             its name    column and line beside simulations, planner
    function that states source and status       own.name    ``attnlab theory own.name``
    :class:`~attnlab.lab.Figure`                 its name    ``attnlab run``, ``reproduce``, ``report``
    :class:`~attnlab.lab.Claim`                  its id      with ``figure=``, the name of the figure that decides it
    ===========================================  ==========  ======================================================
    """
    kind = kind_of(item)
    if (kind == "claim") != bool(figure):
        raise ValueError(f"figure= names the figure that decides a claim, and goes with claims only; got {item!r}")
    if kind == "claim":
        things[kind][item.id] = (figure, item)  # type: ignore[attr-defined]
    elif kind == "figure":
        if "." not in item.name:  # type: ignore[attr-defined]
            raise ValueError(f"the name of a figure must be prefix.word, got {item.name!r}")  # type: ignore[attr-defined]
        things[kind][item.name] = item  # type: ignore[attr-defined]
    elif kind == "reference":
        things[kind][f"{item.task.__qualname__} {item.name} {item.learner}"] = item  # type: ignore[attr-defined]
    else:
        things[kind][f"own.{item.__name__}"] = item  # type: ignore[attr-defined]
    return item


def kind_of(item: Any) -> str:
    """Which of the kinds an item is; anything else is refused."""
    # A listing reads what is added and imports none of these.
    from attnlab.common.claim import Claim
    from attnlab.common.figure import Figure
    from attnlab.common.reference import Reference

    for kind, role in (("figure", Figure), ("claim", Claim), ("reference", Reference)):
        if isinstance(item, role):
            return kind
    if is_task(item):
        return "task"
    if is_learner(item):
        return "learner"
    if inspect.isfunction(item):
        stated = all(word in (item.__doc__ or "") for word in ("Source:", "Status:"))
        return "theory" if stated else "part"
    if inspect.isclass(item) and dataclasses.is_dataclass(item):
        return "part"
    raise TypeError(
        "lab.add takes a task (a dataclass with sample(n, seed)), a learner (a scikit-learn estimator), a part of a "
        f"law (another dataclass or a function), a Reference, a theory function, a Figure or a Claim; got {item!r}"
    )


def is_task(item: object) -> bool:
    """Whether it is a class that generates data."""
    return inspect.isclass(item) and dataclasses.is_dataclass(item) and hasattr(item, "sample")


def is_learner(item: object) -> bool:
    """Whether it is a class that is fitted."""
    from sklearn.base import BaseEstimator

    return inspect.isclass(item) and issubclass(item, BaseEstimator) and hasattr(item, "predict")


def part(value: Any) -> Any:
    """What a parameter means: ``own.Name``, or a table ``{name = "own.Name", ...}``, is the part of that name."""
    if isinstance(value, str) and value.startswith("own."):
        found = things["part"][one_of("part of your own", value, things["part"])]
        # a class by name alone means one with its defaults; a function is the part itself
        return found() if inspect.isclass(found) else found
    if isinstance(value, Mapping) and str(value.get("name", "")).startswith("own."):
        options = {key: option for key, option in value.items() if key != "name"}
        return things["part"][one_of("part of your own", value["name"], things["part"])](**options)
    return value


def load(path: str | Path) -> None:
    """Execute a file of the user's, named by the user, which calls :func:`add`.

    The module is known by its name only while it is executed: what no import can find travels to workers by value.
    """
    file = Path(path)
    spec = importlib.util.spec_from_file_location(f"attnlab_own_{file.stem}", file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise UsageError(f"--module names no Python file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up the module of their class while it is made
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path} cannot be executed: {error!r}") from error
    finally:
        del sys.modules[spec.name]
