"""Many claims at once."""

import math

import numpy as np
import pytest

from attnlab.common.claim import Claim, at_least
from attnlab.common.records import Records
from attnlab.common.statistics import mean, of
from attnlab.lab.claims.multiplicity import expected_false_holds, holm

CLAIM = Claim("toy.1", "x is positive", "derived here", mean(of("x")), at_least(0.0), "zero")


def test_what_is_just_not_true_holds_as_often_as_expected():
    """The truth is at the threshold: one tail of the interval is the chance of a false *holds*."""
    draws = np.random.default_rng(3).standard_normal((1000, 5))
    verdicts = [CLAIM.decide(Records.of({"seed": i, "x": x} for i, x in enumerate(draw)), "quick") for draw in draws]
    held = sum(verdict.status == "holds" for verdict in verdicts)
    # binomial with mean 25 and standard deviation 5
    assert held == pytest.approx(expected_false_holds(1000), abs=20)


def test_holm_bounds_the_chance_of_any_false_hold():
    """Twenty claims at their thresholds: some hold in a third of the repetitions, after Holm in 2.5 %."""
    rng = np.random.default_rng(4)
    p = np.array([_p_values(rng.standard_normal((20, 5))) for _ in range(120)])
    single = np.mean([(row < 0.05).any() for row in p])
    together = np.mean([bool(holm({str(i): float(x) for i, x in enumerate(row)})) for row in p])
    # 120 repetitions: standard errors 4 % and 1.4 %
    assert single > 0.2
    assert together < 0.08


def _p_values(draws):
    return [CLAIM.decide(Records.of({"seed": i, "x": x} for i, x in enumerate(d)), "quick").p_value for d in draws]


def test_a_claim_without_a_value_counts_and_never_holds():
    assert holm({"a": 0.02, "b": math.nan}) == {"a"}
    assert holm({"a": 0.02, "b": math.nan, "c": math.nan}) == set()


def test_each_claim_that_holds_leaves_more_to_the_next():
    """Holm's levels for three claims: .05/3, .05/2, .05/1, until one is above its own."""
    assert holm({"a": 0.001, "b": 0.02, "c": 0.03}) == {"a", "b", "c"}
    assert holm({"a": 0.001, "b": 0.03, "c": 0.03}) == {"a"}
