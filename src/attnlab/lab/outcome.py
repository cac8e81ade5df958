"""What comes back from a cell, and how a worker computes it."""

from __future__ import annotations

import gc
import platform
import sys
import time
import traceback
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, Literal

import psutil

from attnlab.common.figure import Cell, Record

# Compiled programs of many array shapes pile up in a worker; beyond this much memory they are dropped.
COMPILED_CODE_LIMIT = 2 * 2**30


@dataclass(frozen=True)
class Outcome:
    """The result of one cell: its record, or the error that stopped it."""

    cell: Cell
    status: Literal["done", "failed"]
    record: Record
    error: str
    seconds: float
    tries: int
    device: str
    versions: dict[str, str]

    def after(self, tries: int) -> Outcome:
        """The same outcome with the number of tries it took."""
        return replace(self, tries=tries)


def compute(cell: Cell) -> Outcome:
    """Run a cell where it stands; an exception becomes a failed outcome with its traceback."""
    start = time.perf_counter()
    try:
        record, error = cell(), ""
    except Exception:
        record, error = {}, traceback.format_exc()
    seconds = time.perf_counter() - start
    _drop_compiled_code()
    return Outcome(cell, "failed" if error else "done", record, error, seconds, 1, device(), versions())


def killed(cell: Cell, tries: int) -> Outcome:
    """The outcome of a cell whose process died each time."""
    error = f"the process computing this cell died {tries} times"
    return Outcome(cell, "failed", {}, error, 0.0, tries, "", versions())


def device() -> str:
    """The accelerator JAX uses, where JAX is in use at all."""
    jax: Any = sys.modules.get("jax")
    return str(jax.devices()[0].device_kind) if jax is not None else "cpu"


def versions() -> dict[str, str]:
    """What computed the result."""
    packages = ("attnlab", "numpy", "scipy", "jax", "scikit-learn")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}


def _drop_compiled_code() -> None:
    if psutil.Process().memory_info().rss > COMPILED_CODE_LIMIT and (jax := sys.modules.get("jax")):
        jax.clear_caches()
        gc.collect()
