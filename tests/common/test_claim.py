import dataclasses
import math

import pytest
from scipy import stats

from attnlab.common.claim import STATUSES, Claim, Threshold, at_least, at_most, between
from attnlab.common.records import Estimate, Records
from attnlab.common.statistics import (
    deterministic,
    each,
    geometric_mean,
    largest,
    mean,
    median,
    of,
    proportion_of,
    ratio_of_means,
)


def claim(holds: Threshold, statistic=mean(of("x")), **options) -> Claim:  # noqa: B008
    return Claim("toy.1", "x is as it should be", "derived here", statistic, holds, "a round number", **options)


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


def test_a_computation_without_noise_decides_alone_and_the_threshold_itself_holds():
    exact = deterministic(lambda r: r.mean("x"), why="a toy")
    one = replicates(2.0)
    assert claim(at_least(2), exact).decide(one, "quick").status == "holds"
    assert claim(at_most(2), exact).decide(one, "quick").status == "holds"
    assert claim(between(2, 2), exact).decide(one, "quick").status == "holds"
    verdict = claim(at_least(3), exact).decide(one, "quick")
    assert (verdict.status, verdict.p_value) == ("fails", 1.0)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (replicates(2.0), "1 independent replicates; the claim asks for 3"),
        (replicates(2.0, 2.1), "2 independent replicates; the claim asks for 3"),
        (replicates(2.0, 2.0, 2.0), "all give the same number"),
        (replicates(0.1, 0.1, 0.1), "all give the same number"),
        (replicates(0.3, 0.1 + 0.2, 0.3), "all give the same number"),
    ],
)
def test_too_few_or_equal_replicates_decide_nothing(records, said):
    verdict = claim(at_least(-100)).decide(records, "quick")
    assert verdict.status == "undecided"
    assert said in verdict.reason


@pytest.mark.parametrize("statistic", [geometric_mean(of("x")), ratio_of_means(of("x"), of("y")), median(of("x"))])
def test_no_kind_of_statistic_decides_without_noise(statistic):
    records = Records.of({"seed": i, "x": 0.1, "y": 0.7} for i in range(8))
    verdict = claim(at_least(0.01), statistic).decide(records, "quick")
    assert (verdict.status, verdict.p_value < 1) == ("undecided", "median" in str(statistic))
    assert "the same number" in verdict.reason


def test_a_setting_without_noise_leaves_the_largest_over_settings_open_above():
    rows = [{"seed": i, "n": n, "x": 0.1 if n == 1 else 2 + 0.1 * i} for i in range(5) for n in (1, 2)]
    statistic = largest(each(mean(of("x")), "n"))
    assert claim(at_most(3), statistic).decide(Records.of(rows), "quick").status == "undecided"
    assert claim(at_least(1), statistic).decide(Records.of(rows), "quick").status == "holds"


def test_the_order_of_replicates_does_not_decide():
    """The former interval counted replicates up to the last one that mattered: 3, 1, 2, 0 had none."""
    for order in ((3.0, 1.0, 2.0, 0.0), (0.0, 1.0, 2.0, 3.0)):
        assert claim(at_least(1)).decide(replicates(*order), "quick").status == "undecided"


def test_a_share_has_the_exact_interval():
    records = Records.of({"seed": i, "x": i < 9} for i in range(10))
    verdict = claim(at_least(0.5), proportion_of(of("x"))).decide(records, "quick")
    # Clopper-Pearson for 9 of 10: (0.555, 0.997)
    assert verdict.status == "holds"
    assert verdict.estimate == pytest.approx((0.9, 0.555, 0.997, 10), abs=5e-4)
    assert claim(at_least(0.6), proportion_of(of("x"))).decide(records, "quick").status == "undecided"


@pytest.mark.parametrize("statistic", [mean(of("absent")), mean(of("x", n=7)), proportion_of(of("x", n=7))])
def test_what_is_not_in_the_records_was_not_measured(statistic):
    verdict = claim(at_least(0), statistic).decide(NOISY, "quick")
    assert (verdict.status, verdict.estimate) == ("not measured", None)
    assert verdict.reason.startswith("no data: ")
    assert math.isnan(verdict.p_value)


def test_a_value_that_cannot_be_computed_is_undecided():
    verdict = claim(at_least(0), mean(lambda r: 1 / 0)).decide(NOISY, "quick")
    assert verdict.status == "undecided"
    assert verdict.reason.startswith("the value cannot be computed: ")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_not_finite_decides_nothing(value):
    verdict = claim(at_least(0)).decide(replicates(1.0, 2.0, value), "quick")
    assert (verdict.status, verdict.reason) == ("undecided", "the value is not finite")


def test_cells_that_did_not_converge_are_counted():
    rows = [{"seed": i, "n": n, "x": i + 0.1 * n, "converged": i > 0} for i in range(4) for n in (1, 2)]
    verdict = claim(at_least(0), mean(of("x", n=1))).decide(Records.of(rows), "quick")
    assert (verdict.cells, verdict.unconverged) == (4, 1)


def test_a_verdict_is_compared_with_the_one_on_record():
    known = claim(at_least(100), registered={"quick": "fails"}, note="the threshold is out of reach")
    quick, paper = known.decide(NOISY, "quick"), known.decide(NOISY, "paper")
    assert (quick.registered, quick.as_registered, quick.reason) == ("fails", True, "the threshold is out of reach")
    assert (paper.registered, paper.as_registered) == ("holds", False)
    assert [dataclasses.replace(paper, status=status).contradicts for status in STATUSES] == [False, True, False, False]


def test_the_note_is_silent_when_the_claim_holds():
    assert claim(at_least(0), note="why it fails").decide(NOISY, "quick").reason == ""


def test_the_p_value_is_students():
    # the value is two standard errors above the threshold; the level is that of a two-sided interval
    assert claim(at_least(8)).decide(NOISY, "quick").p_value == pytest.approx(2 * stats.t.sf(2, 2), rel=3e-3)
    assert claim(between(7, 12)).decide(NOISY, "quick").p_value == pytest.approx(2 * stats.t.sf(2, 2), rel=3e-3)
    assert claim(at_least(11)).decide(NOISY, "quick").p_value == 1.0


def test_the_p_value_is_below_the_level_exactly_where_the_claim_holds():
    for threshold in (10 - HALF - 0.05, 10 - HALF + 0.05):
        verdict = claim(at_least(threshold)).decide(NOISY, "quick")
        assert (verdict.p_value < 0.05) == (verdict.status == "holds")


def test_thresholds_say_what_they_are():
    assert [str(t) for t in (at_least(12), at_most(0.5), between(1, 2.5))] == ["≥ 12", "≤ 0.5", "in [1, 2.5]"]
    assert Estimate(1.0, 0.0, 2.0).runs == 1


def test_results_that_are_no_numbers_leave_a_claim_undecided():
    records = Records.of({"seed": i, "x": 1.0, "word": None} for i in range(3))
    verdict = claim(at_least(0), mean(of("word"))).decide(records, "quick")
    assert (verdict.status, verdict.estimate) == ("undecided", None)
    assert verdict.reason.startswith("the records do not hold numbers: ")


def test_the_replicates_needed_bring_the_interval_just_below_the_threshold():
    # the value 10 is 1 above the threshold, the standard deviation of one run is sqrt(3)
    verdict = claim(at_least(9)).decide(NOISY, "quick")
    n = int(verdict.replicates_needed)
    half = [stats.t.ppf(0.975, k - 1) * math.sqrt(3 / k) for k in (n - 1, n)]
    assert half[0] > 1 >= half[1]


def test_replicates_are_needed_only_by_what_more_of_them_could_decide():
    assert math.isnan(claim(at_least(0)).decide(NOISY, "quick").replicates_needed)
    assert math.isnan(claim(at_least(0)).decide(replicates(math.nan), "quick").replicates_needed)
    assert math.isinf(claim(at_least(10)).decide(NOISY, "quick").replicates_needed)
