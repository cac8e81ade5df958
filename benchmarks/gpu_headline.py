"""Message passing at d = 10 000: a hundred million unknowns, ten million sequences.

``python -m benchmarks.gpu --only headline``
"""

from __future__ import annotations

from attnlab import aim
from benchmarks.gpu_aim import RHO, amp_rows, run_amp
from benchmarks.harness import Row


def run(seconds: float) -> list[Row]:
    """Tokens regenerated at each pass (800 GB would not fit): as many iterations as the time allows, against the state
    evolution's own path. The products of an iteration are 4e15 FLOP.
    """
    task = aim.Task(10_000, rho=RHO, seed=1)
    options = {"precision": "tf32", "budget": 1e9, "damping": 0.1, "warm": False, "reserve": 30.0}
    model = run_amp(task, 0.1, seconds=seconds, **options)
    return amp_rows("AMP d=10000 regenerated tokens, tf32", model, task, 0.1, "tf32")
