"""``attnlab explore``: write the page on which theory answers to sliders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli.jobs import console


def explore(
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("explorer.html"),
    store: Annotated[Path | None, typer.Option(help="Results whose points are drawn over the theory.")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Write one self-contained page to play with. Example: `attnlab explore --store results/attnlab.sqlite --open`."""
    from attnlab.explore.page import explorer

    page, points = explorer(out, store)
    if not points:
        where = "no store was given (--store results/attnlab.sqlite)" if store is None else f"{store} has none"
        console.print(f"theory only: {where}; 'attnlab reproduce' computes simulations to draw over it", soft_wrap=True)
    else:
        console.print(f"{points} stored points from {store}", soft_wrap=True, highlight=False)
    console.print(f"explorer: {page}", soft_wrap=True)
    if open_page:
        typer.launch(page.absolute().as_uri())
