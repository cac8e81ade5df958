"""Who recovers which family of layers, with which budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most
from attnlab.common.figure import Canvas, Figure, Grid, Params
from attnlab.common.records import Estimate, Records, proportion
from attnlab.common.statistics import FEWEST, INSTANCE, Column, Statistic, difference, of, proportion_of
from attnlab.mha.figures.instances import PAPER, build, judged, planted

LABELS = {
    "race": "race (LM, W projected out)",
    "sculpting": "sculpting, span search, LM",
    "projected_lbfgs": "L-BFGS, W projected out",
    "lbfgs": "L-BFGS in Theta and W",
    "adam": "Adam",
}
FAMILY_NAMES = ["generic", "weak", "close", "near_identity"]
MORE_FAMILIES = ["opposite_values", "dispersed", "opposite", "parallel"]


def run(params: Params, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Fit one learner to one planted layer."""
    m = params["n_heads"]
    task, (X, y), start = planted(seed, params["n"], params)
    learner = build(params["learner"], m, start, params["starts"], params["iterations"]).fit(X, y)
    return judged(task, learner)


def draw(records: Records) -> Canvas:
    """Success rates with exact intervals, families down, learners side by side."""
    from attnlab.common.drawing import COLORS, MARKERS, panels

    canvas, axes = panels(1, 1, width=7.6, height=0.62 * len(records.values("family")) + 1.6)
    ax = axes[0, 0]
    families = [f for f in FAMILY_NAMES + MORE_FAMILIES if f in records.values("family")]
    budgets = sorted(
        {(r["learner"], r["n"], r["starts"], r["iterations"]) for r in records}, key=lambda b: list(LABELS).index(b[0])
    )
    for i, budget in enumerate(budgets):
        offset = (i - (len(budgets) - 1) / 2) * 0.8 / len(budgets)
        places, shares = [], []
        for row, family in enumerate(families):
            try:
                shares.append(_share(records, family, *budget))
                places.append(row + offset)
            except LookupError:
                continue
        value = np.array([s.value for s in shares])
        low, high = np.array([s.low for s in shares]), np.array([s.high for s in shares])
        ax.errorbar(
            value,
            places,
            xerr=[value - low, high - value],
            fmt=MARKERS[i % len(MARKERS)],
            color=COLORS[i % len(COLORS)],
            capsize=2,
            elinewidth=1,
            label=_budget_label(*budget),
        )
    ax.set(yticks=range(len(families)), yticklabels=[f.replace("_", " ") for f in families], xlim=(-0.03, 1.03))
    ax.set(xlabel="share of layers recovered (bars: exact 95 % intervals)")
    ax.invert_yaxis()
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return canvas


def _budget_label(learner: str, n: int, starts: int, iterations: int) -> str:
    text = f"{LABELS[learner]}\n  n = {n}"
    if learner == "sculpting":
        return text
    return f"{text}, {starts} start{'s' * (starts > 1)} × {iterations}"


def _share(records: Records, family: str, learner: str, n: int, starts: int, iterations: int) -> Estimate:
    chosen = records.where(family=family, learner=learner, n=n, starts=starts, iterations=iterations)
    return proportion(chosen.column("success"))


def _success(learner: str, **conditions: Any) -> Statistic:
    return proportion_of(of("success", learner=learner, **conditions))


def _from_one_start(learner: str) -> Column:
    return of("success", learner=learner, n=400, starts=1, iterations=FEWEST)


def _gain(first: str, second: str) -> Statistic:
    """Difference of two learners' success shares, one start each on the same 400 examples."""
    return difference(_from_one_start(first), _from_one_start(second), unit=INSTANCE)


_LAYER = {"d": 8, "k": 2, "n_heads": 2, "rho": 4.0}
_RACE = {"learner": "race", "n": 1000, "starts": 12, "iterations": 120}
_ONE_START = {"learner": "race", "n": 400, "starts": 1, "iterations": 120}
_SCULPT = {"learner": "sculpting", "n": 20000, "starts": 16, "iterations": 120}

RECOVERY = Figure(
    name="mha.recovery",
    title="Exact recovery of planted layers, by family and learner",
    paper=PAPER,
    shows=(
        "Second order with projected-out values recovers every family; most first-order failures are slowness at "
        "this budget."
    ),
    scales={
        "quick": [
            Grid({**_LAYER, "family": FAMILY_NAMES, **_RACE}, seeds=10),
            Grid({**_LAYER, "family": FAMILY_NAMES, **_ONE_START}, seeds=10),
            Grid({**_LAYER, "family": "near_identity", **_SCULPT}, seeds=10),
            Grid({**_LAYER, "family": ["weak", "close"], **_SCULPT}, seeds=5),  # drawn only, no claim is of them
            Grid({**_LAYER, "family": "generic", **_RACE}, seeds=20),
            Grid({**_LAYER, "family": "generic", **_SCULPT}, seeds=20),
            Grid(
                {
                    **_LAYER,
                    "family": FAMILY_NAMES,
                    "learner": ["lbfgs", "projected_lbfgs"],
                    "n": 400,
                    "starts": 1,
                    "iterations": 300,
                },
                seeds=10,
            ),
            Grid(
                {**_LAYER, "family": "generic", "learner": "adam", "n": 2000, "starts": 1, "iterations": 3000}, seeds=10
            ),
        ],
        "paper": [
            Grid({**_LAYER, "family": FAMILY_NAMES + MORE_FAMILIES, **_RACE}, seeds=20),
            Grid({**_LAYER, "family": FAMILY_NAMES + MORE_FAMILIES, **_ONE_START}, seeds=20),
            Grid({**_LAYER, "family": FAMILY_NAMES + MORE_FAMILIES, **_SCULPT}, seeds=20),
            Grid(
                {
                    **_LAYER,
                    "family": FAMILY_NAMES + MORE_FAMILIES,
                    "learner": ["lbfgs", "projected_lbfgs"],
                    "n": 400,
                    "starts": 1,
                    "iterations": [300, 3000],
                },
                seeds=20,
            ),
            Grid(
                {
                    **_LAYER,
                    "family": FAMILY_NAMES + MORE_FAMILIES,
                    "learner": "adam",
                    "n": 4000,
                    "starts": 1,
                    "iterations": 20000,
                },
                seeds=10,
            ),
        ],
    },
    run=run,
    draw=draw,
    shared=("learner", "n", "starts", "iterations"),
    shape=("learner", "n", "starts", "iterations"),
    claims=(
        Claim(
            id="mha.exact",
            says="a generic layer is recovered exactly from random examples (Levenberg-Marquardt, 12 random starts)",
            source="derived here",
            statistic=_success("race", family="generic", starts=12),
            holds=at_least(0.69),
            because=(
                "recovered more than twice as often as not; 20 layers are run, and the exact 95 % interval of 19 "
                "successes in 20 begins at 0.75"
            ),
        ),
        Claim(
            id="mha.exact.families",
            says="recovery does not need incoherent or equally strong heads in practice",
            source="derived here",
            statistic=_success("race", starts=12),
            holds=at_least(0.9),
            because="the exact 95 % interval of 40 successes in 40 begins at 0.91",
        ),
        Claim(
            id="mha.sculpting.generic",
            says="sculpting, followed by span search and free refinement (ours), recovers generic layers exactly",
            source=f"phases 1 to 5: {PAPER}; what follows them derived here",
            statistic=_success("sculpting", family="generic"),
            holds=at_least(0.69),
            because=(
                "recovered more than twice as often as not; 20 layers are run, and the exact 95 % interval of 19 "
                "successes in 20 begins at 0.75"
            ),
        ),
        Claim(
            id="mha.generic.easy",
            says="generic layers are easy for gradient methods too (Adam, one start)",
            source="derived here",
            statistic=_success("adam", family="generic"),
            holds=at_least(0.4),
            because=(
                "easy means recovered about as often as not; the interval of 8 in 10 begins at 0.44. The number was "
                "fixed after a first look at pilot runs"
            ),
            kind="exploratory",
        ),
        Claim(
            id="mha.second.order.helps",
            says="second order recovers more layers than L-BFGS on the same projected error, from one start each",
            source="derived here",
            statistic=_gain("race", "projected_lbfgs"),
            holds=at_least(0.05),
            because=(
                "a twentieth of all layers, at 300 iterations of L-BFGS: a larger budget shrinks the gap. Form and "
                "number were fixed after a first look at pilot runs"
            ),
            kind="exploratory",
        ),
        Claim(
            id="mha.projection.helps",
            says="projecting W out recovers more layers than L-BFGS in Theta and W, from one start each",
            source="derived here",
            statistic=_gain("projected_lbfgs", "lbfgs"),
            holds=at_least(0.05),
            because="a twentieth of all layers; form and number were fixed after a first look at pilot runs",
            kind="exploratory",
        ),
        Claim(
            id="mha.sculpting.near.identity",
            says="sculpting fails where the heads are not incoherent (near-identity heads of opposite sign)",
            source=f"{PAPER}, non-degeneracy assumptions",
            statistic=_success("sculpting", family="near_identity"),
            holds=at_most(0.95),
            because=(
                "below the success of the race, which is 1; the body misses the hull (span sine near 1), and where the "
                "layer is recovered the last refinement did it; number fixed after a first look at pilot runs"
            ),
            kind="exploratory",
        ),
    ),
)
