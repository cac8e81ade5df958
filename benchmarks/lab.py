"""The lab's own cost: commits per second, what a cell costs beyond its computation, and workers against threads."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np

from attnlab.common.drawing import panels
from attnlab.common.figure import Figure, Grid
from attnlab.lab import DaskEngine, LocalWorkers, SerialEngine, registry
from attnlab.lab.engine import work
from attnlab.lab.outcome import Outcome, compute
from attnlab.lab.page import report
from attnlab.lab.runner import collect, compute_cells, missing_cells
from attnlab.lab.store import Store
from benchmarks.harness import Row, growth_row, middle, run_apart

CELL_SECONDS = 0.05
# One figure that lives on BLAS and one on compiled JAX of many shapes.
REPRESENTATIVE = ("rfa.rotation", "aim.softmax")


def run() -> Iterator[Row]:
    """All rows, as they come."""
    with tempfile.TemporaryDirectory() as folder:
        yield from commits(Path(folder))
        yield from overhead(Path(folder))
        yield from throughput()
        yield late_workers(Path(folder))
        yield from sizes_of_sweeps()
        yield from workers_or_threads()


def run_cell(params, seed):
    """Sleep, then return a number."""
    if params["sleep"]:
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


def driver_cost(workers: int, n: int = 2000, batch: int = work.BATCH_CELLS) -> tuple[float, float]:
    """CPU milliseconds of the driver for a cell that takes no time, and cells in a second, on local workers."""
    with (
        mock.patch.object(work, "BATCH_CELLS", batch),
        tempfile.TemporaryDirectory() as folder,
        Store(Path(folder) / "s.sqlite", writable=True) as store,
    ):
        marks: list[tuple[float, float]] = []
        engine = DaskEngine(LocalWorkers(workers)) if workers else SerialEngine()
        cells = figure(n, 0.0).cells("quick")
        report = lambda outcome: marks.append((time.process_time(), time.perf_counter()))  # noqa: E731
        compute_cells(cells, store, engine, report=report)
    # the first cells go out one by one, until their time is known
    (cpu, wall), (cpu_end, wall_end) = marks[n // 4], marks[-1]
    count = n - 1 - n // 4
    return 1000 * (cpu_end - cpu) / count, count / (wall_end - wall)


def throughput() -> Iterator[Row]:
    """What the driver spends on a cell: it bounds how many workers one driver can keep busy."""
    for workers, target in ((0, "<= 1"), (2, "<= 2"), (8, "<= 2")):
        cost, rate = driver_cost(workers)
        where = f"{workers} local workers" if workers else "in this process"
        detail = f"cells that take no time, {where}"
        yield Row(f"lab: driver CPU per cell, {where}", cost, "ms", target, detail)
        yield Row(f"lab: empty cells, {where}", rate, "1/s", ">= 1000" if workers == 8 else "", detail)
    cost, rate = driver_cost(8, batch=1)
    detail = f"as cells that take longer than {work.BATCH_SECONDS} s; 8 local workers, {rate:.0f} cells a second"
    yield Row("lab: driver CPU per cell sent alone", cost, "ms", "<= 5", detail)


def late_workers(folder: Path, n: int = 240, sleep: float = 0.5, workers: int = 8) -> Row:
    """What is used of workers that join a run of one worker, once all are there."""
    marks: list[float] = []
    with LocalWorkers(1)() as client, Store(folder / "late.sqlite", writable=True) as store:

        def count(outcome: Outcome) -> None:
            marks.append(time.perf_counter())
            if len(marks) == 4:
                client.cluster.scale(workers)

        engine = DaskEngine(lambda: contextlib.nullcontext(client))
        compute_cells(figure(n, sleep).cells("quick"), store, engine, report=count)
    late = marks[n // 2 : -2 * workers]  # all workers are there, none has run out of work
    used = 100 * (len(late) - 1) / (late[-1] - late[0]) * sleep / workers
    detail = f"1, then {workers} local workers, {n} cells of {sleep} s: cells a second against threads / cell time"
    return Row("lab: late workers", used, "%", ">= 85", detail)


def sizes_of_sweeps(sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000)) -> Iterator[Row]:
    """Whether a cell of a large sweep costs what a cell of a small one does, what a resumed run and a report cost."""
    per_cell = []
    for n in sizes:
        printed, peak = run_apart(f"from benchmarks import lab; print(*lab.large_sweep({n}))")
        cell, resume, page = (float(word) for word in printed.split())
        per_cell.append(cell)
        sweep = f"sweep of {n} cells"
        yield Row(f"lab: CPU of a cell, {sweep}", 1000 * cell, "ms", "", "computed in this process and committed")
        yield Row(f"lab: resume, {sweep}", resume, "s", "<= 20", "CPU seconds, all cells done")
        yield Row(f"lab: report, {sweep}", page, "s", "<= 60", "CPU seconds, read, drawn and written")
        yield Row(f"lab: memory, {sweep}", peak / 1e6, "MB", "<= 500", "most of the process over all three")
    ratio = per_cell[-1] / per_cell[0]
    detail = f"{sizes[-1]} cells against {sizes[0]}"
    yield Row("lab: CPU of a cell, largest against smallest sweep", ratio, "ratio", "<= 1.5", detail)


def large_sweep(n: int) -> tuple[float, float, float]:
    """CPU seconds of a trivial cell in a sweep of ``n``, of finding that nothing is left of it, and of its report."""
    asked, clock = figure(n, 0.0), time.process_time
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s.sqlite", writable=True) as store:
        start = clock()
        compute_cells(missing_cells([asked], "quick", store), store, SerialEngine())
        done = clock()
        if len(missing_cells([asked], "quick", store)):
            raise RuntimeError("a finished sweep has missing cells")
        looked = clock()
        report([collect(asked, "quick", store)], folder)
        return (done - start) / n, looked - done, clock() - looked


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
