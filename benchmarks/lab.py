"""The lab's own cost: commits per second, what a cell costs beyond its computation, and workers against threads."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from attnlab.common.drawing import panels
from attnlab.common.figure import Figure, Grid
from attnlab.lab import DaskEngine, LocalWorkers, SerialEngine, registry
from attnlab.lab.outcome import compute
from attnlab.lab.runner import compute_cells
from attnlab.lab.store import Store
from benchmarks.harness import Row, growth_row, middle, run_apart

CELL_SECONDS = 0.05
# One figure that lives on BLAS and one on compiled JAX of many shapes.
REPRESENTATIVE = ("rfa.rotation", "aim.softmax")


def run() -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as folder:
        return [*commits(Path(folder)), *overhead(Path(folder)), *workers_or_threads()]


def run_cell(params, seed):
    """Sleep, then return a number."""
    time.sleep(params["sleep"])
    return {"value": float(np.random.default_rng(seed).standard_normal())}


def figure(cells: int, sleep: float) -> Figure:
    """Cells that take ``sleep`` seconds each."""
    grid = Grid({"x": list(range(cells)), "sleep": sleep})
    return Figure("bench.lab", "", "", "", {"quick": [grid]}, run_cell, lambda records: panels()[0])


def commits(folder: Path, sizes: tuple[int, ...] = (400, 1200, 3600), repeats: int = 3) -> list[Row]:
    """Every finished cell is a transaction of its own."""
    outcomes = [compute(cell) for cell in figure(max(sizes), 0.0).cells("quick")]

    def seconds(n: int, repeat: int) -> float:
        with Store(folder / f"commits-{n}-{repeat}.sqlite", writable=True) as store:
            start = time.perf_counter()
            for outcome in outcomes[:n]:
                store.put(outcome)
            return time.perf_counter() - start

    rounds = [[seconds(n, repeat) for n in sizes] for repeat in range(repeats)]
    times = list(zip(*rounds, strict=True))
    rate, spread = middle([sizes[-1] / each for each in times[-1]])
    return [
        Row("lab: store commits", rate, "1/s", ">= 1000", f"{sizes[-1]} cells, one commit each", spread=spread),
        growth_row("lab: store commits in cells", sizes, times, 1.0, detail="an empty store filled"),
    ]


def stamps(folder: Path, n: int, sleep: float) -> np.ndarray:
    """Seconds at which each of ``n`` cells was committed, counted from the tenth, when both workers are busy."""
    engine, marks = DaskEngine(LocalWorkers(2)), []
    with Store(folder / f"{n}-{sleep}-{time.time_ns()}.sqlite", writable=True) as store:
        cells = figure(n, sleep).cells("quick")
        compute_cells(cells, store, engine, report=lambda outcome: marks.append(time.perf_counter()))
    return np.array(marks[10:]) - marks[9]


def overhead(folder: Path, n: int = 300, sizes: tuple[int, ...] = (50, 200, 800)) -> list[Row]:
    """Wall time beyond the cells' own on two workers, and whether it stays the same for the thousandth cell."""
    parts = np.array_split(stamps(folder, n, CELL_SECONDS), 5)
    per_cell = [1000 * (part[-1] - part[0]) / (len(part) - 1) for part in parts]
    extra, spread = middle([each - 1000 * CELL_SECONDS / 2 for each in per_cell])
    runs = [stamps(folder, max(sizes) + 10, 0.0) for _ in range(2)]
    times = [[float(marks[size - 1]) for marks in runs] for size in sizes]
    detail = f"{n} cells of {CELL_SECONDS} s on two workers, start of the workers not counted"
    return [
        Row("lab: driver overhead per cell", extra, "ms", "<= 20", detail, spread=spread),
        growth_row("lab: driver in cells", sizes, times, 1.0, detail="cells that take no time, two workers"),
    ]


def sweep_seconds(name: str, workers: int) -> float:
    """A figure at quick scale in this process (0 workers) or on workers with one thread each, their start included."""
    engine = DaskEngine(LocalWorkers(workers)) if workers else SerialEngine()
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s.sqlite", writable=True) as store:
        start = time.perf_counter()
        compute_cells(registry.select([name])[0].cells("quick"), store, engine)
        return time.perf_counter() - start


def workers_or_threads() -> list[Row]:
    """Two workers with one thread each against one process with two threads, each in a fresh process."""
    rows = []
    for name in REPRESENTATIVE:
        program = "from benchmarks import lab; print(lab.sweep_seconds({!r}, {}))"
        (one, peak), (two, _) = (run_apart(program.format(name, workers)) for workers in (0, 2))
        detail = f"quick scale, start and compilation included; workers {float(two):.1f} s, threads {float(one):.1f} s"
        ratio = float(one) / float(two)
        rows.append(Row(f"lab: two workers against two threads, {name}", ratio, "x", "", detail, memory=peak))
    return rows


if __name__ == "__main__":
    for row in run():
        print(f"{row.name}: {row.text} {row.unit} (target {row.goal or 'none'}); {row.detail}")
