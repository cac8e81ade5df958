"""The explorer's view of in-context regression."""

from __future__ import annotations

from attnlab.common.view import Cells, Point, View, means

RATIOS = ("alpha", "kappa", "tau", "rho", "ridge", "d")


def points(cells: Cells) -> dict[str, list[Point]]:
    """Errors of pretrained layers on new and on pretraining tasks."""
    rows = [row for row in cells.of("icl.double_descent", "icl.context_length") if row["kappa"] is not None]
    new = means(rows, RATIOS, lambda row: float(row["icl"]))
    old = means(rows, RATIOS, lambda row: float(row["idg"]))
    layers = [
        {
            **{name: a[name] for name in RATIOS},
            "icl": a["mean"],
            "icl_sem": a["sem"],
            "idg": b["mean"],
            "idg_sem": b["sem"],
        }
        for a, b in zip(new, old, strict=True)
    ]
    return {"layers": layers}


VIEW = View(
    title="In-context regression",
    question="When does one layer learn in context instead of memorising its tasks?",
    text="Linear attention is pretrained on contexts of linear regression from k tasks in d dimensions. With fewer "
    "tasks than dimensions it memorises them; with more it learns in context. Its error peaks where contexts and "
    "parameters are equally many.",
    charts=("icl-contexts", "icl-tasks", "icl-length"),
    sources=("2405.11751",),
    points=points,
)
