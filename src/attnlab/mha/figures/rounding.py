"""The cryptographic family: layers of polynomially many heads that compute a rounded inner product."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from attnlab.common.claim import Claim, at_most
from attnlab.common.figure import Canvas, Figure, Grid, Params
from attnlab.common.records import Records
from attnlab.common.seeds import spawn
from attnlab.common.statistics import deterministic, each, largest, mean, of
from attnlab.mha.figures.instances import PAPER
from attnlab.mha.hard import RoundingInstance, hard_instance

_SHOWN = 200


def run(params: Params, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Outputs of the layer where its gate is open, to be held against the staircase of the secret inner product."""
    secret, examples = (int(s.generate_state(1)[0]) for s in spawn(seed, 2))
    instance = hard_instance("lwr", q=params["q"], p=params["p"], length=params["length"], seed=secret)
    assert isinstance(instance, RoundingInstance)
    X, y = instance.task.sample(params["n"], seed=examples)
    side = (X[:, 0] - X[:, 1]) @ instance.M
    opened = X[:, 0, 0] * X[:, 1, 0] < 0
    steps = np.sum(y[opened, 0] * side[opened], axis=1) / np.sum(side[opened] ** 2, axis=1)
    inner_products = instance.inner_products(X)[opened]
    # The last head balances the sum of all projections; its share is taken out again to show the bare stairs.
    balance = np.sum(instance.task.W[-1] * instance.M) / np.sum(instance.M**2)
    steps -= balance * expit(instance.steepness * inner_products)
    return {
        "error": float(np.abs(y - instance.closed_form(X)).max()),
        "heads": instance.task.n_heads,
        "inner_products": inner_products[:_SHOWN],
        "steps": steps[:_SHOWN],
    }


def draw(records: Records) -> Canvas:
    """Label against the secret inner product: theory as stairs, the layer's outputs as points."""
    from attnlab.common.drawing import COLORS, panels

    settings = sorted({(r["q"], r["p"], r["length"]) for r in records})
    canvas, axes = panels(1, len(settings), width=4.2)
    for ax, (q, p, length) in zip(axes[0], settings, strict=True):
        row = next(iter(records.where(q=q, p=p, length=length)))
        u = np.asarray(row["inner_products"])
        whole = np.arange(int(u.max()) + 1)
        ax.step(whole, (p * (whole % q) // q) / (p - 1), where="mid", color="0.4", label="⌊p (⟨a, s⟩ mod q) / q⌋")
        ax.plot(u, row["steps"], ".", color=COLORS[0], label="outputs of the layer")
        ax.set(
            xlabel="secret inner product ⟨a, s⟩",
            ylabel="label, in units of p − 1",
            title=f"q = {q}, p = {p}, length {length}: {row['heads']} heads",
        )
    canvas.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return canvas


def _heads(records: Records) -> float:
    """Heads over length times q^2 + 1, the largest ratio."""
    return float((records.column("heads") / (records.column("length") * records.column("q") ** 2 + 1)).max())


ROUNDING = Figure(
    name="mha.rounding",
    title="Layers that round a secret inner product",
    paper=PAPER,
    shows=(
        "A layer with one head for each jump computes learning with rounding: to learn it in polynomial time would "
        "break a cryptographic assumption."
    ),
    scales={
        "quick": [Grid({"q": [4, 8], "p": 4, "length": 2, "n": 2000}, seeds=10)],
        "paper": [Grid({"q": [4, 8, 16], "p": 4, "length": [2, 3], "n": 10000}, seeds=20)],
    },
    run=run,
    draw=draw,
    shape=("q", "length"),
    claims=(
        Claim(
            id="mha.hard.rounding",
            says="under a cryptographic assumption dependence on m is needed: layers compute learning with rounding",
            source=f"{PAPER}, lower bound; family derived here",
            statistic=largest(each(mean(of("error")), "q", "length")),
            holds=at_most(1e-6),
            because="steps of steepness 40 are sharp up to exp(-20) = 2e-9, times outputs of order ten",
        ),
        Claim(
            id="mha.hard.rounding.heads",
            says="polynomially many heads are enough for it: at most one for each jump, length times q^2, and one more",
            source="derived here",
            statistic=deterministic(_heads, why="a count that the construction bounds for every secret"),
            holds=at_most(1.0),
            because="the inner product is below length q^2, and the staircase jumps at integers",
        ),
    ),
)
