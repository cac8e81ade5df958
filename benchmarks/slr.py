"""Single-location regression: the overlap map and the reduced SGD against d-dimensional training, and their growth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attnlab import slr
from attnlab.slr import theory
from attnlab.slr.initial import vectors
from benchmarks.baselines import slr as usual
from benchmarks.harness import Row, Timing, alternate, growth, measure, middle

PAPER = {"L": 10, "gamma": 2**-0.5}
REPEATS = 30


def run() -> list[Row]:
    """All rows."""
    return [experiment(), *overlap_map(), *stochastic(), *map_growth(), *stochastic_growth(), *state_evolution()]


def experiment() -> Row:
    """A whole experiment of the paper."""
    start = theory.initial_overlaps(400, REPEATS)
    options = {"lam": 1.0, "decay": 1e-4, "step": 4e-3, "n_steps": 120_000, "log_every": 300, "check_step": False}
    timing = measure(lambda: theory.gradient_descent(start, d=400, **PAPER, **options), 3)
    text = "a whole experiment of the paper by the overlap map"
    return _seconds("slr: 30 runs x 120 000 steps", timing, text, target="< 10")


def overlap_map() -> list[Row]:
    """A step of the map against a step of gradient descent with d = 400 components."""
    start = theory.initial_overlaps(400, REPEATS)
    k, v = vectors(REPEATS, *np.eye(2, 400))
    setting = {**PAPER, "lam": 0.1, "step": 4e-3}
    ours, theirs = 20_000, 200
    timings = alternate(
        [
            lambda: theory.gradient_descent(start, d=400, **setting, n_steps=ours, log_every=200),
            lambda: usual.population_descent(k[:1], v[:1], **setting, n_steps=theirs),
            lambda: usual.population_descent(k, v, **setting, n_steps=theirs),
            lambda: usual.population_descent_compiled(k, v, **setting, n_steps=theirs),
        ],
        7,
    )
    return _ratios("slr: overlap map against a d = 400 autodiff step", ">= 100", timings, ours / theirs, theirs)


def stochastic() -> list[Row]:
    """A step of the reduced SGD against a step with fresh d = 80 sequences."""
    start = theory.initial_overlaps(80, REPEATS)
    k, v = vectors(REPEATS, *np.eye(2, 80))
    setting = {**PAPER, "lam": 0.5, "noise_std": 0.1, "step": 1e-3}
    ours, theirs = 5000, 100
    timings = alternate(
        [
            lambda: slr.simulate_sgd(start, d=80, **setting, n_steps=ours, log_every=500, batch_size=5),
            lambda: usual.stochastic_descent(k[:1], v[:1], **setting, n_steps=theirs, batch=5),
            lambda: usual.stochastic_descent(k, v, **setting, n_steps=theirs, batch=5),
            lambda: usual.stochastic_descent_compiled(k, v, **setting, n_steps=theirs, batch=5),
        ],
        5,
    )
    return _ratios("slr: reduced SGD against an SGD step in d = 80", ">= 20", timings, ours / theirs, theirs)


def _ratios(name: str, target: str, timings: list[Timing], more: float, steps: int) -> list[Row]:
    """Per step and repeat, against three ways to run the alternative; ours does ``more`` times its steps."""
    fast, *others = timings
    ways = (
        ("", 1, target, "each repeat on its own, a compiled step called from a Python loop"),
        (", 30 repeats at once", REPEATS, "", "a compiled step of all repeats called from a Python loop"),
        (", 30 repeats in a compiled loop", REPEATS, "", "all repeats and all steps in one compiled program"),
    )
    rows = []
    for other, (way, repeats, goal, text) in zip(others, ways, strict=True):
        factor = more * REPEATS / repeats
        ratio, spread = middle([factor * b / a for a, b in zip(fast.times, other.times, strict=True)])
        each = fast.median / more / steps / REPEATS * 1e6, other.median / steps / repeats * 1e6
        detail = f"per step and repeat {each[0]:.2g} us against {each[1]:.3g} us: {text}"
        rows.append(Row(name + way, ratio, "x", goal, detail, spread=spread, compile=fast.compile))
    return rows


def _seconds(name: str, timing: Timing, detail: str, target: str = "") -> Row:
    spread = timing.spread if len(timing.times) > 1 else None
    return Row(name, timing.median, "s", target, detail, spread=spread, compile=timing.compile)


def map_growth() -> list[Row]:
    """The map knows the dimension as a number: nothing grows with it."""

    def descend(d: int = 400, runs: int = 100, steps: int = 1000) -> Callable[[], Any]:
        start = np.clip(theory.initial_overlaps(50, runs), -0.3, 0.3)
        step = 0.5 * theory.step_size_limit(d=d, **PAPER, lam=0.1)
        options = {"lam": 0.1, "step": step, "n_steps": steps, "log_every": steps}
        return lambda: theory.gradient_descent(start, d=d, **PAPER, **options)

    return [
        growth("slr: map in d", [100, 1000, 10_000], descend, 0.0, detail="100 runs, 1000 steps"),
        growth("slr: map in runs", [1000, 4000, 16_000], lambda runs: descend(runs=runs), 1.0, detail="1000 steps"),
        growth("slr: map in steps", [2000, 8000, 32_000], lambda steps: descend(steps=steps), 1.0, detail="100 runs"),
    ]


def stochastic_growth() -> list[Row]:
    """The reduced SGD draws 4 B L normals a step, whatever the dimension."""

    def descend(d: int = 80, L: int = 10, batch: int = 5, steps: int = 1000) -> Callable[[], Any]:
        start = theory.initial_overlaps(50, REPEATS)
        options = {"lam": 0.5, "noise_std": 0.1, "step": 1e-4, "n_steps": steps, "log_every": steps}
        return lambda: slr.simulate_sgd(start, d=d, L=L, batch_size=batch, **options)

    few = "30 runs, 1000 steps"
    return [
        growth("slr: SGD in d", [100, 1000, 10_000], descend, 0.0, detail=f"{few}, batch 5", repeats=3),
        growth(
            "slr: SGD in batch",
            [10, 40, 160],
            lambda b: descend(batch=b, steps=300),
            1.0,
            detail="30 runs, 300 steps",
            repeats=3,
        ),
        growth(
            "slr: SGD in L",
            [10, 40, 160],
            lambda L: descend(L=L, steps=300),
            1.0,
            detail="30 runs, 300 steps",
            repeats=3,
        ),
        growth(
            "slr: SGD in steps",
            [500, 2000, 8000],
            lambda t: descend(steps=t),
            1.0,
            detail="30 runs, batch 5",
            repeats=3,
        ),
    ]


def state_evolution() -> list[Row]:
    """The theory of finite samples."""
    bayes = measure(lambda: theory.bayes_state_evolution(2.0, nu=2.0, L=3, noise_std=0.1), 3)
    erm = measure(lambda: theory.erm_state_evolution("softmax", 5.0, nu=2.0, L=3, noise_std=0.1), 1)
    return [
        _seconds("slr: Bayes-optimal state evolution", bayes, "32 768 draws, to 1e-6"),
        _seconds("slr: ERM state evolution", erm, "8192 draws, to 1e-5, one run"),
    ]


if __name__ == "__main__":
    for row in run():
        print(f"{row.name}: {row.text} {row.unit} (target {row.goal or 'none'}); {row.detail}")
