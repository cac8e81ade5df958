"""Tasks and learners as columns: every parameter, defaults too, as plain values under names with dots."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from attnlab.common.fingerprint import LIBRARY
from attnlab.common.systems import systems

Role = Literal["task", "learner"]
# Packages whose version is stored with every cell; their source does not enter the fingerprint.
VERSIONED = ("numpy", "scipy", "sklearn", "jax", "builtins")
# Longer arrays are stored as a hash of their bytes.
LONGEST = 16


def settings(role: Role, point: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the task or the learner, without the prefix."""
    return {key.removeprefix(f"{role}."): value for key, value in point.items() if key.startswith(f"{role}.")}


def name_of(item: type) -> str:
    """``system.Name`` for a class of a system, ``own.Name`` for a user's, ``package.Name`` for another library's.

    >>> from attnlab import slr
    >>> name_of(slr.Task)
    'slr.Task'
    """
    top, *rest = item.__module__.split(".")
    for system, package in systems().items():
        # with the dot behind, for the name of one package may begin another's
        if f"{item.__module__}.".startswith(f"{package}."):
            return f"{system}.{item.__name__}"
    if top == LIBRARY:
        return f"{rest[0]}.{item.__name__}"
    return f"{top if top in VERSIONED else 'own'}.{item.__name__}"


def columns(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The columns of a parameter; an object gives its class and then its own parameters.

    >>> from attnlab import slr
    >>> dict(columns("learner", slr.LinearPredictor(ridge=0.1)))
    {'learner': 'slr.LinearPredictor', 'learner.n_tokens': None, 'learner.ridge': 0.1}
    """
    plain = _plain(value)
    if plain is not _NO:
        yield name, plain
        return
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value)
        yield name, f"array {value.dtype} {value.shape} {hashlib.sha256(content.tobytes()).hexdigest()[:16]}"
    elif isinstance(value, list | tuple):
        # the steps of a pipeline have names, other lists are counted
        named = all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in value)
        yield name, [item[0] for item in value] if named else len(value)
        for key, item in value if named else enumerate(value):
            yield from columns(f"{name}.{key}", item)
    elif isinstance(value, Mapping):
        yield name, sorted(map(str, value))
        for key, item in value.items():
            yield from columns(f"{name}.{key}", item)
    elif inspect.isclass(value) or inspect.isroutine(value):
        if "<" in value.__qualname__:  # a <lambda>, or a function inside another's <locals>
            raise TypeError(
                f"{name} must have a name that another process can find: give a function or class of a module, "
                f"got {value.__qualname__}"
            )
        yield name, f"{value.__module__}:{value.__qualname__}"
    elif (own := parameters(value)) is not None:
        yield name, name_of(type(value))
        for key, item in own.items():
            yield from columns(f"{name}.{key}", item)
    else:
        raise TypeError(
            f"{name} is a {type(value).__name__}; parameters are numbers, strings, arrays, lists, named functions, "
            "dataclasses and scikit-learn estimators"
        )


def roots(value: Any) -> Iterator[Any]:
    """The classes and functions that a parameter brings with it, whose code counts for the result."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from roots(item)
    elif isinstance(value, Mapping):
        yield from roots(list(value.values()))
    elif inspect.isclass(value) or inspect.isroutine(value):
        yield value
    # a plain value brings no code, and an array none but NumPy's
    elif _plain(value) is _NO and not isinstance(value, np.ndarray):
        yield type(value)
        yield from roots(parameters(value) or {})


def parameters(item: Any) -> dict[str, Any] | None:
    """The constructor's parameters of a task, learner or other object; None where they cannot be read back."""
    if hasattr(item, "get_params"):
        found: dict[str, Any] = item.get_params(deep=False)
        return found
    if dataclasses.is_dataclass(item):
        return {field.name: getattr(item, field.name) for field in dataclasses.fields(item) if field.init}
    # a plain class: its constructor's arguments must be attributes of the same names
    names = [name for name in inspect.signature(type(item)).parameters if name not in ("args", "kwargs")]
    return {name: getattr(item, name) for name in names} if all(hasattr(item, name) for name in names) else None


def is_plain(value: Any) -> bool:
    """Whether a value is its own column."""
    return _plain(value) is not _NO


_NO = object()


def _plain(value: Any) -> Any:
    """The value as JSON, or a sign that it has no short form."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size <= LONGEST):
        value = value.tolist()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value]
        return items if all(item is not _NO for item in items) else _NO
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        pairs = {key: _plain(item) for key, item in value.items()}
        return pairs if all(item is not _NO for item in pairs.values()) else _NO
    return _NO
