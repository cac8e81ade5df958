"""``attnlab plan``: how many examples each learner needs for a target error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from attnlab.cli.jobs import choose_engine, load_modules, parse_knobs, stoppable, usage
from attnlab.cli.options import DEFAULT_STORE, Modules, OutFolder, Quiet, Scheduler, StorePath, Workers, completed
from attnlab.cli.terminal import console, print_table, say

if TYPE_CHECKING:
    from attnlab.lab.plans.plan import Plan


TaskName = Annotated[
    str,
    typer.Argument(
        metavar="TASK", help="A task, such as slr.Task ('attnlab list').", autocompletion=completed("tasks")
    ),
]


def plan(
    task: TaskName,
    error: Annotated[float, typer.Option(help="Target test error; the null predictor has 1.", metavar="E")] = 0.05,
    learner: Annotated[
        list[str] | None, typer.Option(help="A learner; by default all of the system.", metavar="NAME")
    ] = None,
    knobs: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter, such as task.d=32.", metavar="KEY=VALUE")
    ] = None,
    n_min: Annotated[int, typer.Option(help="Smallest number of examples.", min=1, metavar="N")] = 16,
    n_max: Annotated[int, typer.Option(help="Largest number of examples.", min=1, metavar="N")] = 4096,
    seeds: Annotated[int, typer.Option(help="Replicates of each size.", min=1, metavar="N")] = 5,
    n_test: Annotated[int, typer.Option(help="Test examples.", min=2, metavar="N")] = 1000,
    module: Modules = None,
    workers: Workers = 0,
    scheduler: Scheduler = "",
    store: StorePath = DEFAULT_STORE,
    out: OutFolder = Path("results/plan"),
    quiet: Quiet = False,
) -> None:
    """Find how many examples each learner needs.

    The number of examples for a target error, by theory and by simulation. A stopped plan continues with the same
    command. Example:

    `attnlab plan rfa.Task --error 0.1 --set task.d=8 --set task.n_keys=8`
    """
    from attnlab.lab.measure import silent
    from attnlab.lab.plans.planner import plan as find

    with usage():
        load_modules(module)
        engine = choose_engine(workers, scheduler, "", None, dry_run=False)
        with stoppable(store):
            found = find(
                task,
                error,
                learners=learner or (),  # none: those of the task's system
                set=parse_knobs(knobs),
                n_min=n_min,
                n_max=n_max,
                seeds=seeds,
                n_test=n_test,
                engine=engine,
                store=store,
                notify=silent if quiet else say,
            )
    show(found)
    for path in found.save(out):
        console.print(str(path), soft_wrap=True)


def show(found: Plan) -> None:
    """Theory and simulation side by side."""
    title = f"{found.task}: examples for a test error of {found.error:g} of null, {found.seeds} seeds"
    headings = ("learner", "by theory", "by simulation [95 %]", "one trial", "best error", "size")
    print_table(title, map(escape, headings), found.rows())
