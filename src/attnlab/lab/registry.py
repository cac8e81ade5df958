"""The only place where the lab finds the systems: installed packages that declare the entry point ``attnlab.systems``.

A system is a package with the same rooms as the others: public names (tasks and learners) in ``__init__``, and modules
``theory``, ``figures`` (``FIGURES``) and ``references`` (``REFERENCES``), as many of them as it has. The systems of
attnlab are found in the same way as those of other packages.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import inspect
import itertools
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from attnlab.common.figure import Figure
from attnlab.common.reference import Capacity, Reference
from attnlab.common.systems import systems
from attnlab.common.validation import one_of
from attnlab.common.view import View
from attnlab.lab import durations, own


def system(name: str) -> ModuleType:
    """The package of a system."""
    return importlib.import_module(systems()[one_of("system", name, systems())])


def figures(names: Iterable[str] | None = None) -> dict[str, Figure]:
    """The figures of the given systems by name, or all; your own and your own claims among them."""
    rooms = _rooms("figures", systems() if names is None else names)
    found = {figure.name: durations.with_stated(figure) for room in rooms for figure in room.FIGURES}
    for name, figure in own.things["figure"].items():
        if name in found:
            raise ValueError(f"a figure of your own has the name of another: {name}")
        found[name] = figure
    for name, claim in own.things["claim"].values():
        if name in found:
            found[name] = dataclasses.replace(found[name], claims=(*found[name].claims, claim))
    return found


@functools.cache
def papers() -> dict[str, str]:
    """Titles of the papers that claims cite, by arXiv id: ``PAPERS`` of each system's figures."""
    rooms = _rooms("figures", systems())
    return {arxiv: title for room in rooms for arxiv, title in getattr(room, "PAPERS", {}).items()}


def select(names: Iterable[str]) -> list[Figure]:
    """The figures meant by names of systems or figures, in registry order; no name means all."""
    mine = {name.split(".")[0] for name in own.things["figure"]}
    wanted = list(names) or [*systems(), *mine]
    prefixes = {name.split(".")[0] for name in wanted}
    groups = [*systems(), *sorted(mine - systems().keys())]
    for name in wanted:
        if "." not in name:
            one_of("figure or system", name, [*groups, *(f"{group}.…" for group in groups)])
    # only the systems that are named are imported; all of them where a prefix is unknown, to suggest the nearest
    known = figures([s for s in systems() if s in prefixes] if prefixes <= set(groups) else None)
    for name in wanted:
        if "." in name:
            one_of("figure", name, known)
    return [figure for figure in known.values() if figure.name in wanted or figure.name.split(".")[0] in wanted]


def tasks() -> dict[str, type]:
    """Public dataclasses that can ``sample``, and your own."""
    # the user's own are outside of the cache, for they may be added at any time
    return _public(own.is_task) | own.things["task"]


def learners() -> dict[str, type]:
    """Public scikit-learn estimators, and your own."""
    return _public(own.is_learner) | own.things["learner"]


def named(role: str, name: str) -> type:
    """The task or learner of this name; only its own system is imported, all of them to correct a wrong name."""
    wanted, found = (own.is_task, tasks) if role == "task" else (own.is_learner, learners)
    home, _, word = name.partition(".")
    # a wrong name falls through: all systems are then imported, to suggest the nearest
    if home in systems() and word in (package := system(home)).__all__ and wanted(kind := getattr(package, word)):
        return kind
    known = found()
    return known[one_of(role, name, known)]


def arenas() -> list[ModuleType]:
    """Modules with tasks and learners of the arena (:mod:`attnlab.common.arena`).

    They are ``arena`` of each system that has one, and the lab's readings of one system's task as another's.
    """
    from attnlab.lab.contests import readings

    # readings imports this module, so that it can only be imported here
    return [*_rooms("arena", systems()), readings]


def views() -> dict[str, View]:
    """The systems that the explorer shows: ``VIEW`` of each package's module ``explorer``, where it has one."""
    packages = {name: system(name).__name__ for name in systems()}
    rooms = {name: f"{package}.explorer" for name, package in packages.items()}
    return {name: importlib.import_module(room).VIEW for name, room in rooms.items() if importlib.util.find_spec(room)}


def references() -> list[Reference]:
    """The test errors that theory predicts, over all systems, the arena's readings and your own."""
    from attnlab.lab.contests import readings

    rooms = _rooms("references", systems())
    found = [reference for room in (*rooms, readings) for reference in room.REFERENCES]
    return found + list(own.things["reference"].values())


def capacities() -> list[Capacity]:
    """The sizes of learners that theory needs, over all systems."""
    return [item for room in _rooms("references", systems()) for item in getattr(room, "CAPACITIES", ())]


def planned(task: str) -> list[str]:
    """The learners that a plan compares when none is named: ``PLANNED`` of the system's references, otherwise all."""
    name = task.split(".")[0]
    rooms = _rooms("references", {name} & systems().keys())
    laws = {f"{name}.{law.__name__}": kinds for room in rooms for law, kinds in getattr(room, "PLANNED", {}).items()}
    chosen = [f"{name}.{kind.__name__}" for kind in laws.get(task, ())]
    return chosen or [learner for learner in learners() if learner.split(".")[0] == name]


def theory(names: Iterable[str] | None = None) -> dict[str, Callable[..., Any]]:
    """Public functions of systems' theory, as ``system.function``; of a spectrum, ``system.spectrum.function``.

    What a theory room re-exports from its neighbours, and what a spectrum holds, counts when it states its status.
    """
    found: dict[str, Callable[..., Any]] = dict(own.things["theory"])
    names = systems() if names is None else names
    for name, (suffix, room) in itertools.product(names, (("", "theory"), (".spectrum", "spectrum"))):
        package, prefix = systems()[name], f"{name}{suffix}"
        for module in _rooms(room, [name]):
            for key in getattr(module, "__all__", None) or dir(module):
                item = getattr(module, key)
                # functions of other packages, such as NumPy's, are names of the module too
                if key.startswith("_") or not inspect.isfunction(item) or not item.__module__.startswith(package):
                    continue
                at_home = room == "theory" and item.__module__.startswith(module.__name__)
                if at_home or all(word in (item.__doc__ or "") for word in ("Source:", "Status:")):
                    found[f"{prefix}.{key}"] = item
    return found


def examples(name: str) -> dict[str, str]:
    """Values that the help of ``attnlab theory`` shows for required parameters, where the system's theory has some."""
    rooms = _rooms("theory", [name] if name in systems() else [])
    return {key: text for room in rooms for key, text in getattr(room, "EXAMPLES", {}).items()}


def summary(item: object) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(item) or "").split("\n")[0]


def _rooms(room: str, names: Iterable[str]) -> list[ModuleType]:
    """The modules of this name in the given systems; a small system need not have all."""
    packages = [system(name).__name__ for name in names]
    # looked for before the import: an error inside a room that exists must not pass for its absence
    return [importlib.import_module(f"{p}.{room}") for p in packages if importlib.util.find_spec(f"{p}.{room}")]


@functools.cache
def _public(wanted: Callable[[Any], bool]) -> dict[str, type]:
    """The public names of all systems that satisfy a condition."""
    packages = {name: system(name) for name in systems()}
    return {f"{s}.{k}": getattr(p, k) for s, p in packages.items() for k in p.__all__ if wanted(getattr(p, k))}
