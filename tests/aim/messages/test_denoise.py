"""The prior step of message passing against the estimator that the theory states."""

import jax
import numpy as np
import pytest

from attnlab import aim
from attnlab.aim.messages.denoise import denoise
from attnlab.aim.spectrum import singular


@pytest.mark.parametrize(("rho", "noise"), [(0.5, 0.6), (0.1, 0.03), (0.5, 1e-6), (2.0, 0.2), (np.inf, 0.5)])
def test_untied_matrices_are_denoised_from_their_square(rho, noise, seed):
    """Singular vectors are not needed, and the square of R costs no digits, also where the bulk at zero is narrow."""
    d = 60
    rng = np.random.default_rng(seed)
    R = singular.planted(d, rho, seed) + np.sqrt(noise / d) * rng.standard_normal((d, d))
    expected = singular.rie(R, noise, rho, clip="edges")
    np.testing.assert_allclose(denoise(R, noise, rho, symmetric=False), expected, atol=1e-11)
    with jax.enable_x64(True):
        on_device = denoise(jax.numpy.asarray(R), noise, rho, symmetric=False)
    np.testing.assert_allclose(on_device, expected, atol=1e-11)


def test_a_matrix_of_zeros_stays_zero():
    np.testing.assert_array_equal(denoise(np.zeros((5, 5)), 1.0, 0.5, symmetric=False), 0)
    assert np.isfinite(denoise(aim.Task(10).S * 0, 1.0, 0.5)).all()
