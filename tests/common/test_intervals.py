"""Intervals cover the truth as often as they say, at the numbers of replicates that figures use."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from attnlab.common.composed import Exponential, Extreme, Magnitude
from attnlab.common.intervals import ROUNDING, Fixed, Jackknife, LogRatio, Middle, Replicates, Share


@dataclass
class Simulation:
    """Draws of an estimator, and how far a coverage of 95 % may be off: 4.5 standard errors, one per cent in full."""

    draws: int
    seed: int

    @property
    def tolerance(self) -> float:
        return max(0.01, 4.5 * np.sqrt(0.95 * 0.05 / self.draws))

    @property
    def rng(self):
        return np.random.default_rng(self.seed)

    def share(self, bounds, truth) -> float:
        low, high = np.array(bounds).T
        return float(np.mean((low <= truth) & (truth <= high)))

    def coverage(self, make, truth, shape) -> float:
        """Share of draws whose interval holds the truth."""
        z = self.rng.standard_normal((self.draws, *shape))
        return self.share([make(draw).interval(0.95) for draw in z], truth)

    def exact(self, make, truth, shape) -> bool:
        return abs(self.coverage(make, truth, shape) - 0.95) < self.tolerance

    def safe(self, make, truth, shape) -> bool:
        return self.coverage(make, truth, shape) > 0.95 - self.tolerance


@pytest.fixture(params=[400, pytest.param(20_000, marks=pytest.mark.slow)], ids=["few", "full"])
def simulation(request, seed):
    return Simulation(request.param, seed)


@pytest.mark.parametrize("k", [3, 4, 5, 10, 32])
def test_the_mean_is_covered(k, simulation):
    assert simulation.exact(lambda z: Replicates(2 + z), 2.0, (k,))


@pytest.mark.parametrize("k", [3, 4, 5, 10, 32])
def test_a_ratio_of_means_is_covered(k, simulation):
    """Two arms that share part of their noise, with a scatter of 10 % each, as errors of paired learners have."""

    def make(z):
        return LogRatio(np.array([6 * (1 + 0.1 * z[0]), 2 * (1 + 0.1 * (0.6 * z[0] + 0.8 * z[1]))]), np.array([1, -1]))

    assert simulation.exact(make, 3.0, (2, k))


@pytest.mark.parametrize(("powers", "truth"), [([1, -1, -1, 1], 2.0), ([1, 1, 1, -1], 8.0)])
@pytest.mark.parametrize("k", [4, 10])
def test_a_ratio_of_products_is_covered(powers, truth, k, simulation):
    def make(z):
        return LogRatio(np.array([[4.0], [1.0], [2.0], [1.0]]) * (1 + 0.1 * z), np.array(powers))

    assert simulation.exact(make, truth, (4, k))


def test_the_interval_of_a_product_is_the_delta_method():
    x, y = np.array([1.0, 2.0, 4.0, 7.0]), np.array([3.0, 5.0, 4.0, 4.0])
    half = 3.18245 * np.std(x / 3.5 + y / 4, ddof=1) / 2  # t_3, four replicates
    expected = (14 * np.exp(-half), 14 * np.exp(half))
    assert LogRatio(np.array([x, y]), np.array([1, 1])).interval(0.95) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("k", [3, 5, 10])
def test_a_geometric_mean_is_covered(k, simulation):
    """Errors that scatter by a factor of two: the logarithm is Gaussian."""
    assert simulation.exact(lambda z: Exponential(Replicates(0.7 * z - 2)), np.exp(-2), (k,))


@pytest.mark.parametrize("k", [3, 5, 10])
def test_a_slope_is_covered(k, simulation):
    """An exponent of -1/2 from four sizes, each size with a scatter of 20 %, fitted within each replicate."""
    x = np.log([10.0, 20.0, 40.0, 80.0])
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)

    def make(z):
        return Replicates(weights @ (-0.5 * x[:, None] + 0.2 * z))

    assert simulation.exact(make, -0.5, (4, k))


@pytest.mark.parametrize("k", [5, 10, 20])
def test_a_smooth_function_of_means_is_covered(k, simulation):
    """The root mean square of four deviations whose noise is a tenth of their size."""

    def rms(z):
        return np.sqrt(np.mean(np.mean(z, axis=-1) ** 2, axis=-1))

    def make(z):
        x = np.array([[1.0], [-1.0], [0.5], [2.0]]) + 0.1 * np.sqrt(k) * z
        return Jackknife(float(rms(x)), np.array([rms(np.delete(x, i, axis=1)) for i in range(k)]))

    truth = float(np.sqrt(np.mean([1, 1, 0.25, 4])))
    assert simulation.exact(make, truth, (4, k))


@pytest.mark.parametrize("n", [10, 30, 270, 1000])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.95])
def test_clopper_pearson_covers_at_least_what_it_says(n, p):
    """Exactly: the probabilities of all outcomes whose interval holds the truth add up."""
    outcomes = np.arange(n + 1)
    ones = [Share(np.repeat([1.0, 0.0], [x, n - x]), np.ones(n)).interval(0.95) for x in outcomes]
    inside = np.array([low <= p <= high for low, high in ones])
    assert stats.binom.pmf(outcomes, n, p)[inside].sum() >= 0.95


@pytest.mark.parametrize("units", [10, 20, 40])
def test_a_share_of_dependent_trials_is_covered(units, simulation):
    """Units differ in their rate (beta with mean 0.9), and forty trials of a unit share it."""
    rng = simulation.rng
    rates = rng.beta(9, 1, (simulation.draws, units))
    hits = rng.binomial(40, rates).astype(float)
    covered = simulation.share([Share(h, np.full(units, 40.0)).interval(0.95) for h in hits], 0.9)
    # At least the level, within the noise; the trials taken as independent would give about 0.6.
    assert covered > 0.95 - simulation.tolerance
    naive = [stats.binomtest(int(h.sum()), 40 * units).proportion_ci(0.95) for h in hits[:500]]
    assert np.mean([ci.low <= 0.9 <= ci.high for ci in naive]) < 0.8


def test_the_design_effect_is_that_of_the_formula():
    student = stats.t.ppf(0.975, 39) / stats.t.ppf(0.975, 9)
    four = np.full(10, 4.0)
    # p = .9: variance 10/9 (9 * .4^2 + 3.6^2) / 40^2 = .01, so .09 / .01 = 9 trials
    assert Share(np.repeat([4.0, 0.0], [9, 1]), four).effective == pytest.approx(9 * student**2)
    # no variance between units: all forty trials
    assert Share(four / 2, four).effective == pytest.approx(40 * student**2)
    assert [Share(hits, four).effective for hits in (0 * four, four)] == [10, 10]
    assert Share(np.array([3.0]), np.array([4.0])).effective == 1


@pytest.mark.parametrize("n", [10, 30])
def test_the_median_is_covered_at_least_as_often_as_said(n, simulation):
    draws = simulation.rng.exponential(size=(simulation.draws, n))
    covered = simulation.share([Middle(draw).interval(0.95) for draw in draws], np.log(2))
    assert covered > 0.95 - simulation.tolerance


def test_too_few_replicates_for_a_median_say_nothing():
    # the interval from the smallest to the largest of five covers 1 - 2/32 = 0.94 only
    assert Middle(np.arange(5.0)).interval(0.95) == (-np.inf, np.inf)
    assert Middle(np.arange(6.0)).interval(0.95) == (0.0, 5.0)


@pytest.mark.parametrize("means", [(0.0, 0.0, 0.0, 0.0), (0.0, 1.0, 5.0, 2.0)])
@pytest.mark.parametrize("largest", [True, False])
def test_extremes_over_settings_are_covered_at_least_as_often_as_said(means, largest, simulation):
    """Equal settings are the hard case: the largest of four means is above the truth."""
    truth = max(means) if largest else min(means)

    def make(z):
        return Extreme([Replicates(m + row) for m, row in zip(means, z, strict=True)], largest)

    assert simulation.safe(make, truth, (4, 5))


@pytest.mark.parametrize("mean", [0.0, 0.3, 3.0])
def test_magnitudes_are_covered_at_least_as_often_as_said(mean, simulation):
    assert simulation.safe(lambda z: Magnitude(Replicates(mean + z)), mean, (5,))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_numbers_that_differ_by_rounding_alone_have_no_spread(scale):
    for width, finite in ((0.7 * ROUNDING, False), (1.4 * ROUNDING, True)):
        x = scale * np.array([1.0, 1.0 + width])
        for found in (Replicates(x), LogRatio(np.array([x, np.full(2, scale)]), np.array([1, -1]))):
            assert np.isfinite(found.interval(0.95)[1] - found.value) == finite


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


def test_the_jackknife_of_a_mean_is_student_s_interval():
    x = np.array([1.0, 2.0, 4.0, 7.0])
    for values in (x, x[:2]):
        left_out = np.array([np.delete(values, i).mean() for i in range(len(values))])
        jackknife = Jackknife(float(values.mean()), left_out).interval(0.95)
        assert jackknife == pytest.approx(Replicates(values).interval(0.95))


def test_student_s_interval_is_that_of_the_tables():
    # mean 3.5, standard deviation sqrt(7), t_3 = 3.1824
    low, high = Replicates(np.array([1.0, 2.0, 4.0, 7.0])).interval(0.95)
    assert (low, high) == pytest.approx((3.5 - 3.18245 * np.sqrt(7 / 4), 3.5 + 3.18245 * np.sqrt(7 / 4)), rel=1e-5)
    assert np.isfinite(Replicates(np.array([1.0, 2.0])).interval(0.95)).all()


def test_clopper_pearson_is_that_of_scipy():
    for hits in (0, 1, 3, 9, 10):
        share = Share(np.repeat([1.0, 0.0], [hits, 10 - hits]), np.ones(10))
        expected = stats.binomtest(hits, 10).proportion_ci(0.95, method="exact")
        assert share.interval(0.95) == pytest.approx((expected.low, expected.high))
