"""How long figures take: minutes on two cores, in ``durations.json`` of each system, which alone states them.

A number was measured; ``"about 90"`` is an estimate. ``python -m attnlab.lab.durations docs/data/claims_paper.json``
brings in what the runs of a ledger took.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from attnlab.common.figure import Figure
from attnlab.common.systems import own_files

FILE = "durations.json"
CORES = 2
ABOUT = "about "
# Ledgers count whole seconds.
SHORTEST = 0.01
# Minutes of a run beside its cells: to start and to compile, and to draw one figure.
START, DRAWING = 0.05, 0.035


@functools.cache
def stated() -> dict[str, dict[str, float | str]]:
    """What the files say of each figure at each scale."""
    files = [path for path in own_files(FILE).values() if path.exists()]
    return {name: minutes for path in files for name, minutes in json.loads(path.read_text()).items()}


def with_stated(figure: Figure) -> Figure:
    """The figure with the minutes of its system's file; those that it states itself are for a system without one."""
    found = {scale: float(str(value).removeprefix(ABOUT)) for scale, value in stated().get(figure.name, {}).items()}
    return dataclasses.replace(figure, minutes={**figure.minutes, **found}) if found else figure


def of_run(cells: Iterable[float]) -> float:
    """Minutes of a run from those of the cells of its figures; zero where they are not known.

    >>> round(of_run([0.01, 2.0]), 2)
    2.13
    """
    known = [minutes for minutes in cells if minutes > 0]
    return START + sum(minutes + DRAWING for minutes in known) if known else 0.0


def on_two_cores(runs: Mapping[str, Any]) -> float | None:
    """Minutes of the run of a ledger; None for a confirmation alone and for a run with an accelerator."""
    if (first := runs.get("1")) is None or set(first.get("devices", ())) - {"cpu"}:
        return None
    # the seconds are summed over cells, which CORES processes share
    return max(SHORTEST, round(first["seconds"] / 60 / CORES, 2))


def main(ledger: str) -> None:
    """Bring the times of a ledger into the files of the systems.

    A measured time is replaced by a shorter one only: whatever runs beside makes a run longer.
    """
    from attnlab.lab import registry
    from attnlab.lab.ledger import read

    written = read(ledger)
    content = {name: dict(stated().get(name, {})) for name in sorted(registry.figures())}
    for name in content.keys() & written["figures"].keys():
        if (taken := on_two_cores(written["figures"][name])) is None:
            continue
        known = content[name].get(written["scale"])
        # an estimate, which is a text, gives way to any measured time
        content[name][written["scale"]] = min(taken, known) if isinstance(known, float) else taken
    for system, file in own_files(FILE).items():
        if mine := {name: times for name, times in content.items() if times and name.startswith(f"{system}.")}:
            file.write_text(json.dumps(mine, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
