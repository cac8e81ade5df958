"""Write ``hardmax.json``: ``python -m attnlab.aim.explorer.precompute``. The tests compute a sample of it again."""

from __future__ import annotations

import json
from pathlib import Path

from attnlab.aim.channels.hardmax_strength import PAIR_NODES, chebyshev, scale_function

# Chebyshev nodes of attnlab.aim.channels.hardmax_strength.scale_function, by number of tokens.
NODES = {2: PAIR_NODES, 3: 12, 4: 12}


def hardmax_table(tokens: int) -> list[float]:
    r"""s(tau) / sqrt(tau) at the nodes in sqrt(tau) through which attnlab.aim draws its polynomial."""
    root = chebyshev(NODES[tokens])
    table: list[float] = (scale_function(tokens)(root**2) / root).tolist()
    return table


if __name__ == "__main__":
    tables = {tokens: hardmax_table(tokens) for tokens in NODES}
    Path(__file__).with_name("hardmax.json").write_text(json.dumps(tables, separators=(",", ":")) + "\n")
