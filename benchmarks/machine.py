"""The machine the numbers were measured on: what it is, its practical limits, and BLAS against XLA on it."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import blas

from benchmarks import harness
from benchmarks.rows import Row

LIBRARIES = ("attnlab", "jax", "jaxlib", "numpy", "scipy", "scikit-learn", "optax")


def describe(*, rates: bool = True) -> dict[str, Any]:
    """Processor, memory, BLAS, versions, and the rates measured now."""
    here = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "BLAS": blas_libraries(),
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
    }
    if rates:
        here["sgemm GFLOP/s"] = round(harness.gemm_rate(np.float32) / 1e9, 1)
        here["dgemm GFLOP/s"] = round(harness.gemm_rate(np.float64) / 1e9, 1)
        here["copy GB/s"] = round(harness.bandwidth() / 1e9, 1)
    return here


def processor() -> str:
    """The model's name."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def blas_libraries() -> str:
    """Name, version and threads of the BLAS that SciPy and NumPy call."""
    try:
        from threadpoolctl import threadpool_info
    except ModuleNotFoundError:
        return "unknown"
    loaded = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    names = {f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads" for pool in loaded}
    return "; ".join(sorted(names)) or "unknown"


def version(name: str) -> str:
    """Version of an installed distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "from source" if name == "attnlab" else "absent"


def blas_against_xla(size: int, dtype: type) -> Row:
    """A square product through SciPy's BLAS and through XLA on the CPU, in turn."""
    import jax
    import jax.numpy as jnp

    a = np.asfortranarray(np.random.default_rng(0).standard_normal((size, size)), dtype=dtype)
    gemm = blas.sgemm if dtype == np.float32 else blas.dgemm
    with jax.enable_x64(dtype == np.float64), jax.default_device(jax.devices("cpu")[0]):
        b = jnp.asarray(a)
        product: Callable[..., Any] = jax.jit(jnp.matmul)
        row = harness.speed_up(
            f"BLAS against XLA, {np.dtype(dtype).name} {size} x {size}",
            lambda: gemm(1.0, a, a),
            lambda: product(b, b),
            target="",
            detail="square product, SciPy against jax.jit(matmul)",
            repeats=7,
        )
    return row


def run() -> list[Row]:
    """Where the dense products should be computed on this machine."""
    return [blas_against_xla(size, dtype) for dtype in (np.float32, np.float64) for size in (250, 1000, 3000)]
