"""E3 and E6: which way the bias points, and how strong it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most, between
from attnlab.common.drawing import COLORS, MARKERS, line, panels, points, style
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.seeds import branch
from attnlab.common.statistics import Column, function_of_means, largest, of, ratio_of_means
from attnlab.rfa.figures.curves import INFINITE, learner_seed, measure, planted, prediction, with_theory
from attnlab.rfa.figures.panels import CAPTION, LIMIT, draw_knob
from attnlab.rfa.learners import RandomFeatureAttention
from attnlab.rfa.targets import MixedRotation
from attnlab.rfa.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

PAPER = "arXiv:2307.11353"
GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0)
BIASES = {
    "none": "no bias",
    "identity": "$W_0 = I$",
    "rotation": "$W_0 = O$ (oracle)",
    "moment": "$W_0$ from the third moment",
}
SCALE_TARGETS = ("f2_q1", "f2_q2", "f2_q3", "corr_p2", "softmax_g1", "softmax_g4", "f1_p1", "f1_p2")


def run_rotation(params: Params, seed: np.random.SeedSequence) -> Record:
    """One kind of bias on the whole family S = gamma I + sqrt(1 - gamma^2) O."""
    common = {"d": params["d"], "n_keys": params["n_keys"], "seed": branch(seed, "cell")}
    tasks = {str(g): Task(MixedRotation(g), **common) for g in GAMMAS}
    kinds = {"none": None, "rotation": next(iter(tasks.values())).rotation}
    bias = kinds.get(params["bias"], params["bias"])
    fitted = RandomFeatureAttention(params["heads"], bias=bias, random_state=learner_seed(seed))
    # An estimated bias depends on the target, so each has its own heads.
    groups = [{name: task} for name, task in tasks.items()] if params["bias"] == "moment" else [tasks]
    rows = [row for group in groups for row in measure(fitted, group, params, [params["n"]], seed)]
    if params["bias"] == "none":
        rows = with_theory(rows, tasks, "rfa", params["heads"])
    return {"rows": [{**row, "gamma": float(row.pop("target"))} for row in rows]}


def draw_rotation(records: Records) -> Canvas:
    """Error against gamma for each bias."""
    with style():
        canvas, grid = panels(width=5.2, height=3.6)
        axes = grid[0, 0]
        for i, (bias, label) in enumerate(BIASES.items()):
            curve = records.curve("gamma", "error", bias=bias)
            points(axes, curve, color=COLORS[i], fmt=MARKERS[i] + ":", linewidth=0.9, label=label)
        row = records.where(bias="none").rows[0]
        gammas = np.linspace(0, 1, 30)
        tasks = [Task(MixedRotation(g), d=row["d"], n_keys=row["n_keys"]) for g in gammas]
        finite = [prediction(task, row["n"], "rfa", row["heads"]).value for task in tasks]
        line(axes, gammas, finite, color=COLORS[0], label="no bias, theory")
        limit = [prediction(task, row["n"], "rfa", INFINITE).value for task in tasks]
        line(axes, gammas, limit, color=COLORS[0], label=r"no bias, theory, $M = \infty$", **LIMIT)
        axes.set(
            xlabel=r"$\gamma$:  target $\langle x_0, (\gamma I + \sqrt{1-\gamma^2} O) x_i\rangle\langle b, x_i\rangle$",
            ylabel="error / Var $f_*$",
        )
        canvas.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return canvas


def _at(bias: str, gamma: float) -> Column:
    return of("error", bias=bias, gamma=gamma)


def _closed_gap(records: Records) -> float:
    """Share of the gap between no bias and the oracle that the estimated bias closes, at gamma = 0."""
    none, moment, oracle = (_at(bias, 0.0)(records) for bias in ("none", "moment", "rotation"))
    return (none - moment) / (none - oracle)


ROTATION = Figure(
    name="rfa.rotation",
    title="The bias must be aligned with the target",
    paper=f"{PAPER}, biased RFA; the family is ours",
    shows="An identity bias gains exactly as far as the target's correlations are along the identity; a bias along the "
    "target's rotation mirrors it, and one estimated from the data recovers part of the gain. " + CAPTION,
    scales={
        "quick": [Grid({"d": 16, "n_keys": 16, "heads": 600, "bias": list(BIASES), "n": 1024, "n_test": 500}, seeds=5)],
        "paper": [
            Grid({"d": 16, "n_keys": 16, "heads": 1000, "bias": list(BIASES), "n": 1024, "n_test": 1000}, seeds=5)
        ],
    },
    run=run_rotation,
    draw=draw_rotation,
    independent_of=("heads: infty", "n_test"),
    shared=("bias",),
    claims=(
        Claim(
            id="rfa.rotation-0",
            says="An identity bias gives nothing on a rotated target (gamma = 0)",
            source="derived here",
            statistic=ratio_of_means(_at("identity", 0.0), _at("none", 0.0)),
            holds=between(0.95, 1.08),
            because="1.01 seen on two seeds of an independent prototype",
            kind="exploratory",
        ),
        Claim(
            id="rfa.rotation-1",
            says="An identity bias gains on an unrotated target (gamma = 1)",
            source=f"{PAPER}, abstract",
            statistic=ratio_of_means(_at("identity", 1.0), _at("none", 1.0)),
            holds=at_most(0.75),
            because="0.64 seen on two seeds of an independent prototype",
            kind="exploratory",
        ),
        Claim(
            id="rfa.rotation-oracle",
            says="A bias along the rotation gains as much on the rotated target",
            source="derived here",
            statistic=ratio_of_means(_at("rotation", 0.0), _at("none", 0.0)),
            holds=at_most(0.75),
            because="0.65 seen on two seeds of an independent prototype",
            kind="exploratory",
        ),
        Claim(
            id="rfa.rotation-learned",
            says="A bias estimated from the same data closes half of the gap to the oracle (gamma = 0)",
            source="derived here (learned representations)",
            statistic=function_of_means(_closed_gap),
            holds=at_least(0.5),
            because="half the gap, a round number fixed before measuring",
        ),
    ),
)


def run_scale(params: Params, seed: np.random.SeedSequence) -> Record:
    """All targets at one strength of the bias."""
    tasks = planted(SCALE_TARGETS, params, seed)
    options = {"bias": "identity", "bias_scale": params["scale"], "random_state": learner_seed(seed)}
    return {"rows": measure(RandomFeatureAttention(params["heads"], **options), tasks, params, [params["n"]], seed)}


def draw_scale(records: Records) -> Canvas:
    """Error against the strength of the bias."""
    return draw_knob(
        records,
        "scale",
        SCALE_TARGETS,
        "n",
        {n: f"BRFA, $n = {n}$" for n in records.values("n")},
        "bias scale $c$",
        columns=4,
        logarithmic=False,
    )


def _scale(target: str, scale: float, n: int = 1024) -> Column:
    return of("error", target=target, scale=scale, n=n)


SCALES = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0]
SCALE_QUICK = Grid({"d": 16, "n_keys": 16, "heads": 400, "scale": SCALES, "n": 1024, "n_test": 500}, seeds=5)
SCALE = Figure(
    name="rfa.bias-scale",
    title="How strong the bias should be",
    paper="our experiment on the model of arXiv:2307.11353",
    shows="Correlation targets have an interior optimum at c about 2 to 4; on key averages every bias harms. (Lines "
    "join the points: with a bias there is no prediction at n > 512.)",
    scales={
        # Of the large sample what decides the claim on even powers: a cell of it costs ten of the others.
        "quick": [SCALE_QUICK, SCALE_QUICK.changed({"n": 4096, "scale": [0.0, 2.0]})],
        "paper": [SCALE_QUICK.changed({"n": [1024, 4096], "n_test": 1000})],
    },
    run=run_scale,
    draw=draw_scale,
    shared=("scale",),
    claims=(
        Claim(
            id="rfa.scale-optimum",
            says="On <x_0,x_i><b,x_i> an intermediate bias is best (c = 2 against the better of 0 and 8)",
            source="derived here",
            statistic=largest([ratio_of_means(_scale("f2_q1", 2.0), _scale("f2_q1", c)) for c in (0.0, 8.0)]),
            holds=at_most(0.8),
            because="0.66 seen on two seeds of an independent prototype",
            kind="exploratory",
        ),
        Claim(
            id="rfa.scale-harm",
            says="On quadratic key averages a strong bias multiplies the error (c = 8 over c = 0)",
            source="derived here",
            statistic=ratio_of_means(_scale("f1_p2", 8.0), _scale("f1_p2", 0.0)),
            holds=at_least(2.5),
            because="6 seen on two seeds of an independent prototype at n = 1024",
            kind="exploratory",
        ),
        Claim(
            id="rfa.scale-even",
            says="At n = 4096 a strong bias shows on even powers too (c = 2 over c = 0 on <x_0,x_i>^2<b,x_i>)",
            source=f"{PAPER}, abstract",
            statistic=ratio_of_means(_scale("f2_q2", 2.0, 4096), _scale("f2_q2", 0.0, 4096)),
            holds=at_most(0.9),
            because="half the gain of two seeds of an independent prototype with 1000 heads (0.69 against 0.86)",
            kind="exploratory",
        ),
    ),
)
