import numpy as np
import pytest

from attnlab.aim import theory


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
