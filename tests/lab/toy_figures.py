"""A small figure with one claim, for tests of the lab."""

import numpy as np

from attnlab.common.claim import Claim, at_most
from attnlab.common.drawing import line, panels, points
from attnlab.common.figure import Figure, Grid
from attnlab.common.statistics import mean, of


def run_cell(params, seed):
    numbers = np.random.default_rng(seed).standard_normal(params["n"])
    return {"error": float(np.mean(numbers) ** 2), "numbers": numbers[:3]}


def draw(records):
    canvas, ((axes,),) = panels()
    curve = records.curve("n", "error")
    points(axes, curve, label="simulation")
    line(axes, curve.x, 1 / curve.x, label="theory")
    axes.set(xlabel="n", ylabel="error", xscale="log", yscale="log")
    axes.legend()
    return canvas


CLAIM = Claim(
    id="toy.1",
    says="The squared mean of n Gaussians is about 1/n",
    source="derived here",
    statistic=mean(of("error", n=1000)),
    holds=at_most(0.01),
    because="ten times the expectation",
)

FIGURE = Figure(
    name="toy.mean",
    title="Means of Gaussians",
    paper="none",
    shows="The error falls as 1/n.",
    scales={"quick": [Grid({"n": [10, 100, 1000]}, seeds=4)]},
    run=run_cell,
    draw=draw,
    claims=(CLAIM,),
)
