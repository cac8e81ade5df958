"""The explorer's view of sequence multi-index models."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from attnlab.common.view import Cells, Point, View, means

# Result of a run of message passing that is the overlap along the branch of each figure.
OVERLAPS = {"smi.phase_retrieval": "cos2_1", "smi.sign_committee": "plus", "smi.two_layers": "cos2_2"}


def points(cells: Cells) -> dict[str, list[Point]]:
    """Overlaps that message passing reached."""
    found = []
    for figure, column in OVERLAPS.items():
        rows = [row for row in cells.of(figure) if row["source"] == "AMP"]
        found += means(rows, ("link", "d", "alpha"), lambda row, column=column: float(row[column]))  # type: ignore[misc]
    return {"amp": found}


def tables() -> dict[str, Any]:
    """Branches S(q) (:mod:`attnlab.smi.explorer.precompute`)."""
    return {"branches": json.loads((resources.files("attnlab.smi.explorer") / "branches.json").read_text())}


VIEW = View(
    title="Your own model",
    question="The output depends on a few hidden directions of the tokens: from how many sequences are they learned?",
    text="Choose a link y = link(z) of the indices z = XW/√d and the sample complexity α = n/d. Dotted parts of the "
    "curve are unstable. Where it bends back, there are two stable fixed points: the one with the higher free entropy "
    "is Bayes-optimal, message passing ends at the first. Your own link takes a few lines of Python.",
    charts=("smi-overlap", "smi-entropy"),
    sources=("2502.00901", "2405.15480"),
    points=points,
    tables=tables,
)
