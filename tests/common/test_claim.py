import math

import numpy as np
import pytest
from scipy import stats

from attnlab.common.claim import Claim, Threshold, at_least, at_most, between
from attnlab.common.records import Estimate, Records, proportion


def claim(holds: Threshold, value=lambda r: r.mean("x"), **options) -> Claim:
    return Claim("toy.1", "x is as it should be", "derived here", value, holds, "a round number", **options)


def replicates(*values: float) -> Records:
    return Records.of({"seed": i, "x": v} for i, v in enumerate(values))


# mean 10, standard error 1, two degrees of freedom: the interval is 10 -+ 4.303
NOISY = replicates(10 - math.sqrt(3), 10.0, 10 + math.sqrt(3))
HALF = float(stats.t.ppf(0.975, 2))


@pytest.mark.parametrize(
    ("holds", "status"),
    [
        (at_least(10 - HALF - 0.01), "holds"),
        (at_least(10 - HALF + 0.01), "undecided"),
        (at_least(10 + HALF - 0.01), "undecided"),
        (at_least(10 + HALF + 0.01), "fails"),
        (at_most(10 + HALF + 0.01), "holds"),
        (at_most(10.0), "undecided"),
        (at_most(10 - HALF - 0.01), "fails"),
        (between(5, 15), "holds"),
        (between(9, 11), "undecided"),
        (between(5, 11), "undecided"),
        (between(15, 20), "fails"),
        (between(0, 5), "fails"),
    ],
)
def test_the_whole_interval_decides(holds, status):
    verdict = claim(holds).decide(NOISY, "quick")
    assert verdict.status == status
    assert verdict.estimate == pytest.approx((10, 10 - HALF, 10 + HALF, 3))


def test_the_threshold_itself_holds():
    one = replicates(2.0)
    assert claim(at_least(2)).decide(one, "quick").status == "holds"
    assert claim(at_most(2)).decide(one, "quick").status == "holds"
    assert claim(between(2, 2)).decide(one, "quick").status == "holds"


def test_a_value_may_bring_its_own_interval():
    records = Records.of({"seed": i, "x": i < 9} for i in range(10))
    shares = claim(at_least(0.5), lambda r: proportion(r.column("x")))
    verdict = shares.decide(records, "quick")
    # Clopper-Pearson for 9 of 10: (0.555, 0.997)
    assert verdict.status == "holds"
    assert verdict.estimate == pytest.approx((0.9, 0.555, 0.997, 10), abs=5e-4)
    assert claim(at_least(0.6), shares.value).decide(records, "quick").status == "undecided"


@pytest.mark.parametrize(
    "value",
    [
        lambda r: r.mean("absent"),
        lambda r: r.mean("x", n=7),
        lambda r: proportion([]),
        lambda r: 1 / 0,
        lambda r: r.mean("x", seed=1),  # cannot be computed without replicate 1
    ],
)
def test_missing_data_leave_a_claim_undecided(value):
    verdict = claim(at_least(0), value).decide(NOISY, "quick")
    assert verdict.status == "undecided"
    assert verdict.estimate is None
    assert verdict.reason.startswith("not enough data: ")
    assert math.isnan(verdict.flip_probability)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_not_finite_decides_nothing(value):
    verdict = claim(at_least(0)).decide(replicates(value), "quick")
    assert (verdict.status, verdict.reason) == ("undecided", "the value is not finite")
    one_bad = claim(at_least(0)).decide(replicates(1.0, 2.0, math.nan), "quick")
    assert one_bad.status == "undecided"


def test_a_verdict_is_compared_with_the_one_on_record():
    known = claim(at_least(100), expect={"quick": "fails"}, note="the threshold is out of reach")
    quick, paper = known.decide(NOISY, "quick"), known.decide(NOISY, "paper")
    assert (quick.expected, quick.as_recorded, quick.reason) == ("fails", True, "the threshold is out of reach")
    assert (paper.expected, paper.as_recorded) == ("holds", False)


def test_the_note_is_silent_when_the_claim_holds():
    assert claim(at_least(0), note="why it fails").decide(NOISY, "quick").reason == ""


def test_the_flip_probability_is_a_students_tail():
    verdict = claim(at_least(8)).decide(NOISY, "quick")
    # the value is two standard errors above the threshold
    assert verdict.flip_probability == pytest.approx(stats.t.sf(2, 2))
    assert claim(at_least(10)).decide(NOISY, "quick").flip_probability == pytest.approx(0.5)
    assert claim(between(7, 12)).decide(NOISY, "quick").flip_probability == pytest.approx(stats.t.sf(2, 2))


def test_the_flip_probability_is_the_frequency_of_the_other_side(seed):
    """On Gaussian replicates: how often does a new mean, studentised, lie beyond the threshold?"""
    rng = np.random.default_rng(seed)
    k, distance = 6, 1.5
    studentised = (z := rng.standard_normal((40_000, k))).mean(axis=1) / (z.std(axis=1, ddof=1) / np.sqrt(k))
    records = replicates(*(distance + np.sqrt(k) * (v := np.array([-1.0, -1, -1, 1, 1, 1])) / v.std(ddof=1)))
    predicted = claim(at_least(0)).decide(records, "quick").flip_probability
    observed = np.mean(studentised < -distance)
    # binomial noise of 40 000 draws, four standard errors
    assert abs(predicted - observed) < 4 * math.sqrt(predicted / 40_000)


def test_without_noise_or_without_replicates():
    assert claim(at_least(0)).decide(replicates(1.0, 1.0), "quick").flip_probability == 0.0
    assert math.isnan(claim(at_least(0)).decide(replicates(1.0), "quick").flip_probability)
    assert claim(Threshold()).decide(NOISY, "quick").flip_probability == 0.0


def test_thresholds_say_what_they_are():
    assert [str(t) for t in (at_least(12), at_most(0.5), between(1, 2.5))] == ["≥ 12", "≤ 0.5", "in [1, 2.5]"]
    assert between(1, 4).distance(3) == 1
    assert Estimate(1.0, 0.0, 2.0).runs == 1


@pytest.mark.parametrize("value", [lambda r: r.mean("word"), lambda r: None + r.mean("x")])
def test_results_that_are_no_numbers_leave_a_claim_undecided(value):
    records = Records.of({"seed": i, "x": 1.0, "word": None} for i in range(3))
    verdict = claim(at_least(0), value).decide(records, "quick")
    assert (verdict.status, verdict.estimate) == ("undecided", None)
    assert verdict.reason.startswith("the records do not hold numbers: ")


def test_the_runs_needed_bring_the_interval_just_below_the_threshold():
    # the value 10 is 1 above the threshold, the standard deviation of one run is sqrt(3)
    verdict = claim(at_least(9)).decide(NOISY, "quick")
    n = int(verdict.runs_needed)
    half = [stats.t.ppf(0.975, k - 1) * math.sqrt(3 / k) for k in (n - 1, n)]
    assert half[0] > 1 >= half[1]


def test_runs_are_needed_only_by_what_more_of_them_could_decide():
    assert math.isnan(claim(at_least(0)).decide(NOISY, "quick").runs_needed)
    assert math.isnan(claim(at_least(0)).decide(replicates(math.nan), "quick").runs_needed)
    assert math.isinf(claim(at_least(10)).decide(NOISY, "quick").runs_needed)
