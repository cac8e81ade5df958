"""What a person waits for: the start of a command, the first figure, and the whole of ``attnlab reproduce``.

Cold start is told in CPU seconds, which other programs on the machine change little; a run in seconds by the clock.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Row, middle, say

ATTNLAB = Path(sys.executable).with_name("attnlab")
STARTS = {
    "attnlab list": (["list"], "< 1"),
    "attnlab theory aim.mmse": (["theory", "aim.mmse", "--alpha", "0.1", "--rho", "0.5"], "< 1.5"),
    "attnlab reproduce slr.manifold": (["reproduce", "slr.manifold"], "< 10"),
}
# The figures of `make reproduce` and the workers it takes.
WORKERS = 2


def spent(words: Sequence[str], folder: str) -> tuple[float, float]:
    """Seconds by the clock and CPU seconds of one command, its workers included, nothing compiled before."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "XDG_CACHE_HOME": folder}
    done = subprocess.run([ATTNLAB, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    # The code is 1, too, where a verdict contradicts the registered one: such a run has its report and counts.
    if done.returncode and "report:" not in done.stdout:
        raise RuntimeError(f"attnlab {' '.join(words)} failed: {done.stderr.strip()[-500:]}")
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold_starts(repeats: int = 5) -> list[Row]:
    """Each command in a folder of its own: nothing is stored or compiled yet."""
    rows = []
    for name, (words, target) in STARTS.items():
        cpu = []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as folder:
                cpu.append(spent(words, folder)[1])
        median, spread = middle(cpu)
        rows.append(say(Row(name, median, "CPU s", target, "a fresh process, an empty store", spread=spread)))
    return rows


def whole_run() -> list[Row]:
    """Every figure at quick scale, once; and the quickest of them."""
    rows = []
    for name, words, target in (("reproduce, only fast", ["--only-fast"], "< 60"), ("reproduce, quick", [], "<= 360")):
        with tempfile.TemporaryDirectory() as folder:
            seconds, cpu = spent(["reproduce", *words, "--workers", str(WORKERS)], folder)
        rows.append(say(Row(name, seconds, "s", target, f"{WORKERS} workers, an empty store; {cpu:.0f} CPU s")))
    return rows


def run() -> list[Row]:
    """All rows."""
    return [*cold_starts(), *whole_run()]


if __name__ == "__main__":
    run()
