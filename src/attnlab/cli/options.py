"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# Where results are kept unless --store says otherwise.
DEFAULT_STORE = Path("results/attnlab.sqlite")

Scale = Annotated[str, typer.Option(help="quick or paper.")]
StorePath = Annotated[Path, typer.Option("--store", help="File that keeps the results.")]
OutFolder = Annotated[Path, typer.Option("--out", help="Folder of the report.")]
Workers = Annotated[int, typer.Option(help="Local processes; 0 computes in this process.", min=0)]
Scheduler = Annotated[
    str, typer.Option(help="Address of a running Dask scheduler, tcp://host:port or tls://host:port.")
]
Tls = Annotated[str, typer.Option(help="Files ca,cert,key for a tls:// scheduler.")]
Slurm = Annotated[Path | None, typer.Option(help="TOML file with SLURM options (dask-jobqueue's arguments, and jobs).")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would run (--slurm: the job script) and stop.")]
ShardText = Annotated[str, typer.Option("--shard", help="Compute only part i/n, for job arrays; then store merge.")]
FailFast = Annotated[bool, typer.Option("--fail-fast/--keep-going", help="Stop at the first failed cell.")]
RetryFailed = Annotated[bool, typer.Option(help="Compute failed cells again.")]
KeepOld = Annotated[bool, typer.Option("--keep-old", help="Use stored results of other code than the present.")]
Quiet = Annotated[bool, typer.Option(help="No progress.")]
LedgerFile = Annotated[Path | None, typer.Option("--ledger", help="Bring the verdicts into this JSON file.")]
Modules = Annotated[
    list[Path] | None, typer.Option("--module", help="A Python file of yours to execute: it calls lab.add.")
]
