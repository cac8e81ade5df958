"""A theory function that computes for longer than two seconds says so, on a terminal or in a notebook."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Seconds of silence, and between two looks at the clock.
SILENCE, TICK = 2.0, 0.5
# The outermost call that is under way: its name and when it began. One thread looks on, as a thread for each call would
# cost more than most calls.
_running: list[tuple[str, float]] = []
_watcher: threading.Thread | None = None
_shown = ""


def interactive() -> bool:
    """Whether a person looks on: logs of batch jobs and workers stay clean."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextmanager
def announced(name: str) -> Iterator[None]:
    """Show the name and the seconds of a long call while it lasts; a call inside another one is part of it."""
    if _running or not interactive():
        yield
        return
    _watch()
    _running.append((name, time.monotonic()))
    try:
        yield
    finally:
        _running.clear()
        _show("")  # before what the caller prints next


def _watch() -> None:
    global _watcher
    if _watcher is None or not _watcher.is_alive():
        _watcher = threading.Thread(target=_look, name="attnlab-patience", daemon=True)
        _watcher.start()


def _look() -> None:
    while True:
        time.sleep(TICK)
        for name, start in tuple(_running):
            if (seconds := time.monotonic() - start) > SILENCE:
                _show(f"{name} is computing, {seconds:.0f} s")


def _show(text: str) -> None:
    """Write over what is shown; nothing wipes it away."""
    global _shown
    if text != _shown:
        sys.stderr.write("\r" + text.ljust(len(_shown)) + ("" if text else "\r"))
        sys.stderr.flush()
        _shown = text
