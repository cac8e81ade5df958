"""The claims ledger: every claim with its source, deciding number, threshold, verdict and record, by paper."""

from __future__ import annotations

import datetime
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from attnlab.common.claim import Claim, Verdict
from attnlab.common.figure import Figure
from attnlab.lab import registry
from attnlab.lab.errors import StoreUnwritable
from attnlab.lab.runner import Result

SCALES = ("quick", "paper")
T = TypeVar("T")


def paper(claim: Claim) -> str:
    """The arXiv id a claim rests on; empty for what was derived here."""
    found = re.search(r"arXiv:(\d{4}\.\d{4,5})", claim.source)
    return found[1] if found else ""


def heading(key: tuple[str, str]) -> str:
    """What stands above a group of claims.

    >>> heading(("aim", "2506.01582"))
    'Bayes optimal learning of attention-indexed models (arXiv:2506.01582)'
    >>> heading(("aim", ""))
    'Derived here, beside the papers: aim'
    """
    system, arxiv = key
    if not arxiv:
        return f"Derived here, beside the papers: {system}"
    title = registry.papers().get(arxiv)
    return f"{title} (arXiv:{arxiv})" if title else f"arXiv:{arxiv}"


def by_paper(items: Iterable[tuple[Claim, T]]) -> dict[str, list[T]]:
    """Group by paper, systems in the order they come, each with its papers first and what was derived here last."""
    groups: dict[tuple[str, str], list[T]] = {}
    for claim, item in items:
        groups.setdefault((claim.id.split(".")[0], paper(claim)), []).append(item)
    systems = list(dict.fromkeys(system for system, _ in groups))
    known = registry.papers()
    rank = {arxiv: i for i, arxiv in enumerate([*known, ""])}
    order = sorted(groups, key=lambda key: (systems.index(key[0]), rank.get(key[1], len(known) - 0.5)))
    return {heading(key): groups[key] for key in order}


def tally(statuses: Iterable[str]) -> str:
    """How many hold, fail and are undecided, in words."""
    count = Counter(statuses)
    told = f"{count['holds']} claims hold, {count['fails']} fail, {count['undecided']} undecided"
    return told + f", {count['not measured']} not measured" * bool(count["not measured"])


def decided_by(verdict: Verdict) -> str:
    """For an undecided claim, how many runs would decide it; empty where that is not the question.

    The value and the noise are taken as they are now, so it is an order of magnitude.
    """
    if verdict.status != "undecided" or verdict.estimate is None:
        return ""
    if verdict.estimate.runs < 2:
        return "one replicate says nothing of the noise: repeat it with more seeds"
    if math.isinf(verdict.replicates_needed):
        return "the value is at the threshold: no number of runs decides"
    if math.isnan(verdict.replicates_needed):
        return ""
    needed = f"about {_round(verdict.replicates_needed)} replicates would decide at this value and noise"
    return f"{needed} ({verdict.estimate.runs} now)"


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


def as_dict(verdict: Verdict, figure: Figure) -> dict[str, Any]:
    """One entry of the ledger, for ``claims.json``."""
    claim, estimate = verdict.claim, verdict.estimate
    return {
        "id": claim.id,
        "says": claim.says,
        "source": claim.source,
        "paper": paper(claim),
        "title": registry.papers().get(paper(claim), ""),
        "figure": figure.name,
        "scale": verdict.scale,
        "status": verdict.status,
        "recorded": verdict.registered,
        "changed": not verdict.as_registered,
        "record": {scale: recorded(claim, scale) for scale in SCALES},
        "value": estimate and estimate.value,
        "low": estimate and _finite(estimate.low),
        "high": estimate and _finite(estimate.high),
        "runs": estimate and estimate.runs,
        "holds_if": str(claim.holds),
        "because": claim.because,
        "p_value": _finite(verdict.p_value),
        "statistic": str(claim.statistic),
        "kind": claim.kind,
        "cells": verdict.cells,
        "unconverged": verdict.unconverged,
        "replicates_needed": _finite(verdict.replicates_needed),
        "decided_by": decided_by(verdict),
        "note": verdict.reason,
    }


def recorded(claim: Claim, scale: str) -> str:
    """The verdict on record: *holds* unless the claim says otherwise."""
    return claim.registered.get(scale, "holds")


def entries(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The ledger of some results."""
    return [as_dict(verdict, result.figure) for result in results for verdict in result.verdicts]


def write(results: Sequence[Result], scale: str, file: str | os.PathLike[str]) -> None:
    """Write the ledger of a scale with what made it, as the documentation reads it; only of complete figures."""
    whole = [result for result in results if not result.missing and not result.failed]
    content = {
        "scale": scale,
        "command": f"attnlab reproduce --scale {scale}",
        "attnlab": metadata.version("attnlab"),
        "written": datetime.date.today().isoformat(),
        "seconds": round(sum(result.seconds for result in whole)),
        "claims": entries(whole),
    }
    try:
        Path(file).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise StoreUnwritable(f"cannot write the ledger to {file}: {error.strerror}") from error


def measured(folder: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """What :func:`write` left in a folder as ``claims_quick.json`` and ``claims_paper.json``, by scale."""
    files = {scale: Path(folder) / f"claims_{scale}.json" for scale in SCALES}
    return {scale: json.loads(file.read_text()) for scale, file in files.items() if file.exists()}


def markdown(figures: Iterable[Figure], values: Mapping[str, Mapping[str, Any]]) -> str:
    """The ledger as a page: every claim with the verdicts on record and what was last measured at each scale.

    A value counts only for the sentence and the threshold it was measured for.
    """
    claims = [(claim, (claim, figure)) for figure in figures for claim in figure.claims]
    found = {scale: {entry["id"]: entry for entry in data["claims"]} for scale, data in values.items()}
    told = [f"{tally(recorded(claim, scale) for claim, _ in claims)} at {scale} scale" for scale in SCALES]
    lines = [f"On record of {len(claims)} claims: {'; '.join(told)}.", ""]
    for status in ("fails", "undecided"):
        ids = [claim.id for claim, _ in claims if status in {recorded(claim, scale) for scale in SCALES}]
        lines += [f"- **{status}**: " + ", ".join(f'<a href="#{id}"><code>{id}</code></a>' for id in ids)] * bool(ids)
    for scale, data in values.items():
        lines += ["", f"Values at {scale} scale: `{data['command']}`, attnlab {data['attnlab']}, {data['written']}."]
    for title, group in by_paper(claims).items():
        lines += ["", f"## {title}", "", f"| claim | value [95 %] | {' | '.join(SCALES)} |", "|---|---|---|---|"]
        lines += [_row(claim, figure, found) for claim, figure in group]
    return "\n".join(lines) + "\n"


def _row(claim: Claim, figure: Figure, found: Mapping[str, Mapping[str, Any]]) -> str:
    reason = _cell(f"{claim.source}. Holds if {claim.holds}: {claim.because}.") + f" Figure `{figure.name}`."
    note = f" *{_cell(claim.note)}*" if claim.note else ""
    now = {scale: entry for scale in found if (entry := found[scale].get(claim.id)) and _same(claim, entry)}
    values = "<br>".join(_measured(entry, scale) for scale, entry in now.items())
    verdicts = " | ".join(_verdict(recorded(claim, scale), now.get(scale)) for scale in SCALES)
    name = f'<span id="{claim.id}"></span>`{claim.id}`'
    says = f"{name}<br>{_cell(claim.says)}<br><small>{reason}{note}</small>"
    return f"| {says} | {values or 'not yet measured'} | {verdicts} |"


def _same(claim: Claim, entry: Mapping[str, Any]) -> bool:
    return (entry["says"], entry["holds_if"]) == (claim.says, str(claim.holds))


def _measured(entry: Mapping[str, Any], scale: str) -> str:
    if entry["value"] is None:
        return f"{scale}: –"
    text = f"{scale}: {number(entry['value'])}"
    if None not in (entry["low"], entry["high"]) and entry["runs"] > 1:
        text += f" [{number(entry['low'])}, {number(entry['high'])}]"
    return text + (f"<br><small>{entry['decided_by']}</small>" if entry["decided_by"] else "")


def _verdict(record: str, entry: Mapping[str, Any] | None) -> str:
    shown = f"**{record}**" if record != "holds" else record
    return shown + (f"<br>measured: **{entry['status']}**" if entry and entry["status"] != record else "")


def _cell(text: str) -> str:
    """Text inside a Markdown table: bars and markup characters stand for themselves."""
    return re.sub(r"([|<>_$*])", r"\\\1", text)


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _round(x: float) -> str:
    """Two significant digits, as a person would say it."""
    digits = max(0, math.floor(math.log10(x)) - 1)
    return f"{round(x / 10**digits) * 10**digits:,.0f}".replace(",", " ")
