"""What each head attends to, planted and recovered, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.claim import Claim, at_most
from attnlab.common.figure import Canvas, Figure, Grid, Params
from attnlab.common.records import Records, Row
from attnlab.common.statistics import mean, of
from attnlab.mha.alignment import align
from attnlab.mha.figures.instances import PAPER, planted
from attnlab.mha.layer import patterns
from attnlab.mha.learners.attention_learner import learn


def run(params: Params, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Learn a layer without being told the number of heads; compare patterns on one fresh example."""
    task, (X, y), start = planted(seed, params["n"], params)
    learner = learn(X, y, random_state=start)
    order = list(align(learner.theta_, learner.w_, task.Theta, task.W, tokens=task.k).permutation)
    example = task.tokens_of(1, start)
    true, found = patterns(example, task.Theta)[0], patterns(example, learner.theta_[order])[0]
    return {"true": true, "found": found, "difference": float(np.abs(true - found).max()), "heads": learner.n_heads_}


def draw(records: Records) -> Canvas:
    """Heat maps of the patterns of one example, and their difference."""
    from attnlab.common.drawing import panels

    row = next(iter(records))
    true, found = np.asarray(row["true"]), np.asarray(row["found"])
    m = len(true)
    canvas, axes = panels(3, m, width=2.3, height=2.1)
    for i in range(m):
        image = axes[0, i].imshow(true[i], vmin=0, vmax=1, cmap="viridis")
        axes[1, i].imshow(found[i], vmin=0, vmax=1, cmap="viridis")
        error = axes[2, i].imshow(np.abs(true[i] - found[i]), cmap="magma")
        canvas.colorbar(error, ax=axes[2, i], shrink=0.8)
        axes[0, i].set_title(f"head {i + 1}")
        axes[2, i].set_xlabel("key token")
    for ax, text in zip(axes[:, 0], ("planted", "recovered", "difference"), strict=True):
        ax.set_ylabel(f"{text}\nquery token")
    for ax in axes.flat:
        ax.grid(False)
        ax.set(xticks=[], yticks=[])
    canvas.colorbar(image, ax=axes[:2, -1], label="attention weight", shrink=0.8)
    return canvas


def _difference(row: Row) -> float:
    """Largest difference of attention weights plus the error of the number of heads."""
    return float(row["difference"] + abs(row["heads"] - row["n_heads"]))


PATTERNS = Figure(
    name="mha.patterns",
    title="What the heads attend to, planted and recovered",
    paper=PAPER,
    shows=(
        "From 1000 examples mha.learn (Levenberg-Marquardt from several kinds of starts, ours) finds the number of "
        "heads and each head's attention pattern, exact to rounding."
    ),
    scales={
        "quick": [Grid({"d": 8, "k": 8, "n_heads": 3, "rho": 4.0, "n": 1000}, seeds=5)],
        "paper": [Grid({"d": 10, "k": 8, "n_heads": 4, "rho": 4.0, "n": 1000}, seeds=10)],
    },
    run=run,
    draw=draw,
    claims=(
        Claim(
            id="mha.patterns.exact",
            says="mha.learn (Levenberg-Marquardt) recovers the number of heads and their attention patterns exactly",
            source="derived here",
            statistic=mean(of(_difference)),
            holds=at_most(1e-6),
            because="rounding of an exact fit, far below any visible difference",
        ),
    ),
)
