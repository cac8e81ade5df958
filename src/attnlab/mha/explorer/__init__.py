"""The explorer's view of multi-head layers."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from attnlab.common.records import Row
from attnlab.common.view import Cells, Point, View, shares

# The learners of the mha figures, in words that fit a legend on a phone.
LEARNERS = {
    "race": "race (second order)",
    "sculpting": "sculpting",
    "projected_lbfgs": "L-BFGS, W projected out",
    "lbfgs": "L-BFGS",
    "adam": "Adam",
}


def points(cells: Cells) -> dict[str, list[Point]]:
    """Shares of recovered layers by examples, sizes and families."""

    def named(figure: str) -> list[Row]:
        return [{**row, "m": row["n_heads"]} for row in cells.of(figure)]

    samples = shares(named("mha.samples"), ("learner", "m", "d", "k", "rho", "n"))
    families = shares(named("mha.recovery"), ("learner", "starts", "iterations", "n", "family"))
    return {
        "samples": [{**point, "label": LEARNERS[point["learner"]]} for point in samples],
        "sizes": shares(named("mha.sizes"), ("k", "rho", "d", "n", "m")),
        "families": [{**point, "label": _budget(point)} for point in families],
    }


def _budget(point: Point) -> str:
    starts, n = point["starts"], point["n"]
    budget = "" if point["learner"] == "sculpting" else f", {starts} start{'s' if starts > 1 else ''}"
    return f"{LEARNERS[point['learner']]}, n = {n}{budget}"


def tables() -> dict[str, Any]:
    """Fitted layers (:mod:`attnlab.mha.explorer.precompute`)."""
    text = (resources.files("attnlab.mha.explorer") / "layers.json").read_text()
    return {"fitted": json.loads(text)}


VIEW = View(
    title="Recovering a layer",
    question="Can a planted multi-head layer be recovered from random examples?",
    text="A layer with m heads labels random sign tokens. Several random starts with a second-order method (race) "
    "recover every head exactly from about three times the counting limit of examples; with fewer, the fitted heads "
    "attend to other tokens. First-order learners recover them too, more slowly.",
    charts=("mha-patterns", "mha-map", "mha-examples", "mha-heads", "mha-families"),
    wide=("mha-families",),
    sources=("2402.04084",),
    scripts=("view.js",),
    points=points,
    tables=tables,
)
