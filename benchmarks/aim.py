"""Attention-indexed models: message passing against the stored-tensor form, growth, the theory's speed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from attnlab import aim
from attnlab.aim import theory
from attnlab.aim.messages.blas import BlasMessages
from attnlab.aim.messages.denoise import denoise
from attnlab.common.compute import Compute
from benchmarks.baselines import aim as naive
from benchmarks.harness import Row, alternate, gemm_rate, growth, growth_row, measure, peak_memory, speed_up

RHO, ALPHA = 0.5, 0.2
SIZES = (100, 200, 400)
ASYMPTOTIC = "4 for large d; the rows of bounds explain these sizes"


def fit(X: np.ndarray, y: np.ndarray, iterations: int) -> aim.AMP:
    """AMP of so many iterations, converged or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return aim.AMP(RHO, max_iter=iterations, tol=1e-14).fit(X, y)


def fitted_times(d: int, iterations: int = 12) -> tuple[float, ...]:
    """Seconds of every AMP iteration but the first two, as the learner itself records them."""
    task = aim.Task(d, rho=RHO)
    model = fit(*task.sample(task.n_samples(ALPHA)), iterations)
    return tuple(np.diff(model.trace_["seconds"])[1:].tolist())


def messages(d: int, alpha: float = ALPHA) -> tuple[BlasMessages, np.ndarray]:
    """The data part of an instance after one sweep, and S."""
    task = aim.Task(d, rho=RHO)
    X, y = task.sample(task.n_samples(alpha))
    held = BlasMessages(X, task.law.summary(y, task.layout), task.law, task.layout, Compute())
    held.sweep(task.S, 0.5, 0.5, 0.1)
    return held, task.S


def against_tensors(d: int = 100, iterations: int = 60) -> list[Row]:
    """A fit here and one iteration with the n x p x d x d array, in turn: time and the bytes that must be held."""
    task = aim.Task(d, rho=RHO)
    X, y = task.sample(task.n_samples(ALPHA))
    z0, S = task.law.summary(y, task.layout), np.sqrt(RHO) * np.eye(d)
    held = peak_memory(lambda: naive.sensing_tensors(X))
    tensors = naive.sensing_tensors(X)
    floor = 4 * len(X) * d**2 / gemm_rate() + measure(lambda: np.linalg.eigh(task.S)).median
    detail = f"d={d}, alpha={ALPHA}, T=2; {iterations} iterations of a fit against one"
    rows = []
    # Tensors through BLAS are read once at the bandwidth of memory: products and spectrum alone take a twentieth of
    # that time, so that no machine could meet the fifty times that are asked of einsum over them.
    blas, einsum = naive.as_matrix(tensors), naive.as_einsum(tensors)
    for name, maps, target in (("BLAS form", blas, ""), ("einsum form", einsum, ">= 50")):
        row = speed_up(
            f"AMP iteration, stored tensors ({name})",
            lambda: fit(X, y, iterations),
            lambda maps=maps: naive.iteration(maps, z0, S, np.zeros_like(z0), 1.0, RHO),
            scale=1 / iterations,
            repeats=9,
            target=target,
            detail=detail,
            note=f"products at sgemm rate and the eigendecomposition alone would take {floor * 1e3:.2f} ms",
        )
        rows.append(row)
    ours = peak_memory(lambda: messages(d))
    detail = f"{held / 1e6:.0f} MB against {ours / 1e6:.1f} MB, sampling and messages included"
    return [*rows, Row("AMP memory against stored tensors", held / ours, "x", ">= 50", detail, memory=ours)]


def growth_rows() -> list[Row]:
    """AMP in d (whole and its data part alone) and in n, gradient descent in n, the state evolution in points."""
    whole = [fitted_times(d) for d in SIZES]
    sweeps = alternate([sweep_of(*messages(d)) for d in SIZES], 3)
    return [
        growth_row("AMP iteration, growth in d", SIZES, whole, 4, detail=ASYMPTOTIC),
        growth_row("AMP products, growth in d", SIZES, [t.times for t in sweeps], 4, detail=ASYMPTOTIC),
        growth("AMP products, growth in n", (0.1, 0.2, 0.4), lambda a: sweep_of(*messages(200, a)), 1, repeats=3),
        growth("gradient descent, growth in n", (2000, 4000, 8000), descent, 1, detail="d=60, 8 inits", repeats=3),
        growth("state evolution, growth in points", (64, 128, 256), curve, 1, repeats=3),
    ]


def sweep_of(held: BlasMessages, S: np.ndarray) -> Callable[[], Any]:
    return lambda: held.sweep(S, 0.5, 0.5, 0.1)


def spectral_of(S: np.ndarray) -> Callable[[], Any]:
    return lambda: (denoise(S, 0.6, RHO), aim.spectrum.denoising_mmse(0.6, RHO))


def descent(n: float) -> Callable[[], Any]:
    task = aim.Task(60, rho=RHO)
    X, y = task.sample(int(n))
    return lambda: (
        aim.GradientDescent(30, 8, optimizer=aim.Adam(n_steps=20, tol=1e9), random_state=0).fit(X, y).weights_
    )


def curve(points: float) -> Callable[[], Any]:
    alpha = np.linspace(0.001, 0.187, int(points))
    return lambda: theory.mmse(alpha, RHO)


def theory_speed() -> list[Row]:
    """A softmax curve of 256 points."""
    taken = measure(curve(256), 3)
    detail = "closed parametric form, one core"
    return [Row("state evolution, 256 softmax points", taken.median, "s", "< 3", detail, spread=taken.spread)]


def run() -> list[Row]:
    """All rows."""
    return [*against_tensors(), *growth_rows(), *theory_speed()]


if __name__ == "__main__":
    for row in run():
        print(f"{row.name}: {row.text} {row.unit} (target {row.goal}; {row.detail})", flush=True)
