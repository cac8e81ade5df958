"""The explorer's view of attention-indexed models."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources
from typing import Any

import numpy as np

from attnlab.common.records import Row
from attnlab.common.view import Cells, Point, View, groups, means


def points(cells: Cells) -> dict[str, list[Point]]:
    """Errors of AMP and of gradient descent, and eigenvalues of AMP's estimates."""
    names = ("channel", "tokens", "rho", "d", "learner", "alpha")
    amp: list[Row] = [
        {"channel": "softmax", **row, "learner": "amp", "error": row["mse"]}
        for row in cells.of("aim.softmax", "aim.phase_diagram", "aim.hardmax")
    ]
    for row in cells.of("aim.gradient_descent"):
        tokens = row["tokens"]
        # Those figures sweep c k alpha, (T^2 + T - 2) alpha of tied softmax.
        common = {**row, "channel": "softmax", "alpha": round(row["scaled"] / (tokens**2 + tokens - 2), 10)}
        if row["learner"] == "amp":
            amp.append({**common, "error": row["mse"]})
        else:
            amp += [{**common, "learner": name, "error": row[name]} for name in ("single", "averaged")]
    spectra = [
        {**dict(zip(("tokens", "rho", "d", "alpha"), key, strict=True)), "eigenvalues": _rounded(chosen, "found")}
        for key, chosen in groups(cells.of("aim.spectra"), ("tokens", "rho", "d", "alpha")).items()
    ]
    return {"points": means(amp, names, lambda row: row["error"]), "spectra": spectra}


def _rounded(rows: Iterable[Row], name: str) -> list[float]:
    return [round(float(x), 4) for row in rows for x in np.ravel(row[name])]


def tables() -> dict[str, Any]:
    """The hardmax scales of several numbers of tokens (:mod:`attnlab.aim.explorer.precompute`)."""
    text = (resources.files("attnlab.aim.explorer") / "hardmax.json").read_text()
    return {"hardmax": json.loads(text)}


VIEW = View(
    title="Attention-indexed models",
    question="How many sequences does one need to learn a full-width attention matrix?",
    text="A d × d attention matrix S of rank ρd is planted; the data are its attention weights on random sequences "
    "of T tokens. With softmax the smallest possible error is exactly zero from a finite number of samples on; "
    "with hardmax it never is. Message passing (AMP) reaches this error.",
    charts=("aim-error", "aim-phases", "aim-spectrum"),
    wide=("aim-spectrum",),
    sources=("2506.01582",),
    scripts=("theory.js", "live.js", "view.js"),
    actions={"live": "run AMP live in d = 40"},
    points=points,
    tables=tables,
)
