"""Time of a converged point of two-layer attention, and of importance sampling in twelve dimensions.

``python -m benchmarks.smi_theory`` on the machine to be measured; JAX takes its default device.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax

from attnlab.smi import theory

POINTS_LINK = "single_location(tokens=6, nu=2.0, noise=0.1, law='max')"


def main() -> None:
    """Print seconds of the first call (with compilation) and of the second, wall and processor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2**14)
    parser.add_argument("--points-draws", type=int, default=2**9)
    chosen = parser.parse_args()
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "two layers": ("deep_attention", {"draws": chosen.draws}),
        "twelve dimensions": (POINTS_LINK, {"draws": chosen.points_draws, "replicates": 4, "tol": 1e-3}),
    }
    print(jax.devices()[0])
    for name, (link, options) in cases.items():
        for call in ("first", "second"):
            wall, used = time.perf_counter(), time.process_time()
            found = theory.state_evolution(link, 0.5, **options)
            seconds = time.perf_counter() - wall, time.process_time() - used
            print(
                f"{name}, {call} call: {seconds[0]:.1f} s, processor {seconds[1]:.1f} s, {found.n_iter} steps", found.Q
            )


if __name__ == "__main__":
    main()
