"""Registered claims on fresh seeds: the stream of random numbers that only a confirmation draws from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attnlab.common.claim import Verdict
from attnlab.lab.runner import Result

CONFIRMATION = 2


def beside(first: Iterable[Result], fresh: Iterable[Result]) -> list[tuple[Verdict | None, Verdict]]:
    """Every confirmed claim with the verdict it had before, where there is one."""
    before: Mapping[str, Verdict] = {v.claim.id: v for result in first for v in result.verdicts}
    return [(before.get(v.claim.id), v) for result in fresh for v in result.verdicts]


def told(before: Verdict | None, now: Verdict) -> str:
    """What the fresh seeds say of the earlier verdict, in two or three words."""
    if before is None or before.status == "not measured":
        return f"{now.status}, first time"
    return f"{now.status} again" if before.status == now.status else f"{before.status}, then {now.status}"


def summary(pairs: Iterable[tuple[Verdict | None, Verdict]]) -> str:
    """How many of the claims that held held again, and which did not."""
    held = [(before, now) for before, now in pairs if before is not None and before.status == "holds"]
    lost = [f"{now.claim.id} ({now.status})" for _, now in held if now.status != "holds"]
    text = f"of {len(held)} claims that held, {len(held) - len(lost)} held again on fresh seeds"
    return f"{text}; not again: {', '.join(lost)}" if lost else text
