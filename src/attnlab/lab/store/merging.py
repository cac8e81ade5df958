"""Rows that travel from store to store: verify, merge, copy. Nothing is taken over before it was checked."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from attnlab.lab.errors import UsageError
from attnlab.lab.store.arrays import ArrayFolder
from attnlab.lab.store.file import CHUNK, Store
from attnlab.lab.store.row import StoredCell


def verify(store: Store) -> Iterator[tuple[StoredCell, str]]:
    """The damaged cells, each with what is wrong."""
    return ((row, problem) for row in store.rows() if (problem := row.problem(store.arrays)))


def file_problems(store: Store) -> list[str]:
    """What is wrong with the file as a whole: SQLite's own check, and rows that came or went behind our back."""
    problems = [*store.notes, *(text for text in store.integrity() if text != "ok")]
    if problems:
        return problems
    tally = store.counted()
    # the tally is kept apart from the rows: whoever changes rows with other tools leaves it behind
    if tally != store.tally:
        problems.append(f"the file holds {tally.rows} rows, {store.tally.rows} were committed, or one was exchanged")
    return problems


def merge(target: Store, sources: Iterable[Store]) -> dict[str, int]:
    """Copy the good rows of several stores into one.

    A finished cell replaces a failed one, the first finished one stays, a damaged row of the target is healed from a
    good one. The answer counts rows copied and healed, damaged rows of the sources left out, and cells that two stores
    finished with different results (other hardware rounds differently; other code computes something else).
    """
    counts: Counter[str] = Counter()
    for source in sources:
        counts.update(take_over(target, _good(source, counts), source.arrays))
    return {name: counts[name] for name in ("copied", "healed", "damaged", "different")}


def take_over(target: Store, rows: Iterable[StoredCell], folder: ArrayFolder) -> Counter[str]:
    """Put checked rows into a store where they are missing, failed or damaged there; what is good stays."""
    counts: Counter[str] = Counter()
    waiting = iter(rows)
    while chunk := list(itertools.islice(waiting, CHUNK)):
        there = {row.id: row for row in target.get(row.id for row in chunk)}
        taken = []
        for row in chunk:
            decision = _decision(row, there.get(row.id), target.arrays)
            counts[decision] += 1
            if decision in ("copied", "healed"):
                taken.append((row, folder.read(row.arrays) if row.arrays else b""))
        # heal, for a damaged or failed row may be in the place; good ones were sorted out above
        target.put_rows(taken, heal=True)
    if counts["healed"]:
        target.recount()  # the hash of a damaged row may not be the one that was counted
    return counts


def _decision(row: StoredCell, here: StoredCell | None, folder: ArrayFolder) -> str:
    if here is None:
        return "copied"
    if here.problem(folder):
        return "healed"
    if row.status == "done" and here.status == "failed":
        return "copied"
    return "different" if row.status == "done" and row.payload_hash != here.payload_hash else "present"


def _good(source: Store, counts: Counter[str]) -> Iterator[StoredCell]:
    """The rows that are what was written; the others are counted."""
    for row in source.rows():
        if row.problem(source.arrays):
            counts["damaged"] += 1
        else:
            yield row


def copy(source: Store, target: str | os.PathLike[str]) -> int:
    """A consistent copy, also while a driver writes; array files that no row names stay behind. Counts the rows."""
    place = Path(target)
    if place.exists():
        raise UsageError(f"{place} exists; a copy does not overwrite")
    unfinished = place.with_name(place.name + ".unfinished")
    unfinished.unlink(missing_ok=True)  # of a copy that was killed
    source.copy_to(unfinished)
    # Array files are never changed, and are written before their rows: those named by the copied rows are all there.
    folder = ArrayFolder.beside(place)
    with Store(unfinished) as copied:
        rows = 0
        for row in copied.rows():
            rows += 1
            if row.arrays and not row.problem(source.arrays):
                folder.write(source.arrays.read(row.arrays))
    os.replace(unfinished, place)
    return rows
