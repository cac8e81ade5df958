"""Attention-indexed models on a GPU: message passing at d = 1000 and 4000, tied and untied, gradient descent, and three
layers on four tokens (2506.01582).

``python -m benchmarks.gpu --only aim`` runs what fits; ``python -m benchmarks.gpu_aim untied4000 deep [--seconds 500]
[--json FILE]`` the parts that are named. Softmax needs T - 1 products with S in place of T: an iteration is counted as
the 4 n (T - 1) d^2 FLOP that are done.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.92")

import jax
import jax.numpy as jnp
import numpy as np

from attnlab import aim
from attnlab.aim.indices import Layout
from attnlab.aim.messages import denoise as denoising
from attnlab.aim.messages import products
from attnlab.aim.messages.probes import Probes
from attnlab.common.compute import Compute
from benchmarks import machine
from benchmarks.harness import Row, measure, say
from benchmarks.results import Results
from benchmarks.session import run_part

RHO, TOKENS = 0.5, 2


@functools.cache
def gemm_rate(precision: str = "highest", size: int = 8192) -> float:
    """FLOP/s of a square float32 product at a precision: the practical limit of this device."""
    a = jnp.ones((size, size), jnp.float32)
    product = jax.jit(lambda a: jnp.matmul(a, a, precision=products.PRECISIONS[precision]))
    return 2 * size**3 / measure(lambda: product(a), 5).median


def product_error(precision: str, d: int = 1000, n: int = 4000) -> tuple[float, float]:
    """Relative error of forward and adjoint against float64 NumPy."""
    task = aim.Task(d, rho=RHO)
    X = np.random.default_rng(0).standard_normal((n, TOKENS, d)).astype(np.float32)
    g, probes = np.random.default_rng(1).standard_normal((n, 3)), Probes(Layout(TOKENS, TOKENS), differences=False)
    with jax.enable_x64(True):
        on_device = jnp.asarray(X), jnp.asarray(task.S)
        z = np.asarray(products.measure(*on_device, probes=probes, precision=precision))
        adjoint = jax.jit(products.adjoint, static_argnames=("probes", "precision"))
        back = np.asarray(adjoint(on_device[0], jnp.asarray(g), probes, precision))
    wide = X.astype(np.float64)
    exact_z = aim.indices.whiten(aim.indices.indices(wide, task.S))
    G = (g * np.array([2**-0.5, 0.5, 2**-0.5]))[:, [[0, 1], [1, 2]]]
    exact = np.einsum("nad,nae->de", wide, np.einsum("nab,nbd->nad", G, wide), optimize=True)
    exact = (exact - np.eye(d) * np.trace(G.sum(axis=0))) / np.sqrt(d)
    relative = lambda a, b: float(np.linalg.norm(a - b) / np.linalg.norm(b))  # noqa: E731
    return relative(z, exact_z), relative(back, exact)


def run_amp(
    task: aim.Task,
    alpha: float,
    *,
    precision: str,
    budget: float,
    seconds: float,
    damping: float | str = "auto",
    warm: bool = True,
    reserve: float = 0.0,
) -> aim.AMP:
    """One instance with tokens drawn on the device; they stay there when ``budget`` bytes allow.

    The run ends after the iteration in which ``seconds`` less ``reserve`` (about one iteration) are used up, labels
    and compilation included.
    """
    end = time.perf_counter() + seconds - reserve
    start = time.perf_counter()
    X, y = task.stream(task.n_samples(alpha), seed=1)
    print(
        f"  d={task.d} alpha={alpha}: labels of {len(y)} sequences in {time.perf_counter() - start:.1f} s", flush=True
    )
    compute = Compute(precision=precision, memory=budget)
    model = aim.AMP(RHO, tied=task.tied, damping=damping, compute=compute, tol=1e-6)
    per_iteration = 0.0
    if warm:
        model.set_params(max_iter=1).fit(X, y)  # compile
        began = time.perf_counter()
        model.fit(X, y)
        per_iteration = time.perf_counter() - began
    left = max(end - time.perf_counter(), 1e-3)
    affordable = int(np.clip(left / max(per_iteration, 1e-9), 1, 100))
    return model.set_params(max_iter=affordable).fit(X, y, truth=task.S)


def amp_rows(name: str, model: aim.AMP, task: aim.Task, alpha: float, precision: str, limit: str = "") -> list[Row]:
    """Time, error against the state evolution (at the same iteration when cut short), and rate."""
    trace = model.trace_
    steps = np.diff(trace["seconds"])
    per_step = float(np.median(steps)) if len(steps) else trace["seconds"][0]
    flops = 4 * task.n_samples(alpha) * (TOKENS - 1) * task.d**2
    share = 0.0 if model.damping == "auto" else float(model.damping)
    curve = aim.theory.state_evolution(task, alpha, damping=share).trajectory
    expected = float(
        aim.theory.mmse(task, alpha) if model.converged_ else curve[min(len(trace["mse"]), len(curve) - 1)]
    )
    error = trace["mse"][-1]
    detail = f"{model.n_iter_} iterations, converged {model.converged_}, {per_step:.3g} s each"
    print(f"  mse path {np.round(trace['mse'], 4).tolist()}", flush=True)
    rate, fp32 = flops / per_step, gemm_rate("highest")
    plain = f"the form with T products would need {TOKENS / (TOKENS - 1) * rate / fp32:.2f} of it for this time"
    return [
        say(Row(f"{name} time", trace["seconds"][-1], "s", limit, detail)),
        say(
            Row(
                f"{name} error",
                error / expected - 1,
                "relative to the state evolution",
                "within 1 %",
                f"{error:.5f} against {expected:.5f}, iteration {model.n_iter_}",
            )
        ),
        say(
            Row(
                f"{name} rate",
                rate / fp32,
                "of fp32, prior step included",
                {4000: ">= 0.7", 1000: ">= 0.6"}.get(task.d, ""),
                f"{rate / 1e12:.1f} TFLOP/s, products {precision}; fp32 {fp32 / 1e12:.1f}; {plain}",
            )
        ),
    ]


def precisions(d: int = 1000, n: int = 4000) -> list[Row]:
    """Each way of multiplying: its error against float64, and its rate."""
    rows = [say(Row("fp32 matrix rate", gemm_rate("highest") / 1e12, "TFLOP/s", "", str(jax.devices()[0])))]
    for precision in products.PRECISIONS:
        try:
            forward, backward = product_error(precision, d, n)
            rate = gemm_rate(precision) / 1e12
        except (ValueError, NotImplementedError, jax.errors.JaxRuntimeError) as problem:
            print(f"  precision {precision} is not available here: {str(problem)[:200]}", flush=True)
            continue
        detail = f"adjoint {backward:.2g}; square product {rate:.0f} TFLOP/s"
        rows.append(say(Row(f"forward error, {precision}", forward, "relative to float64", "< 1e-2", detail)))
    return rows


def prior_steps(d: int, noises: tuple[float, ...] = (0.6, 0.1, 0.01)) -> list[Row]:
    """A prior step of AMP from eigenvectors over the one that a learner takes (by products, where few suffice)."""
    S, G, rows = aim.Task(d, rho=RHO).S, np.random.default_rng(0).standard_normal((d, d)), []
    with jax.enable_x64(True):
        for noise in noises:
            R = jnp.asarray(S + np.sqrt(noise / (2 * d)) * (G + G.T))
            with mock.patch.object(denoising, "WIDEST", 0):
                expected = denoising.denoise(R, noise, RHO)
                spectrum = measure(lambda R=R, noise=noise: denoising.denoise(R, noise, RHO), 5)
            taken = measure(lambda R=R, noise=noise: denoising.denoise(R, noise, RHO), 5)
            change = float(jnp.linalg.norm(denoising.denoise(R, noise, RHO) - expected) / jnp.linalg.norm(expected))
            ratio = spectrum.median / taken.median
            detail = f"eigenvectors {1e3 * spectrum.median:.2g} ms, taken {1e3 * taken.median:.2g} ms, "
            detail += f"relative difference {change:.1e}"
            rows.append(say(Row(f"prior step of AMP, d={d}, noise {noise:g}", ratio, "x", "", detail)))
    return rows


def amp1000(seconds: float) -> list[Row]:
    """Resident tokens, two numbers of samples, two precisions; beside them the prior step alone."""
    task = aim.Task(1000, rho=RHO, seed=1)
    rows = [*precisions(), *prior_steps(1000)]
    for alpha in (0.1, 0.15):
        for precision in ("highest", "tf32"):
            model = run_amp(task, alpha, precision=precision, budget=2e10, seconds=seconds / 2)
            name = f"AMP d=1000 alpha={alpha} {precision}"
            rows += amp_rows(name, model, task, alpha, precision, "< 5 s")
    return rows


def amp4000(seconds: float, precision: str = "highest") -> list[Row]:
    """1.6 million sequences, resident (51 GB)."""
    task = aim.Task(4000, rho=RHO, seed=1)
    model = run_amp(task, 0.1, precision=precision, budget=7e10, seconds=seconds, reserve=5)
    return amp_rows(f"AMP d=4000 {precision}", model, task, 0.1, precision, "< 300 s")


def untied4000(seconds: float, precision: str = "highest", alpha: float = 0.1, d: int = 4000) -> list[Row]:
    """Untied query and key, tokens regenerated at each pass: 51 GB of them at alpha = 0.1 that are never stored."""
    task = aim.Task(d, rho=RHO, tied=False, seed=1)
    model = run_amp(task, alpha, precision=precision, budget=1e6, seconds=seconds, damping=0.4, reserve=8)
    name = f"AMP d={d} untied, regenerated tokens, {precision}"
    return amp_rows(name, model, task, alpha, precision, "< 300 s")


def deep(
    seconds: float,
    layers: int = 3,
    tokens: int = 4,
    samples: int = 2048,
    points: int = 8192,  # 32 768 take 43 GB at once
    replicates: int = 4,
    alpha: float = 0.1,
) -> list[Row]:
    """One point of the state evolution of several layers, from replicates with independent random numbers."""
    ends, began = [], time.perf_counter()
    for seed in range(replicates):
        end = aim.theory.deep_state_evolution(
            alpha,
            tokens=tokens,
            start=(1.0,) * layers,
            samples=samples,
            points=points,
            max_iter=40,
            tol=1e-2,
            seed=seed,
        )
        ends.append(end.value)
        taken = time.perf_counter() - began
        print(f"  replicate {seed}: {end.value.round(4).tolist()}, {end.n_iter} steps, {taken:.0f} s", flush=True)
        if taken * (seed + 2) / (seed + 1) > seconds:
            break
    mean, error = np.mean(ends, axis=0), np.std(ends, axis=0, ddof=1) / np.sqrt(len(ends))
    size = f"{layers} layers, {tokens} tokens, alpha={alpha}"
    detail = (
        f"{len(ends)} replicates of {samples} outputs; errors {mean.round(4).tolist()} +- {error.round(4).tolist()}"
    )
    return [
        say(Row(f"deep state evolution, {size}, time", taken, "s", "< 300 s", f"{detail}, compilation included")),
        say(Row(f"deep state evolution, {size}, last layer", float(mean[-1]), "error", "", detail)),
        say(
            Row(
                f"deep state evolution, {size}, Monte Carlo error",
                float((error / mean).max()),
                "relative, largest layer",
                "<= 0.02",
                detail,
            )
        ),
    ]


def gdrate(
    seconds: float,
    d: int = 200,
    inits: int = 32,
    steps: int = 300,
    precisions: tuple[str, ...] = ("highest", "tf32"),
) -> list[Row]:
    """Gradient descent from many initialisations in one batch, at two precisions: 4 n T d r FLOP a step for each."""
    task = aim.Task(d, TOKENS, RHO)
    X, y = task.sample(task.n_samples(0.15))
    flops = 4.0 * len(X) * TOKENS * d * task.width * inits * steps
    rows = []
    for precision in precisions:
        adam = aim.Adam(n_steps=steps, tol=1e9, compute=Compute(precision=precision))
        model = aim.GradientDescent(task.width, inits, optimizer=adam, random_state=0)
        rate = flops / measure(lambda model=model: model.fit(X, y).weights_, 3).median
        detail = (
            f"d={d}, n={len(X)}, {inits} initialisations, {steps} steps, transfers included; {rate / 1e12:.1f} TFLOP/s"
        )
        unit = f"of fp32, {precision} products"
        rows.append(say(Row(f"GD rate, {precision}", rate / gemm_rate("highest"), unit, ">= 0.4", detail)))
    return rows


PARTS: dict[str, Callable[..., list[Row]]] = {
    "amp1000": amp1000,
    "amp4000": amp4000,
    "amp4000tf32": functools.partial(amp4000, precision="tf32"),
    "amp4000bf16x3": functools.partial(amp4000, precision="bf16x3"),
    "untied4000": untied4000,
    "untied4000tf32": functools.partial(untied4000, precision="tf32", alpha=0.2),
    "gdrate": gdrate,
    "deep": deep,
}


# What runs in which order, and the most it may take of the time that is left.
STEPS = (
    ("amp1000", 0.2),
    ("gdrate", 0.2),
    ("amp4000tf32", 0.4),
    ("amp4000bf16x3", 0.4),
    ("amp4000", 0.5),
    ("untied4000tf32", 0.5),
    ("untied4000", 0.6),
    ("deep", 1.0),
)


def run(seconds: float, *, tiny: bool = False) -> list[Row]:
    """The parts that fit in ``seconds``, the quick ones first."""
    if tiny:
        task = aim.Task(40, rho=RHO, seed=1)
        model = run_amp(task, 0.15, precision="highest", budget=1e9, seconds=seconds)
        rows = amp_rows("AMP d=40", model, task, 0.15, "highest") + untied4000(seconds, d=40)
        rows += deep(seconds, 3, 2, 64, 512, 2) + gdrate(seconds, 20, 4, 20, ("highest",))
        return [*precisions(64, 256), *rows]
    deadline, rows = time.perf_counter() + seconds, []
    for name, share in STEPS:
        left = deadline - time.perf_counter()
        if left > 30:
            rows += PARTS[name](left * share)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to run; nothing: all that fits")
    parser.add_argument("--seconds", type=float, default=500.0, help="time limit of each part")
    parser.add_argument("--json", type=Path, help="where the rows are stored")
    options = parser.parse_args()
    calls = {name: functools.partial(PARTS[name], options.seconds) for name in options.parts}
    results = Results(machine.describe(rates=False))
    for name, call in (calls or {"aim": functools.partial(run, options.seconds)}).items():
        if options.json is None:
            call()
        else:
            run_part(name, call, results, options.json)


if __name__ == "__main__":
    main()
