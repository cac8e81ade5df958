"""Tables as pandas DataFrames, and results as a notebook shows them."""

from __future__ import annotations

import base64
import html
import os
from typing import TYPE_CHECKING, Any

from attnlab.common.words import many
from attnlab.lab.errors import UsageError

if TYPE_CHECKING:
    from attnlab.lab.runner import Result


def load(path: str | os.PathLike[str]) -> Any:
    """The table behind a figure (``FIGURE.csv`` beside the report) as a DataFrame, one row for each point drawn."""
    from attnlab.lab import drawn

    return _pandas().DataFrame(drawn.read(path), columns=drawn.Mark._fields)


def records(result: Result) -> Any:
    """The records of a result as a DataFrame: parameters, results, convergence and versions of every cell."""
    return _pandas().DataFrame([dict(row) for row in result.records])


def summary(result: Result) -> str:
    """A small table of verdicts and the picture, as HTML."""
    from attnlab.common.drawing import style
    from attnlab.lab import ledger
    from attnlab.lab.pictures import screen_picture

    rows = "".join(
        f"<tr><td>{html.escape(v.claim.id)}</td><td>{v.status}</td><td>{html.escape(ledger.interval(v))}</td>"
        f"<td>{html.escape(str(v.claim.holds))}</td></tr>"
        for v in result.verdicts
    )
    head = "<tr><th>claim</th><th>verdict</th><th>value [95 %]</th><th>holds if</th></tr>"
    title = html.escape(
        f"{result.figure.name}, {result.scale} scale: {many(result.count, 'cell')}, {result.missing} missing"
    )
    picture = ""
    if len(result.records):
        with style():
            picture = base64.b64encode(screen_picture(result.draw())).decode()
        picture = f'<img alt="{html.escape(result.figure.title)}" src="data:image/png;base64,{picture}">'
    return f"<p>{title}</p>{f'<table>{head}{rows}</table>' if rows else ''}{picture}"


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise UsageError("DataFrames need the extra: pip install 'attnlab[pandas]'") from error
    return pandas
