"""Every hot path on a GPU: ``python -m benchmarks.gpu [--only rfa,aim] [--seconds 540] [--json gpu.json]``.

The device's own rates come first, then each system with its part of the time: achieved shares of those rates, and
errors against float64 on the host. Long runs come when they are named, one at a time: ``grid`` (gradient descent of
the paper's figure), ``headline`` (message passing at d = 10 000) and ``lowrank`` (heads of low rank of growing width).
A row is printed and stored as soon as it is there, beside the parts that the file already holds. ``--tiny``: small,
anywhere.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import inspect
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.results import Results
from benchmarks.rows import Row
from benchmarks.session import choose, run_part

# The part of the remaining time that each may take, relative to those after it.
WEIGHTS = {"device": 3.0, "slr": 0.3, "rfa": 4.0, "aim": 6.0, "mha": 2.0, "smi": 1.0}
LONG = ("grid", "headline", "lowrank")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 when a part failed, 2 when there is nothing to run on."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--only", default="", help=f"parts to run, of {', '.join([*WEIGHTS, *LONG])}")
    parser.add_argument("--seconds", type=float, default=540.0, help="time for everything")
    parser.add_argument("--json", type=Path, default=Path("results/bench_gpu.json"), help="where the rows are stored")
    parser.add_argument("--tiny", action="store_true", help="small sizes, on whatever device there is")
    options = parser.parse_args(arguments)
    try:
        parts = choose(options.only or ",".join(WEIGHTS), (*WEIGHTS, *LONG))
    except ValueError as problem:
        parser.error(str(problem))
    # before JAX is loaded: the largest problems need nearly all of the memory
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.92")
    import jax

    if jax.default_backend() != "gpu" and not options.tiny:
        print(f"no GPU here: JAX sees {jax.devices()}; --tiny runs small sizes on them", file=sys.stderr)
        return 2
    results = Results(describe(jax.devices()[0], tiny=options.tiny))
    if options.json.exists():
        results = results.beside(Results.read(options.json))
    for name, value in results.machine.items():
        print(f"{name}: {value}", flush=True)
    run(parts, options.seconds, results, options.json, tiny=options.tiny)
    print(f"rows: {options.json}", flush=True)
    return int(bool(results.failed))


def describe(device: Any, *, tiny: bool) -> dict[str, Any]:
    """The device and what surrounds it."""
    stats = device.memory_stats() or {}
    return {
        "device": device.device_kind,
        "device memory GiB": round(stats.get("bytes_limit", 0) / 2**30, 1),
        "platform": str(device.client.platform_version).replace("\n", " "),
        **machine.describe(rates=not tiny),
    }


def run(parts: Sequence[str], seconds: float, results: Results, path: Path, *, tiny: bool = False) -> None:
    """The parts one after another within the time; what they say is stored at once."""
    end = time.monotonic() + seconds
    for place, part in enumerate(parts):
        share = WEIGHTS.get(part, 1.0) / sum(WEIGHTS.get(each, 1.0) for each in parts[place:])
        seconds = max(end - time.monotonic(), 0.0) * share
        print(f"--- {part}, {seconds:.0f} s", flush=True)
        run_part(part, functools.partial(call, part, seconds, tiny), results, path)
        if part in results.failed:
            print(results.failed[part], flush=True)


def call(part: str, seconds: float, tiny: bool) -> Iterable[Row]:
    """The rows of one part; a part that knows no small sizes is passed over when they are asked for."""
    function = importlib.import_module(f"benchmarks.gpu_{part}").run
    rows: Iterable[Row]
    if not tiny:
        rows = function(seconds)
    elif "tiny" in inspect.signature(function).parameters:
        rows = function(seconds, tiny=True)
    else:
        print(f"{part}: has no small sizes", flush=True)
        rows = []
    return rows


if __name__ == "__main__":
    sys.exit(main())
