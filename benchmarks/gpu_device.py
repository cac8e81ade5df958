"""The device itself: matrix rates at each precision with their errors, bandwidth, and the steps that scale is computed
from.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Row, Timing, measure, say

# The type of the factors, and how they are multiplied; sums are float32, for fp64 float64.
PRECISIONS: dict[str, tuple[Any, Any]] = {
    "fp32": (jnp.float32, jax.lax.Precision.HIGHEST),
    "tf32": (jnp.float32, jax.lax.DotAlgorithmPreset.TF32_TF32_F32),
    "bf16": (jnp.bfloat16, jax.lax.Precision.DEFAULT),
    "fp64": (jnp.float64, jax.lax.Precision.HIGHEST),
}
# What a backend raises that does not know one of them.
UNKNOWN_PRECISION = (ValueError, NotImplementedError, jax.errors.JaxRuntimeError)


def run(seconds: float, *, tiny: bool = False) -> list[Row]:
    """Rates of one device, most important first; what the time does not allow is left out."""
    end = time.monotonic() + seconds
    steps: list[Callable[[], Row]] = [
        *(lambda name=name: matrix_rate(name, 256 if tiny else 16_384) for name in PRECISIONS),
        lambda: bandwidth(2**16 if tiny else 2**30),
        lambda: normals(2**16 if tiny else 2**28),
        *(
            lambda name=name: amp_products(name, 64 if tiny else 4000, 256 if tiny else 65_536)
            for name in ("fp32", "tf32")
        ),
        lambda: cholesky(256 if tiny else 16_384),
        *(lambda d=d: eigh(d) for d in ((32, 64, 128) if tiny else (1000, 2000, 4000))),
    ]
    rows = []
    for step in steps:
        if time.monotonic() > end:
            print("device: out of time", flush=True)
            break
        try:
            rows.append(say(step()))
        except UNKNOWN_PRECISION as problem:
            print(f"device: not available here: {str(problem).splitlines()[0][:200]}", flush=True)
    return rows


def _rate(name: str, work: float, timing: Timing, unit: float, text: str, detail: str) -> Row:
    """Work per second in units such as 1e12 FLOP, with the spread of the time carried over."""
    value = work / timing.median / unit
    spread = value * timing.spread / timing.median
    return Row(name, value, text, "", detail, spread=spread, compile=timing.compile)


def matrix_rate(name: str, size: int) -> Row:
    """A square product, and its error on a smaller one against float64 on the host."""
    dtype, precision = PRECISIONS[name]
    with jax.enable_x64(name == "fp64"):
        total = jnp.float64 if name == "fp64" else jnp.float32
        product = jax.jit(lambda a, b: jnp.matmul(a, b, precision=precision, preferred_element_type=total))
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal((min(size, 1024),) * 2) for _ in range(2))
        found = np.asarray(product(jnp.asarray(a, dtype), jnp.asarray(b, dtype)), np.float64)
        error = float(np.linalg.norm(found - a @ b) / np.linalg.norm(a @ b))
        large = jax.random.normal(jax.random.key(0), (size, size), dtype)
        timing = measure(lambda: product(large, large), 7)
    detail = f"{size} x {size}; relative error {error:.1e} against float64, rounding of the factors included"
    return _rate(f"matrix product, {name}", 2.0 * size**3, timing, 1e12, "TFLOP/s", detail)


def bandwidth(size: int) -> Row:
    """An array negated: read once, written once."""
    x = jnp.ones(size, jnp.float32)
    negate = jax.jit(jnp.negative)
    timing = measure(lambda: negate(x), 7)
    return _rate("copy bandwidth", 8.0 * size, timing, 1e9, "GB/s", f"{4 * size / 2**30:.2g} GiB read and written")


def normals(size: int) -> Row:
    """The counter-based generator that regenerates tokens."""
    draw = jax.jit(lambda key: jax.random.normal(key, (size,), jnp.float32))
    key = jax.random.key(0, impl="threefry2x32")
    timing = measure(lambda: draw(key), 5)
    return _rate("normal deviates", size, timing, 1e9, "1e9/s", "float32 from a counter-based key")


def amp_products(name: str, d: int, sequences: int) -> Row:
    """The two products of a message-passing iteration with one chunk of resident tokens, and what lies between.

    Two tokens a sequence, of which one meets S, as for softmax.
    """
    dtype, precision = PRECISIONS[name]
    X = jax.random.normal(jax.random.key(0), (2, sequences, d), dtype)
    S = jnp.eye(d, dtype=dtype)

    @jax.jit
    def iteration(X: Any, S: Any) -> Any:
        h = (jnp.matmul(X[0], S, precision=precision) * X).sum(axis=2, keepdims=True)
        return jnp.matmul(X[0].T, (h * X).sum(axis=0), precision=precision)

    timing = measure(lambda: iteration(X, S), 5)
    detail = f"d = {d}, {sequences} sequences of 2 tokens, {name} products"
    return _rate(f"AMP products, {name}", 4.0 * sequences * d**2, timing, 1e12, "TFLOP/s", detail)


def cholesky(n: int) -> Row:
    """The factorisation behind a dual ridge fit."""
    with jax.enable_x64(True):
        A = jax.jit(lambda: jnp.eye(n) * 2 + jnp.ones((n, n)) / n)()
        factor = jax.jit(lambda A: jax.lax.linalg.cholesky(A, symmetrize_input=False))
        timing = measure(lambda: factor(A), 3)
    return _rate("Cholesky, fp64", n**3 / 3, timing, 1e12, "TFLOP/s", f"n = {n}, n^3/3 operations")


def eigh(d: int) -> Row:
    """The spectral step of message passing, float64."""
    with jax.enable_x64(True):
        A = jax.random.normal(jax.random.key(0), (d, d), jnp.float64)
        decompose = jax.jit(jnp.linalg.eigh)
        symmetric = (A + A.T) / 2
        timing = measure(lambda: decompose(symmetric), 3)
    return Row(
        f"eigh d={d}",
        timing.median,
        "s",
        "",
        f"float64, {9 * d**3 / timing.median / 1e12:.2g} TFLOP/s at 9 d^3",
        spread=timing.spread,
        compile=timing.compile,
    )
