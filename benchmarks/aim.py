"""Attention-indexed models: message passing against the stored-tensor form, growth in d, the theory's speed."""

from __future__ import annotations

import functools
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from attnlab import aim
from attnlab.aim import theory
from benchmarks.baselines import aim as naive
from benchmarks.harness import Row, exponent, measure, peak_memory

RHO = 0.5


def seconds_per_iteration(d: int, alpha: float, iterations: int = 6) -> float:
    """Median time of an AMP iteration after compilation, as the learner itself records it."""
    task = aim.Task(d, rho=RHO)
    X, y = task.sample(task.n_samples(alpha))
    model = aim.AMP(RHO, max_iter=iterations, tol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
        return float(np.median(np.diff(model.fit(X, y).trace_["seconds"])))


def against_tensors(d: int = 100, alpha: float = 0.2) -> list[Row]:
    """One iteration here and with the n x p x d x d array: time and the bytes that must be held."""
    task = aim.Task(d, rho=RHO)
    X, y = task.sample(task.n_samples(alpha))
    z0 = aim.channels.Softmax().summary(y)
    held = peak_memory(lambda: naive.sensing_tensors(X))
    tensors = naive.sensing_tensors(X)
    start = np.sqrt(RHO) * np.eye(d)
    slow = measure(lambda: naive.iteration(tensors, z0, start, np.zeros_like(z0), 1.0, RHO), 3).median
    fast = seconds_per_iteration(d, alpha, 20)
    ours = X.size * 4 * 3  # float32 tokens and the two temporaries of their size
    detail = f"d={d}, alpha={alpha}, T=2; ours {fast * 1e3:.2f} ms, stored tensors {slow * 1e3:.0f} ms"
    return [
        Row("AMP iteration against stored tensors", slow / fast, "x", ">= 50", detail),
        Row(
            "AMP memory against stored tensors",
            held / ours,
            "x",
            ">= 50",
            f"{held / 1e6:.0f} MB against {ours / 1e6:.1f} MB",
        ),
    ]


def growth() -> list[Row]:
    """Time per iteration over d = 100, 200, 400; the products alone, and with the eigendecomposition."""
    sizes = [100, 200, 400]
    whole = [seconds_per_iteration(d, 0.2) for d in sizes]
    matrices = [aim.Task(d).S for d in sizes]
    spectral = [measure(functools.partial(aim.spectrum.rie, S, 0.6, RHO, clip="edges"), 5).median for S in matrices]
    products = [max(a - b, 1e-6) for a, b in zip(whole, spectral, strict=True)]
    text = ", ".join(f"d={d}: {1e3 * t:.3g} ms" for d, t in zip(sizes, whole, strict=True))
    return [
        Row("AMP iteration, growth in d", exponent(sizes, whole), "exponent", "4 (3 while eigh dominates)", text),
        Row("AMP products, growth in d", exponent(sizes, products), "exponent", "4 ± 0.3", "iteration less the RIE"),
    ]


def theory_speed() -> list[Row]:
    """A softmax curve of 256 points."""
    alpha = np.linspace(0.001, 0.187, 256)
    taken = measure(lambda: theory.mmse(alpha, RHO), 3)
    return [Row("state evolution, 256 softmax points", taken.median, "s", "< 3", "closed parametric form, one core")]


def run() -> list[Row]:
    """All rows."""
    return [*against_tensors(), *growth(), *theory_speed()]


if __name__ == "__main__":
    for row in run():
        print(f"{row.name}: {row.value:.3g} {row.unit} (target {row.target}; {row.detail})")
