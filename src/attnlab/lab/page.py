"""The report: one self-contained page. What holds comes first, then each picture with its claims and what made it."""

from __future__ import annotations

import base64
import datetime
import functools
import json
import logging
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from attnlab import __version__
from attnlab.common.claim import STATUSES, Verdict
from attnlab.common.figure import Figure
from attnlab.common.systems import systems
from attnlab.lab import ledger, pictures, registry
from attnlab.lab.errors import StoreUnwritable
from attnlab.lab.formulas.plain import sentence
from attnlab.lab.runner import Result

log = logging.getLogger("attnlab.report")
# Seconds after which a page that is not complete asks for its newer version.
RENEW = 10
# Width over height from which a picture takes the whole line and its claims stand below.
WIDE = 2.0


class Image(NamedTuple):
    """A PNG in the page. With its size the browser keeps the place of what it has not decoded, and links stay right."""

    data: str
    width: int
    height: int

    @classmethod
    def of(cls, png: bytes) -> Image:
        """From the bytes of a file."""
        return cls("data:image/png;base64," + base64.b64encode(png).decode(), *pictures.size(png))


@dataclass(frozen=True)
class Entry:
    """One figure on the page."""

    result: Result
    picture: Image | None
    narrow: Image | None
    content: str
    wide: bool
    knobs: dict[str, Any]
    seconds: str
    versions: list[dict[str, str]]
    devices: list[str]
    problem: str = ""

    @property
    def name(self) -> str:
        """The figure's name."""
        return self.result.figure.name

    @property
    def statuses(self) -> str:
        """The states of its claims, for the filter of the page."""
        return " ".join(sorted({verdict.status.replace(" ", "-") for verdict in self.result.verdicts}))


@dataclass(frozen=True)
class Chapter:
    """One system on the page: its question, its figures, and what its claims came to."""

    name: str
    question: str
    entries: list[Entry]

    @property
    def verdicts(self) -> list[Verdict]:
        """All its verdicts."""
        return [verdict for entry in self.entries for verdict in entry.result.verdicts]

    @functools.cached_property
    def absent(self) -> list[Figure]:
        """The system's figures with claims that are not on the page: not asked for, or without an extra they need."""
        if self.name not in systems():  # a sweep: the systems are not imported for it
            return []
        shown = {entry.name for entry in self.entries}
        of_system = [f for f in registry.figures().values() if f.name.split(".")[0] == self.name]
        return [figure for figure in of_system if figure.claims and figure.name not in shown]

    @property
    def counts(self) -> Counter[str]:
        """How many of the system's claims are in each state; those that are not on the page are not measured."""
        absent = Counter({"not measured": sum(len(figure.claims) for figure in self.absent)})
        return Counter(verdict.status for verdict in self.verdicts) + absent

    @property
    def examples(self) -> list[tuple[str, Verdict, int]]:
        """Of what holds and of what fails: the word, the first claim (registered before exploratory), how many more."""
        found = []
        for word, status in (("Holds", "holds"), ("Does not hold", "fails")):
            claims = [verdict for verdict in self.verdicts if verdict.status == status]
            if claims:
                first = min(claims, key=lambda verdict: verdict.claim.kind == "exploratory")
                found.append((word, first, len(claims) - 1))
        return found


def report(results: Sequence[Result], folder: str | os.PathLike[str], *, waiting: Sequence[str] = ()) -> Path:
    """Draw what has changed, write the page and at last its numbers; return the page's path.

    Parameters
    ----------
    results : the figures to show.
    folder : where the page and the files of the figures are written.
    waiting : names of figures that are still being computed; the page then renews itself.
    """
    out = Path(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
        entries = [_entry(result, out) for result in results]
        for entry in entries:
            if entry.problem and not waiting:  # while a run goes on, the page alone says it
                log.warning(entry.problem)
        if not waiting:
            (out / "claims.json").write_text(json.dumps(ledger.entries(results), indent=1, ensure_ascii=False) + "\n")
        page = out / "index.html"
        # Renamed into place: a reader never sees half a page.
        draft = out / ".index.html.part"
        draft.write_text(_render(entries, waiting), encoding="utf-8")
        draft.replace(page)
    except OSError as error:
        raise StoreUnwritable(f"cannot write the report to {out}: {error.strerror}") from error
    return page


def _entry(result: Result, out: Path) -> Entry:
    shown, problem = _picture(result, out)
    picture, narrow = (Image.of(png) if png else None for png in (shown.wide, shown.narrow))
    wide = picture is not None and picture.width > WIDE * picture.height
    # a cell whose process died names no device
    devices = sorted(result.made.devices - {""})
    knobs = result.figure.knobs(result.scale)
    seconds = _duration(result.seconds)
    return Entry(result, picture, narrow, shown.content, wide, knobs, seconds, result.versions, devices, problem)


def _picture(result: Result, out: Path) -> tuple[pictures.Pictures, str]:
    """The pictures, or why there are none; a drawing that fails must not cost the report of what was computed."""
    if not len(result.records):
        return pictures.Pictures(), "No finished cell to draw."
    name = result.figure.name
    try:
        return pictures.publish(result, out), ""
    except OSError:
        raise  # a full disk is no fault of the drawing
    except Exception as error:
        if result.old:
            why = f"its cells are from other code; attnlab reproduce {name} computes them again"
        elif result.missing or result.failed:
            why = f"{result.missing} cells are missing, {len(result.failed)} failed; attnlab reproduce {name} continues"
        else:
            why = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
        return pictures.Pictures(), f"{name} cannot be drawn: {why}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _chapters(entries: Sequence[Entry]) -> list[Chapter]:
    """The figures by system, in the order they come."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.name.split(".")[0], []).append(entry)
    known = systems()
    return [
        Chapter(name, registry.summary(registry.system(name)) if name in known else "", group)
        for name, group in found.items()
    ]


def _render(entries: Sequence[Entry], waiting: Sequence[str]) -> str:
    chapters = _chapters(entries)
    verdicts = [verdict for chapter in chapters for verdict in chapter.verdicts]
    return _template().render(
        style=_text("page.css"),
        script=_text("page.js"),
        chapters=chapters,
        judged=bool(verdicts),
        counts=sum((chapter.counts for chapter in chapters), Counter()),
        statuses=STATUSES,
        changed=[verdict for verdict in verdicts if not verdict.as_registered],
        doubtful=[verdict for verdict in verdicts if verdict.status in ("fails", "undecided")],
        ledger=ledger,
        kinds=pictures.KINDS,
        waiting=waiting,
        renew=RENEW,
        failed=sum(len(entry.result.failed) for entry in entries),
        missing=sum(entry.result.missing for entry in entries),
        written=datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
        scale=", ".join(sorted({entry.result.scale for entry in entries})),
        version=__version__,
    )


@functools.cache
def _template() -> Any:
    import jinja2

    # names and errors in a store are data: none of them may act as markup
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["sentence"] = sentence
    return environment.from_string(_text("page.html.j2"))


def _text(name: str) -> str:
    return (resources.files("attnlab.lab") / name).read_text(encoding="utf-8")
