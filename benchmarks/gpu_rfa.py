"""Random-feature attention on a GPU: the precision that ridge regression allows, exact kernels, and n = 32 768 examples
with 10 000 heads (170 000 features).

``python -m benchmarks.gpu_rfa [--seconds 500] [--tiny]``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.rfa import Task, kernel, theory
from attnlab.rfa.accelerator import Accelerator
from attnlab.rfa.activations import Relu
from attnlab.rfa.backend import Backend, Blas, Features
from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import AttentionFeatures, FeatureMap, MLPFeatures
from attnlab.rfa.kernels import NODES, TILE, _padded_tile, _side, _tile
from attnlab.rfa.sets import pad
from benchmarks.gpu_device import UNKNOWN_PRECISION
from benchmarks.harness import measure, say
from benchmarks.rows import Row

D, KEYS, RIDGE = 16, 16, 1e-6
TARGETS: Mapping[str, Mapping[str, Any]] = {
    "f1_p2": {"target": "key_power", "p": 2},
    "f1_p3": {"target": "key_power", "p": 3},
    "f2_q1": {"target": "corr_power", "q": 1},
    "f2_q2": {"target": "corr_power", "q": 2},
    "f2_q3": {"target": "corr_power", "q": 3},
    "f2_q4": {"target": "corr_power", "q": 4},
}
# JAX's names of how float32 factors are multiplied: whole, in three products of parts, or rounded.
PRECISIONS = {
    "fp32": "highest",
    "3xTF32": "TF32_TF32_F32_X3",
    "3xbf16": "BF16_BF16_F32_X3",
    "TF32": "TF32_TF32_F32",
}
RIDGES = (1e-9, 1e-6, 1e-4, 1e-2)


@dataclass(frozen=True)
class Size:
    """What is run: heads and examples of the fit, of the comparison of precisions, and of a tile of the kernel."""

    heads: int = 10_000
    n: int = 32_768
    n_test: int = 2000
    compared_heads: int = 2000
    compared: int = 8192
    tile: int = 8192


TINY = Size(heads=40, n=256, n_test=50, compared_heads=40, compared=256, tile=64)


def gemm_rate(precision: str, size: int) -> float:
    """FLOP/s of a square float32 product on this device at a precision."""
    a = jnp.ones((size, size), jnp.float32)

    @jax.jit
    def product(a: jax.Array) -> jax.Array:
        with jax.default_matmul_precision(precision):
            return a @ a

    return 2 * size**3 / measure(lambda: product(a), 5).median


def grams(maps: FeatureMap, X: np.ndarray, n: int, device: Backend) -> tuple[Any, Any]:
    """Gram matrix of the first n examples and the block of the others against them, in one pass over the heads."""
    train, test = (Features(maps, device.put(x), device) for x in (X[:n], X[n:]))
    G, C = device.zeros((n, n)), device.zeros((len(X) - n, n))
    for A, B in zip(train, test, strict=True):
        G, C = device.add_gram(G, A), device.add_product(C, B, A.T)
    return G, C


def precisions(size: Size, platform: str) -> list[Row]:
    """Predictions at each precision of the products against float64 on the host, for each ridge.

    The rounding of the Gram matrix is a perturbation that the ridge must outweigh: its relative size times the largest
    eigenvalue, over n times the ridge. The solve is in float64 throughout.
    """
    n = size.compared
    task = Task("key_power", p=2, d=D, n_keys=KEYS)
    X = task.sample(n + 500, seed=0)[0]
    Y = task.truth(X)[:, None]
    maps = AttentionFeatures(size.compared_heads, D, 0, mean_matrix(None, D))

    host = Blas("float64")
    G, C = grams(maps, X, n, host)
    expected = {ridge: C @ host.solve(G, n * ridge, Y[:n]) for ridge in RIDGES}
    rows = []
    for name, precision in PRECISIONS.items():
        device = Accelerator.first(platform, precision)
        try:
            G, C = (jax.block_until_ready(matrix) for matrix in grams(maps, X, n, device))
        except UNKNOWN_PRECISION as problem:
            print(f"{name}: not available here: {str(problem).splitlines()[0][:200]}", flush=True)
            continue
        for ridge in RIDGES:
            f = np.asarray(C, dtype=np.float64) @ device.solve(G, n * ridge, Y[:n])
            gap = np.abs(f - expected[ridge])
            change = np.mean((f - Y[n:]) ** 2) / np.mean((expected[ridge] - Y[n:]) ** 2) - 1
            detail = (
                f"n={n}, M={size.compared_heads}, largest of 500 predictions, against float64; test error changes by "
                f"{change:.1e} of itself"
            )
            label = f"rfa gpu error with {name} products, ridge {ridge:g}"
            rows.append(say(Row(label, float(gap.max() / np.std(Y)), "of std(y)", "", detail)))
    return rows


def kernel_flop(kind: str, d: int) -> int:
    """Operations for one pair of keys of one pair of examples; roots, quotients and exponentials count as one.

    Both kinds: inner product of D = d + 1 coordinates (2 D), correlation (1), times the inner product and the weight,
    added to the total (3).  rfa: 1 - |rho|, its root and their product (3), polynomial of degree five (10), relu and
    half of it (2), times and plus (2).  brfa: for each node u (1), 1 - u^2 and its bound (3), one over the root and the
    square (3), exponent (3), exponential, weight and sum (4); then four products and three sums around them (7).
    """
    shared = 2 * (d + 1) + 4
    return shared + (17 if kind == "rfa" else 14 * NODES + 7)


def exact_kernel(kind: str, size: Size, rate: float) -> Row:
    """One tile of the exact kernel: its rate as a share of the matrix rate, and its error against float64."""
    t = size.tile
    X = Task(d=D, n_keys=KEYS).sample(2 * t, seed=0)[0]
    W0 = mean_matrix("identity" if kind == "brfa" else None, D)
    side, centred = _side(pad(X), W0, 0.5, False, "float32"), kind != "brfa"
    if centred:
        side = side._replace(weight=side.weight * side.deviation)
    left, right = (jax.device_put(_padded_tile(side, start, t)) for start in (0, t))
    call: Callable[[], jax.Array] = lambda: _tile(  # noqa: E731
        left, right, Relu(), centred, NODES, pooled=False, batched=centred
    )
    timing = measure(call, 5)
    few = min(t, TILE // 4)
    error = np.abs(np.asarray(call())[:few, :few] - kernel(X[:few], X[t : t + few], kind=kind)).max()
    flop = float(t) ** 2 * KEYS**2 * kernel_flop(kind, D)
    achieved = flop / timing.median
    detail = (
        f"{t} x {t} examples, d=N={D}: {kernel_flop(kind, D)} operations per pair of keys, "
        f"{achieved / 1e12:.1f} TFLOP/s; error {error:.1e} against float64"
    )
    return Row(
        f"rfa gpu exact kernel {kind}",
        achieved / rate,
        "of fp32",
        ">= 0.3",
        detail,
        spread=achieved / rate * timing.spread / timing.median,
        compile=timing.compile,
    )


def fit(model: str, size: Size, device: Accelerator) -> list[Row]:
    """Gram matrix, Cholesky and test errors at full size."""
    tasks = {name: Task(d=D, n_keys=KEYS, **options) for name, options in TARGETS.items()}
    n = size.n
    X = tasks["f1_p2"].sample(n + size.n_test, seed=0)[0]
    Y = np.stack([task.truth(X) for task in tasks.values()], axis=1)
    maps: FeatureMap = AttentionFeatures(size.heads, D, 0, mean_matrix("identity" if model == "brfa" else None, D))
    if model == "rfmlp":
        maps = MLPFeatures(size.heads * (D + 1), D, KEYS + 1, 0)
    train, test = (Features(maps, device.put(x), device) for x in (X[:n], X[n:]))
    width = train.shape[1]
    # Compile for whole blocks and for the last, shorter one before the clock starts.
    G, C = device.zeros((n, n)), device.zeros((size.n_test, n))
    inputs = device.inputs(maps, train.tokens)
    for index in (0, len(train) - 1):
        G = device.add_gram(G, device.features(maps, inputs, index))
    jax.block_until_ready(G)
    G = device.zeros((n, n))

    start = time.perf_counter()
    for block in train:
        G = device.add_gram(G, block)
    jax.block_until_ready(G)
    gram_seconds = time.perf_counter() - start
    for left, right in zip(test, train, strict=True):
        C = device.add_product(C, left, right.T)
    start = time.perf_counter()
    alpha = device.solve(G, n * RIDGE, Y[:n])
    solve_seconds = time.perf_counter() - start
    errors = np.mean((np.asarray(C, dtype=np.float64) @ alpha - Y[n:]) ** 2, axis=0)

    flop = 2.0 * n * n * width
    text = f"n={n}, {width} features; Gram + features {gram_seconds:.2f} s, Cholesky {solve_seconds:.2f} s"
    name = f"rfa gpu {model} {device.precision}"
    share = flop / gram_seconds / gemm_rate(device.precision, min(8192, n))
    rows = [
        Row(f"{name}: share of measured matrix rate", share, "", ">= 0.5", text),
        Row(f"{name}: rate", flop / gram_seconds / 1e12, "TFLOP/s", "", text),
    ]
    for (target, task), error in zip(tasks.items(), errors, strict=True):
        units = {"width": width} if model == "rfmlp" else {"n_heads": size.heads}
        predicted = "" if model == "brfa" else f"theory {theory.learning_curve(task, n, model, **units):.3f}"
        rows.append(Row(f"{name}: error on {target}", error / task.variance, "of Var", "", predicted))
    return [say(row) for row in rows]


def run(seconds: float, *, tiny: bool = False) -> list[Row]:
    """Everything that fits into the time, most important first."""
    end = time.monotonic() + seconds
    size, platform = (TINY, jax.default_backend()) if tiny else (Size(), "gpu")
    whole, fast = (Accelerator.first(platform, precision) for precision in ("highest", "tensorfloat32"))
    rate = gemm_rate("highest", size.tile)
    steps: list[Callable[[], list[Row]]] = [
        lambda: [say(exact_kernel("rfa", size, rate)), say(exact_kernel("brfa", size, rate))],
        lambda: fit("rfa", size, whole),
        lambda: fit("rfa", size, fast),
        lambda: precisions(size, platform),
        lambda: fit("brfa", size, fast),
        lambda: fit("rfmlp", size, fast),
    ]
    rows, longest = [], 0.0
    for step in steps:
        begun = time.monotonic()
        if begun + longest > end:
            print("rfa: out of time", flush=True)
            break
        rows += step()
        longest = max(longest, time.monotonic() - begun)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--tiny", action="store_true", help="small sizes, on whatever device there is")
    options = parser.parse_args()
    run(options.seconds, tiny=options.tiny)
