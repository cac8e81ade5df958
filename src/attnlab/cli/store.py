"""``attnlab store``: inspect, check, export, merge and save the files that keep results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.cli.terminal import say
from attnlab.common.words import many

if TYPE_CHECKING:
    from attnlab.lab.store import Store

store_app = typer.Typer(
    no_args_is_help=True,
    help="Inspect, check, export and merge stores.\n\nExample: `attnlab store info results/attnlab.sqlite`",
)
StoreFile = Annotated[Path, typer.Argument(help="A store.")]


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Store]:
    """A store to look at. What a killed driver left in the log is first brought into the file, if nobody writes."""
    from attnlab.lab.errors import LabError
    from attnlab.lab.store import Store
    from attnlab.lab.store.schema import log_file

    with Store(path) as store:
        # a sound store only: a writer would also remove what stands in the place of lost rows
        clean = not store.notes and store.tally == store.counted()
    # a writer that opens and closes copies the log into the file
    if clean and log_file(path).exists():
        with contextlib.suppress(LabError):  # held by a driver, or not ours to write
            Store(path, writable=True).close()
    with Store(path) as store:
        for note in store.notes:
            say(note)
        yield store


@store_app.command()
def info(path: StoreFile) -> None:
    """Count cells by figure, status, version and code.

    Example: `attnlab store info results/attnlab.sqlite`
    """
    import json

    with opened(path) as store:
        found = store.provenance()
    for figure, stream, status, versions, code, number in found:
        made = ", ".join(f"{name} {version}" for name, version in sorted(json.loads(versions).items()))
        say(f"{figure}: {number} {status}, stream {stream}, code {code}, {made}")
    say(f"{many(sum(row[-1] for row in found), 'cell')}, {many(len({row[4] for row in found}), 'code')}")


@store_app.command()
def verify(path: StoreFile) -> None:
    """Check every stored result against its hash.

    Example: `attnlab store verify results/attnlab.sqlite`
    """
    from attnlab.lab.store import Store, merging

    with Store(path) as store:
        # the file first, for rows that are gone have no hash to check
        problems = merging.file_problems(store)
        for problem in problems:
            say(problem)
        damaged = 0
        for row, problem in merging.verify(store):
            damaged += 1
            say(f"cell {row.id} of {row.figure}: {problem}")
        total = sum(store.count().values())
    say(f"{total - damaged} of {total} cells are what was written")
    raise typer.Exit(1 if damaged or problems else 0)


@store_app.command()
def export(
    path: StoreFile,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write CSV here.", metavar="FILE")] = None,
    parquet: Annotated[Path | None, typer.Option("--parquet", help="Write Parquet here.", metavar="FILE")] = None,
    figure: Annotated[str, typer.Option(help="Only this figure.", metavar="NAME")] = "",
) -> None:
    """Write finished cells as a table.

    Example: `attnlab store export results/attnlab.sqlite --csv cells.csv`
    """
    from attnlab.lab.errors import UsageError
    from attnlab.lab.store.export import StoredTable, export_csv, export_parquet

    if csv is None and parquet is None:
        raise UsageError("say where to write: --csv FILE or --parquet FILE")
    with opened(path) as store:
        table = StoredTable(store, figure or None)
        count = export_csv(table, csv) if csv is not None else 0
        count = export_parquet(table, parquet) if parquet is not None else count
    say(f"{count} rows")


@store_app.command()
def merge(
    target: Annotated[Path, typer.Argument(help="Store to write to.")],
    sources: Annotated[list[Path], typer.Argument(help="Stores to take cells from.")],
) -> None:
    """Merge the parts of a sharded run.

    Example: `attnlab store merge all.sqlite part-*.sqlite`

    Damaged cells of the target are healed from good ones. The exit code is 1 if a source has damaged cells, or if two
    stores hold different results of one cell.
    """
    from attnlab.lab.store import Store, merging

    with contextlib.ExitStack() as stack:
        # the sources first: a wrong name must not leave an empty target
        parts = [stack.enter_context(Store(source)) for source in sources]
        counts = merging.merge(stack.enter_context(Store(target, writable=True)), parts)
    _tell(counts)
    raise typer.Exit(1 if counts["damaged"] or counts["different"] else 0)


@store_app.command()
def salvage(
    damaged: Annotated[Path, typer.Argument(help="The damaged store.")],
    target: Annotated[Path, typer.Argument(help="A store for what is readable; what is good in it stays.")],
) -> None:
    """Save what can be read from a damaged store.

    Example: `attnlab store salvage broken.sqlite saved.sqlite`
    """
    from attnlab.lab.errors import UsageError
    from attnlab.lab.store import Store
    from attnlab.lab.store.salvage import salvage as save

    if not damaged.exists():
        raise UsageError(f"there is no store at {damaged}")
    # samefile sees through links
    if target.exists() and target.samefile(damaged):
        raise UsageError("a store cannot be salvaged into itself; name a new one")
    with Store(target, writable=True) as store:
        counts = save(damaged, store)
    _tell(counts)
    # rows that are saved, or that the target has already, are not lost
    raise typer.Exit(1 if counts["lost"] else 0)


@store_app.command()
def copy(
    source: Annotated[Path, typer.Argument(help="The store; a run may be writing to it.")],
    target: Annotated[Path, typer.Argument(help="The copy, which must not exist.")],
) -> None:
    """Copy a store with its arrays.

    Example: `attnlab store copy results/attnlab.sqlite backup.sqlite`
    """
    from attnlab.lab.store import Store, merging

    with Store(source) as store:
        for note in store.notes:
            say(note)
        count = merging.copy(store, target)
    say(f"{many(count, 'cell')} copied to {target}")


def _tell(counts: Mapping[str, int]) -> None:
    say(", ".join(f"{number} {what}" for what, number in counts.items()))
