"""Random-feature attention on a GPU: n = 32 768 examples, 10 000 heads (170 000 features), and what that scale shows.

``python -m benchmarks.gpu_rfa [--seconds 500]``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.rfa import RandomFeatureAttention, Task, theory
from attnlab.rfa.accelerator import Accelerator
from attnlab.rfa.backend import Features
from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import AttentionFeatures, FeatureMap, MLPFeatures
from attnlab.rfa.solvers.ridge import dual
from benchmarks.harness import Row, measure

D, KEYS, HEADS, N, N_TEST, RIDGE = 16, 16, 10_000, 32_768, 2000, 1e-6
TARGETS: Mapping[str, Mapping[str, Any]] = {
    "f1_p2": {"target": "key_power", "p": 2},
    "f1_p3": {"target": "key_power", "p": 3},
    "f2_q1": {"target": "corr_power", "q": 1},
    "f2_q2": {"target": "corr_power", "q": 2},
    "f2_q3": {"target": "corr_power", "q": 3},
    "f2_q4": {"target": "corr_power", "q": 4},
}


def say(row: Row) -> Row:
    print(f"{row.name}: {row.value:.4g} {row.unit} (target {row.target}; {row.detail})", flush=True)
    return row


def gemm_rate(precision: str, size: int = 8192) -> float:
    """FLOP/s of a square float32 product on this device at a precision."""
    a = jnp.ones((size, size), jnp.float32)

    @jax.jit
    def product(a: jax.Array) -> jax.Array:
        with jax.default_matmul_precision(precision):
            return a @ a

    return 2 * size**3 / measure(lambda: product(a), 5).median


def feature_map(model: str, seed: int = 0) -> FeatureMap:
    if model == "rfmlp":
        return MLPFeatures(HEADS * (D + 1), D, KEYS + 1, seed)
    return AttentionFeatures(HEADS, D, seed, mean_matrix("identity" if model == "brfa" else None, D))


def accuracy(device: Accelerator) -> Row:
    """Predictions from features and Gram matrix on the device against float64 on the host, on a smaller problem."""
    X, y = Task("key_power", p=2, d=D, n_keys=KEYS).sample(2548, seed=0)
    reference = RandomFeatureAttention(500, dtype="float64", random_state=0).fit(X[:2048], y[:2048])
    heads = AttentionFeatures(500, D, reference.seed_, mean_matrix(None, D))
    theta = dual(Features(heads, device.put(X[:2048]), device), y[:2048, None], RIDGE, keep=False)
    f = sum(
        np.asarray(block, dtype=np.float64) @ part
        for block, part in zip(
            Features(heads, device.put(X[2048:]), device), np.split(theta, np.cumsum(heads.sizes)[:-1]), strict=True
        )
    )
    gap = float(np.max(np.abs(f[:, 0] - reference.predict(X[2048:]))) / np.std(y))
    name = f"rfa gpu error against float64, {device.precision}"
    return Row(name, gap, "of std(y)", "<= 1e-3", "n=2048, M=500, largest over 500 predictions")


def fit(model: str, device: Accelerator) -> list[Row]:
    """Gram matrix, Cholesky and test errors at full size."""
    tasks = {name: Task(d=D, n_keys=KEYS, **options) for name, options in TARGETS.items()}
    X = tasks["f1_p2"].sample(N + N_TEST, seed=0)[0]
    Y = np.stack([task.truth(X) for task in tasks.values()], axis=1)
    maps = feature_map(model)
    train, test = (Features(maps, device.put(x), device) for x in (X[:N], X[N:]))
    width = train.shape[1]
    # Compile for whole blocks and for the last, shorter one before the clock starts.
    G, C = device.zeros((N, N)), device.zeros((N_TEST, N))
    for index in (0, len(train) - 1):
        G = device.add_gram(G, device.features(maps, train.tokens, index))
    jax.block_until_ready(G)
    G = device.zeros((N, N))

    start = time.perf_counter()
    for block in train:
        G = device.add_gram(G, block)
    jax.block_until_ready(G)
    gram_seconds = time.perf_counter() - start
    for left, right in zip(test, train, strict=True):
        C = device.add_product(C, left, right.T)
    start = time.perf_counter()
    alpha = device.solve(G, N * RIDGE, Y[:N])
    solve_seconds = time.perf_counter() - start
    errors = np.mean((np.asarray(C, dtype=np.float64) @ alpha - Y[N:]) ** 2, axis=0)

    flop = 2.0 * N * N * width
    text = f"n={N}, {width} features; Gram + features {gram_seconds:.2f} s, Cholesky {solve_seconds:.2f} s"
    name = f"rfa gpu {model} {device.precision}"
    share = flop / gram_seconds / gemm_rate(device.precision)
    rows = [
        Row(f"{name}: share of measured matrix rate", share, "", "report", text),
        Row(f"{name}: rate", flop / gram_seconds / 1e12, "TFLOP/s", "report", text),
    ]
    for (target, task), error in zip(tasks.items(), errors, strict=True):
        predicted = "" if model == "brfa" else f"theory {theory.learning_curve(task, N, model).error[0]:.3f}"
        rows.append(Row(f"{name}: error on {target}", error / task.variance, "of Var", "report", predicted))
    return rows


def run(seconds: float) -> list[Row]:
    """Everything that fits into the time, most important first."""
    start = time.perf_counter()
    exact, fast = (Accelerator.first("gpu", precision) for precision in ("highest", "tensorfloat32"))
    rows = [say(accuracy(device)) for device in (exact, fast)]
    longest = 0.0
    for model, device in (("rfa", exact), ("rfa", fast), ("brfa", fast), ("rfmlp", fast)):
        begun = time.perf_counter()
        if begun - start + longest > seconds:
            print("out of time", flush=True)
            break
        rows += [say(row) for row in fit(model, device)]
        longest = max(longest, time.perf_counter() - begun)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=500.0)
    run(parser.parse_args().seconds)
