"""The explorer's view of single-location regression."""

from __future__ import annotations

import numpy as np

from attnlab.common.view import Cells, Point, View, means

# How many stored trajectories of the phase portrait are shown, and how many points of each.
TRAJECTORIES, TIMES = 16, 14


def points(cells: Cells) -> dict[str, list[Point]]:
    """Stored trajectories of the portrait, and the risk at the end of training."""
    # One row of each cell carries the whole path.
    portraits = [
        {"lam": row["lam"], "d": row["d"], "L": row["L"], **_thinned(np.asarray(row["path"]))}
        for row in cells.of("slr.portrait")
        if row["start"] == 0
    ]
    labels = {"slr.manifold": "starts on M", "slr.small": "random starts", "slr.large": "random starts, large λ"}
    labels |= {"slr.schedule": "random starts, λ lowered", "slr.sgd": "SGD, λ lowered"}
    runs = []
    for figure, label in labels.items():
        # Runs that ended at the planted pair or, where none does, all of them.
        rows = [{**row, "final": row["lam"] / (1 + row["decay"] * row["n_steps"])} for row in cells.of(figure)]
        found = [row for row in rows if row["end"] == "oracle"]
        for point in means(found or rows, ("d", "L", "final"), lambda row: row["risk"]):
            words = f"{label}: {len(found)} of {len(rows)} arrive"
            runs.append({**point, "lam": point["final"], "label": words})
    return {"portrait": portraits, "runs": runs}


def _thinned(path: np.ndarray) -> dict[str, list[float]]:
    """Some trajectories of (times, runs, 2), a few points of each."""
    runs = np.linspace(0, path.shape[1] - 1, TRAJECTORIES).astype(int)
    times = np.unique(np.geomspace(1, path.shape[0], TIMES).astype(int)) - 1
    shown = path[np.ix_(times, runs)].reshape(-1, 2).round(4)
    return {"kappa": shown[:, 0].tolist(), "nu": shown[:, 1].tolist()}


VIEW = View(
    title="Single-location regression",
    question="One token determines the output, at an unknown position: does training find it?",
    text="Attention with two vectors k and v is trained by gradient flow on the exact risk. On the manifold M almost "
    "every start ends at the planted pair ±(k*, v*). Off M, the pair is unstable above λ = √3/2: raise λ, start off "
    "the manifold and train long to see it.",
    charts=("slr-portrait", "slr-risk", "slr-lambda", "slr-stability"),
    sources=("2410.01537",),
    points=points,
    scripts=("theory.js", "live.js", "view.js"),
    actions={
        "play": "play the training",
        "live": "simulate SGD live from the last start",
        "keep": "add a start",
        "clear": "keep only the last start",
    },
)
