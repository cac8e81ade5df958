"""``attnlab store``: look after the files that keep results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli.jobs import console

store_app = typer.Typer(
    no_args_is_help=True, help="Look after stores of results. Example: `attnlab store info results/attnlab.sqlite`."
)
StoreFile = Annotated[Path, typer.Argument(help="A store.")]


@store_app.command()
def info(path: StoreFile) -> None:
    """Count cells by figure, status, version and code. Example: `attnlab store info results/attnlab.sqlite`."""
    import json
    from collections import Counter

    from attnlab.lab.store import Store

    with Store(path) as store:
        counts = Counter(
            (row.figure, row.stream, row.status, json.loads(row.versions)["attnlab"], row.code) for row in store.rows()
        )
    for (figure, stream, status, version, code), number in sorted(counts.items()):
        console.print(f"{figure}: {number} {status}, stream {stream}, attnlab {version}, code {code}", highlight=False)
    console.print(f"{sum(counts.values())} cells", highlight=False)


@store_app.command()
def verify(path: StoreFile) -> None:
    """Check every stored result against its hash. Example: `attnlab store verify results/attnlab.sqlite`."""
    from attnlab.lab import maintenance
    from attnlab.lab.store import Store

    with Store(path) as store:
        damaged = maintenance.verify(store)
        total = sum(store.count().values())
    for row, problem in damaged:
        console.print(f"cell {row.id} of {row.figure}: {problem}", markup=False, soft_wrap=True)
    console.print(f"{total - len(damaged)} of {total} cells are what was written", highlight=False)
    raise typer.Exit(1 if damaged else 0)


@store_app.command()
def export(
    path: StoreFile,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write CSV here.")] = None,
    parquet: Annotated[Path | None, typer.Option("--parquet", help="Write Parquet here.")] = None,
    figure: Annotated[str, typer.Option(help="Only this figure.")] = "",
) -> None:
    """Write finished cells as a table. Example: `attnlab store export results/attnlab.sqlite --csv cells.csv`."""
    from attnlab.common.records import Records
    from attnlab.lab import maintenance
    from attnlab.lab.errors import UsageError
    from attnlab.lab.store import Store

    if csv is None and parquet is None:
        raise UsageError("say where to write: --csv FILE or --parquet FILE")
    with Store(path) as store:
        done = [store.record(row) for row in store.rows(figure or None) if row.status == "done"]
    rows = maintenance.table(Records.of(done))
    if csv is not None:
        maintenance.export_csv(rows, csv)
    if parquet is not None:
        maintenance.export_parquet(rows, parquet)
    console.print(f"{len(rows)} rows", highlight=False)


@store_app.command()
def merge(
    target: Annotated[Path, typer.Argument(help="Store to write to.")],
    sources: Annotated[list[Path], typer.Argument(help="Stores to take cells from.")],
) -> None:
    """Bring the parts of a sharded run together. Example: `attnlab store merge all.sqlite part-*.sqlite`."""
    from contextlib import ExitStack

    from attnlab.lab import maintenance
    from attnlab.lab.store import Store

    with ExitStack() as stack:
        opened = [stack.enter_context(Store(source)) for source in sources]
        counts = maintenance.merge(stack.enter_context(Store(target, writable=True)), opened)
    console.print(", ".join(f"{number} {what}" for what, number in counts.items()), highlight=False)
    raise typer.Exit(1 if counts["damaged"] else 0)


@store_app.command()
def salvage(
    damaged: Annotated[Path, typer.Argument(help="The damaged store.")],
    target: Annotated[Path, typer.Argument(help="A new store for what is readable.")],
) -> None:
    """Save what can be read from a damaged store. Example: `attnlab store salvage broken.sqlite saved.sqlite`."""
    from attnlab.lab import maintenance
    from attnlab.lab.errors import UsageError
    from attnlab.lab.store import Store

    if not damaged.exists():
        raise UsageError(f"there is no store at {damaged}")
    with Store(target, writable=True) as store:
        counts = maintenance.salvage(damaged, store)
    console.print(", ".join(f"{number} {what}" for what, number in counts.items()), highlight=False)
