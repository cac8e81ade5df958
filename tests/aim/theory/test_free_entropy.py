import numpy as np
import pytest

from attnlab.aim import theory


@pytest.mark.parametrize(
    ("noise", "rho", "expected"), [(0.6, 0.5, 0.210162543), (2, 0.5, 0.095191068), (1, 1, 0.163443267)]
)
def test_mutual_information_by_two_formulas(noise, rho, expected):
    assert theory.mutual_information(noise, rho) == pytest.approx(expected, abs=1e-9)
    assert theory.log_energy_information(noise, rho) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("channel", "alpha"), [("softmax", 0.1), ("hardmax", 0.5)])
def test_free_entropy_is_stationary_at_the_fixed_point(channel, alpha):
    fixed = theory.state_evolution(alpha, 0.5, channel=channel)
    step = 1e-4

    def phi(dq=0.0, dq_hat=0.0):
        return theory.free_entropy(fixed.overlap + dq, fixed.q_hat + dq_hat, alpha, 0.5, channel=channel)

    # central differences of a function known to 1e-12
    assert abs(phi(step) - phi(-step)) / (2 * step) < 1e-6
    assert abs(phi(0, step) - phi(0, -step)) / (2 * step) < 1e-6


def test_two_bulks_are_refused_by_the_log_energy():
    with pytest.raises(ValueError, match="two bulks"):
        theory.log_energy_information(0.03, 0.1)
    assert np.isfinite(theory.mutual_information(0.03, 0.1))
