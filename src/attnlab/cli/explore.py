"""``attnlab explore``: write the page with sliders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli.options import DEFAULT_STORE, FLAG
from attnlab.cli.terminal import console
from attnlab.common.words import many


def explore(
    out: Annotated[Path, typer.Option(help="The HTML file to write.", metavar="FILE")] = Path("explorer.html"),
    store: Annotated[
        Path | None, typer.Option(help=f"Simulations to draw (default: {DEFAULT_STORE}).", metavar="FILE")
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Show the page in the browser.", metavar=FLAG)] = False,
) -> None:
    """Write a page with sliders: theory, simulations.

    One HTML file that needs no network. Example: `attnlab explore --open`
    """
    from attnlab.explore.page import explorer

    if store is None and DEFAULT_STORE.exists():
        store = DEFAULT_STORE
    with console.status("building the page") as status:
        page, points = explorer(out, store, status.update)
    if not points:
        where = f"there is no store at {DEFAULT_STORE}" if store is None else f"{store} has no finished cells"
        console.print(f"theory only: {where}; 'attnlab reproduce' computes simulations to draw over it", soft_wrap=True)
    else:
        console.print(f"{many(points, 'stored point')} from {store}", soft_wrap=True, highlight=False)
    console.print(f"explorer: {page}", soft_wrap=True)
    if open_page:
        typer.launch(page.absolute().as_uri())
