"""Single-location regression on a GPU: very many initialisations of the overlap map at once.

The reduced SGD draws its numbers on the host, so that they do not depend on the device; it gains nothing from one.
"""

from __future__ import annotations

import numpy as np

from attnlab.slr import theory
from benchmarks.harness import Row, measure, say

PAPER = {"d": 400, "L": 10, "gamma": 2**-0.5}


def run(seconds: float, *, tiny: bool = False) -> list[Row]:
    """A million starts; the schedule and the thousand starts of ``slr.success`` at paper scale. Seconds in all."""
    if tiny:
        return [say(overlap_map(200, 50)), say(paper_scale("success", 0.1, 0.0, 20, 50))]
    return [
        say(overlap_map(1_000_000, 1000)),
        say(paper_scale("success", 0.1, 0.0, 1000, 12_000)),
        say(paper_scale("schedule", 1.0, 1e-4, 1000, 120_000)),
    ]


def paper_scale(name: str, lam: float, decay: float, runs: int, steps: int) -> Row:
    """A whole experiment by the call that the figures make, on the device that JAX prefers."""
    start = theory.initial_overlaps(PAPER["d"], runs)
    options = {"lam": lam, "decay": decay, "step": 4e-3, "n_steps": steps, "log_every": steps, "check_step": False}
    timing = measure(lambda: theory.gradient_descent(start, **PAPER, **options), 3)
    detail = f"{runs} starts x {steps} steps, d = 400"
    return Row(f"slr gpu: {name}", timing.median, "s", "", detail, spread=timing.spread)


def overlap_map(runs: int, steps: int) -> Row:
    """Steps per second, and the distance to the same map in NumPy for a hundred of the starts."""
    start = theory.initial_overlaps(50, runs)
    setting = {**PAPER, "lam": 0.1, "step": 4e-3}
    path = theory.gradient_descent(start, **setting, n_steps=steps, log_every=steps)
    gap = float(np.abs(path[-1, :100] - in_numpy(start[:100], steps, **setting)).max())
    timing = measure(lambda: theory.gradient_descent(start, **setting, n_steps=steps, log_every=steps), 3)
    rate = runs * steps / timing.median / 1e9
    detail = f"{runs} runs x {steps} steps in {timing.median:.3g} s; largest difference to NumPy {gap:.1e}"
    return Row("slr gpu: overlap map", rate, "1e9 steps/s", "", detail, spread=rate * timing.spread / timing.median)


def in_numpy(overlaps: np.ndarray, steps: int, *, d: int, L: int, gamma: float, lam: float, step: float) -> np.ndarray:
    """The update written in d = 5 coordinates: k and v as vectors in an orthonormal frame, float64."""
    kappa, nu, theta, eta, rho = overlaps.T
    rest = np.sqrt(1 - kappa**2 - eta**2)
    k = np.stack([kappa, eta, rest, 0 * rest], axis=1)
    along = (rho - kappa * theta - eta * nu) / rest
    v = np.stack([theta, nu, along, np.sqrt(1 - theta**2 - nu**2 - along**2)], axis=1)
    for _ in range(steps):
        state = k[:, 0], v[:, 1], v[:, 0], k[:, 1], (k * v).sum(axis=1)
        g = np.stack(theory.risk_gradient(*state, d=d, L=L, lam=lam, gamma=gamma))
        e1, e2 = np.eye(4)[0], np.eye(4)[1]
        g_k = g[0][:, None] * e1 + g[3][:, None] * e2 + g[4][:, None] * v
        g_v = g[1][:, None] * e2 + g[2][:, None] * e1 + g[4][:, None] * k
        k, v = (x - step * (gx - (x * gx).sum(axis=1, keepdims=True) * x) for x, gx in ((k, g_k), (v, g_v)))
        k, v = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (k, v))
    return np.stack([k[:, 0], v[:, 1], v[:, 0], k[:, 1], (k * v).sum(axis=1)], axis=1)
