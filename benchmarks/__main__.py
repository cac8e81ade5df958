"""``python -m benchmarks [lab slr rfa aim mha]``: measure here and now, print a table, write results/bench.json."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import harness

PARTS = ("lab", "slr", "rfa", "aim", "mha")


def machine() -> dict[str, object]:
    """What the numbers were measured on."""
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "sgemm GFLOP/s": round(harness.gemm_rate(np.float32) / 1e9, 1),
        "dgemm GFLOP/s": round(harness.gemm_rate(np.float64) / 1e9, 1),
        "copy GB/s": round(harness.bandwidth() / 1e9, 1),
    }


def main() -> None:
    """Run the chosen parts and show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; all by default")
    parser.add_argument("--json", type=Path, default=Path("results/bench.json"), help="where to write the numbers")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    console, here = Console(), machine()
    console.print(here)
    rows = []
    for part in options.parts or PARTS:
        table = Table("what", "value", "unit", "target", "detail", title=part, title_justify="left")
        for row in importlib.import_module(f"benchmarks.{part}").run():
            table.add_row(row.name, f"{row.value:.4g}", row.unit, row.target, row.detail)
            rows.append({"part": part, **asdict(row)})
        console.print(table)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"machine": here, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
