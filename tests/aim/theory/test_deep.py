import numpy as np
import pytest

from attnlab.aim import theory
from attnlab.aim.channels import NotSolved
from attnlab.aim.theory.deep_layers import unresolved


def test_strength_of_two_layers_without_knowledge(seed):
    strength, error = theory.deep_strength(1.0, 1.0, samples=3000, seed=seed)
    # reference 0.647 ± 0.008 and 1.70 ± 0.011, cross term 0 by symmetry
    assert strength[0, 0] == pytest.approx(0.647, abs=4 * np.hypot(error[0, 0], 0.008))
    assert strength[1, 1] == pytest.approx(1.70, abs=4 * np.hypot(error[1, 1], 0.011))
    assert abs(strength[0, 1]) < 4 * error[0, 1]


@pytest.mark.slow
def test_both_starts_meet():
    ends = [theory.deep_state_evolution(0.2, start=s, samples=1500).value for s in ((1.0, 1.0), (0.05, 0.05))]
    np.testing.assert_allclose(ends[0], ends[1], rtol=0.02)
    # reference (0.726, 0.397) ± 2 %, this sample size another 2 %
    np.testing.assert_allclose(ends[0], [0.726, 0.397], rtol=0.1)


def test_a_steep_first_layer_is_refused_with_the_noise():
    """E|g|^2 came out as 61 where 3/V = 4.29 is an upper bound."""
    with pytest.raises(NotSolved, match=r"beta=5.*noise.*bound"):
        theory.deep_strength(0.7, 0.7, beta=5.0, samples=256)


def test_monte_carlo_over_the_first_layers_agrees_with_the_quadrature():
    found = theory.layer_strengths((1.0, 1.0), samples=1024)
    # reference of the quadrature, as above; four standard errors
    assert (np.abs(found.value - [0.647, 1.70]) < 4 * np.hypot(found.error, [0.008, 0.011])).all()


def test_a_fourth_layer_is_refused():
    with pytest.raises(ValueError, match="number of errors"):
        theory.layer_strengths((1.0,) * 4)


def test_all_layers_become_recoverable_where_measurements_equal_parameters():
    assert float(theory.deep_recovery_threshold(0.5, layers=1)) == float(theory.recovery_threshold(0.5, tokens=2))
    assert float(theory.deep_recovery_threshold(layers=2)) == 0.5


@pytest.mark.slow
def test_the_state_evolution_of_three_layers_learns_the_last_first():
    found = theory.deep_state_evolution(0.5, start=(1.0, 1.0, 1.0), samples=256, max_iter=4)
    assert found.trajectory.shape == (5, 3)
    assert (np.diff(found.trajectory[:, -1]) < 0).all()
    assert np.argmin(found.value) == 2
    with pytest.raises(NotSolved, match="rho must be inf"):
        theory.deep_state_evolution(0.5, 0.5, start=(1.0, 1.0, 1.0))


def test_weak_recovery_of_each_layer():
    found = theory.deep_weak_recovery_threshold(samples=1024)
    # reference strengths of the quadrature, as above
    expected = 1 / (2 * np.array([0.647, 1.70]))
    assert (np.abs(found.value - expected) < 4 * np.hypot(found.error, expected * [0.0124, 0.0065])).all()
    assert np.argmin(found.value) == 1


@pytest.mark.parametrize(("bias", "expected"), [(0.0, False), (0.3, True), (np.nan, True)])
def test_a_biased_posterior_mean_is_seen(bias, expected, seed):
    """|g|^2 of a biased estimate exceeds its alignment with the truth by 2 g b + b^2 against g b."""
    rng = np.random.default_rng(seed)
    g = rng.standard_normal((1, 4000))
    truth = g + 0.5 * rng.standard_normal(g.shape)
    found = g * (1 + bias)
    problem = unresolved(found**2, found * truth, np.array([2.0]))
    assert bool(problem) == expected
