"""What is there to gain: null, linear, erf attention at the planted pair, and Bayes, as d and L grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most
from attnlab.common.drawing import COLORS, line, panels, points
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records, Row
from attnlab.common.seeds import spawn
from attnlab.common.statistics import MOST, of, ratio_of_means, slope
from attnlab.slr import theory
from attnlab.slr.learners.predictors import BayesPredictor, LinearPredictor, NullPredictor, OraclePredictor
from attnlab.slr.learners.tokens import TokenRegressor
from attnlab.slr.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

FLOATS = 4_000_000  # entries of one batch of test sequences


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Test risks of the reference predictors; the linear one is fitted on request, to 20 samples per unknown."""
    planted, train, test = spawn(seed, 3)
    task = Task(params["d"], params["L"], seed=int(planted.generate_state(1)[0]))
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
    for piece in spawn(test, -(-params["n_test"] // batch)):
        X, y = task.sample(batch, piece)
        for name, predictor in fitted.items():
            losses[name].append((predictor.predict(X) - y) ** 2)
    return {name: float(np.mean(np.concatenate(values))) for name, values in losses.items()}


def oracle_excess(row: Row) -> float | None:
    """Excess risk of the oracle at d >= 100."""
    return float(row["oracle"]) if row["d"] >= 100 else None


def draw(records: Records) -> Canvas:
    """Excess risk against d at L = 10, and against L at d = 20."""
    canvas, axes = panels(1, 2, width=4.8, height=3.6)
    _draw_dimension(axes[0, 0], records.where(linear=False))
    _draw_length(axes[0, 1], records.where(linear=True))
    return canvas


def _draw_dimension(axes: Axes, records: Records) -> None:
    d = np.unique(np.geomspace(10, 6400, 40).astype(int))
    best = [theory.oracle_risk(d=int(x), L=10, lam=theory.best_temperature(d=int(x), L=10).value) for x in d]
    rule = [theory.oracle_risk(d=int(x), L=10, lam=float((x * 10) ** -0.25)) for x in d]
    bayes = [theory.bayes_risk(d=int(x), L=10, n_draws=20_000).value for x in d[d <= 45]]
    axes.axhline(theory.null_risk(), color=COLORS[7], linestyle=":", label="null")
    axes.axhline(float(theory.linear_risk(L=10)), color=COLORS[1], label="linear")
    line(axes, d, rule, color=COLORS[0], label=r"$(k^*, v^*)$, $\lambda = (dL)^{-1/4}$")
    line(axes, d, best, color=COLORS[0], linestyle="--", label=r"$(k^*, v^*)$, best $\lambda$")
    line(axes, d[d <= 45], bayes, color=COLORS[2], label="Bayes")
    points(axes, records.curve("d", "oracle"), color=COLORS[0])
    seen = records.curve("d", "bayes")
    small = seen.x <= 40
    axes.errorbar(seen.x[small], seen.mean[small], yerr=seen.sem[small], fmt="s", capsize=2, color=COLORS[2])
    axes.set(xscale="log", yscale="log", xlabel="dimension $d$ (at $L = 10$)", ylabel=r"excess risk $R - \epsilon^2$")
    axes.set(ylim=(2e-4, 1.5))
    axes.legend(loc="lower right")


def _draw_length(axes: Axes, records: Records) -> None:
    L = np.arange(2, 61)
    axes.axhline(theory.null_risk(), color=COLORS[7], linestyle=":", label="null")
    line(axes, L, theory.linear_risk(L=L), color=COLORS[1], label="linear")
    points(axes, records.curve("L", "least_squares"), color=COLORS[1], fmt="^", label="least squares, $n = 20\\,dL$")
    points(axes, records.curve("L", "bayes"), color=COLORS[2], fmt="s", label="Bayes")
    axes.set(
        xscale="log", xlabel="length $L$ (at $d = 20$)", ylabel=r"excess risk $R - \epsilon^2$", ylim=(-0.02, 0.62)
    )
    axes.set_xticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    axes.minorticks_off()
    axes.legend(loc="center right")


REFERENCES = Figure(
    name="slr.references",
    title="Null, linear, attention and Bayes",
    paper="arXiv:2410.01537, section 3 (proposition 3, corollary 2)",
    shows="Linear regression cannot use the location and ends at the null risk; attention approaches the Bayes risk.",
    scales={
        "quick": [
            Grid({"d": [20, 40, 100, 400, 1600], "L": 10, "n_test": 4000, "linear": False}, seeds=3),
            Grid({"d": 20, "L": [2, 4, 10, 20, 50], "n_test": 10_000, "linear": True}, seeds=3),
        ],
        "paper": [
            Grid({"d": [10, 20, 40, 100, 200, 400, 1600, 6400], "L": 10, "n_test": 20_000, "linear": False}, seeds=5),
            Grid({"d": 20, "L": [2, 3, 4, 6, 10, 20, 50], "n_test": 50_000, "linear": True}, seeds=5),
        ],
    },
    run=run,
    draw=draw,
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
    minutes={"quick": 0.4, "paper": 6.0},
)
