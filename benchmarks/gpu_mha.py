"""A multi-head layer on an accelerator: the step's rate in float64, agreement with BLAS, and how large a layer gets."""

from __future__ import annotations

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from attnlab import mha
from attnlab.mha import device, theory, varpro
from attnlab.mha.layer import rows_of
from attnlab.mha.race import long_rows
from benchmarks.harness import Row, measure


def run(seconds: float = 120.0) -> list[Row]:
    end = time.monotonic() + seconds
    rows = []
    with jax.enable_x64(True):
        dgemm = matrix_rate()
        rows += [agreement(), step_rate(dgemm, 2, 16, 200_000), step_rate(dgemm, 4, 24, 100_000)]
        for row in rows:
            show(row)
        for m, d, k in ((2, 16, 4), (4, 16, 4), (2, 32, 4), (8, 16, 6), (4, 32, 6), (2, 48, 6), (8, 24, 8), (4, 48, 8)):
            if time.monotonic() > end:
                break
            rows.append(recover(m, d, k, end))
            show(rows[-1])
    return rows


def matrix_rate(size: int = 4096) -> float:
    """FLOP/s of a float64 product on the device."""
    a = jnp.asarray(np.random.default_rng(0).standard_normal((size, size)))
    product = jax.jit(jnp.matmul)
    return 2 * size**3 / measure(lambda: product(a, a), 5).median


def agreement() -> Row:
    """Largest relative difference of the compiled equations from those assembled through BLAS."""
    task = mha.Task(d=12, k=4, n_heads=3)
    data = rows_of(*task.sample(1000))
    theta = task.Theta + 0.1
    fit = varpro.regress(data, theta)
    expected = varpro.normal_equations(data, theta, fit)
    placed = device.place(data, 3)
    w, factor, _ = device.regress(placed, theta)
    H, _ = device.normal_equations(placed, theta, w, factor)
    difference = float(np.abs(np.asarray(H) - expected.H).max() / np.abs(expected.H).max())
    return Row("mha.gpu.agreement", difference, "relative", "< 1e-8", "m = 3, d = 12: device against BLAS, float64")


def step_rate(dgemm: float, m: int, d: int, rows: int) -> Row:
    """Assembly of the normal equations against the device's own matrix rate."""
    task = mha.Task(d=d, k=4, n_heads=m)
    placed = device.place(rows_of(*task.sample(rows // 4)), m)
    theta = jnp.asarray(task.Theta + 0.1)
    w, factor, _ = device.regress(placed, theta)
    took = measure(lambda: device.normal_equations(placed, theta, w, factor), 5)
    flops = theory.step_flops(m, d, rows)
    done = flops["assembly"] + flops["rows"] + flops["projection"]
    detail = f"m = {m}, d = {d}, {rows} rows, {took.median:.3g} s a step, dgemm {dgemm / 1e12:.1f} TFLOP/s"
    return Row(f"mha.gpu.step.{m}.{d}", done / took.median / dgemm, "of dgemm", "-", detail)


def recover(m: int, d: int, k: int, end: float) -> Row:
    """Seconds to recover a generic layer from a few random starts."""
    task = mha.Task(d=d, k=k, n_heads=m, rho=4.0)
    n = max(1000, 3 * theory.examples_needed(m, d, k), long_rows(m, d, k) // k + 1)
    data = rows_of(*task.sample(n))
    rng = np.random.default_rng(0)
    begun = time.monotonic()
    error = np.inf
    for _ in range(4):
        start = 0.5 * rng.standard_normal((m, d, d)) / d
        fit = device.levenberg_marquardt_on_device(data, start, deadline=end)
        error = min(error, mha.align(fit.theta, fit.w, task.Theta, task.W).theta_error)
        if error < 1e-3 or time.monotonic() > end:
            break
    detail = f"m = {m}, d = {d}, k = {k}, n = {n}, {theory.unknowns(m, d)} unknowns, head error {error:.1e}"
    return Row(f"mha.gpu.recover.{m}.{d}.{k}", time.monotonic() - begun, "s", "head error < 1e-3", detail)


def show(row: Row) -> None:
    print(f"{row.name:28s} {row.value:10.3g} {row.unit:10s} {row.target:18s} {row.detail}", flush=True)


if __name__ == "__main__":
    run(float(sys.argv[1]) if len(sys.argv) > 1 else 120.0)
