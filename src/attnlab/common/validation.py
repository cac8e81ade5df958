"""Checks of public arguments: each argument is checked once, and the error names it, its value and what is allowed."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np


def real(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return ``value`` as a finite float inside an interval.

    >>> real("ridge", 1e-6, low=0)
    1e-06
    >>> real("gamma", -0.5, low=0, open_low=True)
    Traceback (most recent call last):
    ...
    ValueError: gamma must be a number in (0, inf), got -0.5
    """
    left = "(" if open_low or low == -math.inf else "["
    right = ")" if open_high or high == math.inf else "]"
    allowed = f"a number in {left}{low:g}, {high:g}{right}"
    # bool is a subclass of int: True would pass as the number 1
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    number = float(value)
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if not (above and below and math.isfinite(number)):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return number


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a float > 0."""
    return real(name, value, low=0.0, open_low=True)


def nonnegative(name: str, value: Any) -> float:
    """Return ``value`` as a float >= 0."""
    return real(name, value, low=0.0)


def integer(name: str, value: Any, *, low: int | None = None, high: int | None = None) -> int:
    """Return ``value`` as an int in [low, high].

    >>> integer("n_heads", 0, low=1)
    Traceback (most recent call last):
    ...
    ValueError: n_heads must be an integer >= 1, got 0
    """
    bounds = [f">= {low}"] * (low is not None) + [f"<= {high}"] * (high is not None)
    allowed = " ".join(["an integer", " and ".join(bounds)]).strip()
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    number = int(value)
    if (low is not None and number < low) or (high is not None and number > high):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return number


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of the allowed names; otherwise name the nearest.

    >>> one_of("score", "rellu", ["relu", "exp"])
    Traceback (most recent call last):
    ...
    ValueError: score must be one of 'relu', 'exp', got 'rellu'; did you mean 'relu'?
    """
    names = list(allowed)
    # str first, for an array compares entry by entry; str(value) also makes a plain one of NumPy's
    if isinstance(value, str) and value in names:
        return str(value)
    near = difflib.get_close_matches(str(value), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}, got {value!r}{hint}")


def finite_array(
    name: str, value: Any, *, ndim: int | None = None, shape: tuple[int | None, ...] | None = None
) -> np.ndarray:
    """Return ``value`` as a float array without NaN or infinity, of the given rank or shape (None: any length)."""
    try:
        array = np.asarray(value)
    except ValueError as problem:
        raise ValueError(f"{name} must be an array of real numbers: {problem}") from problem
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
    # float32 stays: the caller chose it
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimensions, got shape {array.shape}")
    if shape is not None and (
        array.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True))
    ):
        wanted = "(" + ", ".join("*" if s is None else str(s) for s in shape) + ("," if len(shape) == 1 else "") + ")"
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return array
