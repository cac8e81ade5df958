"""The claims ledger: every claim with its source, deciding number, threshold, verdict and confirmation, by paper."""

from __future__ import annotations

import datetime
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from attnlab.common.claim import STATUSES, Claim, Verdict
from attnlab.common.figure import Figure
from attnlab.common.intervals import Fixed
from attnlab.common.words import many
from attnlab.lab import registry
from attnlab.lab.claims import registration
from attnlab.lab.errors import StoreUnwritable
from attnlab.lab.runner import Result

SCALES = ("quick", "paper")
T = TypeVar("T")


def paper(claim: Claim) -> str:
    """The arXiv id a claim rests on; empty for what was derived here."""
    # four digits behind the point until 2014, five since
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
    # a paper without a known title stands behind the known ones and before what was derived here
    order = sorted(groups, key=lambda key: (systems.index(key[0]), rank.get(key[1], len(known) - 0.5)))
    return {heading(key): groups[key] for key in order}


def count(statuses: Iterable[str]) -> dict[str, int]:
    """How many claims are in each of the four states; they add up to all.

    >>> count(["holds", "holds", "not measured"])
    {'holds': 2, 'fails': 0, 'undecided': 0, 'not measured': 1}
    """
    found = Counter(statuses)
    return {status: found[status] for status in STATUSES}


def tally(statuses: Iterable[str]) -> str:
    """The four counts and their sum, in words."""
    found = count(statuses)
    states = f"{found['holds']} hold, {found['fails']} fail, {found['undecided']} undecided"
    return f"{many(sum(found.values()), 'claim')}: {states}, {found['not measured']} not measured"


def decided_by(verdict: Verdict) -> str:
    """For an undecided claim, how many replicates would decide it; empty where that is not the question.

    The value and the noise are taken as they are now, so it is an order of magnitude.
    """
    if verdict.status != "undecided" or verdict.estimate is None:
        return ""
    if verdict.estimate.runs < 2:
        return "one replicate gives no estimate of the noise: repeat it with more seeds"
    if math.isinf(verdict.replicates_needed):
        return "the value is at the threshold: no number of replicates decides"
    if math.isnan(verdict.replicates_needed):
        return ""
    needed = f"about {_round(verdict.replicates_needed)} replicates would decide at this value and noise"
    return f"{needed} ({verdict.estimate.runs} now)"


def power(verdict: Verdict) -> str:
    """The smallest effect that the design would have found with 80 %, in words."""
    if isinstance(verdict.measured, Fixed) or math.isnan(verdict.smallest_effect):
        return ""
    if math.isinf(verdict.smallest_effect):
        return "no truth would be found with 80 % power by this many replicates"
    return f"80 % power at {number(verdict.smallest_effect)} inside the threshold"


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


def measured_number(entry: Mapping[str, Any]) -> str:
    """The number of an entry, or of its confirmation, with the interval where it is noisy."""
    if entry.get("value") is None:
        return "–"
    # an infinite limit was written as null: such an interval is not shown
    limits = (entry["low"], entry["high"])
    noisy = entry["noisy"] and None not in limits
    return number(entry["value"]) + (f" [{', '.join(map(number, limits))}]" if noisy else "")


def as_dict(verdict: Verdict, figure: Figure) -> dict[str, Any]:
    """One entry of the ledger, for ``claims.json``."""
    claim = verdict.claim
    return {
        "id": claim.id,
        "digest": registration.digest(claim, figure),
        "says": claim.says,
        "source": claim.source,
        "paper": paper(claim),
        "title": registry.papers().get(paper(claim), ""),
        "figure": figure.name,
        "scale": verdict.scale,
        "kind": claim.kind,
        "statistic": str(claim.statistic),
        "holds_if": str(claim.holds),
        "because": claim.because,
        "registered": verdict.registered,
        **outcome(verdict),
    }


def outcome(verdict: Verdict) -> dict[str, Any]:
    """The verdict of a set of records on a claim."""
    estimate = verdict.estimate
    return {
        "status": verdict.status,
        "value": estimate and _finite(estimate.value),
        "low": estimate and _finite(estimate.low),
        "high": estimate and _finite(estimate.high),
        "replicates": estimate and estimate.runs,
        "noisy": verdict.measured is not None and not isinstance(verdict.measured, Fixed),
        "p_value": _finite(verdict.p_value),
        "smallest_effect": _finite(verdict.smallest_effect),
        "power": power(verdict),
        "replicates_needed": _finite(verdict.replicates_needed),
        "decided_by": decided_by(verdict),
        "cells": verdict.cells,
        "unconverged": verdict.unconverged,
        "extended": verdict.extended,
        "note": verdict.reason,
    }


def entries(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The ledger of some results."""
    return [as_dict(verdict, result.figure) for result in results for verdict in result.verdicts]


def write(
    results: Sequence[Result], scale: str, file: str | os.PathLike[str], confirmations: Sequence[Result] = ()
) -> None:
    """Bring the complete figures of a scale into the ledger's file; its entries of other figures stay.

    ``confirmations`` are results of fresh seeds; a claim's entry shows them under ``confirmation``.
    """
    path, before = Path(file), read(file)
    # an entry without a digest cannot be said to be of the claim as it stands
    claims = {entry["id"]: entry for entry in before.get("claims", ()) if "digest" in entry}
    made = before.get("figures", {})
    for result in [*results, *confirmations]:
        if result.missing or result.failed:
            continue
        _bring(result, claims)
        made.setdefault(result.figure.name, {})[str(result.stream)] = _made(result)
    content = {"scale": scale, "figures": made, "claims": sorted(claims.values(), key=lambda entry: str(entry["id"]))}
    try:
        # Renamed into place: a run that is killed here leaves the ledger as it was.
        draft = path.with_name(f".{path.name}.part")
        draft.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        draft.replace(path)
    except OSError as error:
        raise StoreUnwritable(f"cannot write the ledger to {file}: {error.strerror}") from error


def _bring(result: Result, claims: dict[str, dict[str, Any]]) -> None:
    """Put a result into the entries: the verdict, or beside it the confirmation."""
    for verdict in result.verdicts:
        now = as_dict(verdict, result.figure)
        before = claims.get(now["id"], {})
        # a confirmation of the claim in another wording, or with another threshold, does not count for this one
        if before.get("digest") != now["digest"]:
            before = {}
        if result.stream == 1:
            kept = {"confirmation": before["confirmation"]} if "confirmation" in before else {}
            claims[now["id"]] = now | kept
        else:
            unmeasured = now | {"status": "not measured", "value": None, "low": None, "high": None}
            claims[now["id"]] = (before or unmeasured) | {"confirmation": outcome(verdict)}


def _made(result: Result) -> dict[str, Any]:
    return {
        "written": datetime.date.today().isoformat(),
        "seconds": round(result.seconds),
        "code": sorted({code for _, code in result.made.versions}),
        "versions": result.versions,
        "devices": sorted(result.made.devices - {""}),
    }


def read(file: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a ledger's file; nothing where there is none."""
    path = Path(file)
    return json.loads(path.read_text()) if path.exists() else {}


def measured(folder: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """What :func:`write` left in a folder as ``claims_quick.json`` and ``claims_paper.json``, by scale."""
    found = {scale: read(Path(folder) / f"claims_{scale}.json") for scale in SCALES}
    return {scale: content for scale, content in found.items() if content}


def current(figures: Iterable[Figure], data: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The entries of a ledger's file that were measured for the claims as they stand, by id."""
    digests = {claim.id: registration.digest(claim, figure) for figure in figures for claim in figure.claims}
    return {e["id"]: e for e in data.get("claims", ()) if e.get("digest") == digests.get(e["id"], "")}


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None  # JSON has no infinity and no NaN


def _round(x: float) -> str:
    """Two significant digits, as a person would say it."""
    # a number below 100 keeps all its digits
    digits = max(0, math.floor(math.log10(x)) - 1)
    return f"{round(x / 10**digits) * 10**digits:,.0f}".replace(",", " ")
