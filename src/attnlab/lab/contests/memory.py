"""Peak memory of a cell, measured in a fresh process: beside the store, since a cell's result must not depend on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cloudpickle

from attnlab.common.figure import Cell

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NPROC": "1"}


def measure(cells: Iterable[Cell], workers: int = 1) -> list[float]:
    """MB above the imported library that each cell needs at most, compilation included; NaN if it fails."""
    with ThreadPoolExecutor(max(1, workers)) as pool:
        return list(pool.map(_in_fresh_process, cells))


def _in_fresh_process(cell: Cell) -> float:
    command = [sys.executable, "-m", "attnlab.lab.contests.memory"]
    done = subprocess.run(command, input=cloudpickle.dumps(cell), capture_output=True, env={**os.environ, **ONE_THREAD})
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


if __name__ == "__main__":
    _main()
