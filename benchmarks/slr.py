"""Single-location regression: the overlap map and the reduced SGD against d-dimensional training."""

from __future__ import annotations

import numpy as np

from attnlab import slr
from attnlab.slr import theory
from attnlab.slr.initial import vectors
from benchmarks.baselines import slr as usual
from benchmarks.harness import Row, Timing, exponent, measure

PAPER = {"L": 10, "gamma": 2**-0.5}
REPEATS = 30


def experiment() -> Row:
    start = theory.initial_overlaps(400, REPEATS)
    options = {"lam": 1.0, "decay": 1e-4, "step": 4e-3, "n_steps": 120_000, "log_every": 300, "check_step": False}
    timing = measure(lambda: theory.gradient_descent(start, d=400, **PAPER, **options), 3)
    return Row(
        "slr: 30 runs x 120 000 steps",
        timing.median,
        "s",
        "< 10",
        f"a whole experiment of the paper by the overlap map; compile {timing.compile:.1f} s",
    )


def overlap_map() -> list[Row]:
    start = theory.initial_overlaps(400, REPEATS)
    k, v = vectors(REPEATS, *np.eye(2, 400))
    setting = {**PAPER, "lam": 0.1, "step": 4e-3}
    ours, theirs = 20_000, 200
    fast = measure(lambda: theory.gradient_descent(start, d=400, **setting, n_steps=ours, log_every=200))
    one = measure(lambda: usual.population_descent(k[:1], v[:1], **setting, n_steps=theirs))
    many = measure(lambda: usual.population_descent(k, v, **setting, n_steps=theirs))
    return _ratios("overlap map", "a d = 400 autodiff step", ">= 100", fast.median / ours, one, many, theirs)


def stochastic() -> list[Row]:
    start = theory.initial_overlaps(80, REPEATS)
    k, v = vectors(REPEATS, *np.eye(2, 80))
    setting = {**PAPER, "lam": 0.5, "noise_std": 0.1, "step": 1e-3}
    ours, theirs = 5000, 100
    fast = measure(lambda: slr.simulate_sgd(start, d=80, **setting, n_steps=ours, log_every=500, batch_size=5), 3)
    one = measure(lambda: usual.stochastic_descent(k[:1], v[:1], **setting, n_steps=theirs, batch=5), 3)
    many = measure(lambda: usual.stochastic_descent(k, v, **setting, n_steps=theirs, batch=5), 3)
    return _ratios("reduced SGD", "an SGD step in d = 80", ">= 20", fast.median / ours, one, many, theirs)


def _ratios(name: str, other: str, target: str, fast: float, one: Timing, many: Timing, steps: int) -> list[Row]:
    """Per step and repeat: against each repeat run on its own, and against thirty repeats advanced at once."""
    ours, alone, together = fast / REPEATS, one.median / steps, many.median / steps / REPEATS
    return [
        Row(
            f"slr: {name} against {other}",
            alone / ours,
            "x",
            target,
            f"per step and repeat: {ours * 1e6:.2f} us against {alone * 1e6:.0f} us called from a Python loop",
        ),
        Row(
            f"slr: {name} against {other} for 30 repeats at once",
            together / ours,
            "x",
            "",
            f"per step and repeat: {ours * 1e6:.2f} us against {together * 1e6:.1f} us called from a Python loop",
        ),
    ]


def growth() -> list[Row]:
    """Time of the map against dimension (none), and against the number of runs (at most linear)."""
    dims, runs = [100.0, 1000.0, 10_000.0], [250.0, 1000.0, 4000.0]

    def seconds(d: int, count: int) -> float:
        start = np.clip(theory.initial_overlaps(50, count), -0.3, 0.3)
        step = 0.5 * theory.step_size_limit(d=d, **PAPER, lam=0.1)
        return measure(
            lambda: theory.gradient_descent(start, d=d, **PAPER, lam=0.1, step=step, n_steps=1000, log_every=1000), 3
        ).median

    by_d = exponent(dims, [seconds(int(d), 100) for d in dims])
    by_runs = exponent(runs, [seconds(400, int(r)) for r in runs])
    return [
        Row("slr: growth of the map in d", by_d, "exponent", "0", "d = 100, 1000, 10 000; 100 runs, 1000 steps"),
        Row("slr: growth of the map in runs", by_runs, "exponent", "<= 1", "250, 1000, 4000 runs, 1000 steps"),
    ]


def state_evolution() -> list[Row]:
    bayes = measure(lambda: theory.bayes_state_evolution(2.0, nu=2.0, L=3), 3)
    erm = measure(lambda: theory.erm_state_evolution("softmax", 5.0, nu=2.0, L=3), 1)
    return [
        Row("slr: Bayes-optimal state evolution", bayes.median, "s", "", "32 768 draws, to 1e-6"),
        Row("slr: ERM state evolution", erm.median, "s", "", f"8192 draws, to 1e-5; compile {erm.compile:.1f} s"),
    ]


def run() -> list[Row]:
    return [experiment(), *overlap_map(), *stochastic(), *growth(), *state_evolution()]


if __name__ == "__main__":
    for row in run():
        print(f"{row.name}: {row.value:.3g} {row.unit} (target {row.target or 'none'}); {row.detail}")
