"""Assemble the explorer: template, style, scripts and data in one HTML file that needs nothing beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from attnlab import __version__
from attnlab.common.systems import systems
from attnlab.explore.simulations import count, simulations
from attnlab.lab import registry
from attnlab.lab.errors import StoreUnwritable

# What the views share, in the order in which the files build on each other.
SCRIPTS = ("numbers", "axes", "plot", "series", "patterns", "export", "page")
START = "attnlab.page.start(attnlab.views);"


def explorer(
    out: str | os.PathLike[str],
    store: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> tuple[Path, int]:
    """Write the page to ``out``; return its path and the number of stored points on it.

    Parameters
    ----------
    out : the HTML file.
    store : results whose points are drawn over the theory; without one the page shows theory alone.
    progress : called with a description of each step.
    """
    target = Path(out)
    progress("reading stored results")
    # read first: a wrong store is an error before tables of theory are computed
    points = simulations(store)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()  # an unwritable place is refused before anything is computed
        target.write_text(_render(data(points, progress), target.absolute().parent), encoding="utf-8")
    except OSError as error:
        raise StoreUnwritable(f"cannot write the explorer to {target}: {error.strerror}") from error
    return target, count(points)


def data(points: dict[str, Any], progress: Callable[[str], None] = lambda message: None) -> dict[str, Any]:
    """Everything the scripts read, by system: tables of theory and stored points."""
    content = {}
    for name, view in registry.views().items():
        progress(f"computing the tables of {name}")
        content[name] = {**view.tables(), **points[name]}
    return content


def documentation(system: str, folder: Path) -> str:
    """Address of a system's page of documentation seen from ``folder``; empty where there is no checkout beside."""
    docs = Path(__file__).parents[3] / "docs"
    site, brought = docs / "_build" / "html", Path(str(resources.files(systems()[system]))) / "page.md"
    # the built page before its source, the site before what the system's package brings
    for page in (site / f"{system}.html", site / "plugins" / f"{system}.html", docs / f"{system}.md", brought):
        if page.exists():
            # relative, so that the folder with both can be moved
            return Path(os.path.relpath(page, folder)).as_posix()
    return ""


def _render(content: dict[str, Any], folder: Path) -> str:
    import jinja2

    files, views = resources.files("attnlab.explore"), registry.views()
    beside = {name: resources.files(f"{systems()[name]}.explorer") for name in views}
    scripts = [(files / "js" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    scripts += [
        (beside[name] / file).read_text(encoding="utf-8") for name, view in views.items() for file in view.scripts
    ]
    extras = {
        name: (beside[name] / view.extra).read_text(encoding="utf-8") if view.extra else ""
        for name, view in views.items()
    }
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((files / "page.html.j2").read_text(encoding="utf-8"))
    # "</" would end the script element.
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return template.render(
        style=(files / "style.css").read_text(encoding="utf-8"),
        script="\n".join([*scripts, START]),
        data=text,
        version=__version__,
        views=views,
        extras=extras,
        docs={name: documentation(name, folder) for name in views},
    )
