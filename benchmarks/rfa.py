"""Random-feature attention: fit and predict against the obvious pipeline, the share of BLAS's rate, memory, figures."""

from __future__ import annotations

import numpy as np

from attnlab.rfa import RandomFeatureAttention, Task, kernel
from attnlab.rfa.backend import Blas, Features
from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import AttentionFeatures
from attnlab.rfa.figures import FIGURES
from attnlab.rfa.solvers.ridge import gram
from benchmarks.baselines import rfa as baseline
from benchmarks.harness import Row, gemm_rate, measure, peak_memory, speed_up

N, N_TEST, HEADS, D, KEYS, RIDGE = 4096, 1000, 1000, 16, 16, 1e-6
SETTING = f"n={N}, M={HEADS}, d=N={D}"


def _fit_predict(X: np.ndarray, y: np.ndarray, heads: AttentionFeatures) -> list[Row]:
    W = np.concatenate([heads.heads(i) for i in range(len(heads.sizes))])
    train, test = X[:N], X[N:]

    def ours() -> np.ndarray:
        return RandomFeatureAttention(HEADS, random_state=0).fit(train, y).predict(test)

    def alternative() -> np.ndarray:
        return baseline.fit_predict(train, y, test, W, RIDGE)

    fast = speed_up(
        "rfa fit + predict", ours, alternative, target=">= 3", detail=f"{SETTING}, n_test={N_TEST}", repeats=3
    )
    gap = float(np.max(np.abs(ours() - alternative())) / np.std(y))
    return [fast, Row("rfa prediction gap to Ridge", gap, "of std(y)", "<= 1e-4", "largest difference")]


def _rates(X: np.ndarray, heads: AttentionFeatures) -> list[Row]:
    device = Blas("float32")
    features = Features(heads, device.put(X[:N]), device)
    width = features.shape[1]

    def all_features() -> None:
        for _ in features:
            pass

    whole = measure(lambda: gram(features, N, device), 3).median
    alone = measure(all_features, 3).median
    block = next(iter(features))
    G = device.zeros((N, N))
    rank_update = measure(lambda: device.add_gram(G, block), 3).median * width / block.shape[1]
    flop = N * N * width + 2 * N * HEADS * (D + 1) * (D + 1 + 2 * KEYS)
    exact = measure(lambda: kernel(X[:N], dtype="float32"), 2).median
    detail = f"{SETTING}; whole {whole:.2f} s, features {alone:.2f} s, Gram {rank_update:.2f} s"
    return [
        Row("rfa Gram + features, share of sgemm", flop / whole / gemm_rate(), "", ">= 0.6", detail),
        Row("rfa features over Gram", alone / rank_update, "", "<= 0.15", detail),
        Row("rfa features + Gram over exact kernel", whole / exact, "x", ">= 1", f"{SETTING}; kernel {exact:.2f} s"),
    ]


def _memory(X: np.ndarray, y: np.ndarray) -> Row:
    model = RandomFeatureAttention(20_000, solver="streamed", random_state=0)
    peak = peak_memory(lambda: model.fit(X[:N], y))
    return Row("rfa streamed peak memory", peak / 2**30, "GiB", "< 1.5", f"n={N}, M=20000, 340000 features")


def _figures() -> Row:
    cells = [cell for figure in FIGURES[:2] for cell in figure.cells("paper") if cell.params["seed"] == 0]
    seconds = sum(measure(cell, 1).median for cell in cells)
    text = f"{len(cells)} cells of one seed measured, times five seeds"
    return Row("rfa E1 + E2 at paper scale", 5 * seconds / 60, "min", "< 10", text)


def run() -> list[Row]:
    """All rows."""
    X, y = Task("key_power", p=2, d=D, n_keys=KEYS).sample(N + N_TEST, seed=0)
    seed = RandomFeatureAttention(1, random_state=0).fit(X[:2], y[:2]).seed_
    heads = AttentionFeatures(HEADS, D, seed, mean_matrix(None, D))
    return [*_fit_predict(X, y[:N], heads), *_rates(X, heads), _memory(X, y[:N]), _figures()]


if __name__ == "__main__":
    for row in run():
        print(f"{row.name}: {row.value:.3g} {row.unit} (target {row.target}; {row.detail})")
