"""Options that several commands have, in the groups in which the help shows them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperArgument, TyperOption

# Where results are kept unless --store says otherwise.
DEFAULT_STORE = Path("results/attnlab.sqlite")
WHERE = "Where to compute"
FILES = "Files"
# What the help shows behind an option that takes no value.
FLAG = ""


def without_types() -> None:
    """Help shows the metavars of this file, without the Python types that newer versions of typer print."""
    # an attribute that older versions of typer do not have and do not read
    for kind in (TyperArgument, TyperOption):
        setattr(kind, "display_type", lambda parameter, ctx: "")  # noqa: B010


def completed(*kinds: str) -> Callable[[str], list[str]]:
    """A function for tab completion: the names of some kinds (systems, figures, tasks, learners) with a beginning."""

    def names(incomplete: str) -> list[str]:
        from attnlab.lab.catalogue import catalogue

        # the catalogue reads source files: completion must answer at once, without importing a system
        found = catalogue()
        return [name for kind in kinds for name in getattr(found, kind) if name.startswith(incomplete)]

    return names


Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME", help="Systems or figures; default: all.", autocompletion=completed("systems", "figures")
    ),
]
# The name is written out: typer 0.27 takes a metavar that equals the parameter's name for the option itself.
Scale = Annotated[str, typer.Option("--scale", help="Size of the grids: quick or paper.", metavar="SCALE")]
Workers = Annotated[
    int,
    typer.Option(help="Local processes; 0 computes in this one.", min=0, metavar="N", rich_help_panel=WHERE),
]
Scheduler = Annotated[
    str, typer.Option(help="A running Dask scheduler, tcp://host:port.", metavar="ADDRESS", rich_help_panel=WHERE)
]
Tls = Annotated[
    str, typer.Option(help="Files ca,cert,key of a tls:// scheduler.", metavar="FILES", rich_help_panel=WHERE)
]
Slurm = Annotated[
    Path | None,
    typer.Option(help="TOML file with SLURM options; see --dry-run.", metavar="FILE", rich_help_panel=WHERE),
]
ShardText = Annotated[
    str,
    typer.Option("--shard", help="Part i/n only; then 'attnlab store merge'.", metavar="I/N", rich_help_panel=WHERE),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what would run (--slurm: the job script).", metavar=FLAG)
]
FailFast = Annotated[bool, typer.Option("--fail-fast", help="Stop at the first failed cell.", metavar=FLAG)]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Compute failed cells again.", metavar=FLAG)]
KeepOld = Annotated[bool, typer.Option("--keep-old", help="Keep stored results of older code.", metavar=FLAG)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print no progress.", metavar=FLAG)]
StorePath = Annotated[
    Path, typer.Option("--store", help="SQLite file of results.", metavar="FILE", rich_help_panel=FILES)
]
OutFolder = Annotated[
    Path, typer.Option("--out", help="Folder of the report.", metavar="FOLDER", rich_help_panel=FILES)
]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="Write verdicts to this JSON file.", metavar="FILE", rich_help_panel=FILES),
]
Modules = Annotated[
    list[Path] | None,
    typer.Option("--module", help="Your Python file; it calls lab.add.", metavar="FILE", rich_help_panel=FILES),
]
