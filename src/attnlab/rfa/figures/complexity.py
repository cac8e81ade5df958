"""Theory alone: how the complexity of correlation targets grows with the dimension, with and without a bias."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most, between
from attnlab.common.drawing import COLORS, line, panels, style
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.statistics import deterministic
from attnlab.rfa.figures.curves import title
from attnlab.rfa.figures.panels import value_ticks
from attnlab.rfa.task import Task
from attnlab.rfa.theory import complexity, complexity_approx, complexity_exact

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

EPS = 0.25


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Complexities of <x_0,x_i>^q <b,x_i> at one dimension."""
    task = Task("corr_power", q=params["q"], d=params["d"], n_keys=params["n_keys"])
    return {
        "exact": complexity_exact(task).value,
        "closed": complexity(task).value,
        "mlp": complexity_exact(task, "rfmlp").value,
        "approx": complexity_approx(task, "rfa", eps=EPS).value,
        "biased": complexity_approx(task, "brfa", eps=EPS).value,
        **{f"growth_{model}": _with_keys(params["d"], params["n_keys"], model) for model in ("rfa", "rfmlp")},
    }


def _with_keys(d: int, n_keys: int, model: str) -> float:
    """How much the complexity of a quadratic key average grows from a quarter of the keys to four times as many."""
    few, many = (Task("key_power", p=2, d=d, n_keys=N) for N in (n_keys // 4, 4 * n_keys))
    return float(complexity_exact(many, model) / complexity_exact(few, model))


def draw(records: Records) -> Canvas:
    """B against d, one panel per power."""
    curves = {
        "mlp": ("RFMLP, exact", "-"),
        "closed": ("RFA, closed form", ":"),
        "exact": ("RFA, exact", "-"),
        "approx": (f"RFA, within {EPS:g}", "--"),
        "biased": (f"BRFA, within {EPS:g}", "--"),
    }
    powers = records.values("q")
    with style():
        canvas, grid = panels(1, len(powers), width=3.3, height=2.9)
        for axes, q in zip(grid.flat, powers, strict=True):
            for i, (column, (label, dashes)) in enumerate(curves.items()):
                curve = records.curve("d", column, q=q)
                line(axes, curve.x, curve.mean, color=COLORS[i], linestyle=dashes, label=label)
            axes.set(xscale="log", yscale="log", xlabel="dimension $d$", title=title(f"f2_q{q}"))
            value_ticks(axes, records.values("d"))
        grid[0, 0].set_ylabel("complexity $B$")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside lower center", ncols=5)
    return canvas


def _growth(records: Records) -> float:
    """Largest relative departure of B(2d)/B(d) from 2^q for d >= 32."""
    worst = 0.0
    for q in records.values("q"):
        exact = {row["d"]: row["exact"] for row in records.where(q=q)}
        worst = max(worst, *(abs(exact[2 * d] / exact[d] / 2**q - 1) for d in exact if d >= 32 and 2 * d in exact))
    return worst


def _growth_with_d(records: Records) -> float:
    """Cost of approximation with a bias at q = 1: d = 256 over d = 16."""
    return records.mean("biased", q=1, d=256) / records.mean("biased", q=1, d=16)


def _growth_with_keys(records: Records) -> float:
    """Growth of RFMLP's complexity from N = 4 to N = 64 over that of RFA's."""
    return records.mean("growth_rfmlp", q=1, d=16) / records.mean("growth_rfa", q=1, d=16)


EXACT = "closed forms and quadrature"

COMPLEXITY = Figure(
    name="rfa.complexity",
    title="Complexity of correlation targets against the dimension",
    paper="arXiv:2307.11353, theorems on RFA and biased RFA",
    shows="Without a bias the complexity of the q-th power grows as d^q; with it, the cost of a good approximation "
    "does not grow.",
    scales={scale: [Grid({"q": [1, 2, 3], "d": [16, 32, 64, 128, 256], "n_keys": 16})] for scale in ("quick", "paper")},
    run=run,
    draw=draw,
    independent_of=("n_keys: | RFA", "n_keys: | BRFA"),
    claims=(
        Claim(
            id="rfa.complexity-growth",
            says="RFA's complexity of <x_0,x_i>^q<b,x_i> doubles q times when d doubles",
            source="arXiv:2307.11353, examples (|S|_F^{2q} = d^q)",
            statistic=deterministic(_growth, why=EXACT),
            holds=at_most(0.05),
            because="largest relative departure from 2^q for d >= 32; finite-d corrections are of order q^2/d",
        ),
        Claim(
            id="rfa.complexity-free",
            says=(
                "With a bias the cost of approximating the correlation does not grow with d (q = 1, d = 256 over d = "
                "16)"
            ),
            source="arXiv:2307.11353, abstract",
            statistic=deterministic(_growth_with_d, why=EXACT),
            holds=between(0.5, 1.1),
            because="0.90 computed independently",
        ),
        Claim(
            id="rfa.complexity-keys",
            says=(
                "RFMLP's complexity of quadratic key averages grows with N, RFA's does not (N = 64 over N = 4, as a "
                "ratio)"
            ),
            source="arXiv:2307.11353, abstract and examples ((N+2)^2/N against a constant)",
            statistic=deterministic(_growth_with_keys, why=EXACT),
            holds=at_least(3.8),
            because="half of what (N+2)^2/N gives, 7.6",
        ),
    ),
)
