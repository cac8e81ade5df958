"""Power and the number of replicates, against simulation and exact counts."""

import math

import numpy as np
import pytest
from scipy import stats

from attnlab.common.claim import Claim, Threshold, at_least, at_most
from attnlab.common.composed import Exponential
from attnlab.common.intervals import Fixed, LogRatio, Replicates, Share
from attnlab.common.power import replicates_needed, smallest_effect
from attnlab.common.records import Records
from attnlab.common.statistics import mean, of

LOWER = (1.0, math.inf)


@pytest.mark.parametrize("n", [3, 10])
def test_an_effect_of_this_size_is_found_four_times_of_five(n):
    """With the noise known: a truth that far above the threshold holds in 80 % of draws."""
    unit = np.random.default_rng(n).standard_normal(n)
    unit = (unit - unit.mean()) / unit.std(ddof=1)
    effect = smallest_effect(Replicates(unit), LOWER, 0.95)
    claim = Claim("toy.1", "x", "here", mean(of("x")), at_least(1.0), "one")
    draws = np.random.default_rng(n + 1).standard_normal((600, n)) + 1 + effect
    held = [claim.decide(Records.of({"seed": i, "x": x} for i, x in enumerate(d)), "quick").status for d in draws]
    # standard error of 80 % from 600 draws: 1.6 %
    assert held.count("holds") / 600 == pytest.approx(0.8, abs=0.065)


def test_the_effect_is_symmetric_and_scales_with_the_noise():
    x = np.array([1.0, 2.0, 4.0, 7.0])
    below, above = (smallest_effect(Replicates(x), bounds, 0.95) for bounds in ((-math.inf, 3.0), (3.0, math.inf)))
    assert below == above
    assert smallest_effect(Replicates(10 * x), LOWER, 0.95) == pytest.approx(10 * below)
    assert smallest_effect(Replicates(x), (0.0, 3.0 * below), 0.95) == below
    # no truth is as far inside both bounds
    assert smallest_effect(Replicates(x), (0.0, 1.9 * below), 0.95) == math.inf


@pytest.mark.parametrize(("n", "least"), [(20, 0.69), (80, 0.95), (30, 0.5)])
def test_a_share_is_found_four_times_of_five(n, least):
    """Exactly: of the outcomes that hold, the probabilities at least + effect add up to 80 %."""
    share = Share(np.ones(n), np.ones(n))
    p = least + smallest_effect(share, (least, math.inf), 0.95)
    outcomes = np.arange(n + 1)
    held = [_holds(x, n, at_least(least)) for x in outcomes]
    assert stats.binom.pmf(outcomes[held], n, p).sum() == pytest.approx(0.8, abs=1e-9)


def _holds(x, n, holds: Threshold) -> bool:
    return holds.decide(Share(np.repeat([1.0, 0.0], [x, n - x]), np.ones(n)).interval(0.95)) == "holds"


def test_a_design_that_cannot_decide_says_so():
    # five successes of five begin at 0.48
    assert smallest_effect(Share(np.ones(5), np.ones(5)), (0.6, math.inf), 0.95) == math.inf
    assert smallest_effect(Replicates(np.ones(1)), LOWER, 0.95) == math.inf
    assert smallest_effect(Fixed(2.0), LOWER, 0.95) == 0.0


def test_ratios_are_measured_in_factors():
    factors = np.exp(0.1 * np.array([-1.0, 0.0, 1.0, 0.5]))
    one, three = (smallest_effect(Exponential(Replicates(np.log(factors))), (b, math.inf), 0.95) for b in (1.0, 3.0))
    assert three == pytest.approx(3 * one)
    ratio = LogRatio(np.array([factors, np.ones(4)]), np.array([1, -1]))
    assert smallest_effect(ratio, LOWER, 0.95) == pytest.approx(one, rel=0.05)


@pytest.mark.parametrize("value", [0.8, 0.95, 1.0])
def test_the_replicates_needed_for_a_share_are_the_fewest(value):
    holds = at_least(0.7)
    start = Share(np.repeat([1.0, 0.0], [round(10 * value), 10 - round(10 * value)]), np.ones(10))
    n = int(replicates_needed(start, holds.bounds, 0.95))
    x = round(n * start.value)
    assert _holds(x, n, holds)


@pytest.mark.parametrize("holds", [(3.0, math.inf), (-9.0, 4.0), (3.0, 9.0), (0.5, math.inf)])
def test_the_replicates_needed_for_a_mean_are_the_fewest(holds):
    # mean 3.5 and variance 7
    distance = min(abs(3.5 - bound) for bound in holds)
    fewest = next(k for k in range(5, 1000) if stats.t.ppf(0.975, k - 1) * math.sqrt(7 / k) <= distance)
    assert replicates_needed(Replicates(np.array([1.0, 2.0, 4.0, 7.0])), holds, 0.95) == fewest
    assert 2 < replicates_needed(Replicates(np.array([1.0, 7.0])), (0.0, math.inf), 0.95) < 20


def test_trials_that_share_their_unit_need_as_many_units():
    hits = np.repeat([1.0, 0.0], [9, 1])
    alone, shared = (replicates_needed(Share(k * hits, np.full(10, k)), (0.7, math.inf), 0.95) for k in (1.0, 4.0))
    assert shared == pytest.approx(alone, rel=0.3)
    for units in (1, 10):  # 0.025^(1/11) = 0.715
        assert replicates_needed(Share(np.ones(units), np.ones(units)), (0.7, math.inf), 0.95) == 11


def test_what_lies_at_the_threshold_is_never_decided():
    assert replicates_needed(Share(np.array([1.0, 0.0]), np.ones(2)), at_most(0.5).bounds, 0.95) == math.inf
    assert math.isnan(replicates_needed(Replicates(np.array([math.inf, 1.0])), LOWER, 0.95))
