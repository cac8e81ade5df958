"""Spectra, energies and complexities of random-feature attention, computed when the page is built."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from attnlab.rfa import theory
from attnlab.rfa.figures.curves import TARGETS
from attnlab.rfa.task import Task
from attnlab.rfa.theory.complexity import modes

DIMENSIONS = (8, 16, 32, 64)
KEYS = (2, 4, 8, 16, 32, 64)
MODELS = ("rfa", "rfmlp")
EPS = 0.25  # relative squared error of the approximations in the table of complexities
_POWER = {1: "", 2: "²", 3: "³", 4: "⁴"}
LABELS = {
    **{f"f1_p{p}": f"⟨b, xᵢ⟩{_POWER[p]}" for p in (1, 2, 3, 4)},
    **{f"x0_p{p}": f"⟨b, x₀⟩{_POWER[p]}" for p in (1, 2)},
    **{f"f2_q{q}": f"⟨x₀, xᵢ⟩{_POWER[q]} ⟨b, xᵢ⟩" for q in (1, 2, 3, 4)},
    **{f"corr_p{p}": f"⟨x₀, xᵢ⟩{_POWER[p]}" for p in (2, 3)},
    "rot_q2": "⟨x₀, O xᵢ⟩² ⟨b, xᵢ⟩",
    "softmax_g1": "softmaxᵢ(⟨x₀, xᵢ⟩) ⟨b, xᵢ⟩",
    "softmax_g4": "softmaxᵢ(4⟨x₀, xᵢ⟩) ⟨b, xᵢ⟩",
}


def tables() -> dict[str, Any]:
    """Spectra of the kernels, energies of the targets and complexities, for every dimension and number of keys."""
    return {
        "d": DIMENSIONS,
        "N": KEYS,
        "targets": [_target(name) for name in LABELS],
        "spectra": {d: {N: {m: _spectrum(d, N, m) for m in MODELS} for N in KEYS} for d in DIMENSIONS},
        "modes": {
            name: {d: {N: _modes(name, d, N) for N in KEYS} for d in DIMENSIONS}
            for name in LABELS
            # A softmax over the keys is no average of a function of one key: it has no modes.
            if TARGETS[name]["target"] != "softmax"
        },
    }


def _target(name: str) -> dict[str, str]:
    arguments = ", ".join(f"{key}={json.dumps(value)}" for key, value in TARGETS[name].items())
    return {"name": name, "label": LABELS[name], "python": arguments}


def _spectrum(d: int, n_keys: int, model: str) -> dict[str, Any]:
    bulk = theory.spectrum(d, n_keys, model)
    return {
        "parts": bulk.parts.tolist(),
        "counts": bulk.counts.tolist(),
        "multiplicity": bulk.multiplicity.tolist(),
        "tail": bulk.tail,
        "trace": bulk.trace,
    }


def _modes(name: str, d: int, n_keys: int) -> dict[str, Any]:
    task = Task(d=d, n_keys=n_keys, **TARGETS[name])
    of_model = {}
    for model in MODELS:
        energy, parts = modes(task, model)
        of_model[model] = {"energy": energy.tolist(), "parts": parts.tolist()}
    return {**of_model, "variance": task.variance, "complexity": _complexity(task)}


def _complexity(task: Task) -> dict[str, float | None]:
    power = task.function.correlation_power
    return {
        "rfa": theory.complexity_exact(task).value,
        "rfmlp": theory.complexity_exact(task, "rfmlp").value,
        "approx": theory.complexity_approx(task, eps=EPS).value,
        "biased": None if power is None else _biased(power, task.d),
    }


@cache
def _biased(power: int, d: int) -> float | None:
    """The complexity with a bias: of a target it depends on the power of the correlation alone, and not on the keys."""
    task = Task(target="corr_power", q=power, d=d, n_keys=KEYS[0])
    cost = float(theory.complexity_approx(task, "brfa", eps=EPS).value)
    # JSON has no infinity.
    return cost if cost < float("inf") else None
