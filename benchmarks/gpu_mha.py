"""A multi-head layer on an accelerator: the step's rate in float64, agreement with BLAS, and how large a layer gets."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np

from attnlab import mha
from attnlab.mha import theory
from attnlab.mha.engine import device
from attnlab.mha.engine import variable_projection as varpro
from attnlab.mha.engine.normal_equations import normal_equations
from attnlab.mha.engine.race import long_rows
from attnlab.mha.layer import rows_of
from benchmarks.harness import Row, alternate, middle, say

# Layers of growing size; each is given what is left of the time, and at most a minute.
LADDER = ((2, 32, 4), (8, 16, 6), (4, 32, 6), (2, 64, 6), (8, 32, 8), (4, 64, 8), (2, 96, 8))
MINUTE = 60.0
# For each unknown of a layer of low rank: with 8 the fit of (12, 256) ends at a head error of .16, with 12 it is exact.
EQUATIONS = 12


def run(seconds: float = 90.0, *, tiny: bool = False) -> list[Row]:
    """Rate and agreement first, then layers of growing size until the time is over."""
    end = time.monotonic() + seconds
    with jax.enable_x64(True):
        rows = [say(agreement())]
        for m, d, n in ((2, 4, 400),) if tiny else ((4, 64, 20_000), (2, 16, 200_000), (4, 24, 100_000)):
            rows += [say(row) for row in step_rates(m, d, n, 128 if tiny else 4096)]
        recovered = []
        for m, d, k in ((2, 4, 3), (2, 6, 3)) if tiny else LADDER:
            left = min(MINUTE, end - time.monotonic())
            if left < 2:
                break
            row, found = recover(m, d, k, left)
            rows.append(say(row))
            recovered += [(theory.unknowns(m, d).value, m, d, row.value)] if found else []
    if recovered:
        size, m, d, took = max(recovered)
        text = f"largest layer recovered in under a minute: m = {m}, d = {d}, in {took:.0f} s with compilation"
        rows.append(say(Row("mha.gpu.largest", size, "unknowns", "-", text)))
    return rows


def agreement() -> Row:
    """Largest relative difference of the compiled equations from those assembled through BLAS."""
    task = mha.Task(d=12, k=4, n_heads=3)
    data = rows_of(*task.sample(1000))
    theta = task.Theta + 0.1
    expected = normal_equations(data, theta, varpro.regress(data, theta))
    placed = device.place(data, 3)
    w, factor, _ = device.regress(placed, theta)
    H, _ = device.normal_equations(placed, theta, w, factor)
    difference = float(np.abs(np.asarray(H) - expected.H).max() / np.abs(expected.H).max())
    return Row("mha.gpu.agreement", difference, "relative", "< 1e-8", "m = 3, d = 12: device against BLAS, float64")


def step_rates(m: int, d: int, rows: int, size: int) -> list[Row]:
    """Assembly of the normal equations against the device's own matrix rate, the two timed in turn."""
    task = mha.Task(d=d, k=4, n_heads=m)
    placed = device.place(rows_of(*task.sample(rows // 4)), m)
    theta = jnp.asarray(task.Theta + 0.1)
    w, factor, _ = device.regress(placed, theta)
    a = jnp.asarray(np.random.default_rng(0).standard_normal((size, size)))
    multiply = jax.jit(jnp.matmul)
    step, product = alternate(
        [lambda: device.normal_equations(placed, theta, w, factor), lambda: multiply(a, a)], repeats=5
    )
    flops = theory.step_flops(placed.weight.size, n_heads=m, d=d, k=4).detail
    done = flops["assembly"] + flops["row_work"] + flops["projection"]
    rate = 2 * size**3 / product.median
    detail = f"m = {m}, d = {d}, {rows} rows, {step.median:.3g} s a step, dgemm {rate / 1e12:.3g} TFLOP/s"
    made = []
    for name, work, text in (
        ("", done, "operations carried out"),
        (".effective", flops["direct"], "operations of a symmetric product of the explicit Jacobian"),
    ):
        shares = [work / a / (2 * size**3 / b) for a, b in zip(step.times, product.times, strict=True)]
        value, spread = middle(shares)
        made.append(Row(f"mha.gpu.step.{m}.{d}{name}", value, "of fp64", "-", f"{text}; {detail}", spread=spread))
    return made


def recover(m: int, d: int, k: int, seconds: float, rank: int | None = None) -> tuple[Row, bool]:
    """Seconds to recover a layer through ``mha.learn`` on JAX's accelerator, compilation included.

    Without ``rank`` a generic layer with all entries of Theta unknown; with it heads of that rank, norms spread
    tenfold, Gaussian tokens.
    """
    if rank is None:
        task = mha.Task(d=d, k=k, n_heads=m, rho=4.0)
        n = max(1000, 3 * theory.examples_needed(m, d, k).value, long_rows(m, d, k) // k + 1)
        unknowns = theory.unknowns(task).value
    else:
        family = mha.LowRank(rho=4.0, rank=rank, spread=10.0)
        task = mha.Task(d=d, k=k, n_heads=m, family=family, tokens_law="gaussian")
        unknowns = m * d * (2 * rank + d)
        n = EQUATIONS * unknowns // (k * d) + 1
    X, y = task.sample(n)
    begun = time.monotonic()
    learner = mha.learn(X, y, m, rank=rank, max_seconds=seconds)
    took = time.monotonic() - begun
    error = mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error
    name = f"mha.gpu.recover.{m}.{d}.{k}" + ("" if rank is None else f".rank{rank}")
    detail = f"m = {m}, d = {d}, k = {k}, rank {rank or d}, n = {n}, {unknowns} unknowns, head error {error:.1e}"
    return Row(name, took, "s", "head error < 1e-3", detail), error < 1e-3
