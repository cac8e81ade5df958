"""Speed of the published figure and of the theory, as rows of ``attnlab bench``."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from attnlab_icl import theory
from attnlab_icl.figures.task_diversity import TASK_DIVERSITY
from benchmarks.harness import measure, say
from benchmarks.rows import Row

# Seconds that the authors report for the figure at d = 64: 12 numbers of tasks, 20 runs each, with dMMSE.
PUBLISHED = 73 * 60 + 13
POINTS = 100_000


def run() -> Iterator[Row]:
    """All rows."""
    yield published_figure()
    yield errors()


def published_figure() -> Row:
    """CPU time of the figure at paper scale with its baselines, from one run of each number of tasks."""
    grid = TASK_DIVERSITY.scales["paper"][0]
    cells = {cell.params["kappa"]: cell for cell in TASK_DIVERSITY.cells("paper") if cell.params["baselines"]}
    begun = time.process_time()
    for cell in cells.values():
        cell()
    seconds = grid.seeds * (time.process_time() - begun)
    detail = (
        f"12 numbers of tasks x {grid.seeds} runs with dMMSE and ridge, from one run of each; published: {PUBLISHED} s"
    )
    return say(Row("icl: the published figure at d = 64, CPU seconds", seconds, "s", "< 480", detail))


def errors() -> Row:
    """The four errors at many parameter points."""
    alpha, kappa, tau, ridge = np.exp(np.random.default_rng(0).uniform(-3, 3, (4, POINTS)))
    timing = measure(lambda: theory.errors(alpha, kappa, tau, 0.1, ridge).value, 3)
    detail = f"all errors at {POINTS} points"
    return say(Row("icl: theory.errors", timing.median, "s", "< 1", detail, spread=timing.spread))
