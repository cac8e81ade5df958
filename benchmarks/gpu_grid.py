"""The right panel of figure 2 of arXiv:2506.01582 at the paper's size: gradient descent at d = 200 for T = 2..6, from
32 initialisations, for 16 teachers.

``python -m benchmarks.gpu --only grid`` writes the records that the figure is drawn from into ``results/``.
"""

from __future__ import annotations

import csv
import functools
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
from joblib import Parallel, delayed

from attnlab import aim
from attnlab.common.compute import Compute
from benchmarks.gpu_aim import RHO, gemm_rate
from benchmarks.harness import Row, say

D, INITS, TEACHERS, PRECISION = 200, 32, 16, "tf32"
NAMES = ("tokens", "alpha", "teacher", "single", "averaged", "worst_loss", "se")
FILE = "gradient_descent_d200.csv"
# Sequences are drawn and programs compiled on the host while the device trains on other cells.
THREADS = 8

Record = tuple[float, ...]


def grid() -> list[tuple[int, float]]:
    """T and alpha of the points: logarithmic in alpha, as far as the panel shows them."""
    alphas = np.logspace(np.log10(0.0012), np.log10(0.3), 32)
    points = [(tokens, float(alpha)) for tokens in range(2, 7) for alpha in alphas]
    return [(tokens, alpha) for tokens, alpha in points if 0.0095 <= alpha * (tokens**2 + tokens - 2) <= 1.05]


def run(seconds: float, out: Path = Path("results")) -> list[Row]:
    """All cells, teacher after teacher, or as many as the time allows; the records go to a CSV file in ``out``."""
    began = time.perf_counter()
    cells = [(tokens, alpha, teacher) for teacher in range(TEACHERS) for tokens, alpha in grid()]
    out.mkdir(parents=True, exist_ok=True)
    records = list(write(out / FILE, train(cells, began + seconds)))
    taken = time.perf_counter() - began
    table = np.array(records)
    flops = sum(work(int(tokens), alpha) for tokens, alpha in table[:, :2])
    detail = f"{len(records)} of {len(cells)} cells in {taken:.0f} s, compilation included; {FILE}"
    rate = f"{flops / taken / 1e12:.1f} TFLOP/s over cells of all sizes, sampling and compilation included"
    rows = [
        Row("GD grid at d = 200, all teachers", taken * len(cells) / len(records), "s", "< 600 s", detail),
        Row("GD rate over the grid", flops / taken / gemm_rate(), f"of fp32, {PRECISION} products", ">= 0.4", rate),
        Row("GD single / averaged", float((table[:, 3] / table[:, 4]).mean()), "", "", "about 2 expected"),
        Row("GD averaged - Bayes error", float((table[:, 4] - table[:, 6]).mean()), "", "", "0.05 to 0.06 published"),
    ]
    return [say(row) for row in rows]


def train(cells: list[tuple[int, float, int]], deadline: float) -> Iterator[Record]:
    """The records in order; cells that would begin after the deadline are left out."""
    pool = Parallel(n_jobs=THREADS, prefer="threads", return_as="generator")
    for record in pool(delayed(cell)(*each, deadline) for each in cells):
        if record is not None:
            yield record


def cell(tokens: int, alpha: float, teacher: int, deadline: float) -> Record | None:
    """One point of the grid: errors of one initialisation (mean over all) and of their average."""
    if time.perf_counter() > deadline:
        return None
    task = aim.Task(D, tokens, RHO, seed=teacher)
    X, y = task.sample(task.n_samples(alpha), seed=(teacher + 1) * 1000 + tokens)
    compute = Compute(precision=PRECISION, memory=4e10)
    model = aim.GradientDescent(task.width, INITS, optimizer=aim.Adam(compute=compute), random_state=teacher).fit(X, y)
    error = lambda S: float(((S - task.S) ** 2).sum() / D)  # noqa: E731
    single = float(np.mean([error(aim.matrix(W)) for W in model.weights_]))
    return tokens, alpha, teacher, single, error(model.S_), float(model.loss_.max()), bayes_error(tokens, alpha)


def write(path: Path, records: Iterator[Record]) -> Iterator[Record]:
    """Pass the records on, each written to the file first."""
    with path.open("w", newline="") as file:
        setting = f"d={D} rho={RHO} inits={INITS} Adam lr=0.1 steps=1000 products={PRECISION}"
        file.write(f"# {setting} device={jax.devices()[0].device_kind} jax={jax.__version__}\n")
        file.write("# produced by: python -m benchmarks.gpu --only grid\n")
        writer = csv.writer(file)
        writer.writerow(NAMES)
        for count, record in enumerate(records, start=1):
            writer.writerow([f"{value:.6g}" for value in record])
            file.flush()
            if count % len(grid()) == 0:
                print(f"  teacher {record[2]:.0f}: {count} cells", flush=True)
            yield record


def work(tokens: int, alpha: float, steps: int = 1000) -> float:
    """Operations of a cell: 4 n T d r for each step and initialisation."""
    return 4.0 * round(alpha * D**2) * tokens * D * round(RHO * D) * INITS * steps


@functools.cache
def bayes_error(tokens: int, alpha: float) -> float:
    """The theory's error, once for all teachers."""
    return float(aim.theory.mmse(alpha, RHO, tokens))
