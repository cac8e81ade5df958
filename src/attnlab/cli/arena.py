"""``attnlab arena``: every learner on every task it can take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from attnlab.cli.jobs import Job, choose_engine, compute, console, exit_code, load_modules, show, usage
from attnlab.cli.options import Modules
from attnlab.common.words import many

if TYPE_CHECKING:
    from attnlab.lab.contests.contest import Contest
    from attnlab.lab.contests.table import Standings


def arena(
    tasks: Annotated[str, typer.Option(help="Tasks, with commas; all by default.")] = "",
    learners: Annotated[str, typer.Option(help="Learners, with commas; all by default.")] = "",
    n: Annotated[str, typer.Option("--n", help="Numbers of training examples, with commas.")] = "",
    seeds: Annotated[int | None, typer.Option(help="Replicates.", min=1)] = None,
    scale: Annotated[str, typer.Option(help="quick or paper.")] = "quick",
    workers: Annotated[int, typer.Option(help="Local processes; 0 computes in this process.", min=0)] = 0,
    store: Annotated[Path, typer.Option(help="File that keeps the results.")] = Path("results/arena.sqlite"),
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("results/arena"),
    module: Modules = None,
    memory: Annotated[bool, typer.Option(help="Measure peak memory, each learner in a fresh process.")] = True,
    names: Annotated[bool, typer.Option("--list", help="Show the tasks and learners and stop.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how many cells would run and stop.")] = False,
    retry_failed: Annotated[bool, typer.Option(help="Compute failed cells again.")] = False,
    quiet: Annotated[bool, typer.Option(help="No progress.")] = False,
) -> None:
    """Put every learner against every task it can take, on equal data.

    Examples: `attnlab arena --workers 2`, `attnlab arena --tasks slr.spiked --learners RFA,softmax --n 250,1000`,
    `attnlab arena --module my_learner.py --learners own.MyLearner,linear`.
    """
    from attnlab.lab.contests.contest import contest

    with usage():
        load_modules(module)
        if names:
            _list()
            raise typer.Exit
        sizes = [_count(word) for word in _words(n)] or None
        request = contest(_words(tasks) or None, _words(learners) or None, n=sizes, seeds=seeds, scale=scale)
        engine = choose_engine(workers, "", "", None, dry_run)
    console.print(f"arena: {many(len(request.figure.cells(scale)), 'cell')}", highlight=False)
    if dry_run:
        raise typer.Exit
    job = Job(engine, store, out, None, False, retry_failed, quiet, dry_run, recorded=False)
    raise typer.Exit(_run(request, job, workers if memory else None))


def _run(request: Contest, job: Job, memory_workers: int | None) -> int:
    from attnlab.lab.contests.memory import measured
    from attnlab.lab.runner import collect
    from attnlab.lab.store import Store

    with Store(job.store, writable=True) as store:
        compute([request.figure], request.scale, job, store)
        standings = request.standings(collect(request.figure, request.scale, store))
    if memory_workers is not None:
        standings = measured(standings, job.out, memory_workers)
    page = standings.report(job.out)
    _show(standings)
    show([standings.result], recorded=False)
    console.print(f"report: {page}", soft_wrap=True)
    return exit_code([standings.result], recorded=False)


def _show(standings: Standings) -> None:
    """The errors at the largest number of examples, as a table."""
    from attnlab.lab.contests.table import KINDS

    for kind in KINDS:
        if rows := standings.matrix(kind):
            table = Table(*rows[0], title=f"{kind} tasks: error / null error", title_justify="left")
            for row in rows:
                table.add_row(*row.values())
            console.print(table)


def _list() -> None:
    from attnlab.lab.contests.learners import entered
    from attnlab.lab.contests.tasks import posed

    console.print("tasks: " + ", ".join(posed("quick")), highlight=False)
    console.print("learners: " + ", ".join(entered()), highlight=False)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _count(word: str) -> int:
    if not word.isdigit():
        raise ValueError(f"--n takes numbers with commas, for example 250,1000, got {word!r}")
    return int(word)
