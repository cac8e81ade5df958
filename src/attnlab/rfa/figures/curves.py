"""One cell of every experiment: a public learner, many targets, many sample sizes, and theory for the same settings."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.prediction import Prediction
from attnlab.common.seeds import branch
from attnlab.rfa.learners import PatchRandomFeatures, RandomFeatureAttention, RandomFeatureMLP
from attnlab.rfa.learners.base import KernelMachine
from attnlab.rfa.task import Task
from attnlab.rfa.theory import learning_curve, sampled_learning_curve

SMALLEST = 64
# Zero heads stand for infinitely many: the exact kernel.
INFINITE = 0

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


def title(name: str) -> str:
    """The target in LaTeX."""
    return Task(**TARGETS[name]).function.label


def doubling(n_max: int) -> list[int]:
    """64, 128, ... up to n_max."""
    sizes = [SMALLEST]
    while 2 * sizes[-1] <= n_max:
        sizes.append(2 * sizes[-1])
    return sizes


def planted(names: Sequence[str], params: Mapping[str, Any], seed: np.random.SeedSequence) -> dict[str, Task]:
    """The targets of one replicate, with one planted b and O."""
    return {
        name: Task(d=params["d"], n_keys=params["n_keys"], seed=branch(seed, "cell"), **TARGETS[name]) for name in names
    }


def learner_seed(seed: np.random.SeedSequence) -> int:
    """The random_state of a cell's learner; cells that share their data share their first heads, too."""
    return int(branch(seed, "cell learner").generate_state(1)[0])


def learner(model: str, params: Mapping[str, Any], seed: np.random.SeedSequence) -> KernelMachine:
    """The models compared throughout, with equal numbers of trained parameters."""
    heads, state = params["heads"], {"random_state": learner_seed(seed)}
    if model in ("rfa", "brfa"):
        return RandomFeatureAttention(heads, bias="identity" if model == "brfa" else None, **state)
    kind = {"rfmlp": RandomFeatureMLP, "patch": PatchRandomFeatures}[model]
    return kind(heads * (params["d"] + 1), **state)


def examples(
    task: Task, params: Mapping[str, Any], n: int, seed: np.random.SeedSequence
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens to train on and to test on; every target of the cell sees the same ones, and so do cells that share them.

    Cells that differ in the model alone follow one another: the tokens of the last one are kept.
    """
    law = replace(task, target="key_power", noise_std=0.0, seed=0)
    return _examples(law, n, params["n_test"], (seed.entropy, seed.spawn_key))


@functools.lru_cache(maxsize=1)
def _examples(law: Task, n: int, n_test: int, state: tuple[Any, tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
    seed = np.random.SeedSequence(state[0], spawn_key=state[1])
    X, X_test = law.sample(n, branch(seed, "train"))[0], law.sample(n_test, branch(seed, "test"))[0]
    for tokens in (X, X_test):
        tokens.flags.writeable = False
    return X, X_test


def measure(
    fitted: KernelMachine,
    tasks: Mapping[str, Task],
    params: Mapping[str, Any],
    sizes: Sequence[int],
    seed: np.random.SeedSequence,
) -> list[dict[str, Any]]:
    """Test error over Var(f*) for every target and sample size, from one Gram matrix."""
    X, X_test = examples(next(iter(tasks.values())), params, max(sizes), seed)
    Y, Y_test = (np.stack([task.truth(x) for task in tasks.values()], axis=1) for x in (X, X_test))
    predictions = fitted.predict_path(X, Y, X_test, sizes)
    return [
        {
            "target": name,
            "n": int(n),
            "error": float(np.mean((f[:, i] - Y_test[:, i]) ** 2) / task.variance),
            "converged": True,
        }
        for n, f in zip(sizes, predictions, strict=True)
        for i, (name, task) in enumerate(tasks.items())
    ]


def prediction(task: Task, n: ArrayLike, model: str, heads: ArrayLike) -> Prediction:
    """The learning curve of that many heads, or as many parameters of units; zero heads are infinitely many.

    The modes that are not listed are among the features: so simulations of few units behave. Replicates differ in the
    seed alone, on which no prediction depends, and a figure is drawn again while it is computed: values are kept.
    """
    sizes, units = (tuple(x) if np.ndim(x) else float(x) for x in (np.asarray(n), np.asarray(heads)))
    return _prediction(replace(task, seed=0), sizes, model, units)


@functools.lru_cache(maxsize=1024)
def _prediction(task: Task, n: ArrayLike, model: str, heads: ArrayLike) -> Prediction:
    units = np.where(np.asarray(heads) == INFINITE, np.inf, np.asarray(heads, dtype=float))
    units = units * (task.d + 1) if model == "rfmlp" else units
    if predictable(task, model):
        n_heads, width = (None, units) if model == "rfmlp" else (units, None)
        return learning_curve(task, n, model, n_heads=n_heads, width=width, tail="features")
    return sampled_learning_curve(task, n, model, units=units)


def with_theory(rows: list[dict[str, Any]], tasks: Mapping[str, Task], model: str, heads: int) -> list[dict[str, Any]]:
    """The rows with the prediction for the heads that were fitted, ``theory``, where there is one."""
    for name, task in tasks.items():
        mine = [row for row in rows if row["target"] == name]
        if predictable(task, model):
            found = prediction(task, [row["n"] for row in mine], model, heads)
            for row, value, converged in zip(mine, found.value, found.converged, strict=True):
                row |= {"theory": float(value), "theory_converged": bool(converged)}
    return rows


def predictable(task: Task, model: str) -> bool:
    """Whether the spectrum of a model and the energies of a target are known."""
    try:
        return model in ("rfa", "rfmlp") and bool(task.energies)
    except ValueError:
        return False
