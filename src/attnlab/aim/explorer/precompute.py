"""Write ``hardmax.json``: ``python -m attnlab.aim.explorer.precompute``. The tests compute a sample of it again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from attnlab.aim.theory.output import hardmax_scale

# Chebyshev nodes of attnlab.aim.theory.output.hardmax_scale, by number of tokens.
NODES = {2: 48, 3: 8, 4: 8}


def hardmax_table(tokens: int) -> list[float]:
    r"""s(tau) / sqrt(tau) at the nodes in sqrt(tau) through which attnlab.aim draws its polynomial."""
    root = (1 - np.cos((np.arange(NODES[tokens]) + 0.5) * np.pi / NODES[tokens])) / 2
    table: list[float] = (hardmax_scale(tokens)(root**2) / root).tolist()
    return table


if __name__ == "__main__":
    tables = {tokens: hardmax_table(tokens) for tokens in NODES}
    Path(__file__).with_name("hardmax.json").write_text(json.dumps(tables, separators=(",", ":")) + "\n")
