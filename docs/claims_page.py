"""The ledger as a page of the documentation: counts that add up, then every claim with verdict and confirmation."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from attnlab.common.claim import STATUSES, Claim
from attnlab.common.figure import Figure
from attnlab.lab import ledger
from attnlab.lab.claims import multiplicity

Entries = Mapping[str, Mapping[str, Any]]
NOT_MEASURED: Mapping[str, Any] = {"status": "not measured"}


def markdown(figures: Iterable[Figure], values: Mapping[str, Mapping[str, Any]]) -> str:
    """The page. A value counts only for the claim as it was when it was measured."""
    shown = list(figures)
    claims = [(claim, (claim, figure)) for figure in shown for claim in figure.claims]
    found = {scale: ledger.current(shown, values.get(scale, {})) for scale in ledger.SCALES}
    ids = [claim.id for claim, _ in claims]
    settled = _settled(found)
    lines = [*_counts(ids, found), *_doubts(ids, found)]
    for scale, entries in found.items():
        lines += ["", _many(entries, scale, settled)] if entries else []
    for title, group in ledger.by_paper(claims).items():
        lines += ["", f"## {title}", "", "| claim | value [95 %] | quick | paper |", "|---|---|---|---|"]
        lines += [_row(claim, figure, found, settled) for claim, figure in group]
    return "\n".join(lines) + "\n"


def _counts(ids: Sequence[str], found: Mapping[str, Entries]) -> list[str]:
    """The four states of each scale and of its confirmation."""
    lines = [f"| {len(ids)} claims | {' | '.join(STATUSES)} |", "|---|---|---|---|---|"]
    for scale, entries in found.items():
        main = [entries.get(id, NOT_MEASURED)["status"] for id in ids]
        again = [entries.get(id, {}).get("confirmation", NOT_MEASURED)["status"] for id in ids]
        for name, statuses in ((f"{scale} scale", main), (f"{scale} scale, on fresh seeds", again)):
            numbers = ledger.count(statuses).values()
            lines.append(f"| {name} | {' | '.join(map(str, numbers))} |")
    return lines


def _doubts(ids: Sequence[str], found: Mapping[str, Entries]) -> list[str]:
    lines = [""]
    for status in ("fails", "undecided"):
        here = [id for id in ids if any(entries.get(id, {}).get("status") == status for entries in found.values())]
        links = ", ".join(f'<a href="#{id}"><code>{id}</code></a>' for id in here)
        lines += [f"- **{status}**: {links}"] * bool(here)
    return lines


def _many(entries: Entries, scale: str, settled: Collection[str]) -> str:
    """What the number of claims does to them: false holds, the family-wise view, exploratory ones and their fate."""
    noisy = {id: entry for id, entry in entries.items() if entry["noisy"]}
    holding = {id for id, entry in noisy.items() if entry["status"] == "holds"}
    p_values = {id: 1.0 if entry["p_value"] is None else entry["p_value"] for id, entry in noisy.items()}
    together = multiplicity.holm(p_values) & holding
    exploratory = [entry for entry in entries.values() if entry["kind"] == "exploratory" or entry["extended"]]
    undecided = [entry for entry in exploratory if entry["id"] not in settled]
    expected = multiplicity.expected_false_holds(len(noisy))
    again = [entry for entry in entries.values() if entry["status"] == "holds" and "confirmation" in entry]
    held = sum(entry["confirmation"]["status"] == "holds" for entry in again)
    sentences = [
        f"**{scale.capitalize()} scale.** {len(noisy)} of {len(entries)} measured claims are subject to noise.",
        f"Were none of them true, at most {expected:.1f} would be expected to hold by accident (one tail of a 95 % "
        f"interval each). {len(holding)} hold one by one;",
        f"{len(together)} hold together, with a chance of at most 2.5 % that any of them is false (Holm).",
        f"{len(exploratory)} are exploratory, {len(undecided)} of these not yet decided by fresh seeds.",
        f"Of {len(again)} claims that hold and were run again on fresh seeds, {held} held again." if again else "",
    ]
    return " ".join(filter(None, sentences))


def _settled(found: Mapping[str, Entries]) -> set[str]:
    """The claims that fresh seeds have decided, at one scale or another."""
    decided = ("holds", "fails")
    return {
        id
        for entries in found.values()
        for id, entry in entries.items()
        if entry.get("confirmation", NOT_MEASURED)["status"] in decided
    }


def _row(claim: Claim, figure: Figure, found: Mapping[str, Entries], settled: Collection[str]) -> str:
    reason = _cell(f"{claim.source}. Holds if {claim.holds}: {claim.because}. {_sentence(str(claim.statistic))}.")
    note = f" *{_cell(claim.note)}*" if claim.note else ""
    now = {scale: entries[claim.id] for scale, entries in found.items() if claim.id in entries}
    values = "<br>".join(_measured(entry, scale) for scale, entry in now.items())
    verdicts = " | ".join(_verdict(claim, now.get(scale, NOT_MEASURED), scale) for scale in ledger.SCALES)
    open_ = claim.kind == "exploratory" and claim.id not in settled
    name = f'<span id="{claim.id}"></span>`{claim.id}`' + " (exploratory)" * open_
    says = f"{name}<br>{_cell(claim.says)}<br><small>{reason} Figure `{figure.name}`.{note}</small>"
    return f"| {says} | {values or 'not measured'} | {verdicts} |"


def _measured(entry: Mapping[str, Any], scale: str) -> str:
    lines = [f"{scale}: {ledger.measured_number(entry)}"]
    if "confirmation" in entry:
        lines.append(f"fresh seeds: {ledger.measured_number(entry['confirmation'])}")
    lines += [f"<small>{entry[name]}</small>" for name in ("decided_by", "power") if entry.get(name)]
    if entry.get("unconverged"):
        lines.append(f"<small>{entry['unconverged']} of {entry['cells']} rows did not converge</small>")
    return "<br>".join(lines)


def _verdict(claim: Claim, entry: Mapping[str, Any], scale: str) -> str:
    lines = [_shown(entry["status"])]
    if "confirmation" in entry:
        lines.append(f"fresh seeds: {_shown(entry['confirmation']['status'])}")
    if entry.get("extended"):
        lines.append("<small>replicates were added after a look</small>")
    expected = claim.expected(scale)
    if entry["status"] not in ("not measured", expected):
        lines.append(f"<small>registered: {expected}</small>")
    return "<br>".join(lines)


def _shown(status: str) -> str:
    return status if status in ("holds", "not measured") else f"**{status}**"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cell(text: str) -> str:
    """Text inside a Markdown table: bars and markup characters stand for themselves."""
    return re.sub(r"([|<>_$*])", r"\\\1", text)
