"""Single-location regression on a GPU: very many initialisations of the overlap map, and the theory of finite samples.

The reduced SGD draws its numbers on the host, so that they do not depend on the device; it gains nothing from one.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from attnlab.slr import theory
from benchmarks.harness import Row, measure, say

PAPER = {"d": 400, "L": 10, "gamma": 2**-0.5}


def run(seconds: float, *, tiny: bool = False) -> list[Row]:
    """A million starts; a thousand starts of ``slr.success`` at paper scale; an ERM point. About a minute in all."""
    starts, steps, draws = (20, 50, 256) if tiny else (1000, None, 2**13)
    penalty, schedule = ({**params, "n_steps": steps or params["n_steps"]} for params in settings())
    return [
        say(overlap_map(200, 50) if tiny else overlap_map(1_000_000, 1000)),
        say(thousand("penalty", penalty, starts)),
        say(on_the_host(penalty, starts)),
        say(thousand("schedule", schedule, starts)),
        say(erm_point(draws)),
    ]


def settings() -> tuple[dict[str, Any], dict[str, Any]]:
    """The two remedies of ``slr.success``; its module also draws, which a machine with a GPU need not be able to."""
    from attnlab.slr.figures.success import PENALTY, SCHEDULE, SCHEDULES

    penalty = {**PENALTY, "p_mean": 10.0, "p_overlap": 10.0}
    return penalty, SCHEDULE | dict(zip(("step", "n_steps"), SCHEDULES[0], strict=True))


def thousand(name: str, params: dict[str, Any], runs: int) -> Row:
    """One cell of ``slr.success`` with all of its starts, on JAX's default device."""
    cell = {**params, "runs": runs, "device": "auto"}
    timing = measure(lambda: found(cell), 2)
    detail = f"{runs} starts x {cell['n_steps']} steps, d = {cell['d']}; {found(cell)} of them find the planted pair"
    return Row(f"slr gpu: success, {name}", timing.median, "s", "", detail, spread=timing.spread)


def on_the_host(params: dict[str, Any], runs: int) -> Row:
    """The same call with another device."""
    cell = {**params, "runs": runs, "device": "cpu"}
    timing = measure(lambda: found(cell), 1)
    detail = f"the call of the row above with device=cpu; {found(cell)} find the planted pair"
    return Row("slr gpu: success, penalty, on the host", timing.median, "s", "", detail)


def found(cell: dict[str, Any]) -> int:
    """How many starts of a cell find the planted pair."""
    from attnlab.slr.figures import success

    return int(success.run(cell, np.random.SeedSequence(0))["oracle"])


def erm_point(draws: int) -> Row:
    """One point of the softmax ERM state evolution."""
    point = functools.partial(theory.erm_state_evolution, "softmax", 5.0, nu=2.0, L=3, noise_std=0.1, n_draws=draws)
    timing = measure(point, 3)
    at = point()
    detail = f"{draws} draws, {at.detail['n_iter']} iterations: E = {at.value:.6f}"
    return Row("slr gpu: ERM state evolution", timing.median, "s", "", detail, spread=timing.spread)


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
