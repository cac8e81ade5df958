"""Heads of low rank through ``mha.learn``: ``python -m benchmarks.gpu --only mha,lowrank --seconds 500``.

The first has the size of an attention layer of MiniLM and all of the time, then smaller ones for the growth.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.gpu_mha import recover
from benchmarks.harness import Row, say

# Heads, width, tokens and rank.
LADDER = ((12, 384, 16, 32), (12, 256, 16, 32), (12, 128, 12, 16), (12, 64, 8, 8))
TINY = ((2, 8, 4, 2), (3, 10, 4, 2))


def run(seconds: float = 500.0, *, tiny: bool = False) -> Iterator[Row]:
    """Seconds to recovery of each layer; unknowns of the largest that was recovered, with the growth of the time."""
    end, found = time.monotonic() + seconds, []
    for m, d, k, rank in TINY if tiny else LADDER:
        left = end - time.monotonic()
        if left < 10:
            break
        row, recovered = recover(m, d, k, left, rank)
        yield say(row)
        found += [(m * d * (2 * rank + d), row.value, f"m = {m}, d = {d}, k = {k}, rank {rank}")] if recovered else []
    if found:
        found.sort()
        (size, took, text), times = found[-1], ", ".join(f"{unknowns}: {took:.0f}" for unknowns, took, _ in found)
        detail = f"largest layer recovered: {text}, in {took:.0f} s with compilation; seconds by unknowns {times}"
        yield say(Row("mha.gpu.lowrank.largest", size, "unknowns", "-", detail))
