"""``attnlab arena``: every learner on every task it can take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.cli.jobs import Job, choose_engine, compute, load_modules, usage
from attnlab.cli.options import FLAG, DryRun, Modules, OutFolder, Quiet, RetryFailed, Scale, StorePath, Workers
from attnlab.cli.terminal import console, print_table
from attnlab.cli.verdicts import exit_code, show
from attnlab.common.words import many

if TYPE_CHECKING:
    from attnlab.lab.contests.contest import Contest
    from attnlab.lab.contests.table import Comparison


def arena(
    tasks: Annotated[str, typer.Option(help="Tasks, with commas; all by default.", metavar="NAMES")] = "",
    learners: Annotated[str, typer.Option(help="Learners, with commas; all by default.", metavar="NAMES")] = "",
    n: Annotated[str, typer.Option("--n", help="Numbers of training examples.", metavar="N,N,...")] = "",
    seeds: Annotated[int | None, typer.Option(help="Replicates.", min=1, metavar="N")] = None,
    scale: Scale = "quick",
    workers: Workers = 0,
    store: StorePath = Path("results/arena.sqlite"),
    out: OutFolder = Path("results/arena"),
    module: Modules = None,
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Do not measure peak memory.", metavar=FLAG)] = False,
    names: Annotated[bool, typer.Option("--list", help="Show tasks and learners, then stop.", metavar=FLAG)] = False,
    dry_run: DryRun = False,
    retry_failed: RetryFailed = False,
    quiet: Quiet = False,
) -> None:
    """Compare learners on tasks, with equal data.

    Every learner is fitted to every task that it can take. Examples:

    `attnlab arena --tasks slr.spiked --learners RFA,softmax --n 250,1000`

    `attnlab arena --module my_learner.py --learners own.MyLearner,linear`
    """
    from attnlab.lab.contests.contest import contest

    with usage():
        load_modules(module)
        if names:
            _list()
            raise typer.Exit
        # None, for an empty list would be a request without sizes
        sizes = [_count(word) for word in _words(n)] or None
        request = contest(_words(tasks) or None, _words(learners) or None, n=sizes, seeds=seeds, scale=scale)
        engine = choose_engine(workers, "", "", None, dry_run)
    console.print(f"arena: {many(len(request.figure.cells(scale)), 'cell')}", highlight=False)
    if dry_run:
        raise typer.Exit
    # no registered verdicts: the arena has no claims
    job = Job(engine, store, out, None, False, retry_failed, quiet, dry_run, recorded=False)
    raise typer.Exit(_run(request, job, None if no_memory else workers))


def _run(request: Contest, job: Job, memory_workers: int | None) -> int:
    from attnlab.lab.contests.memory import measured
    from attnlab.lab.runner import collect
    from attnlab.lab.store import Store

    with Store(job.store, writable=True) as store:
        compute([request.figure], request.scale, job, store)
        comparison = request.comparison(collect(request.figure, request.scale, store))
    if memory_workers is not None:
        # kept beside the report and not in the store, whose results must not depend on it
        comparison = measured(comparison, job.out, memory_workers)
    page = comparison.report(job.out)
    _show(comparison)
    show([comparison.result], recorded=False)
    console.print(f"report: {page}", soft_wrap=True)
    return exit_code([comparison.result], recorded=False)


def _show(comparison: Comparison) -> None:
    """The errors at the largest number of examples, as a table."""
    from attnlab.lab.contests.table import KINDS

    for kind in KINDS:
        if rows := comparison.matrix(kind):
            print_table(f"{kind} tasks: error / null error", rows[0], (row.values() for row in rows))


def _list() -> None:
    from attnlab.lab.contests.entrants import arena_learners, arena_tasks

    console.print("tasks: " + ", ".join(arena_tasks("quick")), highlight=False)
    console.print("learners: " + ", ".join(arena_learners()), highlight=False)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _count(word: str) -> int:
    if not word.isdigit():
        raise ValueError(f"--n takes numbers with commas, for example 250,1000, got {word!r}")
    return int(word)
