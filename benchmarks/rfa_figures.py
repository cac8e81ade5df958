"""CPU seconds of ``attnlab reproduce`` on the figures E1 to E9 of rfa at quick scale, beside another state of attnlab.

git worktree add /tmp/before 2df88a7
OPENBLAS_NUM_THREADS=1 python -m benchmarks.rfa_figures /tmp/before [--runs 3] [--alone] [--csv FILE]

User and system seconds of whole processes, the least of some runs: the state before, the present code with the grids of
the state before (``--grids-before`` runs it in this process), and the present code as it is.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from attnlab.common.figure import Grid
from attnlab.rfa.figures.curves import INFINITE
from attnlab.rfa.figures.learning import QUICK

ROOT = Path(__file__).resolve().parent.parent
SHORT = ("keys", "correlations", "rotation", "staircase", "heads", "bias-scale", "scores", "key-count", "dimension")
NAMES = [f"rfa.{name}" for name in SHORT]
COMMON = {"d": 16, "n_keys": 16, "n_test": 500}
# The quick grids of 2df88a7 that are different today.
GRIDS_BEFORE = {
    "rfa.keys": [QUICK.changed({"heads": 1000})],
    "rfa.correlations": [QUICK.changed({"heads": 1000})],
    "rfa.staircase": [Grid({**COMMON, "heads": 1000, "n_max": 2048}, seeds=5)],
    "rfa.heads": [
        Grid({**COMMON, "model": "rfa", "n": 512, "heads": [10, 30, 100, 300, 1000, INFINITE]}, seeds=5),
        Grid({**COMMON, "model": ["rfa", "brfa"], "n": 256, "heads": [300, 1000, 3000, INFINITE]}, seeds=5),
    ],
    "rfa.bias-scale": [Grid({**COMMON, "heads": 400, "scale": [0.0, 0.5, 1.0, 2.0, 4.0, 8.0], "n": 1024}, seeds=5)],
}


def seconds(names: list[str], checkout: Path, *options: str) -> float:
    """CPU seconds of one command in a process of its own, with a new store and a new report."""
    paths = [checkout / "src", *(checkout / "plugins").glob("*/src"), ROOT]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    module = ["benchmarks.rfa_figures", *options] if options else ["attnlab", "reproduce"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", *module, *names, "--quiet", "--store", "s.sqlite", "--out", "report"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        # A claim that differs from what is registered is not an error here; a run without a report is.
        subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False)
        if not (Path(folder) / "report" / "index.html").exists():
            raise RuntimeError(f"no report from {' '.join(command)} in {checkout}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def with_grids_before(arguments: list[str]) -> None:
    """The command, with the figures of the present code on the grids of the state before."""
    import attnlab.rfa.figures as room
    from attnlab.cli import main

    room.FIGURES = tuple(
        dataclasses.replace(f, scales={**f.scales, "quick": GRIDS_BEFORE.get(f.name, f.scales["quick"])})
        for f in room.FIGURES
    )
    sys.argv = ["attnlab", "reproduce", *arguments]
    main()


def run() -> None:
    """Print a row for each command, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="each figure in a command of its own, too")
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    table = [["figure", "before", "now, same grids", "ratio", "now"]]
    for names in [*([name] for name in NAMES if given.alone), NAMES]:
        rounds = [
            (seconds(names, given.before), seconds(names, ROOT, "--grids-before"), seconds(names, ROOT))
            for _ in range(given.runs)
        ]
        before, same, now = map(min, zip(*rounds, strict=True))
        title = names[0] if len(names) == 1 else "all nine in one command"
        table.append([title, f"{before:.1f}", f"{same:.1f}", f"{before / same:.2f}", f"{now:.1f}"])
        print(*table[-1], sep="\t", flush=True)
    if given.csv:
        with given.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--grids-before"]:
        with_grids_before(sys.argv[2:])
    else:
        run()
