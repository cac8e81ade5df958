"""A run of the benchmarks: the chosen parts one after another, stored after each, a failed part among the others."""

from __future__ import annotations

import importlib
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from attnlab.common.validation import one_of
from benchmarks import machine
from benchmarks.results import Results
from benchmarks.rows import Row

PARTS = ("machine", "lab", "slr", "rfa", "aim", "mha")


def choose(text: str, allowed: Sequence[str] = PARTS) -> list[str]:
    """The parts named in ``rfa,aim``, in the order they run; all of them for an empty text."""
    names = [one_of("part", name.strip(), allowed) for name in text.split(",")] if text.strip() else allowed
    return [part for part in allowed if part in names]


def run(parts: Sequence[str], path: Path, show: Callable[[str, list[Row], float], None]) -> Results:
    """Measure; ``show`` is called with the rows of each part as they are there."""
    results = Results(machine.describe())
    for part in parts:
        begun = time.perf_counter()
        try:
            results.rows[part] = importlib.import_module(f"benchmarks.{part}").run()
        except Exception:
            results.rows[part] = []
            results.failed[part] = traceback.format_exc(limit=-3)
        results.seconds[part] = round(time.perf_counter() - begun, 1)
        results.write(path)
        show(part, results.rows[part], results.seconds[part])
    return results
