"""The report: one self-contained page with the verdicts first, then each picture with what made it."""

from __future__ import annotations

import base64
import datetime
import hashlib
import inspect
import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from attnlab.common.claim import Verdict
from attnlab.common.drawing import style
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
    versions: dict[str, str]
    devices: list[str]


def report(results: Sequence[Result], folder: str | os.PathLike[str]) -> Path:
    """Draw what has changed, write the numbers and the page; return the page's path."""
    out = Path(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
        pages = [_page(result, out) for result in results]
        verdicts = [verdict for result in results for verdict in result.verdicts]
        (out / "claims.json").write_text(
            json.dumps([as_dict(v) for v in verdicts], indent=1, ensure_ascii=False) + "\n"
        )
        page = out / "index.html"
        page.write_text(_render(pages, verdicts))
    except OSError as error:
        raise StoreUnwritable(f"cannot write the report to {out}: {error.strerror}") from error
    return page


def as_dict(verdict: Verdict) -> dict[str, Any]:
    """A verdict for ``claims.json``."""
    claim, estimate = verdict.claim, verdict.estimate
    return {
        "id": claim.id,
        "says": claim.says,
        "source": claim.source,
        "scale": verdict.scale,
        "status": verdict.status,
        "recorded": verdict.expected,
        "value": estimate and estimate.value,
        "low": estimate and estimate.low,
        "high": estimate and estimate.high,
        "runs": estimate and estimate.runs,
        "holds_if": str(claim.holds),
        "because": claim.because,
        "flip_probability": None if math.isnan(verdict.flip_probability) else verdict.flip_probability,
        "note": verdict.reason,
    }


def number(x: float) -> str:
    """Four significant digits, with a real minus sign."""
    return f"{x:.4g}".replace("-", "−")


def value(verdict: Verdict) -> str:
    """The deciding number, or a dash."""
    return "–" if verdict.estimate is None else number(verdict.estimate.value)


def interval(verdict: Verdict) -> str:
    """The number and its 95 % interval on one line."""
    if verdict.estimate is None or verdict.estimate.runs < 2:
        return value(verdict)
    return f"{value(verdict)} [{number(verdict.estimate.low)}, {number(verdict.estimate.high)}]"


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
    versions = json.loads(result.cells[0].versions) if result.cells else {}
    devices = sorted({row.device for row in result.cells if row.device})
    return Page(result, picture, figure.knobs(result.scale), _duration(result.seconds), versions, devices)


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
        verdicts=verdicts,
        value=value,
        number=number,
        tally=Counter(v.status for v in verdicts),
        surprises=[v for v in verdicts if not v.as_recorded],
        failed=sum(len(page.result.failed) for page in pages),
        missing=sum(page.result.missing for page in pages),
        written=datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
        scale=", ".join(sorted({page.result.scale for page in pages})),
    )
