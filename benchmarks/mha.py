"""Recovering a multi-head layer: the step against the hardware, recovery against first-order methods, growth.

``python -m benchmarks.mha largest 600`` recovers larger and larger layers for ten minutes and says how far it came.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np

from attnlab import mha
from attnlab.common.threads import single_threaded_blas
from attnlab.mha import theory
from attnlab.mha.engine import variable_projection as varpro
from attnlab.mha.engine.levenberg_marquardt import levenberg_marquardt
from attnlab.mha.engine.normal_equations import normal_equations
from attnlab.mha.layer import Rows, rows_of
from benchmarks.baselines.mha import STEPS, explicit_normal_equations, restart
from benchmarks.harness import Row, bandwidth, exponent, gemm_rate, measure, middle, peak_memory, say, speed_up

RECOVERED = 1e-3  # relative error of the worst head
LADDER = ((2, 24, 4), (4, 16, 4), (6, 12, 4), (2, 32, 4), (8, 12, 6), (4, 24, 4), (2, 48, 4), (4, 32, 6), (2, 64, 6))


def run() -> list[Row]:
    parts = (step_rows, memory_rows, size_rows, sculpting_rows, growth_rows, recovery_rows)
    return [say(row) for part in parts for row in part()]


def problem(m: int, d: int, k: int, rows: int) -> tuple[Rows, np.ndarray, varpro.Regression]:
    """Rows of a generic layer and a point near it."""
    task = mha.Task(d=d, k=k, n_heads=m, tokens_law="gaussian")
    data = rows_of(*task.sample(rows // k))
    theta = task.Theta + 0.1 * np.random.default_rng(0).standard_normal(task.Theta.shape)
    return data, theta, varpro.regress(data, theta)


def step_rows() -> Iterator[Row]:
    """One Levenberg-Marquardt step at m = 2, d = 16, against the rate of a matrix product."""
    m, d, k, rows = 2, 16, 4, 8000
    data, theta, fit = problem(m, d, k, rows)
    rate = gemm_rate(np.float64)
    with single_threaded_blas():  # as in a fit of this size: the threads are those around the chunks
        step = measure(lambda: normal_equations(data, theta, fit), 9)
    flops = theory.step_flops(rows, m, d, k).detail
    done = flops["assembly"] + flops["row_work"] + flops["projection"]
    detail = f"m = {m}, d = {d}, {rows} rows, {step.median:.3g} s a step, dgemm {rate / 1e9:.0f} GFLOP/s"
    why = "a third of the CPU time goes into work on single rows, which two cores speed up less than products"
    for name, work, text, note in (
        ("rate", done, "operations carried out", why),
        ("effective", flops["direct"], "operations of a symmetric product of the explicit Jacobian, same time", ""),
    ):
        value, spread = middle([work / seconds / rate for seconds in step.times])
        yield Row(f"mha.step.{name}", value, "of dgemm", ">= 0.4", f"{text}; {detail}", spread=spread, note=note)
    copied = bandwidth(4)  # a chunk of rows stays in the cache, and so do these arrays
    allowed = done / ((flops["assembly"] + flops["projection"]) / rate + flops["bytes"] / copied) / rate
    text = f"products at the rate of dgemm, {flops['bytes'] / 1e6:.0f} MB of single rows at {copied / 1e9:.0f} GB/s"
    yield Row("mha.step.roofline", allowed, "of dgemm", "-", f"what counted operations and bytes allow: {text}")
    whole = measure(lambda: levenberg_marquardt(data, theta, max_iter=1), 5)
    yield Row(
        "mha.step.seconds", whole.median, "s", "-", f"with regression and solution; {detail}", spread=whole.spread
    )
    yield speed_up(
        "mha.step.explicit",
        lambda: normal_equations(data, theta, fit),
        lambda: explicit_normal_equations(data, theta, fit),
        target=">= 3",
        detail=f"against an explicit Jacobian; {detail}",
        repeats=3,
    )


def memory_rows() -> Iterator[Row]:
    """Four times the rows, the same memory."""
    m, d = 2, 16
    peaks = {}
    for rows in (8000, 32000):
        data, theta, fit = problem(m, d, 4, rows)
        peaks[rows] = peak_memory(lambda data=data, theta=theta, fit=fit: normal_equations(data, theta, fit))
    jacobian = 8e-6 * 32000 * d * m * d * d
    detail = f"m = {m}, d = {d}, 32000 rows, {peaks[8000] / 1e6:.0f} MB at 8000; the Jacobian has {jacobian:.0f} MB"
    yield Row("mha.step.memory", peaks[32000] / 1e6, "MB", "< 200", f"peak of the assembly; {detail}")


def recovery_rows(seeds: int = 2, limit: float = 5.0) -> Iterator[Row]:
    """Seconds until the same layers are recovered from the same examples."""
    m, d, k, n = 2, 8, 4, 500
    tasks = {family: mha.Task(d=d, k=k, n_heads=m, family=family, seed=1) for family in ("generic", "close", "weak")}
    for method in STEPS:  # compile
        restart(method, m, *tasks["generic"].sample(n), seconds=0.0)
    for family in tasks:
        seconds: dict[str, list[float]] = {"race": [], **{method: [] for method in STEPS}}
        recovered = dict.fromkeys(seconds, 0)
        for seed in range(seeds):
            task = mha.Task(d=d, k=k, n_heads=m, family=family, seed=seed)
            X, y = task.sample(n, seed=100 + seed)
            for name, times in seconds.items():
                begun = time.perf_counter()
                learner = mha.learn(X, y, n_heads=m) if name == "race" else restart(name, m, X, y, limit)
                times.append(time.perf_counter() - begun)
                error = mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error
                recovered[name] += error < RECOVERED
        layer = f"{family}, m = {m}, d = {d}, k = {k}, n = {n}"
        ours = float(np.median(seconds["race"]))
        yield Row(f"mha.recovery.{family}", ours, "s", "-", f"mha.learn; {layer}: {recovered['race']} of {seeds}")
        for method, steps in STEPS.items():
            theirs = float(np.median(seconds[method]))
            text = f"{method}, starts of {steps} until {limit:g} s: {recovered[method]} of {seeds}, {theirs:.2g} s"
            yield Row(f"mha.recovery.{family}.{method}", theirs / ours, "x", "-", f"{text}; {layer}")


def size_rows() -> Iterator[Row]:
    """Sizes that must work, and the time they take."""
    targets = {(2, 8, 4): 5, (2, 16, 4): 40, (1, 30, 8): 120, (3, 10, 4): 40, (4, 8, 4): 40}
    for (m, d, k), limit in targets.items():
        seconds, error = recover(m, d, k, float(limit))
        detail = f"m = {m}, d = {d}, k = {k}, n = 1000, head error {error:.0e}"
        yield Row(f"mha.size.{m}.{d}.{k}", seconds, "s", f"< {limit}", detail)


def recover(m: int, d: int, k: int, limit: float) -> tuple[float, float]:
    """Seconds to fit a generic layer from random starts, and the error of its worst head."""
    task = mha.Task(d=d, k=k, n_heads=m)
    X, y = task.sample(max(1000, 3 * theory.examples_needed(m, d, k).value))
    begun = time.perf_counter()
    learner = mha.AttentionLearner(m, starts=("random",), max_seconds=limit, random_state=0).fit(X, y)
    seconds = time.perf_counter() - begun
    return seconds, mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error


def growth_rows() -> Iterator[Row]:
    """Exponents of a step in rows, width and heads, beside the theoretical ones."""
    sweeps = {
        "rows": [(2, 12, 4000), (2, 12, 8000), (2, 12, 16000)],
        "d": [(2, 12, 4000), (2, 18, 4000), (2, 27, 4000)],
        "m": [(1, 16, 4000), (2, 16, 4000), (4, 16, 4000)],
    }
    place = {"rows": 2, "d": 1, "m": 0}
    for name, sizes in sweeps.items():
        along = [float(size[place[name]]) for size in sizes]
        seconds = [step_seconds(*size) for size in sizes]
        predicted = exponent(along, [float(theory.step_flops(r, m, d, 4)) for m, d, r in sizes])
        detail = f"a whole step over {name} = {', '.join(f'{x:g}' for x in along)}: " + ", ".join(
            f"{s:.2g}" for s in seconds
        )
        yield Row(f"mha.growth.{name}", exponent(along, seconds), "exponent", "-", f"{detail} s", theory=predicted)


def step_seconds(m: int, d: int, rows: int) -> float:
    """Median seconds of one accepted step."""
    data, theta, _ = problem(m, d, 4, rows)
    return measure(lambda: levenberg_marquardt(data, theta, max_iter=1), 3).median


def sculpting_rows() -> Iterator[Row]:
    """The paper's algorithm end to end."""
    task = mha.Task(d=8, k=2, n_heads=2, rho=2.0)
    X, y = task.sample(30_000)
    begun = time.perf_counter()
    learner = mha.SculptingLearner(2, random_state=0).fit(X, y)
    seconds = time.perf_counter() - begun
    detail = f"m = 2, d = 8, k = 2, n = 30000, span error {mha.span_error(learner.span_, task.Theta):.3f}"
    yield Row("mha.sculpting", seconds, "s", "< 15", detail)


def largest(seconds: float, sizes: tuple[tuple[int, int, int], ...] = LADDER) -> Iterator[Row]:
    """Larger and larger layers until the time is over."""
    end = time.monotonic() + seconds
    for m, d, k in sizes:
        left = end - time.monotonic()
        if left < 1:
            return
        took, error = recover(m, d, k, left)
        detail = f"m = {m}, d = {d}, k = {k}, {theory.unknowns(m, d).value} unknowns, head error {error:.0e}"
        yield Row(f"mha.largest.{m}.{d}.{k}", took, "s", "head error < 1e-3", detail)


if __name__ == "__main__":
    if sys.argv[1:2] == ["largest"]:
        chosen = tuple(tuple(int(x) for x in size.split(",")) for size in sys.argv[3:]) or LADDER
        for row in largest(float(sys.argv[2]), chosen):
            say(row)
    else:
        run()
