"""Dask's side effects on this process: its logs, and what it sets for its workers."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator

NOISY = ("distributed", "tornado", "asyncio")
# For worker processes, which read their configuration from the environment.
QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical", "DASK_LOGGING__TORNADO": "critical"}


@contextlib.contextmanager
def quiet_dask() -> Iterator[None]:
    """Keep the driver's side of Dask silent; what matters reaches us as exceptions."""
    import distributed  # noqa: F401  # makes its loggers, each with a level and a handler of its own

    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in NOISY]
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


@contextlib.contextmanager
def same_environment() -> Iterator[None]:
    """Undo changes of the environment: Dask sets what its workers shall inherit in this process, and leaves it."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
