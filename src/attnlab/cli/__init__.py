"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from attnlab import __version__
from attnlab.cli.arena import arena
from attnlab.cli.bench import bench_app
from attnlab.cli.claims import claims_app, confirm, spend
from attnlab.cli.describe import describe
from attnlab.cli.explore import explore
from attnlab.cli.jobs import (
    Job,
    choose_engine,
    console,
    execute,
    exit_code,
    fastest,
    load_modules,
    parse_knob,
    parse_shard,
    show,
    usage,
)
from attnlab.cli.options import (
    DEFAULT_STORE,
    DryRun,
    FailFast,
    KeepOld,
    LedgerFile,
    Modules,
    OutFolder,
    Quiet,
    RetryFailed,
    Scale,
    Scheduler,
    ShardText,
    Slurm,
    StorePath,
    Tls,
    Workers,
)
from attnlab.cli.plan import plan
from attnlab.cli.store import store_app
from attnlab.cli.theory import SETTINGS, theory
from attnlab.common.words import many

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="The laboratory for solvable attention: sample, learn, predict and verify.\n\n"
    "Example: `attnlab reproduce slr` runs every figure of single-location regression.",
)
app.add_typer(store_app, name="store")
app.add_typer(claims_app, name="claims")
app.command("arena")(arena)
app.command("confirm")(confirm)
app.command("explore")(explore)
app.command("plan")(plan)
app.command("show")(describe)
app.command("theory", context_settings=SETTINGS)(theory)
app.add_typer(bench_app, name="bench")


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        console.print(__version__)
        raise typer.Exit


@app.command("list")
def list_everything(module: Modules = None) -> None:
    """Show systems, figures, tasks and learners, one line each. Example: `attnlab list`."""
    from attnlab.lab.catalogue import catalogue

    load_modules(module)
    for title, items in vars(catalogue()).items():
        table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        for name, text in items.items():
            table.add_row(f"[bold]{name}", text)
        console.print(table, "")


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Systems or figures; all of them if none is named.")] = None,
    scale: Scale = "quick",
    workers: Workers = 0,
    scheduler: Scheduler = "",
    tls: Tls = "",
    slurm: Slurm = None,
    dry_run: DryRun = False,
    shard: ShardText = "",
    store: StorePath = DEFAULT_STORE,
    out: OutFolder = Path("results/report"),
    ledger_file: LedgerFile = None,
    only_fast: Annotated[
        bool, typer.Option("--only-fast", help="Only the quickest figures, about a minute in all.")
    ] = False,
    decide: Annotated[bool, typer.Option("--decide", help="Then add replicates to undecided claims.")] = False,
    minutes: Annotated[float, typer.Option(help="Time that --decide may spend.", min=0)] = 10.0,
    fail_fast: FailFast = False,
    retry_failed: RetryFailed = False,
    keep_old: KeepOld = False,
    quiet: Quiet = False,
    module: Modules = None,
) -> None:
    """Run figures, decide their claims and write the report. Example: `attnlab reproduce slr.manifold --workers 2`.

    `--decide --minutes 20` then spends twenty minutes on undecided claims, the cheapest to decide first.
    """
    from attnlab.common.validation import one_of
    from attnlab.lab import ledger, registry

    with usage():
        load_modules(module)
        one_of("scale", scale, ["quick", "paper"])
        figures = registry.select(names or [])
        figures = fastest(figures, scale) if only_fast else figures
        engine = choose_engine(workers, scheduler, tls, slurm, dry_run)
        job = Job(engine, store, out, parse_shard(shard), fail_fast, retry_failed, quiet, dry_run, True, keep_old)
    results = execute(figures, scale, job)
    if decide and not job.shard:
        results = spend(results, scale, job, minutes, max(workers, 1))
        show(results, recorded=True)
    if ledger_file is not None and not job.shard:
        ledger.write(results, scale, ledger_file)
        console.print(f"ledger: {ledger_file}", soft_wrap=True)
    raise typer.Exit(exit_code(results, recorded=True))


@app.command()
def run(
    what: Annotated[str, typer.Argument(metavar="FIGURE|FILE.toml", help="A figure, or a sweep written in TOML.")],
    knobs: Annotated[list[str] | None, typer.Option("--set", help="Change a knob: --set d=64 --set seeds=10.")] = None,
    scale: Scale = "quick",
    workers: Workers = 0,
    scheduler: Scheduler = "",
    tls: Tls = "",
    slurm: Slurm = None,
    dry_run: DryRun = False,
    shard: ShardText = "",
    store: StorePath = DEFAULT_STORE,
    out: OutFolder = Path("results/run"),
    fail_fast: FailFast = False,
    retry_failed: RetryFailed = False,
    keep_old: KeepOld = False,
    quiet: Quiet = False,
    max_cells: Annotated[int, typer.Option(help="Refuse larger grids unless --yes.", min=1)] = 2000,
    yes: Annotated[bool, typer.Option("--yes", help="Run a grid beyond the limit.")] = False,
    module: Modules = None,
) -> None:
    """Run one figure with a knob changed, or a sweep of your own.

    Examples: `attnlab run slr.manifold --set d=100 --set seeds=10`, `attnlab run my-sweep.toml --workers 2`.
    """
    from attnlab.lab import registry, sweep

    with usage():
        load_modules(module)
        if what.endswith(".toml"):
            figure, scale = sweep.read(what)
        else:
            figure = registry.select([what])[0]
        figure = figure.changed(scale, dict(parse_knob(text) for text in knobs or []))
        size = figure.size(scale)
        console.print(f"{figure.name}: {many(size, 'cell')}", markup=False)
        if size > max_cells and not yes:
            raise ValueError(f"the grid has {size} cells, more than --max-cells={max_cells}; add --yes to run it")
        engine = choose_engine(workers, scheduler, tls, slurm, dry_run)
        job = Job(engine, store, out, parse_shard(shard), fail_fast, retry_failed, quiet, dry_run, False, keep_old)
    results = execute([figure], scale, job)
    raise typer.Exit(exit_code(results, recorded=False))


@app.command()
def report(
    names: Annotated[list[str] | None, typer.Argument(help="Systems or figures; all if none is named.")] = None,
    scale: Scale = "quick",
    store: StorePath = DEFAULT_STORE,
    out: OutFolder = Path("results/report"),
    ledger_file: LedgerFile = None,
    module: Modules = None,
) -> None:
    """Write the report of what is stored, computing nothing. Example: `attnlab report slr`."""
    from attnlab.lab import ledger, registry
    from attnlab.lab.page import report as write
    from attnlab.lab.runner import collect
    from attnlab.lab.store import Store

    with usage():
        load_modules(module)
        figures = registry.select(names or [])
    with Store(store) as opened:
        # nothing is computed here: results of other code are shown, and marked
        results = [collect(figure, scale, opened, keep_old=True) for figure in figures]
    results = [result for result in results if result.count]
    show(results, recorded=True)
    if ledger_file is not None:
        ledger.write(results, scale, ledger_file)
        console.print(f"ledger: {ledger_file}", soft_wrap=True)
    else:
        console.print(f"report: {write(results, out)}")


class _Lines(logging.Handler):
    """What the engines have to say while they wait: one line each."""

    def emit(self, record: logging.LogRecord) -> None:
        console.print(record.getMessage(), markup=False, highlight=False, soft_wrap=True)


def _interrupt(signum: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _end_on_signals() -> None:
    """Queue systems send SIGTERM, SIGUSR1 or SIGHUP before the time is over: each ends a run as Ctrl-C does."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP, and means it
            signal.signal(number, _interrupt)


def main() -> None:
    """Entry point: errors of the lab are one line, everything else is a bug with its traceback."""
    if sys.platform == "win32":
        sys.exit("attnlab: the command line needs file locks of Linux or macOS; on Windows run it inside WSL")
    _end_on_signals()
    logging.getLogger("attnlab").addHandler(_Lines())
    try:
        app()
    except KeyboardInterrupt:
        Console(stderr=True).print("attnlab: stopped; the same command goes on from what is stored")
        sys.exit(130)
    except Exception as error:
        from attnlab.lab.errors import LabError

        if not isinstance(error, LabError):
            raise
        Console(stderr=True, emoji=False).print(f"attnlab: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.code)
