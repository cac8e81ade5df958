"""``python -m benchmarks.smi_times``: CPU seconds of smi on one thread and on two; writes docs/data/smi_times.csv.

The seconds of the process and not of the clock: other programs beside it change them little. The second call is timed;
``first`` is what the first takes more, mostly compilation.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "docs/data/smi_times.csv"
LAYERS = "deep_attention"
COLUMNS = ["computation", "stated", "one thread", "two threads", "first"]


def seconds(call: Callable[[], Any], repeats: int = 3) -> tuple[float, float]:
    """CPU seconds of a call, the least of some, and what the first takes more."""
    times = []
    for _ in range(1 + repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times[1:]), times[0] - min(times[1:])


def step(link: str, draws: int, nodes: int | None = None) -> Callable[[], Any]:
    """A step of state evolution at Q = I/2, as four replicates."""
    import numpy as np

    from attnlab.smi.links import as_link
    from attnlab.smi.posterior.moments import first_rule
    from attnlab.smi.theory.gains import gain, points_of

    law = as_link(link)
    V, points = np.repeat(0.5 * np.eye(law.rank)[None], 4, axis=0), points_of(law, draws // 4, 4, "times")
    return lambda: gain(law, V, points, first_rule(law, nodes))


def messages(link: str, d: int, alpha: float, iterations: int = 40) -> Callable[[], Any]:
    """Iterations of message passing."""
    import warnings

    from attnlab import smi

    task = smi.Task(link, d=d)
    X, y = task.sample(task.n_samples(alpha))

    def call() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            smi.AMP(link, max_iter=iterations, random_state=0).fit(X, y)

    return call


def computations() -> dict[str, tuple[str, Callable[[], Any], int, int]]:
    """Stated seconds on two cores, the call, how many of the named are in it, and repeats."""
    from attnlab.smi import theory

    thresholds = ("untied_attention", *(f"deep_attention(skip={c})" for c in (4.0, 2.0, 1.0)))
    return {
        "step, two layers": ("0.26", step(LAYERS, 2**12, 61), 1, 3),
        "step, sign committee": ("0.1", step("sign_committee", 2**14), 1, 3),
        "step, attention": ("0.1", step("attention", 2**14), 1, 3),
        "point, two layers": ("20 to 40", lambda: theory.state_evolution(LAYERS, 0.5), 1, 1),
        "branch, layer 2": ("1", lambda: theory.curve(LAYERS, 0.5, [0, 1], replicates=4), 1, 3),
        **{f"threshold, {link}": ("1 to 4", partial(theory.weak_recovery, link), 1, 1) for link in thresholds},
        "iteration, two layers": ("0.025", messages(LAYERS, 1000, 0.5), 40, 2),
        "iteration, attention": ("0.01", messages("attention", 2000, 0.4), 40, 3),
    }


def measure() -> None:
    """The lines of one process."""
    for name, (stated, call, count, repeats) in computations().items():
        once, first = seconds(call, repeats)
        print(name, stated, f"{once / count:.2g}", f"{first:.2g}", sep="\t", flush=True)


def on(cores: int) -> list[list[str]]:
    """The lines of a process that has some cores."""
    threads = {f"{name}_NUM_THREADS": str(cores) for name in ("OMP", "OPENBLAS")}
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.smi_times", "measure"],
        env={**os.environ, **threads},
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [line.split("\t") for line in ran.stdout.splitlines()]


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        measure()
    else:
        found = [
            [name, stated, one, two, first]
            for (name, stated, one, first), (*_, two, _) in zip(on(1), on(2), strict=True)
        ]
        with FILE.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *found])
