"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import functools
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from typer import rich_utils

from attnlab import __version__
from attnlab.cli import options
from attnlab.cli.arena import arena
from attnlab.cli.bench import bench_app
from attnlab.cli.blas_kernels import set_kernels
from attnlab.cli.claims import claims_app, confirm, spend
from attnlab.cli.describe import describe
from attnlab.cli.explore import explore
from attnlab.cli.jobs import Job, choose_engine, execute, fastest, load_modules, parse_knobs, parse_shard, usage
from attnlab.cli.plan import plan
from attnlab.cli.process import Lines, end_on_signals
from attnlab.cli.store import store_app
from attnlab.cli.terminal import COLORS, console
from attnlab.cli.theory import SETTINGS, theory
from attnlab.cli.verdicts import exit_code, show
from attnlab.common.pages import keep_pages
from attnlab.common.words import many

if TYPE_CHECKING:
    from attnlab.lab.runner import Result

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Models of one attention layer that can be solved: simulate, compute theory, check claims.\n\n"
    "First: `attnlab list`, then `attnlab show slr.manifold` and `attnlab reproduce slr.manifold`.",
)
LOOK, COMPUTE, MAINTAIN = "Look", "Compute", "Maintain"


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.", metavar=options.FLAG)] = False,
) -> None:
    if version:
        console.print(__version__)
        raise typer.Exit


@app.command("list", rich_help_panel=LOOK)
def list_everything(module: options.Modules = None) -> None:
    """Show systems, figures, tasks and learners."""
    from attnlab.lab.catalogue import catalogue

    load_modules(module)
    # the fields of the catalogue, in the order in which it declares them
    for title, items in vars(catalogue()).items():
        table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        for name, text in items.items():
            table.add_row(f"[bold]{name}", text)
        console.print(table, "")


app.command("show", rich_help_panel=LOOK)(describe)
app.command("theory", context_settings=SETTINGS, rich_help_panel=LOOK)(theory)
app.command("explore", rich_help_panel=LOOK)(explore)


@app.command(rich_help_panel=COMPUTE)
def reproduce(
    names: options.Names = None,
    scale: options.Scale = "quick",
    workers: options.Workers = 0,
    scheduler: options.Scheduler = "",
    tls: options.Tls = "",
    slurm: options.Slurm = None,
    dry_run: options.DryRun = False,
    shard: options.ShardText = "",
    store: options.StorePath = options.DEFAULT_STORE,
    out: options.OutFolder = Path("results/report"),
    ledger_file: options.LedgerFile = None,
    only_fast: Annotated[
        bool, typer.Option("--only-fast", help="The quickest figures, about a minute in all.", metavar=options.FLAG)
    ] = False,
    decide: Annotated[
        bool, typer.Option("--decide", help="Then add replicates to undecided claims.", metavar=options.FLAG)
    ] = False,
    minutes: Annotated[float, typer.Option(help="Time for --decide, in minutes.", min=0, metavar="T")] = 10.0,
    fail_fast: options.FailFast = False,
    retry_failed: options.RetryFailed = False,
    keep_old: options.KeepOld = False,
    quiet: options.Quiet = False,
    module: options.Modules = None,
) -> None:
    """Run figures, judge their claims, write the report.

    What is stored is not computed again. Examples:

    `attnlab reproduce slr.manifold --workers 2`

    `attnlab reproduce slr --decide --minutes 20` then spends 20 minutes on undecided claims.
    """
    from attnlab.common.validation import one_of
    from attnlab.lab import registry

    with usage():
        load_modules(module)
        one_of("scale", scale, ["quick", "paper"])
        figures = registry.select(names or [])
        figures = fastest(figures, scale) if only_fast else figures
        engine = choose_engine(workers, scheduler, tls, slurm, dry_run)
        job = Job(engine, store, out, parse_shard(shard), fail_fast, retry_failed, quiet, dry_run, True, keep_old)
    # outside of usage(): what goes wrong from here on is no fault of the request
    results = execute(figures, scale, job)
    # a part of the cells decides nothing: claims wait for the merged store
    if decide and not job.shard:
        results = spend(results, scale, job, minutes, max(workers, 1))
        show(results, recorded=True)
    if ledger_file is not None and not job.shard:
        _keep(results, scale, ledger_file)
    raise typer.Exit(exit_code(results, recorded=True))


@app.command(rich_help_panel=COMPUTE)
def run(
    what: Annotated[
        str,
        typer.Argument(
            metavar="FIGURE|FILE.toml",
            help="A figure, or a sweep in TOML.",
            autocompletion=options.completed("figures"),
        ),
    ],
    knobs: Annotated[
        list[str] | None, typer.Option("--set", help="Change a knob; may be repeated.", metavar="NAME=VALUE")
    ] = None,
    scale: options.Scale = "quick",
    workers: options.Workers = 0,
    scheduler: options.Scheduler = "",
    tls: options.Tls = "",
    slurm: options.Slurm = None,
    dry_run: options.DryRun = False,
    shard: options.ShardText = "",
    store: options.StorePath = options.DEFAULT_STORE,
    out: options.OutFolder = Path("results/run"),
    fail_fast: options.FailFast = False,
    retry_failed: options.RetryFailed = False,
    keep_old: options.KeepOld = False,
    quiet: options.Quiet = False,
    max_cells: Annotated[int, typer.Option(help="Refuse larger grids without --yes.", min=1, metavar="N")] = 2000,
    yes: Annotated[bool, typer.Option("--yes", help="Run a grid beyond the limit.", metavar=options.FLAG)] = False,
    module: options.Modules = None,
) -> None:
    """Run one figure with changed knobs, or your own sweep.

    Changed settings show numbers, no verdicts. Examples:

    `attnlab run slr.manifold --set d=100 --set seeds=10`

    `attnlab run my-sweep.toml --workers 2`
    """
    from attnlab.lab import registry, sweep

    with usage():
        load_modules(module)
        changes = parse_knobs(knobs)
        # passed on to be called between reading and building: a grid that is too large must not be built
        accept = functools.partial(_accept, most=None if yes else max_cells)
        if what.endswith(".toml"):
            figure, scale = sweep.read(what, changes, accept)
        else:
            figure = registry.select([what])[0].changed(scale, changes)
            accept(figure.name, figure.size(scale))
        engine = choose_engine(workers, scheduler, tls, slurm, dry_run)
        job = Job(engine, store, out, parse_shard(shard), fail_fast, retry_failed, quiet, dry_run, False, keep_old)
    results = execute([figure], scale, job)
    raise typer.Exit(exit_code(results, recorded=False))


def _accept(name: str, size: int, most: int | None) -> None:
    """Print how many cells were asked for; more than ``most`` are refused."""
    console.print(f"{name}: {many(size, 'cell')}", markup=False)
    if most is not None and size > most:
        raise ValueError(f"the grid has {size} cells, more than --max-cells={most}; add --yes to run it")


@app.command(rich_help_panel=COMPUTE)
def report(
    names: options.Names = None,
    scale: options.Scale = "quick",
    store: options.StorePath = options.DEFAULT_STORE,
    out: options.OutFolder = Path("results/report"),
    ledger_file: options.LedgerFile = None,
    module: options.Modules = None,
) -> None:
    """Write the report of what is stored; compute nothing.

    Example: `attnlab report slr`
    """
    from attnlab.lab import registry
    from attnlab.lab.page import report as write
    from attnlab.lab.runner import collect
    from attnlab.lab.store import Store

    with usage():
        load_modules(module)
        figures = registry.select(names or [])
    with Store(store) as opened:
        # nothing is computed here: results of other code are shown, and marked
        stored = opened.figures()
        results = [collect(figure, scale, opened, keep_old=True) for figure in figures if figure.name in stored]
    if other := [result.figure.name for result in results if not result.count]:
        console.print(f"left out, stored at other settings or another scale only: {', '.join(other)}", soft_wrap=True)
    results = [result for result in results if result.count]
    show(results, recorded=True)
    if ledger_file is not None:
        _keep(results, scale, ledger_file)
    else:
        console.print(f"report: {write(results, out)}")


def _keep(results: list[Result], scale: str, file: Path) -> None:
    from attnlab.lab import ledger

    ledger.write(results, scale, file)
    console.print(f"ledger: {file}", soft_wrap=True)


app.command("confirm", rich_help_panel=COMPUTE)(confirm)
app.command("plan", rich_help_panel=COMPUTE)(plan)
app.command("arena", rich_help_panel=COMPUTE)(arena)
app.add_typer(store_app, name="store", rich_help_panel=MAINTAIN)
app.add_typer(claims_app, name="claims", rich_help_panel=MAINTAIN)
app.add_typer(bench_app, name="bench", rich_help_panel=MAINTAIN)


def main() -> None:
    """Entry point: errors of the lab are one line, everything else is a bug with its traceback."""
    if sys.platform == "win32":
        sys.exit("attnlab: the command line needs file locks of Linux or macOS; on Windows run it inside WSL")
    end_on_signals()
    # before NumPy is imported, which reads it once
    set_kernels()
    keep_pages()
    logging.getLogger("attnlab").addHandler(Lines())
    # typer prints the help with a console of its own
    rich_utils.COLOR_SYSTEM = COLORS
    options.without_types()
    # the error stream, so that a table printed by the command stays clean in a pipe
    errors = Console(stderr=True, emoji=False, color_system=COLORS)
    try:
        app()
    except KeyboardInterrupt:
        errors.print("attnlab: stopped; the same command continues from what is stored")
        sys.exit(130)  # 128 + SIGINT, what a shell expects of an interrupted command
    except Exception as error:
        from attnlab.lab.errors import LabError

        if not isinstance(error, LabError):
            raise
        errors.print(f"attnlab: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.code)
