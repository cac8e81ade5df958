"""The explorer's view of random-feature attention."""

from __future__ import annotations

from attnlab.common.records import Row
from attnlab.common.view import Cells, Point, View, means
from attnlab.rfa.explorer.tables import tables


def points(cells: Cells) -> dict[str, list[Point]]:
    """Measured errors against examples, heads and the scale of the bias."""

    def error(row: Row) -> float:
        return float(row["error"])

    def named(*figures: str) -> list[Row]:
        return [{**row, "N": row["n_keys"]} for row in cells.of(*figures)]

    heads = [row for row in named("rfa.heads") if row["heads"] > 0]
    curves = named("rfa.keys", "rfa.correlations")
    setting = ("target", "model", "d", "N", "heads", "n")
    return {
        "curves": means(curves, setting, error),
        "heads": means(heads, setting, error),
        "scales": means(named("rfa.bias-scale"), ("target", "d", "N", "heads", "n", "scale"), error),
    }


VIEW = View(
    title="Random-feature attention",
    question="What do frozen random heads with trained values learn, and from how many samples?",
    text="The target is an average over N keys of a function of the query x₀ and a key xᵢ. Attention with random "
    "heads (RFA) learns averages over keys from far fewer samples than a random network on the concatenated tokens "
    "(RFMLP); a bias (BRFA) helps on correlations between query and keys.",
    charts=("rfa-curves", "rfa-heads", "rfa-bias"),
    wide=("rfa-curves",),
    sources=("2307.11353",),
    points=points,
    tables=tables,
    extra="complexity.html",
)
