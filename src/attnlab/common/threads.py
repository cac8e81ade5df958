"""How many threads to use on a CPU, and work shared among threads whose BLAS is their own."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")


def thread_count() -> int:
    """Threads that BLAS would use: what the environment allows, otherwise the cores of this process."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name, "").isdigit():
            return max(int(os.environ[name]), 1)
    # a job or a container may be bound to fewer cores than the machine has
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_spans(work: Callable[[int, int], Result], n: int, threads: int) -> list[Result]:
    """``work(first, last)`` on equal spans of ``range(n)``, one for each thread, with BLAS of one thread inside.

    Where many small steps lie between the products, threads inside the products wait for most of the time; threads
    around the whole do not. The split depends on ``threads`` alone, and so do the results.
    """
    if threads == 1:
        return [work(0, n)]
    size = math.ceil(n / threads)
    spans = [(first, min(first + size, n)) for first in range(0, n, size)]
    # map keeps the order of the spans, so that sums over the parts are the same each time
    with single_threaded_blas(), ThreadPoolExecutor(len(spans)) as pool:
        return list(pool.map(lambda span: work(*span), spans))


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS of one thread in this process until the last such block has ended.

    Products of a few megaflops lose more to waking threads, and to threads of two BLAS libraries that spin side by
    side (NumPy's and SciPy's), than they gain.
    """
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


class _Limit:
    """The thread setting is the process's, so the first block to enter sets it and the last to leave restores it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.setting: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.setting = _libraries().limit(limits=1)
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                # threadpoolctl 3.8 lets only the thread that set a limit change it; the last block may be another's.
                for library in _libraries().lib_controllers:
                    if hasattr(library, "clear_controlling_thread"):
                        library.clear_controlling_thread(force=True)
                self.setting.restore_original_limits()


_LIMIT = _Limit()


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")
