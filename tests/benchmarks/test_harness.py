"""The clock and its arithmetic."""

import doctest
import types

import numpy as np
import pytest

from benchmarks import harness, rows
from benchmarks.rows import Row


@pytest.fixture
def sleep(monkeypatch):
    """A clock that moves only when a call sleeps."""
    now = [0.0]

    def advance(seconds):
        now[0] += seconds

    monkeypatch.setattr(harness, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))
    return advance


def test_the_exponent_of_a_power_is_found():
    sizes = [10.0, 30.0, 100.0]
    assert harness.exponent(sizes, [3e-6 * size**2.5 for size in sizes]) == pytest.approx(2.5)
    assert harness.slope_error(sizes, [3e-6 * size**2.5 for size in sizes]) == pytest.approx(0.0, abs=1e-12)


def test_growth_reports_exponent_uncertainty_and_theory():
    sizes = [10, 100, 1000]
    # repeats at exponents 1.9, 2.0, 2.1: the medians over repeats lie on the middle one, the quartiles at 1.95, 2.05
    times = [[1e-6 * size**power for power in (1.9, 2.0, 2.1)] for size in sizes]
    row = harness.growth_row("work", sizes, times, 2.0)
    assert row.value == pytest.approx(2.0)
    assert row.spread == pytest.approx(0.05)
    assert (row.theory, row.unit, row.kind, row.goal) == (2.0, "exponent", "growth", "theory 2")
    assert "last pair 2.00" in row.detail


def test_times_that_follow_no_power_are_uncertain():
    row = harness.growth_row("work", [1, 10, 100], [[1.0], [1.0], [100.0]], 1.0)
    # log times 0, 0, 2 decades: slope 1, residuals 1/3, -2/3, 1/3 of a decade: sqrt(6/9) / sqrt(2)
    assert row.value == pytest.approx(1.0)
    assert row.spread == pytest.approx(np.sqrt(6 / 9 / 2))


def test_growth_needs_three_sizes():
    with pytest.raises(ValueError, match="at least three sizes, got 2"):
        harness.growth_row("work", [1, 2], [[1.0], [2.0]], 1.0)


def test_growth_prepares_each_size_once_and_times_what_it_returns(sleep):
    prepared = []

    def call(size):
        prepared.append(size)
        return lambda: sleep(1e-4 * size**2)

    row = harness.growth("sleep", [20, 40, 80], call, 2.0, repeats=3)
    assert prepared == [20, 40, 80]
    assert row.value == pytest.approx(2.0)
    assert row.spread == pytest.approx(0.0, abs=1e-9)


def test_alternatives_are_timed_in_turn(sleep):
    order = []
    calls = [lambda name=name: (order.append(name), sleep(0.011)) for name in "AB"]
    timings = harness.alternate(calls, repeats=3)
    assert "".join(order) == "AB" + 3 * "AB"
    assert [len(timing.times) for timing in timings] == [3, 3]


def test_a_brief_call_is_repeated_until_a_turn_lasts(sleep):
    count = 0

    def call():
        nonlocal count
        count += 1
        sleep(harness.BRIEF / 4)

    timing = harness.measure(call, repeats=2)
    assert count == 2 + 2 * 4  # a warm-up and a look, then two turns of four
    assert timing.times == pytest.approx((harness.BRIEF / 4, harness.BRIEF / 4))


def test_the_first_call_is_counted_apart(sleep):
    calls = iter([1.0, 0.02, 0.03, 0.02])
    timing = harness.measure(lambda: sleep(next(calls)), repeats=3)
    assert (timing.median, timing.compile) == pytest.approx((0.02, 0.98))


def test_speed_up_is_the_median_of_paired_ratios(monkeypatch):
    pairs = [harness.Timing(1.0, 0.0, 0.0, (1.0, 2.0, 1.0)), harness.Timing(4.0, 0.0, 0.0, (4.0, 8.0, 6.0))]
    monkeypatch.setattr(harness, "alternate", lambda calls, repeats: pairs)
    row = harness.speed_up("ratio", lambda: 0, lambda: 0, target=">= 3", detail="", scale=2.0)
    assert row.value == pytest.approx(2.0)
    assert row.spread == pytest.approx(0.25)  # ratios 2, 2, 3: quartiles 2 and 2.5
    assert row.met is False


@pytest.mark.parametrize(
    ("value", "target", "met"),
    [
        (3.0, ">= 3", True),
        (2.99, ">= 3", False),
        (10.0, "< 10 s", False),
        (4e-5, "<= 1e-4", True),
        (900.0, "< 1 000", True),
        (3.8, "4 ± 0.3", True),
        (3.6, "4 ± 0.3", False),
        (-0.02, "within 1 %", False),
        (float("nan"), ">= 3", False),
        (1.0, "", None),
        (1.0, "-", None),
        (1.0, "report", None),
        (0.1, ">= 0.7 at d = 4000", None),
        (1.0, "< 5 s at d = 1000, < 300 s at d = 4000", None),
    ],
)
def test_a_target_is_met_missed_or_not_a_number(value, target, met):
    assert rows.meets(value, target) is met


@pytest.mark.parametrize(
    ("name", "unit", "kind"),
    [
        ("a", "x", "ratio"),
        ("a", "exponent", "growth"),
        ("a", "of dgemm", "share"),
        ("a", "of the fp32 matrix rate", "share"),
        ("Gram, share of sgemm", "", "share"),
        ("a", "of std(y)", "size"),
        ("a", "s", "size"),
    ],
)
def test_the_unit_says_what_a_row_is(name, unit, kind):
    assert Row(name, 1.0, unit, "", "").kind == kind


def test_memory_of_a_process_is_its_own_not_its_parents():
    here = np.ones(40_000_000)  # 320 MB in this process
    empty = harness.process_memory("pass")
    filled = harness.process_memory("held = bytearray(200_000_000)")
    assert empty < 1e8 < here.nbytes
    # the 200 MB and nothing else, to the size of an allocator's page
    assert filled - empty == pytest.approx(2e8, rel=0.05)


def test_what_a_fresh_process_prints_comes_back():
    printed, peak = harness.run_apart("print('one'); print('two')")
    assert printed.split() == ["one", "two"]
    assert peak > 1e6


def test_peak_memory_counts_arrays_that_are_gone():
    assert harness.peak_memory(lambda: np.ones(2_000_000).sum()) == pytest.approx(16e6, rel=0.05)


@pytest.mark.parametrize("module", [harness, rows], ids=lambda module: module.__name__)
def test_the_examples_of_the_docstrings_hold(module):
    assert doctest.testmod(module).failed == 0
