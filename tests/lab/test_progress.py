"""The time left: what the cells to come of each figure take, on this machine."""

import heapq
import time

import numpy as np
import pytest

from attnlab.lab.progress import STATED_SECONDS, TimeLeft


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def passes(seconds):
        now[0] += seconds

    return passes


def test_expensive_cells_count_for_more_at_the_pace_of_this_machine(clock):
    left = TimeLeft({"cheap": 10.0, "dear": 990.0}, {"cheap": 100, "dear": 1})
    for _ in range(100):
        clock(20.0)  # the machine is half as fast as stated
        left.count("cheap", 20.0)
    # counting cells would say 20 s
    assert left.left() == pytest.approx(1980.0, rel=STATED_SECONDS / 1000)


def test_cells_side_by_side_shorten_the_rest(clock):
    left = TimeLeft({"a": 10.0}, {"a": 8})
    for _ in range(4):
        left.count("a", 10.0)
    clock(10.0)
    assert left.left() == pytest.approx(10.0)


def test_a_statement_that_is_too_low_gives_way_to_measured_cells(clock):
    left = TimeLeft({"wrong": 1.0}, {"wrong": 1000})
    for _ in range(900):
        clock(10.0)
        left.count("wrong", 10.0)
    assert left.left() == pytest.approx(100 * 10.0, rel=0.1)


def test_large_sizes_that_come_last_are_not_forgotten(clock):
    """A figure takes 100 s as stated, its first half of the cells 1 s."""
    left = TimeLeft({"a": 10.0, "b": 10.0}, {"a": 100, "b": 10})
    for _ in range(100):
        clock(10.0)
        left.count("a", 10.0)
    for _ in range(5):
        clock(0.2)
        left.count("b", 0.2)
    # continuing as before would say 1 s, the statement 99 s
    assert left.left() == pytest.approx(99**0.5, rel=0.01)


def test_a_figure_without_a_time_counts_as_an_average_one(clock):
    left = TimeLeft({"known": 4.0, "unknown": 0.0}, {"known": 2, "unknown": 1})
    clock(4.0)
    left.count("known", 4.0)
    assert left.left() == pytest.approx(8.0)


def run_of(rng, pace):
    """Cells of twenty figures in order, on two workers: their ends, and what the figures state.

    Sizes within a figure change by up to exp(3) in one direction, statements are off by 20 %, and the machine is
    ``pace`` times as slow as the one of the statements.
    """
    cells = {f"figure {i}": int(count) for i, count in enumerate(rng.integers(5, 200, 20))}
    ends, workers, stated = [], [0.0, 0.0], {}
    for name, count in cells.items():
        shape = np.exp(rng.uniform(-3, 3) * np.linspace(0, 1, count))
        seconds = rng.lognormal(3, 1) * shape / shape.sum()
        stated[name] = seconds.mean() * rng.lognormal(0, 0.2)
        for cell in pace * seconds:
            end = heapq.heappop(workers) + cell
            heapq.heappush(workers, end)
            ends.append((end, name, cell))
    return stated, cells, sorted(ends)


@pytest.mark.parametrize("pace", [0.5, 1.0, 2.0])
def test_after_a_minute_the_time_left_is_known_within_a_factor_of_one_and_a_half(pace, monkeypatch):
    factors = []
    for seed in range(8):
        stated, cells, ends = run_of(np.random.default_rng(seed), pace)
        now = [0.0]
        monkeypatch.setattr(time, "monotonic", lambda now=now: now[0])
        left = TimeLeft(stated, cells)
        last = ends[-1][0]
        for i, (end, name, seconds) in enumerate(ends):
            now[0] = end
            left.count(name, seconds)
            if i % 20 == 0 and 60 < end < 0.9 * last:
                factors.append(left.left() / (last - end))
    # the rest: a figure in progress that is most of what is left, with its large sizes last
    assert np.mean(np.abs(np.log(factors)) < np.log(1.5)) > 0.9
