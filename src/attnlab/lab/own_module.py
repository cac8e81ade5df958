"""A Python file of the user's, executed because the user names it: it brings tasks and learners of its own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from attnlab.lab.errors import UsageError


def load(path: str | Path) -> None:
    """Execute a file that calls :func:`attnlab.lab.add`; what it defines travels to workers by value."""
    import cloudpickle

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
    cloudpickle.register_pickle_by_value(module)
