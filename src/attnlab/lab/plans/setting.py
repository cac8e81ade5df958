"""What a request means: tasks and learners given by name, by type or as objects, with their parameters."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from attnlab.common.seeds import canonical
from attnlab.common.validation import one_of
from attnlab.lab import registry

Role = Literal["task", "learner"]
Item = Any  # a name, a type or an object

VERBS: Mapping[Role, tuple[str, ...]] = {"task": ("sample",), "learner": ("fit", "predict", "get_params")}


@dataclass(frozen=True)
class Choice:
    """A task or learner by name, its type, and the parameters that differ from its defaults."""

    role: Role
    name: str
    type: type
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, role: Role, item: Item) -> Choice:
        """From a registered name, a type, or an object with its parameters; anything else is refused."""
        known = registry.tasks() if role == "task" else registry.learners()
        if isinstance(item, str):
            return cls(role, one_of(role, item, known), known[item])
        kind = item if inspect.isclass(item) else type(item)
        if missing := [verb for verb in VERBS[role] if not hasattr(kind, verb)]:
            raise TypeError(f"a {role} must have {', '.join(VERBS[role])}; {kind.__name__} has no {missing[0]}")
        names = {registered: name for name, registered in known.items()}
        name = names.get(kind, f"own.{kind.__name__}")
        return cls(role, name, kind, {} if inspect.isclass(item) else _options(role, item))

    def params(self) -> dict[str, Any]:
        """As parameters of a cell."""
        return {self.role: self.name, **{f"{self.role}.{name}": value for name, value in self.options.items()}}

    def label(self) -> str:
        """The name, with the parameters that were given."""
        given = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.name}({given})" if given else self.name

    def with_options(self, **options: Any) -> Choice:
        """The same with more parameters set; unknown ones are refused with the nearest known one."""
        for name in options:
            one_of(f"parameter of {self.name}", name, inspect.signature(self.type).parameters)
        return dataclasses.replace(self, options={**self.options, **options})


def _options(role: Role, item: Any) -> dict[str, Any]:
    """The parameters of an object that differ from its defaults; plain ones, since a cell is known by them."""
    defaults = {name: option.default for name, option in inspect.signature(type(item)).parameters.items()}
    values = {name: getattr(item, name) for name in defaults} if role == "task" else item.get_params(deep=False)
    given = {name: values[name] for name in defaults if _differs(values[name], defaults[name])}
    try:
        canonical(given)
    except TypeError as error:
        raise TypeError(f"the {role} {item!r} cannot be a cell's: {error}") from error
    return given


def _differs(value: Any, default: Any) -> bool:
    try:
        return bool(value != default)
    except ValueError:  # an array has no single answer
        return True


def apply(settings: Mapping[str, Any], task: Choice, learners: list[Choice]) -> tuple[Choice, list[Choice]]:
    """Set ``task.x`` or ``<learner>.x``; an owner that is neither is refused with the nearest one."""
    for key, value in settings.items():
        owner, _, option = key.rpartition(".")
        one_of("the owner of a setting", owner, ["task", *dict.fromkeys(learner.name for learner in learners)])
        if owner == "task":
            task = task.with_options(**{option: value})
        learners = [c.with_options(**{option: value}) if c.name == owner else c for c in learners]
    return task, learners
