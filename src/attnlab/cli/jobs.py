"""What ``reproduce`` and ``run`` have in common: choose an engine, compute, decide, draw, show."""

from __future__ import annotations

import math
import os
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table

from attnlab.common.words import many

if TYPE_CHECKING:
    from attnlab.common.claim import Verdict
    from attnlab.common.figure import Figure
    from attnlab.lab.engine import Engine
    from attnlab.lab.live import LivePage
    from attnlab.lab.outcome import Outcome
    from attnlab.lab.runner import Result, Shard
    from attnlab.lab.store import Store

# NO_COLOR asks for no escape codes at all, bold included (no-color.org).
COLORS: Any = None if os.environ.get("NO_COLOR") else "auto"
# A log has no width of its own: 80 columns would break every sentence of the verdicts.
console = Console(emoji=False, color_system=COLORS, width=None if sys.stdout.isatty() else 160)

# Failed cells that are listed.
SHOWN = 20

# Expected minutes on two cores of what --only-fast computes.
FAST_MINUTES = 0.8


def say(text: str) -> None:
    """Print a line as it is: names in a store are data, neither markup nor commands to the terminal."""
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    console.print(plain, markup=False, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Job:
    """How figures are to be computed, where results go, and whether the verdicts on record apply to them."""

    engine: Engine
    store: Path
    out: Path
    shard: Shard | None
    fail_fast: bool
    retry_failed: bool
    quiet: bool
    dry_run: bool
    recorded: bool
    keep_old: bool = False
    stream: int = 1


def execute(figures: list[Figure], scale: str, job: Job) -> list[Result]:
    """Compute what is missing, then read, decide, draw and show; the page is renewed after each finished figure."""
    from attnlab.lab import registry
    from attnlab.lab.live import LivePage
    from attnlab.lab.store import Store

    runnable = [figure for figure in figures if (extra := figure.missing_extra()) is None or _skip(figure, extra)]
    if job.dry_run:
        for figure in runnable:
            say(f"{figure.name}: {many(figure.size(scale), 'cell')}, {duration(figure.minutes.get(scale, 0.0))}")
        _announce(runnable, scale, {figure.name: figure.size(scale) for figure in runnable})
        raise typer.Exit
    with Store(job.store, writable=True) as store:
        beside = registry.figures().values() if job.recorded else []
        page = LivePage(runnable, beside, scale, store, job.out, job.keep_old)
        compute(runnable, scale, job, store, page)
        if job.shard:
            say(f"this part is in {job.store}; merge the parts with 'attnlab store merge'")
            return []
        written = page.write()
        results = [page.results[figure.name] for figure in runnable]
    skipped = [claim for figure in figures if figure not in runnable for claim in figure.claims]
    show(results, recorded=job.recorded, not_measured=len(skipped))
    say(f"report: {written}")
    return results


def compute(figures: list[Figure], scale: str, job: Job, store: Store, page: LivePage | None = None) -> None:
    """Compute and commit the cells that are missing; the page is renewed after each finished figure."""
    from attnlab.lab.progress import reporting
    from attnlab.lab.runner import compute_cells, missing_cells

    for note in store.notes:
        say(note)
    options = {"retry_failed": job.retry_failed, "keep_old": job.keep_old}
    cells = missing_cells(figures, scale, store, shard=job.shard, stream=job.stream, **options)
    if not len(cells):  # nothing to start workers for
        return
    if not job.quiet:
        _announce(figures, scale, cells.counts)
    page = None if job.shard else page
    if page is not None:
        page.start(cells.counts)
    seconds = {f.name: 60 * f.minutes.get(scale, 0.0) / f.size(scale) for f in figures}
    with reporting(console, cells.counts, seconds, job.quiet) as progress:

        def finished(outcome: Outcome) -> None:
            progress(outcome)
            if page is not None:
                page(outcome)

        with stoppable(job.store):
            compute_cells(cells, store, job.engine, report=finished, fail_fast=job.fail_fast)


@contextmanager
def stoppable(store: Path) -> Iterator[None]:
    """Inside, Ctrl-C ends the command with one line on what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"stopped; what is finished is in {store}, the same command continues from there")
        raise typer.Exit(130) from None


def _announce(figures: list[Figure], scale: str, missing: dict[str, int]) -> None:
    """Before anything starts: what is to be computed and how long the run is expected to take."""
    from attnlab.lab.durations import of_run

    left = [figure for figure in figures if missing[figure.name]]
    minutes = of_run(missing[f.name] / f.size(scale) * f.minutes.get(scale, 0.0) for f in left)
    where = " on two cores" * (minutes > 0)
    figures_told = f" of {len(left)} figures" * (len(left) > 1)
    say(f"{many(sum(missing.values()), 'cell')}{figures_told} to compute, {duration(minutes)}{where}")


def fastest(figures: list[Figure], scale: str, minutes: float = FAST_MINUTES) -> list[Figure]:
    """The quickest figures, the systems in turn, as many as their expected times allow, in the order given."""
    from attnlab.lab.durations import DRAWING

    ranked = sorted(figures, key=lambda figure: figure.minutes.get(scale, math.inf))
    systems = [figure.name.split(".")[0] for figure in ranked]
    turns = sorted(range(len(ranked)), key=lambda i: systems[:i].count(systems[i]))
    chosen, spent = set(), 0.0
    for figure in (ranked[i] for i in turns):
        taken = figure.minutes.get(scale, math.inf) + DRAWING
        if spent + taken <= minutes:
            spent += taken
            chosen.add(figure.name)
    return [figure for figure in figures if figure.name in chosen]


def duration(minutes: float) -> str:
    """A time in words."""
    if minutes <= 0:
        return "time unknown"
    if minutes < 1:
        return f"about {round(60 * minutes)} s" if minutes >= 1 / 60 else "less than 1 s"
    return f"about {minutes:.1f} min" if minutes < 90 else f"about {minutes / 60:.1f} h"


def _skip(figure: Figure, extra: str) -> bool:
    say(f"skipped {figure.name}: it needs the extra, pip install 'attnlab[{extra}]'")
    return False


def show(results: list[Result], *, recorded: bool, not_measured: int = 0) -> None:
    """The ledger: what differs from the registered verdicts first, every claim by paper, the counts, failed cells.

    ``not_measured`` counts the claims of figures that were skipped.
    """
    from attnlab.lab import ledger

    verdicts = [verdict for result in results for verdict in result.verdicts]
    changed = [verdict for verdict in verdicts if recorded and not verdict.as_registered]
    for title, group in {
        "differs from the registered verdict": changed,
        **ledger.by_paper((v.claim, v) for v in verdicts),
    }.items():
        if group:
            console.print(_table(title, group, recorded=recorded))
    if verdicts:
        differ = "1 differs" if len(changed) == 1 else f"{len(changed) or 'none'} differ"
        told = f"; {differ} from the registered verdict" if recorded else ""
        statuses = [*(v.status for v in verdicts), *["not measured"] * not_measured]
        say(f"{ledger.tally(statuses)}{told}")
    for result in results:
        if result.figure.unjudged:
            say(f"{result.figure.name}: no claim is judged; {result.figure.unjudged}")
        if result.old:
            say(f"{result.figure.name}: {result.old} of {result.count} cells are from other code")
    failed = [cell for result in results for cell in result.failed]
    for cell in failed[:SHOWN]:
        last = cell.error.strip().splitlines()[-1]
        say(f"failed: {cell.figure} {cell.id[:12]} {cell.params}: {last}")
    if len(failed) > SHOWN:
        say(f"and {many(len(failed) - SHOWN, 'more failed cell')}")


def _table(title: str, verdicts: list[Verdict], *, recorded: bool) -> Table:
    from rich.markup import escape

    from attnlab.lab import ledger

    table = Table(title=title, title_justify="left", expand=True)
    table.add_column("claim", no_wrap=True)
    for heading in ("verdict", "value [95 %]", "holds if", "sentence"):
        table.add_column(escape(heading))
    colors = {"holds": "green", "fails": "red", "undecided": "yellow", "not measured": "dim"}
    for verdict in verdicts:
        status = f"[{colors[verdict.status]}]{verdict.status}[/]"
        if recorded and not verdict.as_registered:
            status += f" (registered: {verdict.registered})"
        says = [verdict.claim.says, *filter(None, (verdict.reason, ledger.decided_by(verdict)))]
        cells = map(escape, (ledger.interval(verdict), str(verdict.claim.holds), "\n".join(says)))
        table.add_row(verdict.claim.id, status, *cells)
    return table


def exit_code(results: list[Result], *, recorded: bool) -> int:
    """0 when all cells are there and, where a record applies, no verdict is the opposite of the registered one."""
    broken = any(result.failed or result.missing for result in results)
    surprising = recorded and any(v.contradicts for result in results for v in result.verdicts)
    return int(broken or surprising)


def choose_engine(workers: int, scheduler: str, tls: str, slurm: Path | None, dry_run: bool) -> Engine:
    """The engine meant by the options; at most one kind."""
    from attnlab.lab.engine import DaskEngine, LocalWorkers, RunningCluster, SerialEngine, SlurmJobs, compiled

    if sum([workers > 0, bool(scheduler), slurm is not None]) > 1:
        raise ValueError("give only one of --workers, --scheduler and --slurm")
    if slurm is not None:
        jobs = SlurmJobs.from_toml(slurm)
        if dry_run:
            typer.echo(jobs.job_script())  # as it is: a wrapped line would be another script
            raise typer.Exit
        return DaskEngine(jobs)
    if scheduler:
        return DaskEngine(RunningCluster(scheduler, parse_tls(scheduler, tls)))
    if workers:
        return DaskEngine(LocalWorkers(workers))
    os.environ.update(compiled.environment())  # read when a cell imports JAX
    return SerialEngine()


def parse_tls(scheduler: str, text: str) -> dict[str, str]:
    """The files ``ca,cert,key`` of a scheduler that speaks TLS; none for another."""
    files = text.split(",") if text else []
    if scheduler.startswith("tls://") != bool(files) or len(files) not in (0, 3):
        raise ValueError("--tls ca.pem,cert.pem,key.pem goes with a tls:// scheduler, and only with one")
    for file in files:
        if not Path(file).is_file():
            raise ValueError(f"--tls names a file that is not there: {file}")
    return dict(zip(("ca", "cert", "key"), files, strict=False))


def load_modules(files: list[Path] | None) -> None:
    """Execute the files of the user's."""
    from attnlab.lab.own import load

    for file in files or []:
        load(file)


def parse_shard(text: str) -> Shard | None:
    """``i/n``, or nothing for the whole."""
    from attnlab.lab.runner import Shard

    return Shard.parse(text) if text else None


def parse_knobs(texts: list[str] | None) -> dict[str, Any]:
    """The settings of ``--set``, each ``name=value`` with a TOML value; a bare word is a string."""
    return dict(map(_knob, texts or []))


def _knob(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"--set takes name=value, got {text!r}")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value
    except RecursionError as error:
        raise ValueError(f"--set {name} nests too deeply") from error


class usage:  # reads as a statement: with usage(): ...
    """Inside, a wrong value is the user's request, not a bug: one line and exit code 2."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        from attnlab.lab.errors import UsageError

        if isinstance(error, ValueError | TypeError | LookupError):
            raise UsageError(str(error)) from error
