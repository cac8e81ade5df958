"""``attnlab plan``: how many examples each learner needs for a target error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from attnlab.cli.jobs import choose_engine, console, load_modules, parse_knob, usage
from attnlab.cli.options import DEFAULT_STORE, Modules

if TYPE_CHECKING:
    from attnlab.lab.plans.plan import Plan


def plan(
    task: Annotated[str, typer.Argument(help="A task, for example slr.Task; attnlab list shows them.")],
    error: Annotated[float, typer.Option(help="Target test error, relative to the null predictor.")] = 0.05,
    learner: Annotated[list[str] | None, typer.Option(help="Learners; by default those of the task's system.")] = None,
    knobs: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter: --set task.d=32 --set rfa.RandomFeatureAttention.n_heads=500."),
    ] = None,
    n_min: Annotated[int, typer.Option(help="Smallest number of examples tried.", min=1)] = 16,
    n_max: Annotated[int, typer.Option(help="Largest number of examples tried.", min=1)] = 4096,
    seeds: Annotated[int, typer.Option(help="Replicates of each size.", min=1)] = 5,
    n_test: Annotated[int, typer.Option(help="Test examples.", min=2)] = 1000,
    module: Modules = None,
    workers: Annotated[int, typer.Option(help="Local processes; 0 computes in this process.", min=0)] = 0,
    scheduler: Annotated[str, typer.Option(help="Address of a running Dask scheduler.")] = "",
    store: Annotated[Path, typer.Option(help="File that keeps the results.")] = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="Folder of plan.json and plan.png.")] = Path("results/plan"),
    quiet: Annotated[bool, typer.Option(help="No progress.")] = False,
) -> None:
    """Find how many examples each learner needs for a target error, by theory and by simulation.

    Example: `attnlab plan rfa.Task --error 0.1 --set task.d=8 --set task.n_keys=8`. Stopped, the same command goes on.
    """
    from attnlab.lab.measure import silent
    from attnlab.lab.plans.planner import plan as find

    with usage():
        load_modules(module)
        engine = choose_engine(workers, scheduler, "", None, dry_run=False)
        settings = dict(parse_knob(text) for text in knobs or [])
        try:
            found = find(
                task,
                error,
                learners=learner or (),
                set=settings,
                n_min=n_min,
                n_max=n_max,
                seeds=seeds,
                n_test=n_test,
                engine=engine,
                store=store,
                notify=silent if quiet else lambda line: console.print(line, highlight=False),
            )
        except KeyboardInterrupt:
            console.print(f"stopped; what is finished is in {store}, the same command goes on from there")
            raise typer.Exit(130) from None
    show(found)
    for path in found.save(out):
        console.print(str(path), soft_wrap=True)


def show(found: Plan) -> None:
    """Theory and simulation side by side."""
    title = f"{found.task}: examples for a test error of {found.error:g} of null, {found.seeds} seeds"
    table = Table(title=title, title_justify="left")
    for heading in ("learner", "by theory", "by simulation [95 %]", "one trial", "best error", "size"):
        table.add_column(heading)
    for row in found.rows():
        table.add_row(*row)
    console.print(table)
