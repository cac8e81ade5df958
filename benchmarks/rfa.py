"""Random-feature attention: fit and predict against the obvious pipeline, the share of BLAS's rate, the exact kernel,
memory, figures, and how the hot paths grow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg import blas

from attnlab.rfa import RandomFeatureAttention, Task, kernel
from attnlab.rfa.backend import Blas, Features
from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import AttentionFeatures
from attnlab.rfa.figures import FIGURES
from attnlab.rfa.solvers.few_keys import gram_of_scores
from attnlab.rfa.solvers.ridge import gram
from benchmarks.baselines import rfa as baseline
from benchmarks.harness import alternate, exponent, growth, middle, peak_memory, speed_up
from benchmarks.rows import Row

N, N_TEST, HEADS, D, KEYS, RIDGE = 4096, 1000, 1000, 16, 16, 1e-6
SETTING = f"n={N}, M={HEADS}, d=N={D}"
SQUARE = 3000


def feature_flop(n: float, M: float, d: float, keys: float) -> float:
    """2 n M D (D + 2N), D = d + 1."""
    return 2 * n * M * (d + 1) * (d + 1 + 2 * keys)


def _fit_predict(X: np.ndarray, y: np.ndarray, heads: AttentionFeatures) -> list[Row]:
    W = np.concatenate([heads.heads(i) for i in range(len(heads.sizes))])
    train, test = X[:N], X[N:]

    def ours() -> np.ndarray:
        return RandomFeatureAttention(HEADS, random_state=0).fit(train, y).predict(test)

    def alternative() -> np.ndarray:
        return baseline.fit_predict(train, y, test, W, RIDGE)

    fast = speed_up(
        "rfa fit + predict", ours, alternative, target=">= 3", detail=f"{SETTING}, n_test={N_TEST}", repeats=2
    )
    gap = float(np.max(np.abs(ours() - alternative())) / np.std(y))
    return [fast, Row("rfa prediction gap to Ridge", gap, "of std(y)", "<= 1e-4", "largest difference")]


def _rates(X: np.ndarray, heads: AttentionFeatures) -> list[Row]:
    """Features, Gram matrix, exact kernel and a square product, timed in turn; ratios are formed within each turn."""
    device = Blas("float32")
    features = Features(heads, device.put(X[:N]), device, reuse=True)
    width = features.shape[1]
    block = next(iter(features)).copy()
    G = device.zeros((N, N))
    a = np.asfortranarray(np.random.default_rng(0).standard_normal((SQUARE, SQUARE)), dtype=np.float32)

    def all_features() -> None:
        for _ in features:
            pass

    calls: list[Callable[[], Any]] = [
        all_features,
        lambda: device.add_gram(G, block),
        lambda: gram(features, N, device),
        lambda: kernel(X[:N], dtype="float32"),
        lambda: blas.sgemm(1.0, a, a),
    ]
    timings = alternate(calls, 7)
    update = width / block.shape[1]
    flop = N * N * width + feature_flop(N, HEADS, D, KEYS)
    turns = list(zip(*(timing.times for timing in timings), strict=True))
    share = middle([flop / whole / (2 * SQUARE**3 / square) for _, _, whole, _, square in turns])
    part = middle([alone / (update * one) for alone, one, *_ in turns])
    exact = middle([whole / limit for _, _, whole, limit, _ in turns])
    alone, one, whole, limit, _ = (timing.median for timing in timings)
    detail = f"{SETTING}; whole {whole:.2f} s, features {alone:.3f} s, Gram {update * one:.2f} s"
    return [
        Row("rfa Gram + features, share of sgemm", share[0], "of sgemm", ">= 0.6", detail, spread=share[1]),
        Row("rfa features over Gram", part[0], "", "<= 0.15", detail, spread=part[1]),
        Row(
            "rfa features + Gram over exact kernel",
            exact[0],
            "x",
            ">= 1",
            f"{SETTING}; kernel {limit:.2f} s, float32",
            spread=exact[1],
            compile=timings[3].compile,
        ),
    ]


def _few_keys() -> Row:
    """The Gram matrix of few wide tokens, from the scores of the keys against from the features."""
    n, d, keys = 2048, 64, 3
    X, _ = Task("key_power", p=2, d=d, n_keys=keys).sample(n, seed=0)
    device = Blas("float32")
    features = Features(AttentionFeatures(HEADS, d, 0, mean_matrix(None, d)), device.put(X), device, reuse=True)
    detail = f"n={n}, M={HEADS}, d={d}, N={keys}; {d + 1} against {keys * (keys + 1)} operations a head and pair"
    return speed_up(
        "rfa Gram from scores, few keys",
        lambda: gram_of_scores(features),
        lambda: gram(features, n, device),
        target=">= 1",
        detail=detail,
    )


def _memory(X: np.ndarray, y: np.ndarray) -> Row:
    model = RandomFeatureAttention(20_000, solver="streamed", random_state=0)
    peak = peak_memory(lambda: model.fit(X[:N], y))
    return Row(
        "rfa streamed peak memory", peak / 2**30, "GiB", "< 1.5", f"n={N}, M=20000, 340000 features", memory=peak
    )


def _figures() -> Row:
    cells = [cell for figure in FIGURES[:2] for cell in figure.cells("paper") if cell.params["seed"] == 0]
    start = time.perf_counter()
    for cell in cells:
        cell()
    text = f"{len(cells)} cells of one seed measured, times five seeds"
    return Row("rfa E1 + E2 at paper scale", 5 * (time.perf_counter() - start) / 60, "min", "< 10", text)


def _problem(n: int = 1024, M: int = 256, d: int = D, keys: int = KEYS) -> Features:
    device = Blas("float32")
    X = Task("key_power", d=d, n_keys=keys).sample(n, seed=0)[0]
    return Features(AttentionFeatures(M, d, 0, mean_matrix(None, d)), device.put(X), device, reuse=True)


def _features_of(features: Features) -> Callable[[], Any]:
    return lambda: sum(block.shape[1] for block in features)


def _updates_of(features: Features) -> Callable[[], Any]:
    blocks = list(Features(features.feature_map, features.tokens, features.backend))
    return lambda: gram(blocks, features.shape[0], features.backend)


def _solve_of(features: Features) -> Callable[[], Any]:
    n, device = features.shape[0], features.backend
    G = gram(features, n, device)
    return lambda: device.solve(G, n * RIDGE, np.ones((n, 1)))


def _kernel_of(features: Features) -> Callable[[], Any]:
    return lambda: kernel(features.tokens, dtype="float32")


def _growth() -> list[Row]:
    """Exponents in n, M, d and N beside those of the operation counts at the same sizes."""
    sizes: dict[str, Sequence[int]] = {
        "n": (1024, 2048, 4096),
        "M": (256, 512, 1024),
        "d": (15, 31, 63),
        "keys": (8, 16, 32),
    }
    paths: dict[str, tuple[Callable[[Features], Callable[[], Any]], dict[str, Callable[[float], float]]]] = {
        "features": (
            _features_of,
            {
                "n": lambda n: feature_flop(n, 256, D, KEYS),
                "M": lambda M: feature_flop(1024, M, D, KEYS),
                "d": lambda d: feature_flop(1024, 256, d, KEYS),
                "keys": lambda keys: feature_flop(1024, 256, D, keys),
            },
        ),
        "Gram": (_updates_of, {"n": lambda n: n**2, "M": lambda M: M, "d": lambda d: d + 1}),
        "solve": (_solve_of, {"n": lambda n: n**3}),
        # Per pair of keys an inner product of 2 D operations and a closed form of 21.
        "exact kernel": (
            _kernel_of,
            {"n": lambda n: n**2, "keys": lambda keys: keys**2, "d": lambda d: 2 * (d + 1) + 21},
        ),
    }
    rows = []
    for path, (prepare, counts) in paths.items():
        for knob, count in counts.items():
            values = sizes[knob] if (path, knob) != ("exact kernel", "n") else (512, 1024, 2048)
            theory = exponent(values, [count(value) for value in values])
            name = f"rfa growth of {path} in {'N' if knob == 'keys' else knob}"
            call = lambda value, knob=knob, prepare=prepare: prepare(_problem(**{knob: value}))  # noqa: E731
            rows.append(growth(name, values, call, theory, detail="else n=1024, M=256, d=N=16", repeats=3))
    return rows


def run() -> list[Row]:
    """All rows."""
    X, y = Task("key_power", p=2, d=D, n_keys=KEYS).sample(N + N_TEST, seed=0)
    seed = RandomFeatureAttention(1, random_state=0).fit(X[:2], y[:2]).seed_
    heads = AttentionFeatures(HEADS, D, seed, mean_matrix(None, D))
    return [*_fit_predict(X, y[:N], heads), *_rates(X, heads), _few_keys(), _memory(X, y[:N]), _figures(), *_growth()]


if __name__ == "__main__":
    for row in run():
        print(f"{row.name}: {row.text} {row.unit} (target {row.goal or 'none'}; {row.detail})")
