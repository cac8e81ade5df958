"""Which systems are installed: packages that declare the entry point ``attnlab.systems``."""

from __future__ import annotations

import functools
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "attnlab.systems"


@functools.cache
def systems() -> dict[str, str]:
    """The packages of the installed systems by name; attnlab's own come first."""
    found = sorted(entry_points(group=GROUP), key=lambda point: not point.value.startswith("attnlab."))
    return {point.name: point.value for point in found}


def own_files(name: str) -> dict[str, Path]:
    """The file of this name in the package of each installed system, whether it exists or not."""
    return {system: Path(str(resources.files(package) / name)) for system, package in systems().items()}
