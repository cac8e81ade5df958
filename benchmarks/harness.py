"""How things are timed: alternatives in turn, medians over repeats, the hardware limit measured in the same process."""

from __future__ import annotations

import math
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import blas

from benchmarks.rows import Row

ROOT = Path(__file__).parents[1]
LISTENERS: list[Callable[[Row], None]] = []
BRIEF, MOST = 0.01, 200  # seconds that a turn of the clock should last at least, calls in it at most


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: median and spread (half the interquartile range), and the first call's extra (compile)."""

    median: float
    spread: float
    compile: float
    times: tuple[float, ...] = ()


def middle(values: Sequence[float]) -> tuple[float, float]:
    """Median and half the interquartile range.

    >>> middle([1.0, 2.0, 3.0, 4.0, 100.0])
    (3.0, 1.0)
    """
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    return float(median), float(high - low) / 2


def alternate(calls: Sequence[Callable[[], Any]], repeats: int = 5) -> list[Timing]:
    """Time several calls in turn, A B A B ..., after one warm-up of each: a slow minute of the machine meets all.

    A call of less than ``BRIEF`` seconds is repeated within each turn until it fills them.
    """
    first = [_seconds(call) for call in calls]
    single = [_seconds(call) for call in calls]
    counts = [1 if seconds >= BRIEF else math.ceil(BRIEF / max(seconds, BRIEF / MOST)) for seconds in single]
    turns = list(zip(calls, counts, strict=True))
    rounds = [[t if count == 1 else _seconds(call, count) for t, (call, count) in zip(single, turns, strict=True)]]
    rounds += [[_seconds(call, count) for call, count in turns] for _ in range(repeats - 1)]
    timings = []
    for warm_up, times in zip(first, zip(*rounds, strict=True), strict=True):
        median, spread = middle(times)
        timings.append(Timing(median, spread, max(warm_up - median, 0.0), times))
    return timings


def say(row: Row) -> Row:
    """Print a row at once and hand it to whoever listens (a long run keeps what it has when it is cut)."""
    goal = f", target {row.goal}" if row.goal.strip(" -") else ""
    mark = {True: " (met)", False: " (missed)", None: ""}[row.met]
    print(f"{row.name}: {row.text} {row.unit}{goal}{mark}; {row.detail}", flush=True)
    for listener in LISTENERS:
        listener(row)
    return row


def measure(call: Callable[[], Any], repeats: int = 5) -> Timing:
    """Time ``call`` after one warm-up; asynchronous JAX results are waited for."""
    return alternate([call], repeats)[0]


def _seconds(call: Callable[[], Any], count: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(count):
        wait(call())
    return (time.perf_counter() - start) / count


def wait(result: Any) -> None:
    """Block until JAX has finished computing ``result``."""
    import jax

    jax.block_until_ready(result)


def speed_up(
    name: str,
    ours: Callable[[], Any],
    alternative: Callable[[], Any],
    *,
    target: str,
    detail: str,
    repeats: int = 5,
    scale: float = 1.0,
    note: str = "",
) -> Row:
    """How many times faster ``ours`` is than the obvious alternative, the two timed in turn.

    ``scale`` is the work of the alternative's call in units of ours, when it is given less to do.
    """
    fast, slow = alternate([ours, alternative], repeats)
    ratio, spread = middle([b / a / scale for a, b in zip(fast.times, slow.times, strict=True)])
    text = (
        f"{detail}; ours {fast.median:.3g} ± {fast.spread:.1g} s, alternative {slow.median:.3g} ± {slow.spread:.1g} s"
    )
    return Row(name, ratio, "x", target, text, spread=spread, compile=fast.compile, note=note)


def gemm_rate(dtype: type = np.float32, size: int = 3000) -> float:
    """FLOP/s of a square matrix product through BLAS: the machine's practical limit for dense work."""
    a = np.asfortranarray(np.random.default_rng(0).standard_normal((size, size)), dtype=dtype)
    gemm = blas.sgemm if dtype == np.float32 else blas.dgemm
    return 2 * size**3 / measure(lambda: gemm(1.0, a, a), 5).median


def bandwidth(megabytes: int = 400) -> float:
    """Bytes/s of a large copy, counting what is read and written."""
    source = np.ones(megabytes * 125_000)
    target = np.empty_like(source)
    return 2 * source.nbytes / measure(lambda: np.copyto(target, source), 5).median


def peak_memory(call: Callable[[], Any]) -> float:
    """Peak bytes that NumPy and Python allocate during ``call`` (JAX buffers on the CPU are not counted)."""
    tracemalloc.start()
    try:
        wait(call())
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def process_memory(program: str) -> float:
    """Peak resident bytes of a Python process that runs ``program`` and nothing else, JAX buffers included."""
    return run_apart(program)[1]


def run_apart(program: str) -> tuple[str, float]:
    """What ``program`` prints in a fresh Python process, and the peak of the bytes that this process holds.

    Linux keeps the peak of the parent in a child's ``ru_maxrss`` across exec; the child's own peak is ``VmHWM``.
    """
    probe = (
        "import pathlib, resource, sys\n"
        "status = pathlib.Path('/proc/self/status')\n"
        "if status.exists():\n"
        "    kilobytes = next(line.split()[1] for line in status.open() if line.startswith('VmHWM'))\n"
        "else:\n"
        "    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "    kilobytes = peak / 1024 if sys.platform == 'darwin' else peak\n"
        "print(f'\\n{kilobytes}')\n"
    )
    command = [sys.executable, "-c", f"{program}\n{probe}"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    printed, _, kilobytes = output.rstrip().rpartition("\n")
    return printed, 1024 * float(kilobytes)


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Growth exponent: the slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth(
    name: str,
    sizes: Sequence[float],
    call: Callable[[Any], Callable[[], Any]],
    theory: float | None,
    *,
    detail: str = "",
    target: str = "",
    repeats: int = 5,
) -> Row:
    """Exponent of the time of ``call(size)()`` in the size, beside the theoretical one; ``call(size)`` prepares."""
    prepared = [call(size) for size in sizes]
    timings = alternate(prepared, repeats)
    return growth_row(name, sizes, [timing.times for timing in timings], theory, detail=detail, target=target)


def growth_row(
    name: str,
    sizes: Sequence[float],
    times: Sequence[Sequence[float]],
    theory: float | None,
    *,
    detail: str = "",
    target: str = "",
) -> Row:
    """Exponent from repeated times of at least three sizes.

    The spread joins two things: how the exponent varies over the repeats, and the standard error of the line through
    the medians (times that follow no single power).
    """
    if len(sizes) < 3 or len(sizes) != len(times):
        raise ValueError(f"growth needs the times of at least three sizes, got {len(sizes)} sizes, {len(times)} times")
    medians = [middle(each)[0] for each in times]
    over_repeats = middle([exponent(sizes, each) for each in zip(*times, strict=True)])[1]
    last = exponent(sizes[-2:], medians[-2:])
    measured = ", ".join(f"{size:g}: {seconds:.3g} s" for size, seconds in zip(sizes, medians, strict=True))
    text = f"{detail}; {measured}; last pair {last:.2f}" if detail else f"{measured}; last pair {last:.2f}"
    spread = math.hypot(over_repeats, slope_error(sizes, medians))
    return Row(name, exponent(sizes, medians), "exponent", target, text, spread=spread, theory=theory)


def slope_error(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Standard error of the slope of log time against log size, from the residuals of the line."""
    x, y = np.log(sizes), np.log(seconds)
    residual = y - np.polyval(np.polyfit(x, y, 1), x)
    return float(np.sqrt(residual @ residual / (len(x) - 2) / ((x - x.mean()) @ (x - x.mean()))))
