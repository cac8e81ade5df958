"""How many threads to use on a CPU."""

from __future__ import annotations

import os


def thread_count() -> int:
    """Threads that BLAS would use: what the environment allows, otherwise the cores of this process."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name, "").isdigit():
            return max(int(os.environ[name]), 1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
