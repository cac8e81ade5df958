"""Peak memory of a cell, measured in a fresh process: beside the store, since a cell's result must not depend on it."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cloudpickle

from attnlab.common.figure import Cell
from attnlab.lab.contests.table import Comparison

# as a worker has by default; buffers of further threads would count with the cell
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NPROC": "1"}


def measure(cells: Iterable[Cell], workers: int = 1) -> list[float]:
    """MB above the imported library that each cell needs at most, compilation included; NaN if it fails."""
    # threads that only wait: the work is in the processes they start
    with ThreadPoolExecutor(max(1, workers)) as pool:
        return list(pool.map(_in_fresh_process, cells))


def _in_fresh_process(cell: Cell) -> float:
    command = [sys.executable, "-m", "attnlab.lab.contests.memory"]
    done = subprocess.run(command, input=cloudpickle.dumps(cell), capture_output=True, env={**os.environ, **ONE_THREAD})
    # the last word: a cell may print as well
    return float(done.stdout.split()[-1]) if done.returncode == 0 else float("nan")


def _main() -> None:
    """Read a cell, load all that it may need, run it; print by how many MB the peak exceeds what was there before."""
    import jax
    import psutil

    from attnlab.lab import registry

    cell = cloudpickle.loads(sys.stdin.buffer.read())
    registry.learners(), registry.references(), jax.devices()
    before = psutil.Process().memory_info().rss
    cell()
    print(max(0.0, _peak() - before) / 2**20)


def _peak() -> float:
    """Largest resident memory of this process in bytes; what its parent had before starting it does not count."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return 1024.0 * int(line.split()[1])
    import resource

    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # in bytes on macOS


def measured(comparison: Comparison, folder: str | os.PathLike[str], workers: int = 1) -> Comparison:
    """The comparison with the peak memory of each learner, at the most examples on the first task that it finished.

    Measurements are kept in ``memory.json`` in the folder; a cell that was measured before is not measured again.
    """
    kept = Path(folder) / "memory.json"
    known: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    largest = _largest(comparison)
    missing = [cell for cell in largest.values() if cell.id not in known]
    known |= dict(zip([cell.id for cell in missing], measure(missing, workers), strict=True))
    if missing:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(known, indent=1) + "\n")
    return dataclasses.replace(comparison, memory={name: known[cell.id] for name, cell in largest.items()})


def _largest(comparison: Comparison) -> dict[str, Cell]:
    """One finished cell for each learner."""
    done = {cell.id for cell in comparison.result.cells if cell.status == "done"}
    cells = [cell for cell in comparison.result.figure.cells(comparison.result.scale) if cell.id in done]
    # the first of each learner is the one to measure: the first task, the most examples
    cells.sort(key=lambda cell: (comparison.tasks.index(cell.params["task"]), -cell.params["n_train"]))
    found: dict[str, Cell] = {}
    for cell in cells:
        found.setdefault(cell.params["learner"], cell)
    return found


if __name__ == "__main__":
    _main()
