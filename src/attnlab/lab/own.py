"""A Python file of the user's, executed because the user names it: it brings tasks and learners of its own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from attnlab.lab.errors import UsageError


def load(path: str | Path) -> None:
    """Execute a file that calls :func:`attnlab.lab.add`.

    The module is known by its name only while it is executed: what no import can find travels to workers by value.
    """
    file = Path(path)
    spec = importlib.util.spec_from_file_location(f"attnlab_own_{file.stem}", file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise UsageError(f"--module names no Python file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path} cannot be executed: {error!r}") from error
    finally:
        del sys.modules[spec.name]
