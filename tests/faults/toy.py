"""A sweep whose cells are quick, deterministic and, on request, deadly; as a program it is a driver to be killed."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from attnlab.common.drawing import panels
from attnlab.common.figure import Figure, Grid
from attnlab.lab import DaskEngine, LocalWorkers, RunningCluster, SerialEngine
from attnlab.lab.errors import LabError
from attnlab.lab.runner import compute_cells, missing_cells
from attnlab.lab.store import Store


def run_cell(params, seed):
    """Numbers that depend on parameters and seed alone; a line in the log for each computation."""
    if log := os.environ.get("TOY_LOG"):
        with open(log, "a") as file:
            file.write(f"{params['x']} {params['seed']}\n")
    if params["x"] == params.get("deadly"):
        os.kill(os.getpid(), signal.SIGKILL)
    if params["x"] == params.get("faulty"):
        raise ArithmeticError("this cell always fails")
    time.sleep(params["sleep"])
    numbers = np.random.default_rng(seed).standard_normal(20)
    return {"mean": float(numbers.mean()), "numbers": numbers, "label": f"x{params['x']}"}


def draw(records):
    canvas, _ = panels()
    return canvas


def sweep(cells=300, sleep=0.01, seeds=3, **extra):
    grid = Grid({"x": list(range(cells // seeds)), "sleep": sleep, **extra}, seeds=seeds)
    return Figure("toy.sweep", "Toy", "none", "Nothing.", {"quick": [grid]}, run_cell, draw, shared=["sleep"])


def main(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("store", type=Path)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--scheduler", default="")
    parser.add_argument("--cells", type=int, default=300)
    parser.add_argument("--sleep", type=float, default=0.01)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--deadly", type=int)
    parser.add_argument("--faulty", type=int)
    parser.add_argument("--shuffle", type=int)
    options = parser.parse_args(words)
    extra = {name: value for name in ("deadly", "faulty") if (value := getattr(options, name)) is not None}
    engine = DaskEngine(LocalWorkers(options.workers)) if options.workers else SerialEngine()
    engine = DaskEngine(RunningCluster(options.scheduler)) if options.scheduler else engine
    try:
        with Store(options.store, writable=True) as store:
            cells = missing_cells([sweep(options.cells, options.sleep, options.seeds, **extra)], "quick", store)
            if options.shuffle is not None:
                cells = list(cells)
                cells = [cells[i] for i in np.random.default_rng(options.shuffle).permutation(len(cells))]
            compute_cells(cells, store, engine)
            return int(store.count().get("failed", 0) > 0)
    except KeyboardInterrupt:
        return 130
    except LabError as error:
        print(f"attnlab: {error}", file=sys.stderr)
        return error.code


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
