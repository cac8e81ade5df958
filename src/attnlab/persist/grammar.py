"""Values as JSON and back: what a learner may be made of, and how the header spells it.

:func:`encode` and :func:`decode` are each other's inverse, case by case. A header may come from anywhere: classes are
looked up by name among those that the systems make public or the user has added, and a learner
gets only what its ``fit`` could have set.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from attnlab.common.systems import systems
from attnlab.lab import own, registry
from attnlab.lab.describe import name_of
from attnlab.persist.archive import KINDS, Arrays, BadFile, plain_dtype

MAX_DEPTH = 50

_FITTED = re.compile(r"[A-Za-z][A-Za-z0-9_]*_", re.ASCII)
_CLASS = re.compile(r"([a-z]+)\.([A-Za-z][A-Za-z0-9_]*)", re.ASCII)


def encode(value: Any, arrays: dict[str, np.ndarray], where: str, depth: int = 0) -> Any:
    """``value`` as JSON; arrays go to ``arrays``. ``where`` is the place to name in an error."""
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if depth > MAX_DEPTH:
        raise ValueError(f"{where[:80]}… is nested more than {MAX_DEPTH} deep, or contains itself")

    def each(items: Mapping[str, Any]) -> dict[str, Any]:
        return {k: encode(v, arrays, f"{where}.{k}", depth + 1) for k, v in items.items()}

    def listed(items: Iterable[Any]) -> list[Any]:
        return [encode(v, arrays, f"{where}[{i}]", depth + 1) for i, v in enumerate(items)]

    if kind is float:
        return {"$": "float", "value": str(value)}
    if kind is list:
        return listed(value)
    if kind is tuple:
        return {"$": "tuple", "items": listed(value)}
    if kind is dict:
        return {"$": "dict", "items": [listed(pair) for pair in value.items()]}
    if isinstance(value, np.generic) and value.dtype.kind in KINDS:
        return {"$": "scalar", "dtype": value.dtype.str, "hex": value.tobytes().hex()}
    if kind is np.ndarray and value.dtype.kind in KINDS:
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {"$": "array", "name": name, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, BaseEstimator):
        parts = {"params": each(value.get_params(deep=False)), "fitted": each(_fitted(value, where))}
        return {"$": "estimator", "class": _class_name(kind, where), **parts}
    if hasattr(kind, "saved_as"):  # an object that a parameter can also give in plain values, such as a text
        return encode(value.saved_as(), arrays, where, depth + 1)
    if _is_frozen_dataclass(kind):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        return {"$": "dataclass", "class": _class_name(kind, where), "fields": each(fields)}
    described = f"an array of dtype {value.dtype}" if kind is np.ndarray else f"a {kind.__module__}.{kind.__qualname__}"
    raise TypeError(
        f"{where} is {described}, which cannot be saved; what can: None, booleans, numbers, strings, NumPy arrays of "
        "those, lists, tuples, dicts, learners and public frozen dataclasses"
    )


def decode(value: Any, arrays: Arrays, depth: int = 0) -> Any:
    """The inverse of :func:`encode`; trusts nothing."""
    if value is None or isinstance(value, int | float | str):
        return value
    if depth > MAX_DEPTH:
        raise BadFile(f"nested more than {MAX_DEPTH} deep")

    def each(items: Any) -> dict[str, Any]:
        return {k: decode(v, arrays, depth + 1) for k, v in expect(dict, items).items()}

    def listed(items: Any) -> list[Any]:
        return [decode(v, arrays, depth + 1) for v in expect(list, items)]

    match value:
        case list():
            return listed(value)
        case {"$": "float", "value": ("nan" | "inf" | "-inf") as text, **rest} if not rest:
            return float(text)
        case {"$": "tuple", "items": items, **rest} if not rest:
            return tuple(listed(items))
        case {"$": "dict", "items": items, **rest} if not rest:
            return dict(map(listed, expect(list, items)))
        case {"$": "scalar", "dtype": str(dtype), "hex": str(digits), **rest} if not rest:
            return np.ndarray((), plain_dtype(dtype), buffer=bytes.fromhex(digits))[()]
        case {"$": "array", "name": str(name), "dtype": str(dtype), "shape": list(shape), **rest} if not rest:
            return arrays.take(name, dtype, shape)
        case {"$": "estimator", "class": str(name), "params": params, "fitted": fitted, **rest} if not rest:
            return _estimator(_public_class(name), each(params), each(fitted))
        case {"$": "dataclass", "class": str(name), "fields": fields, **rest} if not rest:
            if not _is_frozen_dataclass(cls := _public_class(name)):
                raise BadFile(f"{name} is not a frozen dataclass")
            return _construct(cls, each(fields))
    raise BadFile(f"its header holds an unknown kind of value: {str(value)[:80]}")


def expect(kind: type, value: Any) -> Any:
    """``value``, if it is of this kind."""
    if not isinstance(value, kind):
        raise BadFile(f"its header holds {str(value)[:80]} in place of a {kind.__name__}")
    return value


def _estimator(cls: Any, params: dict[str, Any], fitted: dict[str, Any]) -> BaseEstimator:
    """A learner with these parameters and fitted attributes, and no others."""
    if not issubclass(cls, BaseEstimator):
        raise BadFile(f"{cls.__name__} is not a learner")
    names = set(cls._get_param_names())
    for name in params.keys() - names:
        raise BadFile(f"{cls.__name__} has no parameter {name[:80]!r}")
    for name in fitted:
        if not _FITTED.fullmatch(name) or _is_computed(cls, name) or name in names:
            raise BadFile(f"{name[:80]!r} is not a fitted attribute of {cls.__name__}")
    learner = _construct(cls, params)
    vars(learner).update(fitted)
    return learner


def _construct(cls: type, arguments: dict[str, Any]) -> Any:
    try:
        return cls(**arguments)
    except Exception as problem:  # a constructor may refuse its arguments in any way
        raise BadFile(f"{cls.__name__} does not take its values: {problem}") from problem


def _fitted(learner: BaseEstimator, where: str) -> dict[str, Any]:
    """The learned attributes: all public ones that are no parameters, which by contract end in ``_``."""
    params = learner.get_params(deep=False)
    found = {
        name: value
        for name, value in vars(learner).items()
        if name not in params and not name.startswith("_") and not _is_computed(type(learner), name)
    }
    for name in found:
        if not _FITTED.fullmatch(name):
            raise TypeError(f"{where}.{name} is neither a parameter nor a fitted attribute, whose name ends in '_'")
    return found


def _is_computed(cls: type, name: str) -> bool:
    """Whether the class itself computes this name (a method, a property, a cached value)."""
    return hasattr(type(inspect.getattr_static(cls, name, None)), "__get__")


def _is_frozen_dataclass(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) and bool(cls.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def _class_name(cls: type, where: str) -> str:
    """``system.Name`` of a public class."""
    name = name_of(cls)
    with contextlib.suppress(BadFile):
        if _public_class(name) is cls:
            return name
    raise TypeError(
        f"{where} is a {cls.__module__}.{cls.__qualname__}; only public classes of the systems and classes added with "
        "lab.add can be saved"
    )


def _public_class(name: str) -> type:
    """The class that a system makes public under ``system.Name``, or that was added as ``own.Name``."""
    parts = _CLASS.fullmatch(name)
    for kind in ("learner", "task", "part"):
        if isinstance(added := own.things[kind].get(name), type):
            return added
    if parts and parts[1] in systems():
        system = registry.system(parts[1])
        found = getattr(system, parts[2]) if parts[2] in system.__all__ else None
        if isinstance(found, type):
            return found
    hint = "; add the class with lab.add before loading" if name.startswith("own.") else ""
    raise BadFile(f"unknown class {name[:80]!r}{hint}")
