"""What a learner costs in memory, measured once and kept beside the report."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

from attnlab.common.figure import Cell
from attnlab.lab.contests.memory import measure
from attnlab.lab.contests.scoreboard import Standings


def measured(standings: Standings, folder: str | os.PathLike[str], workers: int = 1) -> Standings:
    """The standings with the peak memory of each learner, at the most examples on the first task that it finished.

    Measurements are kept in ``memory.json`` in the folder; a cell that was measured before is not measured again.
    """
    kept = Path(folder) / "memory.json"
    known: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    largest = _largest(standings)
    missing = [cell for cell in largest.values() if cell.id not in known]
    known |= dict(zip([cell.id for cell in missing], measure(missing, workers), strict=True))
    if missing:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(known, indent=1) + "\n")
    return dataclasses.replace(standings, memory={name: known[cell.id] for name, cell in largest.items()})


def _largest(standings: Standings) -> dict[str, Cell]:
    """One finished cell for each learner."""
    done = {cell.id for cell in standings.result.cells if cell.status == "done"}
    cells = [cell for cell in standings.result.figure.cells(standings.result.scale) if cell.id in done]
    cells.sort(key=lambda cell: (standings.tasks.index(cell.params["task"]), -cell.params["n_train"]))
    found: dict[str, Cell] = {}
    for cell in cells:
        found.setdefault(cell.params["learner"], cell)
    return found
