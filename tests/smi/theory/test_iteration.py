"""Leaps of state evolution: the same end, in fewer iterations."""

import numpy as np
import pytest

from attnlab.smi.links import as_link
from attnlab.smi.posterior.moments import first_rule
from attnlab.smi.theory import state_evolution
from attnlab.smi.theory.iteration import HOVER, hovers, leap, vanishes


def iterates(limit, start, ratio):
    """Four matrices diag(limit + start ratio^k)."""
    return [np.diag(np.add(limit, np.multiply(start, np.power(ratio, k))))[None] for k in range(4)]


def test_a_geometric_series_is_summed():
    V = leap(*iterates([0.3, 0.8], [0.1, 0.05], [0.9, 0.5]))
    np.testing.assert_allclose(V[0], np.diag([0.3, 0.8]), atol=1e-12)


def test_a_leap_is_at_most_a_factor_ten():
    small = iterates([0.0], [1e-3], [0.8])
    np.testing.assert_allclose(leap(*small), small[-1] / 10)
    growing = iterates([1.0], [-1e-6], [1.3])  # q = 1 - V grows
    np.testing.assert_allclose(1 - leap(*growing), 10 * (1 - growing[-1]), rtol=1e-6)


def test_changes_of_no_series_are_left_alone():
    V = [np.diag([x])[None] for x in (0.9, 0.8, 0.75, 0.6)]
    np.testing.assert_array_equal(leap(*V), V[-1])


def test_a_leap_goes_on_through_a_bottleneck_but_not_far():
    """Ratios .98 and .99: their drift .01 allows sqrt(2 * .1 / .01) = 4.5 more terms of about the same size."""
    V = [np.diag([x])[None] for x in 0.5 + 1e-3 * np.cumsum([0, 1, 0.98, 0.98 * 0.99])]
    moved = (leap(*V) - V[-1])[0, 0, 0]
    assert 4 < moved / (1e-3 * 0.98 * 0.99) < 4.5
    steep = iterates([0.1], [0.8], [0.95])  # a constant ratio would end at 0.1
    np.testing.assert_allclose(leap(*steep), steep[-1] - 0.25 * (1 - steep[-1]))


def test_a_noisy_iteration_ends_where_its_mean_stays(seed):
    noise = 1e-3 * np.random.default_rng(seed).standard_normal((2 * HOVER, 2, 1, 1))
    assert hovers(list(0.5 + noise - noise.mean(axis=0)), 1e-2)
    assert not hovers(list(0.5 + noise)[1:], 1e-2)  # too few
    drift = np.linspace(0, 0.1, 2 * HOVER)[:, None, None, None]
    assert not hovers(list(0.5 + noise + drift), 1e-4)


@pytest.mark.parametrize(
    ("link", "alpha"),
    [("attention", 0.4), ("phase_retrieval", 1.1), pytest.param("phase_retrieval", 1.12, marks=pytest.mark.slow)],
)
def test_leaps_end_where_the_map_does(link, alpha):
    """Also just below the algorithmic transition 1.128, where the other branch is near."""
    options = {"draws": 2**9, "replicates": 4, "tol": 1e-7, "max_iter": 4000}
    slow, fast = (state_evolution(link, alpha, **options, leaps=on) for on in (False, True))
    assert slow.converged
    assert fast.converged
    assert fast.n_iter < slow.n_iter
    np.testing.assert_allclose(fast.Q, slow.Q, atol=2e-4)


def test_a_rule_becomes_coarser_where_it_may():
    rule = first_rule(as_link("deep_attention"))
    fine = rule._replace(place=2)
    assert (rule.size, fine.size) == (31, 61)
    assert fine.after(25.0) == rule  # sqrt(25) = 5 on the fine grid, 2.5 on the coarse one
    assert fine.after(16.0) == fine._replace(place=1)  # 4 on 61 nodes, 2.8 on 43, 2.03 on 31
    assert fine.after(5.0) == fine
    assert rule.after(1e4) == rule
    fixed = first_rule(as_link("deep_attention"), 41)
    assert fixed.after(1e4) == fixed


def test_a_rule_becomes_finer_where_it_must():
    rule = first_rule(as_link("deep_attention"))
    assert rule.after(4.5).size == 43  # sqrt(4.5) = 2.12, on 43 nodes 2.9
    assert rule.after(1.5).size == 61  # 1.22, on 43 nodes 1.7, on 61 nodes 2.4
    assert rule.after(0.0).at_end


def test_only_a_constant_fall_ends_at_zero():
    falling = iterates([0.0, 0.0], [1e-5, 1e-7], [0.8, 0.8])
    assert vanishes(*falling[1:])
    assert not vanishes(*iterates([0.0, 0.0], [1e-2, 1e-7], [0.8, 0.8])[1:])  # still large
    assert not vanishes(*iterates([0.0, 0.0], [1e-5, 1e-7], [0.8, 0.97])[1:])  # one direction hardly falls
    assert not vanishes(*iterates([4e-6], [1e-5], [0.3])[1:])  # ends above zero
