"""One cell of every experiment: a random feature map, many targets, many sample sizes, one Gram matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from attnlab.common.seeds import generator, spawn
from attnlab.rfa.backend import Blas, Features
from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import AttentionFeatures, FeatureMap, MLPFeatures, PatchFeatures
from attnlab.rfa.scores import check_score
from attnlab.rfa.solvers.ridge import nested_solve
from attnlab.rfa.task import Task

RIDGE = 1e-6
SMALLEST = 64

# Short names of the targets, as on the axes; the rest of a Task is fixed by the cell.
TARGETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        **{f"f1_p{p}": {"target": "key_power", "p": p} for p in (1, 2, 3, 4)},
        **{f"f2_q{q}": {"target": "corr_power", "q": q} for q in (1, 2, 3, 4)},
        **{f"x0_p{p}": {"target": "query_power", "p": p} for p in (1, 2)},
        **{f"corr_p{p}": {"target": "correlation", "p": p} for p in (2, 3)},
        "rot_q2": {"target": "rotated", "q": 2},
        "softmax_g1": {"target": "softmax", "sharpness": 1.0},
        "softmax_g4": {"target": "softmax", "sharpness": 4.0},
    }
)
_POWER = {1: "", 2: "^2", 3: "^3", 4: "^4"}
TITLES: Mapping[str, str] = MappingProxyType(
    {
        **{f"f1_p{p}": rf"$\langle b, x_i\rangle{_POWER[p]}$" for p in (1, 2, 3, 4)},
        **{f"f2_q{q}": rf"$\langle x_0, x_i\rangle{_POWER[q]}\langle b, x_i\rangle$" for q in (1, 2, 3, 4)},
        **{f"x0_p{p}": rf"$\langle b, x_0\rangle{_POWER[p]}$" for p in (1, 2)},
        **{f"corr_p{p}": rf"$\langle x_0, x_i\rangle{_POWER[p]}$" for p in (2, 3)},
        "rot_q2": r"$\langle x_0, O x_i\rangle^2\langle b, x_i\rangle$",
        "softmax_g1": r"softmax$_i(\langle x_0, x_i\rangle)\,\langle b, x_i\rangle$",
        "softmax_g4": r"softmax$_i(4\langle x_0, x_i\rangle)\,\langle b, x_i\rangle$",
    }
)


def doubling(n_max: int) -> list[int]:
    """64, 128, ... up to n_max."""
    sizes = [SMALLEST]
    while 2 * sizes[-1] <= n_max:
        sizes.append(2 * sizes[-1])
    return sizes


def planted(names: Sequence[str], d: int, n_keys: int, seed: np.random.SeedSequence) -> dict[str, Task]:
    """The targets of one replicate, with one planted b and O."""
    planted_seed = int(spawn(seed, 3)[0].generate_state(1)[0])
    return {name: Task(d=d, n_keys=n_keys, seed=planted_seed, **TARGETS[name]) for name in names}


def attention(
    heads: int,
    d: int,
    seed: int,
    *,
    bias: str | np.ndarray | None = None,
    bias_scale: float = 1.0,
    score: str = "relu",
) -> AttentionFeatures:
    """An attention map with the given mean of W and score."""
    score, normalize = check_score(score, "mean")
    return AttentionFeatures(heads, d, seed, mean_matrix(bias, d, bias_scale), score=score, normalize=normalize)


def feature_map(model: str, heads: int, d: int, n_keys: int, seed: int) -> FeatureMap:
    """The models compared throughout, with equal numbers of trained parameters."""
    makers: dict[str, Callable[[], FeatureMap]] = {
        "rfa": lambda: attention(heads, d, seed),
        "brfa": lambda: attention(heads, d, seed, bias="identity"),
        "rfmlp": lambda: MLPFeatures(heads * (d + 1), d, n_keys + 1, seed),
        "patch": lambda: PatchFeatures(heads * (d + 1), d, seed),
    }
    return makers[model]()


def weight_seed(seed: np.random.SeedSequence) -> int:
    """Seed of the frozen weights of a cell."""
    return int(spawn(seed, 3)[1].generate_state(1)[0])


def examples(task: Task, n: int, seed: np.random.SeedSequence) -> np.ndarray:
    """Tokens of a cell; every target of the cell sees the same ones."""
    return task.sample(n, generator(spawn(seed, 3)[2]))[0]


def grams(maps: FeatureMap, X: np.ndarray, n_train: int) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrix of the first n_train examples (lower triangle) and the block of the others against them."""
    device = Blas("float32")
    train, test = (Features(maps, device.put(x), device, reuse=True) for x in (X[:n_train], X[n_train:]))
    G, C = device.zeros((n_train, n_train)), device.zeros((len(X) - n_train, n_train))
    for A, B in zip(train, test, strict=True):
        G = device.add_gram(G, A)
        C = device.add_product(C, B, A.T)
    return G, C


def relative_errors(
    G: np.ndarray, C: np.ndarray, tasks: Mapping[str, Task], X: np.ndarray, sizes: Sequence[int], ridge: float = RIDGE
) -> list[dict[str, Any]]:
    """Test error over Var(f*), for every target and sample size."""
    n_train = len(G)
    Y = np.stack([task.truth(X) for task in tasks.values()], axis=1)
    rows = []
    for n, alpha in zip(sizes, nested_solve(G, Y[:n_train], sizes, [n * ridge for n in sizes]), strict=True):
        errors = np.mean((C[:, :n].astype(np.float64) @ alpha - Y[n_train:]) ** 2, axis=0)
        rows += [
            {"target": name, "n": int(n), "error": float(e / task.variance)}
            for (name, task), e in zip(tasks.items(), errors, strict=True)
        ]
    return rows


def learning_curves(
    names: Sequence[str], model: str, p: Mapping[str, Any], seed: np.random.SeedSequence
) -> list[dict[str, Any]]:
    """Errors of one model on all targets along the nested sample sizes, from one Gram matrix."""
    tasks = planted(names, p["d"], p["n_keys"], seed)
    X = examples(next(iter(tasks.values())), p["n_max"] + p["n_test"], seed)
    G, C = grams(feature_map(model, p["heads"], p["d"], p["n_keys"], weight_seed(seed)), X, p["n_max"])
    return relative_errors(G, C, tasks, X, doubling(p["n_max"]))
