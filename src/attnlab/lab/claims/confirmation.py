"""Registered claims on fresh seeds: the stream of random numbers that only a confirmation draws from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

CONFIRMATION = 2


def comparison(entry: Mapping[str, Any]) -> str:
    """What fresh seeds say of the earlier verdict of a ledger's entry, in two or three words."""
    before, now = entry["status"], entry["confirmation"]["status"]
    if before == "not measured":
        return f"{now}, first time"
    return f"{now} again" if before == now else f"{before}, then {now}"


def summary(entries: Iterable[Mapping[str, Any]]) -> str:
    """How many of the claims that held held again, and which did not."""
    held = [entry for entry in entries if entry["status"] == "holds"]
    lost = [f"{e['id']} ({e['confirmation']['status']})" for e in held if e["confirmation"]["status"] != "holds"]
    text = f"of {len(held)} claims that held, {len(held) - len(lost)} held again on fresh seeds"
    return f"{text}; not again: {', '.join(lost)}" if lost else text
