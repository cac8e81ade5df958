"""Write ``layers.json``: ``python -m attnlab.mha.explorer.precompute``, about a minute on one core.

The tests compute a sample of it again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.common.seeds import stream
from attnlab.mha.alignment import align
from attnlab.mha.engine.race import random_starts
from attnlab.mha.figures.instances import judged, planted, race
from attnlab.mha.layer import patterns
from attnlab.mha.theory import examples_needed

LAYER = {"d": 8, "k": 6}
HEADS = (1, 2, 3)
STRENGTHS = (1.0, 4.0, 12.0)
EXAMPLES = (3, 4, 6, 8, 10, 12, 16, 24, 40)
SEED = 0


def layer(m: int, rho: float) -> dict[str, Any]:
    """A planted layer, a random start, and the fits to growing numbers of examples, as attention weights of one input.

    All fits see the same planted layer; the recovered heads are shown in the planted order.
    """
    task, _, start = planted(np.random.SeedSequence(SEED), 1, {"n_heads": m, "rho": rho, **LAYER})
    tokens = task.tokens_of(1, start)
    guess = next(random_starts(m, task.d, stream(start, "learner", "mha")))
    enough = [n for n in EXAMPLES if n >= examples_needed(task)]
    return {
        "m": m,
        "rho": rho,
        "planted": _weights(tokens, task.Theta),
        "start": _weights(tokens, guess),
        "fits": [fit(m, rho, n) for n in enough],
    }


def fit(m: int, rho: float, n: int) -> dict[str, Any]:
    """The race on n examples: weights of the fitted heads, error of the worst attention matrix, success."""
    task, (X, y), start = planted(np.random.SeedSequence(SEED), n, {"n_heads": m, "rho": rho, **LAYER})
    learner = race(m, start).fit(X, y)
    order = list(align(learner.theta_, learner.w_, task.Theta, task.W, tokens=task.k).permutation)
    verdict = judged(task, learner)
    found = _weights(task.tokens_of(1, start), learner.theta_[order])
    return {"n": n, "found": found, "error": verdict["theta_error"], "recovered": verdict["success"]}


def _weights(tokens: np.ndarray, theta: np.ndarray) -> list[list[list[float]]]:
    return patterns(tokens, theta)[0].round(7).tolist()


if __name__ == "__main__":
    tables = {**LAYER, "layers": [layer(m, rho) for m in HEADS for rho in STRENGTHS]}
    Path(__file__).with_name("layers.json").write_text(json.dumps(tables, separators=(",", ":")) + "\n")
