"""Attention-indexed models on a GPU: message passing at d = 1000 and 4000, and gradient descent (2506.01582).

``python -m benchmarks.gpu_aim [amp1000 amp4000 amp4000tf32 amp4000bf16x3 gdrate] [--seconds 500]``

Softmax needs T - 1 products with S in place of T: an iteration is counted as the 4 n (T - 1) d^2 FLOP that are done.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.92")

import jax
import jax.numpy as jnp
import numpy as np

from attnlab import aim
from attnlab.aim.indices import Layout
from attnlab.aim.messages import products
from attnlab.aim.messages.probes import Probes
from attnlab.common.compute import Compute
from benchmarks.harness import Row, measure, say

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
        back = np.asarray(products.measure_adjoint(on_device[0], jnp.asarray(g), probes=probes, precision=precision))
    wide = X.astype(np.float64)
    exact_z = aim.indices.whiten(aim.indices.indices(wide, task.S))
    G = (g * np.array([2**-0.5, 0.5, 2**-0.5]))[:, [[0, 1], [1, 2]]]
    exact = np.einsum("nad,nae->de", wide, np.einsum("nab,nbd->nad", G, wide), optimize=True)
    exact = (exact - np.eye(d) * np.trace(G.sum(axis=0))) / np.sqrt(d)
    relative = lambda a, b: float(np.linalg.norm(a - b) / np.linalg.norm(b))  # noqa: E731
    return relative(z, exact_z), relative(back, exact)


def run_amp(
    d: int,
    alpha: float,
    *,
    precision: str,
    budget: float,
    seconds: float,
    damping: float | str = "auto",
    warm: bool = True,
    reserve: float = 0.0,
    seed: int = 1,
) -> aim.AMP:
    """One instance with tokens drawn on the device; they stay there when ``budget`` bytes allow.

    The run ends after the iteration in which ``seconds`` less ``reserve`` (about one iteration) are used up, labels
    and compilation included.
    """
    end = time.perf_counter() + seconds - reserve
    task = aim.Task(d, rho=RHO, seed=seed)
    start = time.perf_counter()
    X, y = task.stream(task.n_samples(alpha), seed=seed)
    print(f"  d={d} alpha={alpha}: labels of {len(y)} sequences in {time.perf_counter() - start:.1f} s", flush=True)
    model = aim.AMP(RHO, damping=damping, compute=Compute(precision=precision, memory=budget), tol=1e-6)
    per_iteration = 0.0
    if warm:
        model.set_params(max_iter=1).fit(X, y)  # compile
        began = time.perf_counter()
        model.fit(X, y)
        per_iteration = time.perf_counter() - began
    left = max(end - time.perf_counter(), 1e-3)
    affordable = int(np.clip(left / max(per_iteration, 1e-9), 1, 100))
    return model.set_params(max_iter=affordable).fit(X, y, truth=task.S)


def amp_rows(name: str, model: aim.AMP, d: int, alpha: float, precision: str, limit: str = "") -> list[Row]:
    """Time, error against the state evolution (at the same iteration when cut short), and rate."""
    trace = model.trace_
    steps = np.diff(trace["seconds"])
    per_step = float(np.median(steps)) if len(steps) else trace["seconds"][0]
    flops = 4 * round(alpha * d**2) * (TOKENS - 1) * d**2
    share = 0.0 if model.damping == "auto" else float(model.damping)
    curve = aim.theory.state_evolution(alpha, RHO, damping=share).trajectory
    expected = float(aim.theory.mmse(alpha, RHO)) if model.converged_ else curve[min(len(trace["mse"]), len(curve) - 1)]
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
                "of fp32, eigh included",
                ">= 0.7" if d == 4000 else "",
                f"{rate / 1e12:.1f} TFLOP/s, products {precision}; fp32 {fp32 / 1e12:.1f}; {plain}",
            )
        ),
    ]


def precisions(d: int = 1000, n: int = 4000) -> list[Row]:
    """Each way of multiplying: its error against float64, and its rate."""
    rows = [say(Row("fp32 matrix rate", gemm_rate("highest") / 1e12, "TFLOP/s", "", str(jax.devices()[0])))]
    for precision in ("highest", "tf32", "tf32x3", "bf16x3"):
        try:
            forward, backward = product_error(precision, d, n)
            rate = gemm_rate(precision) / 1e12
        except (ValueError, NotImplementedError, jax.errors.JaxRuntimeError) as problem:
            print(f"  precision {precision} is not available here: {str(problem)[:200]}", flush=True)
            continue
        detail = f"adjoint {backward:.2g}; square product {rate:.0f} TFLOP/s"
        rows.append(say(Row(f"forward error, {precision}", forward, "relative to float64", "< 1e-2", detail)))
    return rows


def amp1000(seconds: float) -> list[Row]:
    """Resident tokens, two numbers of samples, two precisions."""
    rows = precisions()
    for alpha in (0.1, 0.15):
        for precision in ("highest", "tf32"):
            model = run_amp(1000, alpha, precision=precision, budget=2e10, seconds=seconds / 2)
            rows += amp_rows(f"AMP d=1000 alpha={alpha} {precision}", model, 1000, alpha, precision, "< 5 s")
    return rows


def amp4000(seconds: float, precision: str = "highest") -> list[Row]:
    """1.6 million sequences, resident (51 GB)."""
    model = run_amp(4000, 0.1, precision=precision, budget=7e10, seconds=seconds, reserve=5)
    return amp_rows(f"AMP d=4000 {precision}", model, 4000, 0.1, precision, "< 300 s")


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
    "gdrate": gdrate,
}


# What runs in which order, and the most it may take of the time that is left.
STEPS = (("amp1000", 0.3), ("gdrate", 0.2), ("amp4000tf32", 0.4), ("amp4000bf16x3", 0.4), ("amp4000", 1.0))


def run(seconds: float, *, tiny: bool = False) -> list[Row]:
    """The parts that fit in ``seconds``, the quick ones first."""
    if tiny:
        model = run_amp(40, 0.15, precision="highest", budget=1e9, seconds=seconds)
        rows = amp_rows("AMP d=40", model, 40, 0.15, "highest")
        return [*precisions(64, 256), *rows, *gdrate(seconds, 20, 4, 20, ("highest",))]
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
    options = parser.parse_args()
    if not options.parts:
        run(options.seconds)
    for name in options.parts:
        PARTS[name](options.seconds)


if __name__ == "__main__":
    main()
