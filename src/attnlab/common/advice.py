"""Warnings for a person at a prompt. A cell of the lab gives none: its record carries what they say."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

# A context variable, because ``warnings.catch_warnings`` changes the filters of all threads of a process.
_silent: ContextVar[bool] = ContextVar("silent", default=False)


def advise(message: str, category: type[Warning] = UserWarning, *, stacklevel: int = 2) -> None:
    """Warn as `warnings.warn` does, unless within `no_advice`."""
    if not _silent.get():
        warnings.warn(message, category, stacklevel=stacklevel + 1)


@contextlib.contextmanager
def no_advice() -> Iterator[None]:
    """Give no advice: what a caller needs to know is in the results, such as ``converged``."""
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)
