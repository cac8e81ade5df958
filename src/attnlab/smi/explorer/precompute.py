"""Write ``branches.json``: ``python -m attnlab.smi.explorer.precompute``, about a minute on one core.

The tests compute a sample of it again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.smi import theory
from attnlab.smi.links import as_link

# Link, words, direction of the branch, and the figure whose runs of message passing are drawn on it.
BRANCHES: tuple[tuple[str, str, list[float] | None, str], ...] = (
    ("attention(tokens=2)", "tied attention, 2 tokens", None, "smi.phase_retrieval"),
    ("attention(tokens=3)", "tied attention, 3 tokens", None, "smi.phase_retrieval"),
    ("phase_retrieval(noise=0.0)", "phase retrieval", None, "smi.phase_retrieval"),
    ("phase_retrieval(noise=0.001)", "phase retrieval with noise", None, "smi.phase_retrieval"),
    ("sign(noise=0.0)", "sign", None, "smi.phase_retrieval"),
    ("door(kappa=0.67449)", "door: is |z| large?", None, "smi.phase_retrieval"),
    ("sign_committee()", "sign committee, sum of the directions", [1, 1], "smi.sign_committee"),
    ("deep_attention(layers=2, skip=1.0)", "two layers, the second", [0, 1], "smi.two_layers"),
)
DEPTHS = np.r_[0.005, np.linspace(0.04, 9.0, 57)]  # v = -log(1 - q)
SHALLOW = np.r_[0.005, np.linspace(0.04, 3.5, 18)]  # of links whose grid takes seconds at each q


def branch(text: str, direction: list[float] | None) -> dict[str, Any]:
    """q, S(q) and the threshold of weak recovery."""
    closed = as_link(text).route == "closed"
    v, draws = (DEPTHS, 2**12) if closed else (SHALLOW, 2**8)
    found = theory.curve(text, -np.expm1(-v), direction, draws=draws, replicates=8 if closed else 4)
    weak = theory.weak_recovery(text, draws=2**11 if closed else 2**8, replicates=8 if closed else 4)
    known = found.resolved
    return {
        "v": v[known].round(6).tolist(),
        "S": found.S[known].round(8).tolist(),
        "weak": round(float(weak), 6),
    }


if __name__ == "__main__":
    table = [
        {"link": str(as_link(text)), "label": label, "figure": figure, **branch(text, direction)}
        for text, label, direction, figure in BRANCHES
    ]
    Path(__file__).with_name("branches.json").write_text(json.dumps(table, separators=(",", ":")) + "\n")
