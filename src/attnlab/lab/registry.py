"""The only place where the lab knows the systems: installed packages that declare the entry point ``attnlab.systems``.

A system is a package with the same rooms as the others: public names (tasks and learners) in ``__init__``, and modules
``theory``, ``figures`` (``FIGURES``) and ``references`` (``REFERENCES``). The systems of attnlab are found in the
same way as those of other packages.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from attnlab.common.figure import Figure
from attnlab.common.reference import Reference
from attnlab.common.systems import systems
from attnlab.common.validation import one_of
from attnlab.common.view import View

_own: dict[str, type] = {}


def add(item: type) -> type:
    """Make a task or learner of your own known to sweeps, the arena and the planner, as ``own.Name``.

    A task is a frozen dataclass with ``sample(n, seed)``, a learner a scikit-learn estimator. Usable as a decorator.
    """
    if not (_is_task(item) or _is_learner(item)):
        raise TypeError(f"a task is a dataclass with sample(n, seed), a learner a scikit-learn estimator; got {item!r}")
    _own[f"own.{item.__name__}"] = item
    return item


def system(name: str) -> ModuleType:
    """The package of a system."""
    return importlib.import_module(systems()[one_of("system", name, systems())])


def figures(names: Iterable[str] | None = None) -> dict[str, Figure]:
    """All figures of the given systems (all if none) by name."""
    rooms = [importlib.import_module(f"{system(name).__name__}.figures") for name in names or systems()]
    return {figure.name: figure for room in rooms for figure in room.FIGURES}


@functools.cache
def papers() -> dict[str, str]:
    """Titles of the papers that claims cite, by arXiv id: ``PAPERS`` of each system's figures."""
    rooms = [importlib.import_module(f"{system(name).__name__}.figures") for name in systems()]
    return {arxiv: title for room in rooms for arxiv, title in getattr(room, "PAPERS", {}).items()}


def select(names: Iterable[str]) -> list[Figure]:
    """The figures meant by names of systems or figures, in registry order; no name means all."""
    wanted = list(names) or list(systems())
    prefixes = {name.split(".")[0] for name in wanted}
    for name in wanted:
        if "." not in name:
            one_of("figure or system", name, [*systems(), *(f"{s}.…" for s in systems())])
    known = figures([s for s in systems() if s in prefixes] if prefixes <= systems().keys() else None)
    for name in wanted:
        if "." in name:
            one_of("figure", name, known)
    return [figure for figure in known.values() if figure.name in wanted or figure.name.split(".")[0] in wanted]


def tasks() -> dict[str, type]:
    """Public dataclasses that can ``sample``, and your own."""
    return _public(_is_task)


def learners() -> dict[str, type]:
    """Public scikit-learn estimators, and your own."""
    return _public(_is_learner)


def views() -> dict[str, View]:
    """The systems that the explorer shows: ``VIEW`` of each package's module ``explorer``, where it has one."""
    packages = {name: system(name).__name__ for name in systems()}
    rooms = {name: f"{package}.explorer" for name, package in packages.items()}
    return {name: importlib.import_module(room).VIEW for name, room in rooms.items() if importlib.util.find_spec(room)}


def references() -> list[Reference]:
    """The test errors that theory predicts, over all systems, the arena's adapters and your own."""
    from attnlab.lab.contests import adapters

    rooms = [importlib.import_module(f"{system(name).__name__}.references") for name in systems()]
    return [reference for room in (*rooms, adapters) for reference in room.REFERENCES]


def theory() -> dict[str, Callable[..., Any]]:
    """Public functions of each system's theory, as ``system.function``; of a spectrum, ``system.spectrum.function``.

    What a theory room re-exports from its neighbours, and what a spectrum holds, counts when it states its status.
    """
    found: dict[str, Callable[..., Any]] = {}
    for name in systems():
        package = system(name).__name__
        for prefix, room in ((name, "theory"), (f"{name}.spectrum", "spectrum")):
            if importlib.util.find_spec(f"{package}.{room}") is None:
                continue
            module = importlib.import_module(f"{package}.{room}")
            for key in getattr(module, "__all__", None) or dir(module):
                item = getattr(module, key)
                if key.startswith("_") or not inspect.isfunction(item) or not item.__module__.startswith(package):
                    continue
                own = room == "theory" and item.__module__.startswith(module.__name__)
                if own or all(word in (item.__doc__ or "") for word in ("Source:", "Status:")):
                    found[f"{prefix}.{key}"] = item
    return found


def examples(name: str) -> dict[str, str]:
    """Values that the help of ``attnlab theory`` shows for required parameters, where the system's theory has some."""
    package = systems().get(name)
    return dict(getattr(importlib.import_module(f"{package}.theory"), "EXAMPLES", {})) if package else {}


def summary(item: object) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(item) or "").split("\n")[0]


def _is_task(item: object) -> bool:
    return inspect.isclass(item) and dataclasses.is_dataclass(item) and hasattr(item, "sample")


def _is_learner(item: object) -> bool:
    from sklearn.base import BaseEstimator

    return inspect.isclass(item) and issubclass(item, BaseEstimator)


def _public(wanted: Callable[[Any], bool]) -> dict[str, type]:
    """The public names of all systems that satisfy a condition, and the user's own."""
    packages = {name: system(name) for name in systems()}
    ours = {f"{s}.{k}": getattr(p, k) for s, p in packages.items() for k in p.__all__ if wanted(getattr(p, k))}
    return ours | {name: item for name, item in _own.items() if wanted(item)}
