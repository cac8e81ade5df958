"""A theory function as data: parameters, status and source, read from its own signature and docstring."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from attnlab.common.systems import systems
from attnlab.common.validation import one_of
from attnlab.lab import registry
from attnlab.lab.formulas.plain import plain

Kind = Literal["number", "integer", "flag", "text", "array", "tuple", "object", "beyond"]
REQUIRED = ...  # None is a default that functions have
STATUSES = ("exact", "asymptotic", "bound", "heuristic")

# What the examples of the help set required parameters to that several systems have. A system's own table,
# theory.EXAMPLES, comes before this one; there "function.parameter" is for a name that means two things.
EXAMPLES = {
    "d": "16",
    "n": "200",
    "n_heads": "2",
    "nu": "2",
    "rho": "0.5",
    "bound": "1",
    "k": "2",
    "kappa": "1",
    "ridge": "0.01",
}

# For a required parameter that no table knows.
TYPICAL = {"number": "0.5", "integer": "10", "flag": "true", "array": "[1,0.5]", "tuple": "[1,2]"}


@dataclass(frozen=True)
class Parameter:
    """One argument as a command line gives it; ``task.p`` is the field ``p`` of the argument ``task``."""

    name: str
    kind: Kind
    default: Any = REQUIRED
    none: bool = False

    @property
    def required(self) -> bool:
        """Whether the function has no default for it."""
        return self.default is REQUIRED


@dataclass(frozen=True)
class Formula:
    """A public theory function with what its docstring says of it.

    >>> formula("aim.mmse").status
    'asymptotic'
    >>> [p.name for p in formula("aim.mmse").parameters]
    ['alpha', 'rho', 'tokens', 'channel', 'noise', 'beta', 'tied', 'attention', 'mask']
    """

    name: str
    function: Callable[..., Any]

    @property
    def text(self) -> str:
        """The docstring in plain words, without its examples."""
        return plain((inspect.getdoc(self.function) or "").split("\n>>>")[0]).strip()

    @property
    def summary(self) -> str:
        """Its first sentence in plain words."""
        return plain(self.opening)

    @property
    def opening(self) -> str:
        """The first sentence of the docstring as it is written."""
        first = re.split(r"\n\s*\n|(?<=[.])\s", inspect.getdoc(self.function) or "")[0]
        return " ".join(first.split()).rstrip(":.")

    @property
    def status_text(self) -> str:
        """What follows ``Status:``, to the end of the paragraph."""
        return _after("Status", inspect.getdoc(self.function) or "")

    @property
    def status(self) -> str:
        """Exact, asymptotic, bound or heuristic; a docstring that says none of them is an error."""
        words = re.findall(r"[a-z]+", self.status_text.lower())
        return one_of(f"status of {self.name}", words[0] if words else "", STATUSES)

    @property
    def source(self) -> str:
        """What follows ``Source:``, up to the status."""
        return _after("Source", inspect.getdoc(self.function) or "")

    @property
    def hints(self) -> dict[str, Any]:
        """The types of its arguments; those of a law (:func:`attnlab.common.law.from_law`) are the law's own."""
        law = getattr(self.function, "law", None)
        return (_hints(law) if law else {}) | typing.get_type_hints(self.function)

    @property
    def parameters(self) -> list[Parameter]:
        """All arguments in order, objects spelled out as their fields."""
        hints = self.hints
        found: list[Parameter] = []
        for name, argument in inspect.signature(self.function).parameters.items():
            kind, none = kind_of(hints.get(name))
            if kind == "object":
                found.extend(_fields(name, hints[name]))
            else:
                default = REQUIRED if argument.default is argument.empty else argument.default
                found.append(Parameter(name, kind, default, none))
        return found

    @property
    def objects(self) -> dict[str, type]:
        """The arguments that are dataclasses, with the class to build."""
        hints = self.hints
        names = inspect.signature(self.function).parameters
        return {name: hints[name] for name in names if _is_object(hints.get(name))}

    @property
    def beyond(self) -> list[str]:
        """Required arguments that no command line can give, such as Python functions."""
        return [p.name for p in self.parameters if p.kind == "beyond" and p.required]

    def example(self) -> dict[str, str]:
        """A value for every required parameter, as one would type it, and for those named with the function."""
        known = EXAMPLES | registry.examples(self.name.split(".")[0])
        short = self.name.split(".")[-1]
        return {
            p.name: known.get(f"{short}.{p.name}") or known.get(p.name) or TYPICAL.get(p.kind, "1")
            for p in self.parameters
            if p.required or f"{short}.{p.name}" in known
        }


def formulas(names: Sequence[str] | None = None) -> dict[str, Formula]:
    """The public theory functions of the given systems, or all, by their names."""
    return {name: Formula(name, function) for name, function in registry.theory(names).items()}


def formula(name: str) -> Formula:
    """One of them; a wrong name suggests the nearest.

    >>> formula("aim.mms")
    Traceback (most recent call last):
    ...
    ValueError: there is no theory function 'aim.mms'; did you mean 'aim.mmse'? 'attnlab theory' lists them all
    """
    # The other systems may take longer to import than the function to compute.
    known = formulas([system] if (system := name.partition(".")[0]) in systems() else None)
    if name not in known:
        known = formulas()
        words = {full: full.rsplit(".", 1)[-1] for full in known}
        near = difflib.get_close_matches(name, known, n=1) or [
            full for full, word in words.items() if difflib.get_close_matches(name.rsplit(".", 1)[-1], [word])
        ]
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"there is no theory function {name!r}; {hint}'attnlab theory' lists them all")
    return known[name]


def kind_of(hint: Any) -> tuple[Kind, bool]:
    """What a command line must give for a type, and whether ``none`` is allowed."""
    union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    options = [o for o in (typing.get_args(hint) if union else (hint,)) if o is not types.NoneType]
    none = union and types.NoneType in typing.get_args(hint)
    if _is_object(hint):
        return "object", none
    if Any in options or np.ndarray in options:
        return "array", none
    if np.random.SeedSequence in options:
        return "integer", none
    # A number that may also be a tuple is typed as a number.
    if any(typing.get_origin(o) in (tuple, Sequence) for o in options) and not {int, float} & set(options):
        return "tuple", none
    if any(typing.get_origin(o) is typing.Literal for o in options):
        return "text", none
    names: dict[type, Kind] = {bool: "flag", str: "text", float: "number", int: "integer"}
    # the first of these in a union: what takes a float or an integer takes any number
    return next((kind for known, kind in names.items() if known in options), "beyond"), none


def _after(word: str, text: str) -> str:
    """The words after ``word:``, to the end of the paragraph or the next such word."""
    found = re.search(rf"\b{word}:\s(.*?)(?=\bStatus:|\bSource:|\n\s*\n|\Z)", text, flags=re.DOTALL)
    return " ".join(plain(found[1]).split()).rstrip(".") if found else ""


def _is_object(hint: Any) -> bool:
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def _hints(cls: Any) -> dict[str, Any]:
    """The types of a dataclass's parameters, those that only its constructor takes (InitVar) included."""
    hints = typing.get_type_hints(cls)
    return {name: hint.type if isinstance(hint, dataclasses.InitVar) else hint for name, hint in hints.items()}


def _fields(prefix: str, cls: Any) -> list[Parameter]:
    hints = _hints(cls)
    return [
        Parameter(f"{prefix}.{name}", kind, _default(cls, p), none)
        for name, p in inspect.signature(cls).parameters.items()
        for kind, none in [kind_of(hints.get(name))]  # binds both inside the comprehension
    ]


def _default(cls: Any, parameter: inspect.Parameter) -> Any:
    """The default of a dataclass's parameter; one made by a factory is made here."""
    factory = cls.__dataclass_fields__[parameter.name].default_factory
    if factory is not dataclasses.MISSING:
        return factory()
    return REQUIRED if parameter.default is parameter.empty else parameter.default
