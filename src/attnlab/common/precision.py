"""Float64 where it is needed, locally: the library never flips a global JAX flag."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def float64(function: Callable[P, R]) -> Callable[P, R]:
    """Run ``function`` with 64-bit JAX types enabled, whatever the caller's setting."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        import jax

        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped
