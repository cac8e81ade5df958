import math

import numpy as np
import pytest

from attnlab.lab.plans.crossing import bootstrap, first_below, next_size, power_law, search


def test_the_next_size_doubles_then_bisects():
    errors = search(lambda n: 100 / n, target=0.1, low=16, high=4096, resolution=1.1)
    tried = list(errors)
    assert tried[:7] == [16, 32, 64, 128, 256, 512, 1024]
    assert min(n for n in tried if n >= 1000) / max(n for n in tried if n < 1000) <= 1.1
    assert next_size({16: 1.0, 32: 1.0}, 0.1, 16, 40, 1.1) == 40
    assert next_size({16: 1.0, 40: 1.0}, 0.1, 16, 40, 1.1) is None
    assert next_size({16: 0.01}, 0.1, 16, 40, 1.1) is None
    assert next_size({}, 0.1, 16, 40, 1.1) == 16


def test_the_bisection_stops_at_the_resolution_or_between_neighbours():
    assert next_size({100: 1.0, 110: 0.1}, 0.1, 16, 400, 1.1) is None
    assert next_size({50: 2.0, 100: 1.0, 121: 0.1, 200: 0.01}, 0.1, 16, 400, 1.1) == 110
    assert next_size({10: 1.0, 11: 0.1}, 0.1, 1, 400, 1.01) is None
    assert [next_size({1: 1.0, n: 0.1}, 0.1, 1, 400, 1.01) for n in (3, 4, 9)] == [2, 2, 3]


def test_the_first_crossing_counts_and_gaps_are_not_interpolated():
    assert first_below([1, 2, 4], np.array([0.01, 5.0, 0.01]), 0.1) == 1
    assert first_below([1, 2], np.array([math.inf, 0.05]), 0.1) == 2
    assert math.isinf(first_below([1, 2], np.array([1.0, 0.5]), 0.1))


def test_a_crossing_is_interpolated_in_the_logarithms():
    assert first_below([10, 100, 1000], np.array([1.0, 0.01, 1e-4]), 0.1) == pytest.approx(10**1.5)
    assert first_below([7, 10, 80], np.array([9.0, 0.8, 0.1]), 0.2) == pytest.approx(40)
    # no error at all is two decades below the target
    assert first_below([1, 8], np.array([1.0, 0.0]), 0.1) == pytest.approx(2)


def test_the_bootstrap_interval_covers_the_crossing(seed):
    rng = np.random.default_rng(seed)
    sizes = [50, 100, 200, 400]
    covered = 0
    for _ in range(40):
        # each run has its own constant: log-normal around 10, whose mean is 10 exp(0.02)
        errors = 10 * np.exp(0.2 * rng.standard_normal((20, 1))) / np.array(sizes)
        estimate = bootstrap(sizes, errors, 0.05)
        covered += estimate.low <= 200 * math.exp(0.02) <= estimate.high
    # 95 % asked; the percentile bootstrap of 20 runs covers about 92 %: 40 trials, four standard deviations
    assert covered >= 40 * (0.92 - 4 * math.sqrt(0.92 * 0.08 / 40))


def test_the_cost_is_a_power_law_of_the_larger_sizes():
    sizes = [16, 32, 64, 128, 256, 512]
    _, b = power_law(sizes, [0.5 + 1e-6 * n**2 for n in sizes])
    assert 0 < b < 2
    assert power_law([100], [2.0]) == (2.0, 0.0)
    assert abs(power_law(sizes, [3e-5 * n**1.5 for n in sizes])[1] - 1.5) < 1e-9
