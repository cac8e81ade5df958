"""The report: one self-contained page with the verdicts first, then each picture with what made it."""

from __future__ import annotations

import base64
import datetime
import hashlib
import inspect
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from attnlab.common.claim import Verdict
from attnlab.common.drawing import style
from attnlab.lab import ledger
from attnlab.lab.errors import StoreUnwritable
from attnlab.lab.maintenance import export_csv, table
from attnlab.lab.runner import Result
from attnlab.lab.sweep import to_toml

PICTURES = ("png", "pdf", "svg")


@dataclass(frozen=True)
class Page:
    """One figure on the page."""

    result: Result
    picture: str
    knobs: dict[str, Any]
    seconds: str
    versions: list[dict[str, str]]
    devices: list[str]


def report(results: Sequence[Result], folder: str | os.PathLike[str]) -> Path:
    """Draw what has changed, write the numbers and the page; return the page's path."""
    out = Path(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
        pages = [_page(result, out) for result in results]
        verdicts = [verdict for result in results for verdict in result.verdicts]
        (out / "claims.json").write_text(json.dumps(ledger.entries(results), indent=1, ensure_ascii=False) + "\n")
        page = out / "index.html"
        page.write_text(_render(pages, verdicts))
    except OSError as error:
        raise StoreUnwritable(f"cannot write the report to {out}: {error.strerror}") from error
    return page


def _page(result: Result, out: Path) -> Page:
    name, figure = result.figure.name, result.figure
    fingerprint = _fingerprint(result)
    marker = out / f"{name}.drawn"
    stale = not marker.exists() or marker.read_text() != fingerprint
    if len(result.records) and stale:
        marker.unlink(missing_ok=True)
        with style():
            canvas = result.draw()
            for kind in PICTURES:
                canvas.savefig(out / f"{name}.{kind}")
        export_csv(table(result.records), out / f"{name}.csv")
        (out / f"{name}.toml").write_text(to_toml(figure, result.scale))
        marker.write_text(fingerprint)
    png = out / f"{name}.png"
    picture = base64.b64encode(png.read_bytes()).decode() if len(result.records) else ""
    devices = sorted({row.device for row in result.cells if row.device})
    return Page(result, picture, figure.knobs(result.scale), _duration(result.seconds), result.versions, devices)


def _fingerprint(result: Result) -> str:
    """Changes when the results or the code that draws them change."""
    source = inspect.getsourcefile(inspect.unwrap(result.figure.draw))
    parts = [Path(source).read_text() if source else "", result.scale, *(row.payload_hash for row in result.cells)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _render(pages: Sequence[Page], verdicts: Sequence[Verdict]) -> str:
    import jinja2

    template = (resources.files("attnlab.lab") / "page.html.j2").read_text()
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(
        pages=pages,
        groups=ledger.by_paper((v.claim, v) for v in verdicts),
        value=ledger.value,
        number=ledger.number,
        decided_by=ledger.decided_by,
        tally=ledger.tally(v.status for v in verdicts),
        doubtful={s: [v.claim.id for v in verdicts if v.status == s] for s in ("fails", "undecided")},
        surprises=[v for v in verdicts if not v.as_registered],
        failed=sum(len(page.result.failed) for page in pages),
        missing=sum(page.result.missing for page in pages),
        written=datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
        scale=", ".join(sorted({page.result.scale for page in pages})),
    )
