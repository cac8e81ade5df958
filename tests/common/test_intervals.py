"""Intervals cover the truth as often as they say, at the numbers of replicates that figures use."""

import numpy as np
import pytest
from scipy import stats

from attnlab.common.composed import Extreme, Magnitude
from attnlab.common.intervals import Fixed, Jackknife, LogRatio, Middle, Replicates, Share

DRAWS = 8000
# The standard error of a coverage of 0.95 from this many draws is 0.0024: one per cent is four of them.
TOLERANCE = 0.01


def coverage(make, truth, shape, seed, draws=DRAWS) -> float:
    """Share of draws whose interval holds the truth."""
    z = np.random.default_rng(seed).standard_normal((draws, *shape))
    bounds = np.array([make(draw).interval(0.95) for draw in z])
    return float(np.mean((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])))


@pytest.mark.parametrize("k", [3, 4, 5, 10, 32])
def test_the_mean_is_covered(k, seed):
    assert abs(coverage(lambda z: Replicates(2 + z), 2.0, (k,), seed) - 0.95) < TOLERANCE


@pytest.mark.parametrize("k", [3, 4, 5, 10, 32])
def test_a_ratio_of_means_is_covered(k, seed):
    """Two arms that share part of their noise, with a scatter of 10 % each, as errors of paired learners have."""

    def make(z):
        return LogRatio(np.array([6 * (1 + 0.1 * z[0]), 2 * (1 + 0.1 * (0.6 * z[0] + 0.8 * z[1]))]), np.array([1, -1]))

    assert abs(coverage(make, 3.0, (2, k), seed) - 0.95) < TOLERANCE


@pytest.mark.parametrize("k", [4, 5, 10])
def test_a_ratio_of_ratios_is_covered(k, seed):
    def make(z):
        return LogRatio(np.array([[4.0], [1.0], [2.0], [1.0]]) * (1 + 0.1 * z), np.array([1, -1, -1, 1]))

    assert abs(coverage(make, 2.0, (4, k), seed) - 0.95) < TOLERANCE


@pytest.mark.parametrize("k", [5, 10, 20])
def test_a_smooth_function_of_means_is_covered(k, seed):
    """The root mean square of four deviations whose noise is a tenth of their size."""

    def rms(z):
        return np.sqrt(np.mean(np.mean(z, axis=-1) ** 2, axis=-1))

    def make(z):
        x = np.array([[1.0], [-1.0], [0.5], [2.0]]) + 0.1 * np.sqrt(k) * z
        return Jackknife(float(rms(x)), np.array([rms(np.delete(x, i, axis=1)) for i in range(k)]))

    truth = float(np.sqrt(np.mean([1, 1, 0.25, 4])))
    assert abs(coverage(make, truth, (4, k), seed) - 0.95) < TOLERANCE


@pytest.mark.parametrize("n", [10, 30, 270, 1000])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.95])
def test_clopper_pearson_covers_at_least_what_it_says(n, p):
    """Exactly: the probabilities of all outcomes whose interval holds the truth add up."""
    outcomes = np.arange(n + 1)
    ones = [Share(np.repeat([1.0, 0.0], [x, n - x]), np.ones(n)).interval(0.95) for x in outcomes]
    inside = np.array([low <= p <= high for low, high in ones])
    assert stats.binom.pmf(outcomes, n, p)[inside].sum() >= 0.95


@pytest.mark.parametrize("units", [10, 20, 40])
def test_a_share_of_dependent_trials_is_covered(units, seed):
    """Units differ in their rate (beta with mean 0.9), and forty trials of a unit share it."""
    rng = np.random.default_rng(seed)
    rates = rng.beta(9, 1, (DRAWS, units))
    hits = rng.binomial(40, rates).astype(float)
    bounds = np.array([Share(h, np.full(units, 40.0)).interval(0.95) for h in hits])
    covered = np.mean((bounds[:, 0] <= 0.9) & (bounds[:, 1] >= 0.9))
    # At least the level, within the noise; the trials taken as independent would give about 0.6.
    assert covered > 0.95 - TOLERANCE
    naive = [stats.binomtest(int(h.sum()), 40 * units).proportion_ci(0.95) for h in hits[:500]]
    assert np.mean([ci.low <= 0.9 <= ci.high for ci in naive]) < 0.8


@pytest.mark.parametrize("n", [10, 30])
def test_the_median_is_covered_at_least_as_often_as_said(n, seed):
    rng = np.random.default_rng(seed)
    bounds = np.array([Middle(draw).interval(0.95) for draw in rng.exponential(size=(DRAWS, n))])
    assert np.mean((bounds[:, 0] <= np.log(2)) & (np.log(2) <= bounds[:, 1])) > 0.95 - TOLERANCE


def test_too_few_replicates_for_a_median_say_nothing():
    # the interval from the smallest to the largest of five covers 1 - 2/32 = 0.94 only
    assert Middle(np.arange(5.0)).interval(0.95) == (-np.inf, np.inf)
    assert Middle(np.arange(6.0)).interval(0.95) == (0.0, 5.0)


@pytest.mark.parametrize("means", [(0.0, 0.0, 0.0, 0.0), (0.0, 1.0, 5.0, 2.0)])
@pytest.mark.parametrize("largest", [True, False])
def test_extremes_over_settings_are_covered_at_least_as_often_as_said(means, largest, seed):
    """Equal settings are the hard case: the largest of four means is above the truth."""
    truth = max(means) if largest else min(means)

    def make(z):
        return Extreme([Replicates(m + row) for m, row in zip(means, z, strict=True)], largest)

    assert coverage(make, truth, (4, 5), seed, 3000) > 0.95 - TOLERANCE


@pytest.mark.parametrize("mean", [0.0, 0.3, 3.0])
def test_magnitudes_are_covered_at_least_as_often_as_said(mean, seed):
    assert coverage(lambda z: Magnitude(Replicates(mean + z)), mean, (5,), seed, 3000) > 0.95 - TOLERANCE


@pytest.mark.parametrize(
    "one", [Replicates(np.ones(1)), LogRatio(np.ones((2, 1)), np.array([1, -1])), Jackknife(1.0, np.ones(1))]
)
def test_one_replicate_says_nothing_of_the_noise(one):
    low, high = one.interval(0.95)
    assert low in (-np.inf, 0.0)
    assert high == np.inf


def test_a_ratio_needs_positive_means():
    with pytest.raises(ValueError, match="positive means"):
        LogRatio(np.array([[1.0, 2.0], [-1.0, 0.5]]), np.array([1, -1]))


def test_a_computation_without_noise_is_its_own_interval():
    assert Fixed(2.0).interval(0.95) == (2.0, 2.0)
