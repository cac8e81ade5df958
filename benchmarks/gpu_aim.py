"""Attention-indexed models on a GPU: message passing at d = 1000, 4000, 10 000 and the gradient-descent grid of
2506.01582.

``python -m benchmarks.gpu_aim [amp1000] [amp4000] [amp4000fast] [amp10000] [gd] [--seconds 500] [--out DIR]``
"""

from __future__ import annotations

import argparse
import csv
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.92")

import jax
import jax.numpy as jnp
import numpy as np

from attnlab import aim
from attnlab.aim import sensing
from benchmarks.harness import Row, measure

RHO, TOKENS = 0.5, 2


def say(row: Row) -> Row:
    print(f"{row.name}: {row.value:.4g} {row.unit} (target {row.target}; {row.detail})", flush=True)
    return row


@functools.cache
def gemm_rate(precision: str = "highest", size: int = 8192) -> float:
    """FLOP/s of a square float32 product at a precision: the practical limit of this device."""
    a = jnp.ones((size, size), jnp.float32)
    product = jax.jit(lambda a: jnp.matmul(a, a, precision=sensing.PRECISIONS[precision]))
    return 2 * size**3 / measure(lambda: product(a), 5).median


def product_error(precision: str, d: int = 1000, n: int = 4000) -> tuple[float, float]:
    """Relative error of forward and adjoint against float64 NumPy."""
    task = aim.Task(d, rho=RHO)
    X = np.random.default_rng(0).standard_normal((n, TOKENS, d)).astype(np.float32)
    g = np.random.default_rng(1).standard_normal((n, 3))
    with jax.enable_x64(True):
        on_device = jnp.asarray(X), jnp.asarray(task.S)
        z = np.asarray(sensing.measure(*on_device, precision=precision))
        back = np.asarray(sensing.measure_adjoint(on_device[0], jnp.asarray(g), precision=precision))
    wide = X.astype(np.float64)
    exact_z = aim.indices.whiten(aim.indices.indices(wide, task.S))
    G = (g * np.array([2**-0.5, 0.5, 2**-0.5]))[:, [[0, 1], [1, 2]]]
    exact = np.einsum("nad,nae->de", wide, np.einsum("nab,nbd->nad", G, wide), optimize=True)
    exact = (exact - np.eye(d) * np.trace(G.sum(axis=0))) / np.sqrt(d)
    relative = lambda a, b: float(np.linalg.norm(a - b) / np.linalg.norm(b))  # noqa: E731
    return relative(z, exact_z), relative(back, exact)


def run_amp(
    d: int, alpha: float, *, precision: str, budget: float, seconds: float, damping: float | str = "auto", seed: int = 1
) -> aim.AMP:
    """One instance with tokens drawn on the device; they stay there when ``budget`` bytes allow."""
    task = aim.Task(d, rho=RHO, seed=seed)
    start = time.perf_counter()
    X, y = task.stream(task.n_samples(alpha), seed=seed)
    print(f"  d={d} alpha={alpha}: labels of {len(y)} sequences in {time.perf_counter() - start:.1f} s", flush=True)
    model = aim.AMP(RHO, damping=damping, precision=precision, memory_budget=budget, tol=1e-6, max_seconds=seconds)
    model.set_params(max_iter=1).fit(X, y)  # compile
    return model.set_params(max_iter=100).fit(X, y, truth=task.S)


def amp_rows(name: str, model: aim.AMP, d: int, alpha: float, precision: str) -> list[Row]:
    trace = model.trace_
    steps = np.diff(trace["seconds"])
    per_step = float(np.median(steps)) if len(steps) else trace["seconds"][0]
    flops = 4 * round(alpha * d**2) * TOKENS * d**2
    curve = aim.theory.state_evolution(alpha, RHO).trajectory
    expected = float(aim.theory.mmse(alpha, RHO)) if model.converged_ else curve[min(len(trace["mse"]), len(curve) - 1)]
    error = trace["mse"][-1]
    detail = f"{model.n_iter_} iterations, converged {model.converged_}, {per_step:.3g} s each"
    print(f"  mse path {np.round(trace['mse'], 4).tolist()}", flush=True)
    share = flops / per_step / gemm_rate("highest")
    return [
        say(Row(f"{name} time", trace["seconds"][-1], "s", "< 5 s at d = 1000, < 300 s at d = 4000", detail)),
        say(
            Row(
                f"{name} error",
                error / expected - 1,
                "relative to the state evolution",
                "within 1 %",
                f"{error:.5f} against {expected:.5f}",
            )
        ),
        say(
            Row(
                f"{name} rate",
                share,
                "of the fp32 matrix rate, eigh included",
                ">= 0.7 at d = 4000",
                f"{flops / per_step / 1e12:.1f} TFLOP/s, products {precision}; fp32 {gemm_rate('highest') / 1e12:.1f}",
            )
        ),
    ]


def amp1000(seconds: float) -> list[Row]:
    rows = [say(Row("fp32 matrix rate", gemm_rate("highest") / 1e12, "TFLOP/s", "-", str(jax.devices()[0])))]
    for precision in ("highest", "tf32", "tf32x3", "bf16x3"):
        try:
            forward, backward = product_error(precision)
            rate = gemm_rate(precision) / 1e12
        except Exception as problem:
            print(f"  precision {precision} is not available here: {str(problem)[:200]}", flush=True)
            continue
        detail = f"adjoint {backward:.2g}; square product {rate:.0f} TFLOP/s"
        rows.append(say(Row(f"forward error, {precision}", forward, "relative to float64", "< 1e-2", detail)))
    for alpha in (0.1, 0.15):
        for precision in ("highest", "tf32"):
            model = run_amp(1000, alpha, precision=precision, budget=2e10, seconds=seconds / 8)
            rows += amp_rows(f"AMP d=1000 alpha={alpha} {precision}", model, 1000, alpha, precision)
    return rows


def amp4000(seconds: float, precision: str = "highest") -> list[Row]:
    model = run_amp(4000, 0.1, precision=precision, budget=7e10, seconds=max(seconds - 90, 20))
    return amp_rows(f"AMP d=4000 {precision}", model, 4000, 0.1, precision)


def amp4000fast(seconds: float) -> list[Row]:
    return amp4000(seconds, "tf32")


def amp10000(seconds: float) -> list[Row]:
    """Tokens regenerated at each pass (800 GB would not fit); as many iterations as the time allows, against the SE's
    own path.
    """
    model = run_amp(10_000, 0.1, precision="tf32", budget=1e9, seconds=max(seconds - 180, 20), damping=0.1)
    return amp_rows("AMP d=10000 regenerated tokens, tf32", model, 10_000, 0.1, "tf32")


def gd(seconds: float, out: Path = Path("."), d: int = 200, inits: int = 32, precision: str = "tf32") -> list[Row]:
    """The right panel of figure 2: single and averaged gradient descent, T = 2..6, as many teachers as the time
    allows.
    """
    deadline = time.perf_counter() + seconds
    path = out / "aim_gd_grid.csv"
    cells = [(tokens, float(a)) for tokens in range(2, 7) for a in np.logspace(np.log10(0.0012), np.log10(0.3), 32)]
    cells = [(tokens, a) for tokens, a in cells if 0.0095 <= a * (tokens**2 + tokens - 2) <= 1.05]
    names = ("tokens", "alpha", "teacher", "single", "averaged", "worst_loss", "se")
    records: list[tuple[float, ...]] = []
    flops = spent = 0.0
    with path.open("w", newline="") as file:
        file.write(
            f"# d={d} rho={RHO} inits={inits} Adam lr=0.1 steps=1000 products={precision} "
            f"device={jax.devices()[0].device_kind} jax={jax.__version__}\n"
        )
        file.write("# produced by: python -m benchmarks.gpu_aim gd\n")
        writer = csv.writer(file)
        writer.writerow(names)
        for teacher in range(16):
            for tokens, alpha in cells:
                if time.perf_counter() > deadline:
                    break
                record, used, work = gd_cell(d, tokens, alpha, teacher, inits, precision)
                records.append(record)
                writer.writerow([f"{v:.6g}" for v in record])
                file.flush()
                if teacher:  # the first teacher compiles
                    flops, spent = flops + work, spent + used
            print(f"  teacher {teacher}: {len(records)} of {16 * len(cells)} cells", flush=True)
            if time.perf_counter() > deadline:
                break
    table = np.array(records)
    done = len(records) // len(cells)
    gap = float((table[:, 4] - table[:, 6]).mean())
    rows = [
        Row(
            "GD grid, complete teachers",
            done,
            "",
            ">= 1 in 10 min",
            f"{len(records)} cells; mean averaged - SE {gap:.3f}",
        ),
        Row("GD single / averaged", float((table[:, 3] / table[:, 4]).mean()), "", "about 2", f"{path}"),
    ]
    if spent:
        rate = flops / spent
        rows.append(
            Row(
                "GD rate",
                rate / gemm_rate("highest"),
                "of the fp32 matrix rate",
                ">= 0.4",
                f"{rate / 1e12:.1f} TFLOP/s",
            )
        )
    return [say(row) for row in rows]


def gd_cell(
    d: int, tokens: int, alpha: float, teacher: int, inits: int, precision: str
) -> tuple[tuple[float, ...], float, float]:
    """One point of the grid: errors of one initialisation (mean over all) and of their average; time and FLOP."""
    task = aim.Task(d, tokens, RHO, seed=teacher)
    n = task.n_samples(alpha)
    X, y = task.sample(n, seed=(teacher + 1) * 1000 + tokens)
    start = time.perf_counter()
    model = aim.GradientDescent(task.width, inits, precision=precision, random_state=teacher, memory_budget=4e10).fit(
        X, y
    )
    used = time.perf_counter() - start
    error = lambda S: float(((S - task.S) ** 2).sum() / d)  # noqa: E731
    single = np.mean([error(aim.matrix(W)) for W in model.weights_])
    record = (
        tokens,
        alpha,
        teacher,
        float(single),
        error(model.S_),
        float(model.loss_.max()),
        bayes_error(tokens, alpha),
    )
    return record, used, 4.0 * n * tokens * d * task.width * inits * model.steps


@functools.cache
def bayes_error(tokens: int, alpha: float) -> float:
    """The theory's error, once for all teachers."""
    return float(aim.theory.mmse(alpha, RHO, tokens))


PARTS: dict[str, Callable[..., list[Row]]] = {
    "amp1000": amp1000,
    "amp4000": amp4000,
    "amp4000fast": amp4000fast,
    "amp10000": amp10000,
    "gd": gd,
}


def run(seconds: float) -> list[Row]:
    """The parts that fit in ``seconds``, the quick ones first."""
    deadline, rows = time.perf_counter() + seconds, []
    for name, share in (("amp1000", 0.25), ("gd", 0.4), ("amp4000fast", 0.5), ("amp4000", 1.0)):
        left = deadline - time.perf_counter()
        if left > 30:
            rows += PARTS[name](left * share)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to run; nothing: all that fits")
    parser.add_argument("--seconds", type=float, default=500.0, help="time limit of each part")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")), help="folder of aim_gd_grid.csv")
    options = parser.parse_args()
    if not options.parts:
        run(options.seconds)
    for name in options.parts:
        PARTS[name](options.seconds, **({"out": options.out} if name == "gd" else {}))


if __name__ == "__main__":
    main()
