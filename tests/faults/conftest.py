"""What was tried and how it ended: with FAULT_PAGE set, the tests write it to that page of the documentation."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

HEAD = """# What was tried

Each line is written by a test of `tests/faults` when it passes (`make faults`, `make slurm-test`): what
was done to real processes and files, how often, and what came of it.

| tried | outcome |
|---|---|
"""
ROWS, TIMES = {}, Counter()

# A shell starts its background jobs with SIGINT ignored, nohup with SIGHUP, and drivers that the tests start would
# inherit that. A handler, other than what is ignored, is not inherited.
for ignored in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler if ignored == signal.SIGINT else lambda *_: None)


@pytest.fixture
def tried():
    """Record a fault and its outcome for the page; with ``times`` the cases that passed are counted over all tests."""

    def record(what, outcome, times=0):
        TIMES[what] += times
        ROWS[what] = f"{TIMES[what]} of {TIMES[what]} {outcome}" if times else outcome

    return record


def pytest_sessionfinish(session):
    target = os.environ.get("FAULT_PAGE")
    if target and ROWS:
        page = Path(target)
        lines = page.read_text().splitlines() if page.exists() else []
        known = dict(
            line.strip("| ").split(" | ", 1) for line in lines if line.startswith("| ") and " tried " not in line
        )
        rows = known | {key.replace("|", "/"): value.replace("|", "/") for key, value in ROWS.items()}
        page.write_text(HEAD + "".join(f"| {key} | {value} |\n" for key, value in sorted(rows.items())))
