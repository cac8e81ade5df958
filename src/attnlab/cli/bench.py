"""``attnlab bench``: measure this machine, compare two runs, write the page of the documentation.

The benchmarks with their baselines are a package beside the library in the repository, not a part of it.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from attnlab.cli.jobs import usage
from attnlab.cli.terminal import console, print_table

bench_app = typer.Typer(
    invoke_without_command=True,
    help="Measure the speed of attnlab on this machine.\n\n"
    "Ratios to usual alternatives, shares of the hardware's rates, growth, memory. Needs the source repository. "
    "Example: `attnlab bench --only rfa,aim --json results/today.json`",
)
MARKS = {True: "[green]met", False: "[red]missed", None: ""}


def benchmarks(module: str) -> Any:
    """A module of the repository's benchmarks, from the checkout that is installed or the one we stand in."""
    # src/attnlab/cli/bench.py in a checkout: three folders up lies benchmarks
    for folder in (Path(__file__).parents[3], Path.cwd()):
        if (folder / "benchmarks" / "harness.py").is_file():
            # the benchmarks import each other as a package of this folder
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))
            return importlib.import_module(f"benchmarks.{module}")
    raise LookupError(
        "the benchmarks are in the source repository, not in the installed package: "
        "run 'attnlab bench' inside a checkout of attnlab, or 'make bench' there"
    )


@bench_app.callback()
def bench(
    context: typer.Context,
    only: Annotated[str, typer.Option(help="Parts: machine, lab, a system; default: all.", metavar="NAMES")] = "",
    json: Annotated[Path, typer.Option("--json", help="File of the numbers.", metavar="FILE")] = Path(
        "results/bench.json"
    ),
    plot: Annotated[Path | None, typer.Option(help="Picture of the ratios.", metavar="FILE")] = None,
    page: Annotated[Path | None, typer.Option(help="Page of the documentation to renew.", metavar="FILE")] = None,
) -> None:
    """Run the benchmarks and show what was measured.

    With `--only` the other parts of the file stay, where it is of this machine.
    """
    # with a subcommand typer calls this first and then the subcommand
    if context.invoked_subcommand is None:
        raise typer.Exit(measure(only, json, plot, page))


def measure(only: str, json: Path, plot: Path | None = None, page: Path | None = None) -> int:
    """Check the whole request, measure, show and store; the exit code says whether every part ran."""
    with usage():
        session, drawing, writing = benchmarks("session"), benchmarks("picture"), benchmarks("page")
        parts = session.choose(only)
        if page is not None:
            writing.check(page)
    console.print(f"measuring {', '.join(parts)}; nothing else should run on this machine")
    with usage():
        results = session.run(parts, json, show_part)
    console.print(f"{summary(results)}\nnumbers: {json}", soft_wrap=True)
    if plot is not None:
        drawing.save(results, plot)
        console.print(f"picture: {plot}", soft_wrap=True)
    if page is not None:
        writing.write(page, results)
        console.print(f"page: {page}", soft_wrap=True)
    for part, error in results.failed.items():
        console.print(f"part {part} failed:\n{error}", markup=False, highlight=False)
    # a missed target is a result; only a part that could not run is a failure
    return int(bool(results.failed))


@bench_app.command()
def compare(
    before: Annotated[Path, typer.Argument(help="Results of one run.")],
    after: Annotated[Path, typer.Argument(help="Results of another.")],
) -> None:
    """Show what changed beyond the spread.

    Example: `attnlab bench compare results/old.json results/new.json`
    """
    with usage():
        stored = benchmarks("results")
        found = stored.compare(stored.Results.read(before), stored.Results.read(after))
    for key, (old, new) in found.machine.items():
        console.print(f"machine: {key} was {old}, is {new}", highlight=False, markup=False)
    if found.changes:
        # a value of zero has no ratio to it
        pairs = [(change, change.before, change.after) for change in found.changes]
        ratios = [f"{new.value / old.value:.3g}" if old.value else "" for _, old, new in pairs]
        rows = [(c.name, o.text, n.text, n.unit, r, c.verdict) for (c, o, n), r in zip(pairs, ratios, strict=True)]
        print_table("changed", ("what", "before", "after", "unit", "after / before", ""), rows)
    console.print(f"{len(found.changes)} rows changed beyond the spread, {found.same} did not", highlight=False)
    for names, where in ((found.only_before, before), (found.only_after, after)):
        for name in names:
            console.print(f"only in {where}: {name}", highlight=False, markup=False, soft_wrap=True)


@bench_app.command("page")
def write_page(
    page: Annotated[Path, typer.Argument(help="The page to write.")] = Path("docs/performance.md"),
    cpu: Annotated[Path, typer.Option(help="Stored results.", metavar="FILE")] = Path("docs/data/bench_cpu.json"),
) -> None:
    """Write the tables of the documentation from stored results.

    Example: `attnlab bench page`
    """
    with usage():
        writing, stored = benchmarks("page"), benchmarks("results")
        writing.check(page)
        writing.write(page, stored.Results.read(cpu))
    console.print(f"page: {page}", soft_wrap=True)


def show_part(part: str, rows: list[Any], seconds: float) -> None:
    """The rows of one part as a table."""
    table = Table(title=f"{part}, {seconds:.0f} s", title_justify="left")
    table.add_column("what", ratio=3)
    for heading in ("value", "unit", "target", "", "compile"):
        table.add_column(heading, no_wrap=heading in ("value", "", "compile"))
    table.add_column("what was run", ratio=5)
    for row in rows:
        compiled = "" if row.compile is None or row.compile < 0.05 else f"{row.compile:.1f} s"
        table.add_row(row.name, row.text, row.unit, row.goal, MARKS[row.met], compiled, row.detail)
    console.print(table)


def summary(results: Any) -> str:
    """How many targets are met, and which are not."""
    # rows without a target are neither met nor missed
    decided = [row for row in results.all_rows() if row.met is not None]
    missed = [row.name for row in decided if not row.met]
    text = f"{len(decided) - len(missed)} of {len(decided)} targets met"
    return text + (f"; missed: {', '.join(missed)}" if missed else "")
