"""What ``reproduce`` and ``run`` have in common: choose an engine, compute, decide, draw."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from attnlab.cli import blas_kernels
from attnlab.cli.terminal import console, say
from attnlab.cli.verdicts import show
from attnlab.common.words import many

if TYPE_CHECKING:
    from attnlab.common.figure import Figure
    from attnlab.lab.engine import Engine
    from attnlab.lab.live import LivePage
    from attnlab.lab.outcome import Outcome
    from attnlab.lab.runner import Missing, Result, Shard
    from attnlab.lab.store import Store

# Expected minutes on two cores of what --only-fast computes.
FAST_MINUTES = 0.8


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

    # _skip prints the reason and is False
    runnable = [figure for figure in figures if (extra := figure.missing_extra()) is None or _skip(figure, extra)]
    if job.dry_run:
        for figure in runnable:
            say(f"{figure.name}: {many(figure.size(scale), 'cell')}, {duration(figure.minutes.get(scale, 0.0))}")
        _announce(runnable, scale, _counts(runnable, scale, job))
        raise typer.Exit
    with Store(job.store, writable=True) as store:
        # with settings of the user's own the page shows this run alone
        beside = registry.figures().values() if job.recorded else []
        page = LivePage(runnable, beside, scale, store, job.out, job.keep_old)
        compute(runnable, scale, job, store, page)
        if job.shard:
            say(f"this part is in {job.store}; merge the parts with 'attnlab store merge'")
            return []
        written = page.write()
        results = [page.results[figure.name] for figure in runnable]
    # claims of skipped figures stay in the sum, as not measured
    skipped = [claim for figure in figures if figure not in runnable for claim in figure.claims]
    show(results, recorded=job.recorded, not_measured=len(skipped))
    say(f"report: {written}")
    return results


def _counts(figures: list[Figure], scale: str, job: Job) -> dict[str, int]:
    """How many cells of each figure are missing; all of them where there is no store yet."""
    from attnlab.lab.store import Store

    # a dry run must not leave an empty store behind
    if not job.store.exists():
        return {figure.name: figure.size(scale) for figure in figures}
    with Store(job.store) as store:
        return _missing(figures, scale, job, store).counts


def _missing(figures: list[Figure], scale: str, job: Job, store: Store) -> Missing:
    from attnlab.lab.runner import missing_cells

    options = {"retry_failed": job.retry_failed, "keep_old": job.keep_old}
    return missing_cells(figures, scale, store, shard=job.shard, stream=job.stream, **options)


def compute(figures: list[Figure], scale: str, job: Job, store: Store, page: LivePage | None = None) -> None:
    """Compute and commit the cells that are missing; the page is renewed after each finished figure."""
    from attnlab.lab.progress import reporting
    from attnlab.lab.runner import compute_cells

    for note in store.notes:
        say(note)
    cells = _missing(figures, scale, job, store)
    if not len(cells):  # nothing to start workers for
        return
    if not job.quiet:
        _announce(figures, scale, cells.counts)
    # a part of a run has nothing complete to show
    page = None if job.shard else page
    if page is not None:
        page.start(cells.counts)
    # the stated time shared out equally; the clock corrects it by the cells that are finished
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
        raise typer.Exit(130) from None  # 128 + SIGINT


def _announce(figures: list[Figure], scale: str, missing: dict[str, int]) -> None:
    """Before anything starts: what is to be computed and how long the run is expected to take."""
    from attnlab.lab.durations import of_run

    left = [figure for figure in figures if missing[figure.name]]
    if not left:
        say("every cell is in the store")
        return
    minutes = of_run(missing[f.name] / f.size(scale) * f.minutes.get(scale, 0.0) for f in left)
    where = " on two cores" * (minutes > 0)
    of_figures = f" of {len(left)} figures" * (len(left) > 1)
    say(f"{many(sum(missing.values()), 'cell')}{of_figures} to compute, {duration(minutes)}{where}")


def fastest(figures: list[Figure], scale: str, minutes: float = FAST_MINUTES) -> list[Figure]:
    """The quickest figures, the systems in turn, as many as their expected times allow, in the order given."""
    from attnlab.lab.durations import DRAWING

    ranked = sorted(figures, key=lambda figure: figure.minutes.get(scale, math.inf))
    systems = [figure.name.split(".")[0] for figure in ranked]
    # the first of each system, then the second of each: every system is seen, whatever its figures cost
    turns = sorted(range(len(ranked)), key=lambda i: systems[:i].count(systems[i]))
    chosen, spent = set(), 0.0
    for figure in (ranked[i] for i in turns):
        # a figure of unknown time never fits
        taken = figure.minutes.get(scale, math.inf) + DRAWING
        # one that does not fit is passed over: a later one of another system may be shorter
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
        blas_kernels.withdraw()  # jobs inherit this environment, on other processors
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
    # a bare word, such as softmax, needs no quotes within those of the shell
    except tomllib.TOMLDecodeError:
        return name, value
    except RecursionError as error:
        raise ValueError(f"--set {name} nests too deeply") from error


@contextmanager
def usage() -> Iterator[None]:
    """Inside, a wrong value is the user's request, not a bug: one line and exit code 2."""
    try:
        yield
    except (ValueError, TypeError, LookupError) as error:
        from attnlab.lab.errors import UsageError

        raise UsageError(str(error)) from error
