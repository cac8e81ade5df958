import numpy as np
import pytest

from attnlab.aim import theory


@pytest.mark.parametrize(
    ("tokens", "expected"), [(2, 0.1875), (3, 0.075), (4, 0.0416667), (5, 0.0267857), (6, 0.01875)]
)
def test_recovery_threshold_counts_parameters(tokens, expected):
    assert theory.recovery_threshold(0.5, tokens) == pytest.approx(expected, rel=1e-5)
    assert theory.recovery_threshold(0.5, tokens, "hardmax") == np.inf


@pytest.mark.parametrize("rho", [0.3, 0.5, 2.0])
def test_error_vanishes_linearly_at_the_threshold(rho):
    gap = 1e-4
    threshold = 4 * theory.recovery_threshold(rho)
    slope = theory.mmse((threshold - gap) / 4, rho) / gap
    # the next order is of relative size gap times a few
    assert float(slope) == pytest.approx(float(theory.recovery_slope(rho)), rel=5e-3)


def test_weak_recovery_of_hardmax():
    assert theory.weak_recovery_threshold(2, "hardmax") == pytest.approx(0.403411, abs=1e-6)
    assert theory.weak_recovery_threshold(2, "hardmax_legacy") == pytest.approx(0.563267, abs=1e-6)
    # 16 million Monte Carlo draws gave 0.17537 +- 0.00002
    three = theory.weak_recovery_threshold(3, "hardmax")
    assert three == pytest.approx(0.17537, abs=4 * float(three.error) + 8e-5)
    assert theory.weak_recovery_threshold(4) == pytest.approx(1 / 18)


def test_small_width_curves():
    # x = 0.5 ... 1.8 times the softmax threshold, and hardmax by an independent quadrature
    np.testing.assert_allclose(theory.small_width_mmse(np.array([0.5, 1.2, 1.5, 1.8]) / 4), [1, 0.96, 0.75, 0.36])
    hard = theory.small_width_mmse([0.3, 1.0, 2.0, 5.0], channel="hardmax")
    np.testing.assert_allclose(hard, [1, 0.4295, 0.1195, 0.01938], rtol=1e-3)


def test_large_alpha_law_of_hardmax():
    assert 25 * theory.large_alpha_mmse(5.0, 0.5) == pytest.approx(0.1015, abs=1e-4)
    exact, law = theory.mmse(5.0, 0.5, channel="hardmax"), theory.large_alpha_mmse(5.0, 0.5)
    assert float(exact) == pytest.approx(float(law), rel=0.02)


def test_tiny_widths_are_the_small_width_limit():
    """No floor and no error at rho = 1e-8, where the recovery of a few directions is all there is."""
    for law in ({}, {"tied": False}):
        scale = float(theory.weak_recovery_threshold(**law))
        x = np.array([0.5, 1.5, 2.5])
        found = theory.mmse(1e-8 * scale * x, 1e-8, **law)
        np.testing.assert_allclose(found, [1, 0.75, 0], atol=1e-3)
    with pytest.raises(ValueError, match=r"rho must be at least 1e-08.*small_width_mmse"):
        theory.mmse(0.1, 3e-9)
    # M = t (2 - t) falls as ratio^-2, without a floor
    far = theory.small_width_mmse([1e3, 1e6], channel="hardmax")
    assert float(far.value[1] / far.value[0]) == pytest.approx(1e-6, rel=1e-3)


def test_hardmax_beyond_the_table_names_the_command():
    with pytest.raises(ValueError, match="hardmax_table --only tied-6"):
        theory.mmse(0.05, 0.5, 6, "hardmax")


@pytest.mark.parametrize(("tokens", "expected", "sem"), [(3, 2.8512, 3e-4), (4, 4.755, 3e-3)])
def test_weak_recovery_of_tied_hardmax_with_more_tokens(tokens, expected, sem):
    """1 / (2 alpha/rho) against direct sampling of the winners by another implementation."""
    found = theory.weak_recovery_threshold(tokens, "hardmax")
    assert abs(0.5 / float(found) - expected) < 2 * sem
    assert found.error < 2e-4 * float(found)
