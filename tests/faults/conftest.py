"""What was tried and how it ended: with FAULT_PAGE set, the tests write it to that page of the documentation."""

import os
from pathlib import Path

import pytest

HEAD = """# What was tried

Each line is written by a test of `tests/faults` when it passes (`make faults`, `make slurm-test`): what
was done to real processes and files, how often, and what came of it.

| tried | outcome |
|---|---|
"""
ROWS = {}


@pytest.fixture
def tried():
    """Record a fault and its outcome for the page."""
    return ROWS.__setitem__


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
