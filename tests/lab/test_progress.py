"""The time left is weighted by what a cell of each figure costs."""

import time

import pytest

from attnlab.lab.progress import TimeLeft


def test_expensive_cells_count_for_more(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    clock = TimeLeft({"cheap": 1.0, "dear": 99.0}, {"cheap": 100, "dear": 1})
    for _ in range(100):
        now[0] += 2.0  # the machine is half as fast as expected
        left = clock.after("cheap")
    # counting cells would say 2 s
    assert left == pytest.approx(198.0)


def test_a_figure_without_a_time_counts_as_an_average_one(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    clock = TimeLeft({"known": 4.0, "unknown": 0.0}, {"known": 1, "unknown": 1})
    assert clock.after("unknown") == 0.0
    assert clock.done == 4.0
