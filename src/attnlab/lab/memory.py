"""Peak memory of a cell, measured in a fresh process: beside the store, since a cell's result must not depend on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import cloudpickle

from attnlab.common.figure import Cell

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NPROC": "1"}


def measure(cells: Iterable[Cell], workers: int = 1) -> list[float]:
    """MB above the imported library that each cell needs at most, compilation included; NaN if it fails."""
    with ThreadPoolExecutor(max(1, workers)) as pool:
        return list(pool.map(_in_fresh_process, cells))


def _in_fresh_process(cell: Cell) -> float:
    command = [sys.executable, "-m", "attnlab.lab.memory"]
    done = subprocess.run(command, input=cloudpickle.dumps(cell), capture_output=True, env={**os.environ, **ONE_THREAD})
    return float(done.stdout.split()[-1]) if done.returncode == 0 else float("nan")


def _main() -> None:
    """Read a cell, load what it needs, run it; print the growth of the peak resident memory in MB."""
    import resource

    import jax
    import psutil

    cell = cloudpickle.loads(sys.stdin.buffer.read())
    jax.devices()
    before = psutil.Process().memory_info().rss
    cell()
    # Linux counts in kilobytes, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    print(max(0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit - before) / 2**20)


if __name__ == "__main__":
    _main()
