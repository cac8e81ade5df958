"""What comes back from a cell, and how a worker computes it."""

from __future__ import annotations

import functools
import gc
import json
import platform
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal

import psutil

from attnlab.common.advice import no_advice
from attnlab.common.figure import Cell
from attnlab.common.fingerprint import library_version
from attnlab.common.pages import keep_pages
from attnlab.lab.store.payload import encode

# Compiled programs of many array shapes pile up in a worker; beyond this much memory they are dropped.
COMPILED_CODE_LIMIT = 2 * 2**30
# No program is compiled in less time (in seconds), and a look at the memory costs more than the smallest cells.
COMPILATION = 0.005
# Seconds after which a worker sends back what it has of a batch: finished cells must not wait for slow ones.
TOGETHER = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker sends back: the record as it will be stored, or the error that stopped the cell."""

    status: Literal["done", "failed"]
    record: str
    arrays: bytes
    error: str
    seconds: float
    device: str
    versions: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one cell, and the number of tries it took."""

    cell: Cell
    answer: Answer
    tries: int = 1

    @property
    def status(self) -> Literal["done", "failed"]:
        """Whether it was computed."""
        return self.answer.status


def compute(cell: Cell) -> Outcome:
    """Run a cell where it stands."""
    return Outcome(cell, answer(cell))


def answers(cells: Sequence[Cell]) -> list[Answer]:
    """On a worker: run cells one after another, the first of them if they take longer than was thought."""
    keep_pages()
    found: list[Answer] = []
    end = time.monotonic() + TOGETHER
    for cell in cells:
        found.append(answer(cell))
        if time.monotonic() > end:
            break
    return found


def answer(cell: Cell) -> Answer:
    """Run a cell; what it raises, or a record that cannot be stored, becomes a failed one with its traceback."""
    start = time.perf_counter()
    try:
        with no_advice():
            record, arrays = encode(cell())
        error = ""
    # a cell that calls sys.exit has failed; Ctrl-C still ends the run
    except (Exception, SystemExit):
        record, arrays = "{}", b""
        # a lone surrogate in a message has no UTF-8 form, and SQLite stores UTF-8
        error = traceback.format_exc().encode("utf-8", "backslashreplace").decode()
    seconds = time.perf_counter() - start
    if seconds > COMPILATION:
        _drop_compiled_code()
    return Answer("failed" if error else "done", record, arrays, error, seconds, device(), versions())


def killed(cell: Cell, tries: int) -> Outcome:
    """The outcome of a cell whose process died each time."""
    error = f"the process computing this cell died {tries} times"
    return Outcome(cell, Answer("failed", "{}", b"", error, 0.0, "", versions()), tries)


def device() -> str:
    """The accelerator JAX uses, where JAX is in use at all."""
    # not imported here: a cell without JAX must not pay for its start
    jax: Any = sys.modules.get("jax")
    return _accelerator() if jax is not None else "cpu"


@functools.cache
def _accelerator() -> str:
    return str(sys.modules["jax"].devices()[0].device_kind)


@functools.cache
def versions() -> str:
    """What computed the result, as JSON: the same for every cell of a process."""
    packages = ("numpy", "scipy", "jax", "scikit-learn")
    found = {"attnlab": library_version(), "python": platform.python_version()}
    return json.dumps(found | {name: metadata.version(name) for name in packages}, sort_keys=True)


def _drop_compiled_code() -> None:
    # What a drop leaves is no compiled code: without growth since then, all would be compiled again for nothing.
    limit = max(COMPILED_CODE_LIMIT, _LEFT.memory + COMPILED_CODE_LIMIT // 4)
    if _memory() > limit and (jax := sys.modules.get("jax")):
        jax.clear_caches()
        gc.collect()
        _LEFT.memory = _memory()


@dataclass
class _Left:
    """Bytes of this process after compiled programs were dropped last."""

    memory: int = 0


_LEFT = _Left()


def _memory() -> int:
    return int(psutil.Process().memory_info().rss)
