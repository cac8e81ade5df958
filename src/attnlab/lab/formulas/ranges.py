"""Values as typed on a command line: numbers, ranges, lists and arrays.

=================  =====================================================
``0.1``            one value
``0.1,0.2,0.5``    a list: one point of the grid for each
``0.1:0.5:0.1``    from 0.1 to 0.5, both included, in steps of 0.1
``1:100:n12``      12 values at equal distances
``1:100:x12``      12 values at equal ratios (a logarithmic axis)
``[1,0,0]``        an array, one value; ``[[1,0],[0,2]]`` a matrix
=================  =====================================================
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from attnlab.lab.formulas.formula import Parameter

LONGEST = 1_000_000
FORMS = "a number, a list a,b,c, a range start:end:step, or start:end:n20 (equal steps) or start:end:x20 (equal ratios)"


def values(parameter: Parameter, text: str) -> list[Any]:
    """The values of a parameter, in the order given and without repetition.

    >>> values(Parameter("alpha", "number"), "0.05:0.2:0.05")
    [0.05, 0.1, 0.15, 0.2]
    >>> values(Parameter("n", "integer"), "10:1000:x3,5000")
    [10, 100, 1000, 5000]
    """
    found = [value for piece in _pieces(text) for value in _piece(parameter, piece)]
    unique: dict[str, Any] = {repr(value): value for value in found}
    return list(unique.values())


def _pieces(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter in "[(") - (letter in ")]")
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces]


def _piece(parameter: Parameter, text: str) -> list[Any]:
    kind, name = parameter.kind, parameter.name
    if parameter.none and text.lower() == "none":
        return [None]
    if kind == "text":
        return [text]
    if kind == "flag":
        flags = {"true": True, "yes": True, "false": False, "no": False}
        if text.lower() not in flags:
            raise ValueError(f"--{name} must be true or false, got {text!r}")
        return [flags[text.lower()]]
    if text.startswith("[") or kind == "tuple":
        return [_array(parameter, text)]
    numbers = _range(name, text) if ":" in text else [_number(name, text)]
    if kind != "integer":
        # an argument that takes anything gets an integer where one was typed: it may be a count
        whole = [kind == "array" and x.is_finite() and x == x.to_integral_value() for x in numbers]
        return [int(x) if is_whole else float(x) for x, is_whole in zip(numbers, whole, strict=True)]
    # points at equal distances or ratios may fall between integers and are rounded; what was typed is not
    typed = "x" not in text and "n" not in text
    if not all(x.is_finite() for x in numbers) or (typed and any(x != x.to_integral_value() for x in numbers)):
        raise ValueError(f"--{name} takes integers, got {text!r}")
    return [int(x.to_integral_value()) for x in numbers]


def _number(name: str, text: str) -> Decimal:
    try:
        number = Decimal(text.replace("_", ""))
    except InvalidOperation:
        number = Decimal("nan")
    if number.is_nan():
        raise ValueError(f"--{name} takes {FORMS}; got {text!r}")
    return number


def _range(name: str, text: str) -> list[Decimal]:
    parts = text.split(":")
    if len(parts) != 3:
        raise ValueError(f"--{name} takes {FORMS}; got {text!r}")
    start, end = _number(name, parts[0]), _number(name, parts[1])
    if not (start.is_finite() and end.is_finite()):
        raise ValueError(f"--{name} takes ranges with finite ends, got {text!r}")
    counted = re.fullmatch(r"([nx])(\d{1,6})", parts[2])
    if counted:
        return _counted(name, text, float(start), float(end), counted[1], int(counted[2]))
    step = _number(name, parts[2])
    if step <= 0 or end < start:
        raise ValueError(f"--{name} needs start <= end and a step > 0, got {text!r}")
    # decimals, so that 0.05:0.2:0.01 ends at 0.2 and holds no 0.15000000000000002
    count = int((end - start) / step) + 1 if (end - start) / step < LONGEST else LONGEST
    if count >= LONGEST:
        raise ValueError(f"--{name} would have a million values or more: {text!r}")
    return [start + i * step for i in range(count)]


def _counted(name: str, text: str, start: float, end: float, spacing: str, count: int) -> list[Decimal]:
    if count < 2 or (spacing == "x" and min(start, end) <= 0):
        raise ValueError(f"--{name} needs two values or more, and for equal ratios both ends > 0, got {text!r}")
    grid = np.geomspace(start, end, count) if spacing == "x" else np.linspace(start, end, count)
    # twelve digits cut the rounding of the grid off: 0.3 and not 0.30000000000000004
    return [Decimal(f"{x:.12g}") for x in grid]


def _array(parameter: Parameter, text: str) -> Any:
    allowed = parameter.kind in ("array", "tuple")
    try:
        content = json.loads(text) if allowed and text.startswith("[") else None
        if content is not None:
            return _nested(content) if parameter.kind == "tuple" else np.array(content, dtype=float)
    except (json.JSONDecodeError, ValueError, TypeError):
        pass
    form = "an array such as [1,0.5] or [[1,0],[0,2]]" if allowed else FORMS
    raise ValueError(f"--{parameter.name} takes {form}; got {text!r}")


def _nested(content: Any) -> Any:
    """Nested tuples of numbers."""
    if isinstance(content, list):
        return tuple(map(_nested, content))
    if isinstance(content, bool) or not isinstance(content, int | float):
        raise ValueError(f"not a number: {content!r}")
    return content
