"""A run of the benchmarks: the chosen parts one after another, stored after each, a failed part among the others."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from attnlab.common.systems import systems
from attnlab.common.validation import one_of
from benchmarks import machine
from benchmarks.harness import LISTENERS
from benchmarks.results import Results
from benchmarks.rows import Row

PARTS = ("machine", "waiting", "lab", "slr", "rfa", "aim", "bounds", "mha")


def brought() -> dict[str, str]:
    """Modules ``benchmarks`` of installed systems, by system: their ``run()`` gives rows as ours do."""
    rooms = {name: f"{package}.benchmarks" for name, package in systems().items()}
    return {name: room for name, room in rooms.items() if importlib.util.find_spec(room)}


def choose(text: str, allowed: Sequence[str] | None = None) -> list[str]:
    """The parts named in ``rfa,aim``, in the order they run; all of them for an empty text."""
    allowed = (*PARTS, *brought()) if allowed is None else allowed
    names = [one_of("part", name.strip(), allowed) for name in text.split(",")] if text.strip() else allowed
    return [part for part in allowed if part in names]


def run(parts: Sequence[str], path: Path, show: Callable[[str, list[Row], float], None]) -> Results:
    """Measure; ``show`` is called with the rows of each part when it is finished.

    Some of the parts are measured beside what the file holds of the others; all of them replace it.
    """
    results = Results(machine.describe())
    if path.exists() and set(parts) < set(choose("")) and not set((earlier := Results.read(path)).rows) <= set(parts):
        results = results.beside(earlier)
    for part in parts:
        run_part(part, functools.partial(rows_of, part), results, path)
        show(part, results.rows[part], results.seconds[part])
    return results


def rows_of(part: str) -> Iterable[Row]:
    """Measure one part."""
    module = brought().get(part, f"benchmarks.{part}")
    rows: Iterable[Row] = importlib.import_module(module).run()
    return rows


def run_part(part: str, call: Callable[[], Iterable[Row]], results: Results, path: Path) -> None:
    """Store the rows of one part, those that it says on its way at once; a failure is stored beside them."""
    rows = results.rows[part] = []
    results.days[part] = time.strftime("%Y-%m-%d", time.gmtime())
    results.failed.pop(part, None)

    def record(row: Row) -> None:
        if row not in rows:
            rows.append(row)
            results.write(path)

    begun = time.perf_counter()
    LISTENERS.append(record)
    try:
        for row in call():
            record(row)
    except Exception:
        results.failed[part] = traceback.format_exc(limit=-3)
    finally:
        LISTENERS.remove(record)
    results.seconds[part] = round(time.perf_counter() - begun, 1)
    results.write(path)
