"""The lab's own cost: commits per second, and what a cell costs beyond its computation."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from attnlab.common.drawing import panels
from attnlab.common.figure import Figure, Grid
from attnlab.lab import DaskEngine, LocalWorkers
from attnlab.lab.outcome import compute
from attnlab.lab.runner import compute_cells
from attnlab.lab.store import Store
from benchmarks.harness import Row

CELL_SECONDS = 0.05


def run_cell(params, seed):
    time.sleep(params["sleep"])
    return {"value": float(np.random.default_rng(seed).standard_normal())}


def figure(cells: int, sleep: float) -> Figure:
    grid = Grid({"x": list(range(cells)), "sleep": sleep})
    return Figure("bench.lab", "", "", "", {"quick": [grid]}, run_cell, lambda records: panels()[0])


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return [commits(Path(folder)), overhead(Path(folder))]


def commits(folder: Path, n: int = 3000) -> Row:
    outcomes = [compute(cell) for cell in figure(n, 0.0).cells("quick")]
    with Store(folder / "commits.sqlite", writable=True) as store:
        start = time.perf_counter()
        for outcome in outcomes:
            store.put(outcome)
        seconds = time.perf_counter() - start
    return Row("store commits", n / seconds, "1/s", ">= 1000", f"{n} cells, one commit each")


def overhead(folder: Path, n: int = 400) -> Row:
    """Wall time beyond the cells' own, per cell, on two workers; starting the workers is not counted."""
    engine = DaskEngine(LocalWorkers(2))
    cells = figure(n, CELL_SECONDS).cells("quick")
    stamps: list[float] = []
    with Store(folder / "overhead.sqlite", writable=True) as store:
        compute_cells(cells, store, engine, report=lambda outcome: stamps.append(time.perf_counter()))
    # from the tenth outcome on, both workers are busy
    per_cell = (stamps[-1] - stamps[9]) / (n - 10)
    extra = 1000 * (per_cell - CELL_SECONDS / 2)
    return Row("driver overhead per cell", extra, "ms", "<= 20", f"{n} cells of {CELL_SECONDS} s on two workers")
