"""``attnlab explore``: write the page on which theory answers to sliders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli.jobs import console
from attnlab.cli.options import DEFAULT_STORE


def explore(
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("explorer.html"),
    store: Annotated[Path | None, typer.Option(help=f"Results to draw over the theory ({DEFAULT_STORE}).")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Write one self-contained page with sliders. Example: `attnlab explore --open`."""
    from attnlab.explore.page import explorer

    if store is None and DEFAULT_STORE.exists():
        store = DEFAULT_STORE
    with console.status("building the page") as status:
        page, points = explorer(out, store, status.update)
    if not points:
        where = f"there is no store at {DEFAULT_STORE}" if store is None else f"{store} has no finished cells"
        console.print(f"theory only: {where}; 'attnlab reproduce' computes simulations to draw over it", soft_wrap=True)
    else:
        console.print(f"{points} stored points from {store}", soft_wrap=True, highlight=False)
    console.print(f"explorer: {page}", soft_wrap=True)
    if open_page:
        typer.launch(page.absolute().as_uri())
