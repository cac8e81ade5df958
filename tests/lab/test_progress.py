"""The time left is weighted by what a cell of each figure costs."""

import time

import pytest

from attnlab.lab.progress import PRIOR_CELLS, TimeLeft


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def passes(seconds):
        now[0] += seconds

    return passes


def test_expensive_cells_count_for_more_at_the_pace_of_this_machine(clock):
    left = TimeLeft({"cheap": 1.0, "dear": 99.0}, {"cheap": 100, "dear": 1})
    for _ in range(100):
        clock(2.0)  # the machine is half as fast as stated
        left.count("cheap", 2.0)
    # counting cells would say 2 s
    assert left.left() == pytest.approx(198.0)


def test_cells_side_by_side_shorten_the_rest(clock):
    left = TimeLeft({"a": 10.0}, {"a": 8})
    for _ in range(4):
        left.count("a", 10.0)
    clock(10.0)
    assert left.left() == pytest.approx(10.0)


def test_measured_cells_replace_a_wrong_statement(clock):
    left = TimeLeft({"right": 1.0, "wrong": 1.0}, {"right": 1000, "wrong": 1000})
    for _ in range(500):
        clock(11.0)
        left.count("right", 1.0), left.count("wrong", 10.0)
    assert left.left() == pytest.approx(500 * 11.0, rel=PRIOR_CELLS / 500)


def test_a_figure_without_a_time_counts_as_an_average_one(clock):
    left = TimeLeft({"known": 4.0, "unknown": 0.0}, {"known": 2, "unknown": 1})
    clock(4.0)
    left.count("known", 4.0)
    assert left.left() == pytest.approx(8.0)
