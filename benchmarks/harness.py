"""How things are timed: medians over repeats, the alternative and the hardware limit measured in the same process."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: median and spread (half the interquartile range), and the first call's extra (compile)."""

    median: float
    spread: float
    compile: float


@dataclass(frozen=True)
class Row:
    """One measured fact: ``value`` in ``unit``, the target it is held against, and what was run."""

    name: str
    value: float
    unit: str
    target: str
    detail: str


def measure(call: Callable[[], Any], repeats: int = 5) -> Timing:
    """Time ``call`` after one warm-up; asynchronous JAX results are waited for."""

    def once() -> float:
        start = time.perf_counter()
        wait(call())
        return time.perf_counter() - start

    first = once()
    times = [once() for _ in range(repeats)]
    low, median, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
    return Timing(median, (high - low) / 2, max(first - median, 0.0))


def wait(result: Any) -> None:
    """Block until JAX has finished computing ``result``."""
    import jax

    jax.block_until_ready(result)


def speed_up(
    name: str, ours: Callable[[], Any], alternative: Callable[[], Any], *, target: str, detail: str, repeats: int = 5
) -> Row:
    """How many times faster ``ours`` is than the obvious alternative, both timed here and now."""
    fast, slow = measure(ours, repeats), measure(alternative, max(1, repeats // 2))
    text = (
        f"{detail}; ours {fast.median:.3g} ± {fast.spread:.1g} s, alternative {slow.median:.3g} ± {slow.spread:.1g} s"
    )
    return Row(name, slow.median / fast.median, "x", target, text)


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


def exponent(sizes: list[float], seconds: list[float]) -> float:
    """Growth exponent: the slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
