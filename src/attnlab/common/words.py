"""Words of messages."""

from __future__ import annotations


def many(count: int, noun: str) -> str:
    """A number with its noun, singular or plural.

    >>> many(1, "cell"), many(0, "cell"), many(12, "claim")
    ('1 cell', '0 cells', '12 claims')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
