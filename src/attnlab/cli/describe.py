"""``attnlab show``: what a figure is, what can be changed, what it costs and what it decides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from attnlab.cli.jobs import duration, load_modules, usage
from attnlab.cli.options import Modules, completed
from attnlab.cli.terminal import console
from attnlab.common.words import many

REPORT = Path("results/report")


def describe(
    name: Annotated[
        str,
        typer.Argument(metavar="FIGURE", help="A figure, such as slr.manifold.", autocompletion=completed("figures")),
    ],
    report: Annotated[Path, typer.Option(help="Folder of the report with its picture.", metavar="FOLDER")] = REPORT,
    module: Modules = None,
) -> None:
    """Describe one figure: knobs, cost, claims, picture.

    Example: `attnlab show slr.manifold`
    """
    from attnlab.lab import registry
    from attnlab.lab.formulas.plain import sentence

    with usage():
        load_modules(module)
        if "." not in name:
            raise ValueError(f"show takes a figure, such as slr.manifold, got {name!r}; 'attnlab list' shows them all")
        (figure,) = registry.select([name])
    console.print(f"[bold]{figure.name}[/]  {escape(figure.title)}", highlight=False)
    console.print(f"{escape(sentence(figure.shows))}\n{escape(figure.paper)}\n", highlight=False)
    scales = list(figure.scales)
    knobs = Table("knob", *(f"{scale} scale" for scale in scales), box=None, padding=(0, 2, 0, 0))
    values = {scale: figure.knobs(scale) for scale in scales}
    # a scale may have knobs that another has not: each once, in the order of the first scale
    for knob in dict.fromkeys(knob for scale in scales for knob in values[scale]):
        knobs.add_row(knob, *(escape(_short(values[scale].get(knob))) for scale in scales))
    # len(cells) and not size(): cells that several grids share are computed once
    cost = (f"{many(len(figure.cells(scale)), 'cell')}, {duration(figure.minutes.get(scale, 0))}" for scale in scales)
    knobs.add_row("", *(f"[dim]{text}[/]" for text in cost))
    console.print(knobs, highlight=False)
    for claim in figure.claims:
        console.print(f"\n[bold]{claim.id}[/]  {escape(sentence(claim.says))}", highlight=False)
        console.print(f"  holds if {escape(f'{claim.statistic} {claim.holds}')}", highlight=False)
    picture = report / f"{figure.name}.png"
    shown = f"picture: {picture}" if picture.exists() else f"no picture yet; run: attnlab reproduce {figure.name}"
    console.print(
        f"\n{shown}\nchange a knob: attnlab run {figure.name} --set NAME=VALUE", markup=False, highlight=False
    )


def _short(value: Any) -> str:
    """A value of a knob; six digits of a number."""
    if isinstance(value, list):
        text = f"[{', '.join(map(_short, value))}]"
    else:
        text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
