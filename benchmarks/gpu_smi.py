"""A model of one's own on a GPU: converged points of state evolution by the grid and by importance sampling."""

from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np

from attnlab.smi import theory
from benchmarks.harness import Row, say

# Two layers of attention, 2 free indices on a grid; six tokens of two indices each, 12 indices by importance sampling.
LAYERS = "deep_attention"
TWELVE = "single_location(tokens=6, nu=2.0, noise=0.1, law='max')"
ALPHA = 0.5


def run(seconds: float, *, tiny: bool = False) -> list[Row]:
    """The device against the host, then both points at full size; the second call of each is timed."""
    layers, twelve = (2**6, 2**4) if tiny else (2**14, 2**9)
    end = time.monotonic() + seconds
    rows = [say(agreement(2**5 if tiny else 2**8))]
    for name, target, link, options in (
        ("two layers", "< 10", LAYERS, {"draws": layers}),
        (
            "twelve dimensions",
            "< 60",
            TWELVE,
            {"draws": twelve, "replicates": 4, "tol": 1e-3, "max_iter": 5 if tiny else 100},
        ),
    ):
        if time.monotonic() < end:
            rows.append(say(point(name, link, "-" if tiny else target, **options)))
    return rows


def point(name: str, link: str, target: str, **options: Any) -> Row:
    """Seconds of a converged point, compiled; its steps and overlaps."""
    times = []
    for _ in range(2):
        start = time.perf_counter()
        found = theory.state_evolution(link, ALPHA, **options)
        times.append(time.perf_counter() - start)
    q = ", ".join(f"{v:.4f}({e:.4f})" for v, e in zip(np.diag(found.Q), np.diag(found.Q_error), strict=True))
    said = f"{options['draws']} draws x {options.get('replicates', 8)} replicates, {found.n_iter} steps, q = {q}"
    ended = "" if found.converged and found.resolved else ", not converged"
    return Row(f"smi gpu: {name}", times[1], "s", target, said + ended, compile=max(times[0] - times[1], 0.0))


def agreement(draws: int) -> Row:
    """Largest difference of the overlaps of the two layers from the same points on the host."""
    options: dict[str, Any] = {"draws": draws, "replicates": 4}
    found = theory.state_evolution(LAYERS, ALPHA, **options).Q
    with jax.default_device(jax.devices("cpu")[0]):
        host = theory.state_evolution(LAYERS, ALPHA, **options).Q
    difference = float(np.abs(found - host).max())
    return Row("smi gpu: agreement", difference, "absolute", "< 1e-4", f"{draws} draws, device against host, tol 1e-5")
