"""``python -m benchmarks.core [--json FILE]``: what can be told from the CPU seconds of one core.

On a machine that is shared with other programs the clock tells little. A computation on one thread takes the CPU
seconds that it takes: this measures the parts of an AMP iteration and the cold start of commands with that clock.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from unittest import mock

from benchmarks import bounds, machine, waiting
from benchmarks.harness import say
from benchmarks.results import Results

CLOCK = "CPU seconds of one core, other programs beside it"


def run(path: Path) -> Results:
    """Measure on the CPU clock and store."""
    with mock.patch.multiple(time, perf_counter=time.process_time, monotonic=time.process_time):
        results = Results({**machine.describe(), "clock": CLOCK})
        results.rows = {"waiting": waiting.cold_starts(3), "bounds": [say(row) for row in bounds.run()]}
    results.write(path)
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("results/bench_core.json"))
    run(parser.parse_args().json)
