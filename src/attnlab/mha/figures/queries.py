"""Value queries: error of the recovered head against the tolerance of the answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.claim import Claim, at_most, between
from attnlab.common.figure import Canvas, Figure, Grid, Params
from attnlab.common.records import Records, Row
from attnlab.common.seeds import spawn, stream
from attnlab.common.statistics import each, largest, mean, of, slope
from attnlab.mha.layer import attention
from attnlab.mha.learners.query import QueryLearner
from attnlab.mha.task import Task
from attnlab.mha.theory import query_count

PAPER = "arXiv:2601.16873"
METHOD_NAMES = {"pairs": "pairs, d + d²", "wide": "wide, 2d", "low_rank": "rank 2, d + 12 d"}


def run(params: Params, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Recover one head from answers with uniform errors of at most tau."""
    layer, noise, start = (int(s.generate_state(1)[0]) for s in spawn(seed, 3))
    d, method = params["d"], params["method"]
    task = Task(d=d, k=2, n_heads=1, rho=params["rho"], seed=layer)
    theta = task.Theta
    if method == "low_rank":
        left, sizes, right = np.linalg.svd(theta[0])
        theta = ((left[:, :2] * sizes[:2]) @ right[:2])[None]
    rng = stream(noise, "test", "mha")

    def oracle(X: np.ndarray) -> np.ndarray:
        exact = attention(X, theta, task.W)
        return exact + params["tau"] * rng.uniform(-1, 1, exact.shape)

    learner = QueryLearner(d, method=method, rank=2 if method == "low_rank" else None, random_state=start).fit(oracle)
    error = float(np.linalg.norm(learner.theta_ - theta) / np.linalg.norm(theta))
    return {"theta_error": error, "queries": learner.n_queries_}


def draw(records: Records) -> Canvas:
    """Error against tolerance, and queries against width."""
    from attnlab.common.drawing import COLORS, MARKERS, line, panels, points

    canvas, axes = panels(1, 2)
    widths = records.values("d")
    for i, (method, text) in enumerate(METHOD_NAMES.items()):
        look = {"color": COLORS[i], "fmt": MARKERS[i] + ":"}
        points(axes[0, 0], _inexact(records, method).curve("tau", "theta_error"), label=text, **look)
        counted = records.curve("d", "queries", method=method)
        points(axes[0, 1], counted, color=COLORS[i], fmt=MARKERS[i], label=text)
        fine = np.arange(min(widths), max(widths) + 1)
        line(axes[0, 1], fine, [query_count(int(d), method, 2).value for d in fine], color=COLORS[i])
    axes[0, 0].set(xscale="log", yscale="log", xlabel="tolerance τ of an answer", ylabel="‖Θ̂ − Θ‖ / ‖Θ‖")
    axes[0, 0].set_title(f"d = {_inexact(records, 'pairs').values('d')[0]}")
    axes[0, 1].set(yscale="log", xlabel="width d", ylabel="queries")
    for ax in axes[0]:
        ax.legend()
    return canvas


def _inexact(records: Records, method: str) -> Records:
    """Answers with errors, at the largest width that has any."""
    inexact = Records(tuple(r for r in records.where(method=method) if r["tau"] > 0))
    return inexact.where(d=max(inexact.values("d")))


def _error(row: Row) -> float | None:
    """Error of the head, answers being inexact."""
    return float(row["theta_error"]) if row["tau"] > 0 else None


_GRID = {"method": ["pairs", "wide", "low_rank"], "rho": 4.0}

QUERIES = Figure(
    name="mha.queries",
    title="One head from value queries",
    paper=PAPER,
    shows=(
        "A single head is found exactly by closed forms from d + d^2 answers, from 2 d wide ones, from order r d at "
        "rank r (alternating least squares); errors scale with the tolerance."
    ),
    scales={
        "quick": [
            Grid({**_GRID, "d": [8, 16, 30], "tau": 0.0}, seeds=10),
            Grid({**_GRID, "d": 30, "tau": [1e-8, 1e-6, 1e-4]}, seeds=10),
        ],
        "paper": [
            Grid({**_GRID, "d": [8, 16, 30, 60], "tau": 0.0}, seeds=20),
            Grid({**_GRID, "d": 30, "tau": [1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3]}, seeds=20),
        ],
    },
    run=run,
    draw=draw,
    independent_of=("rho", "tau"),
    shape=("d", "method"),
    claims=(
        Claim(
            id="mha.queries.exact",
            says="a single head is learned exactly from order d^2 value queries",
            source=f"{PAPER}, abstract",
            statistic=largest(each(mean(of("theta_error", tau=0.0, method="pairs")), "d")),
            holds=at_most(1e-9),
            because="rounding of the logit, 1e-16 times the conditioning",
        ),
        Claim(
            id="mha.queries.low.rank",
            says="order r d queries are enough for an attention matrix of rank r",
            source=f"{PAPER}, abstract",
            statistic=largest(each(mean(of("theta_error", tau=0.0, method="low_rank")), "d")),
            holds=at_most(1e-9),
            because="rounding, after alternating least squares has converged",
        ),
        Claim(
            id="mha.queries.tolerance",
            says="the error is proportional to the tolerance of the answers",
            source=f"{PAPER}, abstract",
            statistic=slope(of(_error, method="pairs"), "tau"),
            holds=between(0.9, 1.1),
            because="slope one on log axes",
        ),
    ),
)
