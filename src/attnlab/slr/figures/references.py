"""What is there to gain: null, linear, erf attention at the planted pair, and Bayes, as d and L grow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most
from attnlab.common.drawing import COLORS, line, panels, points
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records, Row
from attnlab.common.seeds import spawn
from attnlab.common.statistics import MOST, of, ratio_of_means, slope
from attnlab.slr import theory
from attnlab.slr.figures.cells import task_of
from attnlab.slr.learners.predictors import BayesPredictor, LinearPredictor, NullPredictor, OraclePredictor
from attnlab.slr.learners.tokens import TokenRegressor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

LAW = {"gamma": 2**-0.5}
FLOATS = 4_000_000  # entries of one batch of test sequences


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Test risks of the reference predictors; the linear one is fitted on request, to 20 samples per unknown."""
    planted, train, test = spawn(seed, 3)
    task = task_of(params, planted)
    unknowns = task.d * task.L
    predictors: dict[str, TokenRegressor] = {
        "null": NullPredictor(),
        "oracle": OraclePredictor(task),
        "bayes": BayesPredictor(task),
    }
    X, y = task.sample(20 * unknowns if params["linear"] else 1, train)
    if params["linear"]:
        predictors["least_squares"] = LinearPredictor()
    fitted = {name: predictor.fit(X, y) for name, predictor in predictors.items()}
    losses: dict[str, list[np.ndarray]] = {name: [] for name in fitted}
    batch = max(1, min(params["n_test"], FLOATS // unknowns))
    for piece in spawn(test, math.ceil(params["n_test"] / batch)):
        X, y = task.sample(batch, piece)
        for name, predictor in fitted.items():
            losses[name].append((predictor.predict(X) - y) ** 2)
    return {name: float(np.mean(np.concatenate(values))) for name, values in losses.items()}


def oracle_excess(row: Row) -> float | None:
    """Excess risk of the oracle at d >= 100."""
    return float(row["oracle"]) if row["d"] >= 100 else None


def draw(records: Records) -> Canvas:
    """Excess risk against d at one L, and against L at one d."""
    canvas, axes = panels(1, 2, width=4.8, height=3.6)
    _draw_dimension(axes[0, 0], records.where(linear=False))
    _draw_length(axes[0, 1], records.where(linear=True))
    return canvas


def _draw_dimension(axes: Axes, records: Records) -> None:
    row = next(iter(records))
    seen = records.curve("d", "bayes")
    tasks = {int(d): task_of(row, d=int(d)) for d in np.unique(np.geomspace(min(10, seen.x[0]), seen.x[-1] * 4, 40))}
    small = [d for d in tasks if d <= 45]
    best = [theory.best_temperature(task).detail["risk"] for task in tasks.values()]
    rule = [theory.oracle_risk(task, lam=(d * task.L) ** -0.25) for d, task in tasks.items()]
    bayes = [theory.bayes_risk(tasks[d], n_draws=20_000) for d in small]
    task = task_of(row)
    axes.axhline(float(theory.null_risk(task)), color=COLORS[7], linestyle=":", label="null", gid="theory")
    axes.axhline(float(theory.linear_risk(task)), color=COLORS[1], label="linear", gid="theory")
    line(axes, list(tasks), list(map(float, rule)), color=COLORS[0], label=r"$(k^*, v^*)$, $\lambda = (dL)^{-1/4}$")
    line(axes, list(tasks), best, color=COLORS[0], linestyle="--", label=r"$(k^*, v^*)$, best $\lambda$")
    line(axes, small, list(map(float, bayes)), color=COLORS[2], label="Bayes")
    points(axes, records.curve("d", "oracle"), color=COLORS[0])
    shown = seen.x <= 40
    axes.errorbar(seen.x[shown], seen.mean[shown], yerr=seen.sem[shown], fmt="s", capsize=2, color=COLORS[2])
    axes.set(xscale="log", yscale="log", xlabel=f"dimension $d$ (at $L = {task.L}$)", ylim=(2e-4, 1.5))
    axes.set(ylabel=r"excess risk $R - \epsilon^2$")
    axes.legend(loc="lower right")


def _draw_length(axes: Axes, records: Records) -> None:
    row = next(iter(records))
    lengths = [int(L) for L in records.values("L")]
    L = np.arange(min(lengths), max(lengths) + 11)
    axes.axhline(float(theory.null_risk(task_of(row))), color=COLORS[7], linestyle=":", label="null", gid="theory")
    risk = [float(theory.linear_risk(task_of(row, L=int(x)))) for x in L]
    line(axes, L, risk, color=COLORS[1], label="linear", gid="theory")
    points(axes, records.curve("L", "least_squares"), color=COLORS[1], fmt="^", label="least squares, $n = 20\\,dL$")
    points(axes, records.curve("L", "bayes"), color=COLORS[2], fmt="s", label="Bayes")
    axes.set(xscale="log", xlabel=f"length $L$ (at $d = {row['d']}$)", ylabel=r"excess risk $R - \epsilon^2$")
    axes.set_ylim(-0.02, 1.25 * float(theory.null_risk(task_of(row))))
    axes.set_xticks(lengths, [str(x) for x in lengths])
    axes.minorticks_off()
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 0.22))


REFERENCES = Figure(
    name="slr.references",
    title="Null, linear, attention and Bayes",
    paper="arXiv:2410.01537, section 3 (proposition 3, corollary 2)",
    shows="Linear regression cannot use the location and ends at the null risk; attention approaches the Bayes risk.",
    scales={
        "quick": [
            Grid({"d": [20, 40, 100, 400, 1600], "L": 10, **LAW, "n_test": 4000, "linear": False}, seeds=3),
            Grid({"d": 10, "L": [2, 4, 10, 20, 50], **LAW, "n_test": 10_000, "linear": True}, seeds=3),
        ],
        "paper": [
            Grid(
                {"d": [10, 20, 40, 100, 200, 400, 1600, 6400], "L": 10, **LAW, "n_test": 20_000, "linear": False},
                seeds=5,
            ),
            Grid({"d": 20, "L": [2, 3, 4, 6, 10, 20, 50], **LAW, "n_test": 50_000, "linear": True}, seeds=5),
        ],
    },
    run=run,
    draw=draw,
    independent_of=("d: 2 | null", "d: 2 | linear", "L: 1 | null", "n_test"),
    claims=(
        Claim(
            id="slr.linear",
            says="As L grows, the best linear predictor is no better than predicting zero",
            source="arXiv:2410.01537, proposition 3",
            statistic=ratio_of_means(*(of(name, linear=True, L=MOST) for name in ("least_squares", "null"))),
            holds=at_least(0.95),
            because="the exact ratio at L = 50 is 0.990; estimation from 20 samples per unknown can only raise it",
        ),
        Claim(
            id="slr.oracle",
            says="Erf attention at the planted pair is asymptotically Bayes optimal when L = o(d)",
            source="arXiv:2410.01537, corollary 2",
            statistic=slope(of(oracle_excess, linear=False), "d"),
            holds=at_most(-0.4),
            because="at lambda = (dL)^(-1/4) the exact excess falls like d^(-0.49); that of Bayes is below 1e-4 there",
        ),
    ),
    shape=("d", "L"),
)
