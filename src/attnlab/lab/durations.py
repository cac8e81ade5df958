"""How long figures take: minutes on two cores, in ``durations.json`` of each system, which alone states them.

A number was measured; ``"about 90"`` is an estimate. ``python -m attnlab.lab.durations results/attnlab.sqlite`` puts
what a run took in their place, for the figures that are complete in its store.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from typing import TYPE_CHECKING

from attnlab.common.figure import Figure
from attnlab.common.systems import own_files

if TYPE_CHECKING:
    from attnlab.lab.store import Store

FILE = "durations.json"
CORES = 2
ABOUT = "about "
# Shorter than this, starting the program takes longer than the figure.
SHORTEST = 0.1


@functools.cache
def stated() -> dict[str, dict[str, float | str]]:
    """What the files say of each figure at each scale."""
    files = [path for path in own_files(FILE).values() if path.exists()]
    return {name: minutes for path in files for name, minutes in json.loads(path.read_text()).items()}


def is_measured(name: str, scale: str) -> bool:
    """Whether the time of a figure was measured."""
    return isinstance(stated().get(name, {}).get(scale), int | float)


def with_stated(figure: Figure) -> Figure:
    """The figure with the minutes of its system's file; those that it states itself are for a system without one."""
    found = {scale: float(str(value).removeprefix(ABOUT)) for scale, value in stated().get(figure.name, {}).items()}
    return dataclasses.replace(figure, minutes={**figure.minutes, **found}) if found else figure


def minutes(figure: Figure, scale: str, store: Store) -> float | None:
    """Time of the figure's finished cells on two cores; None where cells are missing."""
    seconds = {row.id: row.seconds for row in store.rows(figure.name) if row.status == "done"}
    cells = [cell.id for cell in figure.cells(scale)]
    if not cells or not seconds.keys() >= set(cells):
        return None
    return max(SHORTEST, round(sum(seconds[cell] for cell in cells) / 60 / CORES, 2))


def main(path: str, scale: str = "quick") -> None:
    """Bring the minutes of the complete figures of a store into the files of their systems."""
    from attnlab.lab import registry
    from attnlab.lab.store import Store

    content = {name: dict(known) for name, known in stated().items()}
    figures = registry.figures()
    with Store(path) as store:
        for figure in figures.values():
            if (found := minutes(figure, scale, store)) is not None:
                content.setdefault(figure.name, {})[scale] = found
    for system, file in own_files(FILE).items():
        mine = {name: content[name] for name in sorted(content) if name.startswith(f"{system}.") and name in figures}
        if mine:
            file.write_text(json.dumps(mine, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
