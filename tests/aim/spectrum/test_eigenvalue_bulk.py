import numpy as np
import pytest

from attnlab.aim import spectrum
from attnlab.aim.spectrum.eigenvalue_bulk import bulk_quadrature, turning_points

SETTINGS = [(0.6, 0.5), (0.03, 0.1), (1.0, 2.0), (1e-3, 0.5), (1e-3, 1.0), (40.0, 0.3)]


@pytest.mark.parametrize(("noise", "rho"), SETTINGS)
def test_closed_form_on_the_nodes_is_the_root_of_the_cubic(noise, rho):
    bulk = bulk_quadrature(np.array([noise]), rho, 64)
    g = spectrum.stieltjes(bulk.x[0], noise, rho)
    # next to an edge the cubic's root loses half its digits
    np.testing.assert_allclose(bulk.density[0], g.imag / np.pi, atol=1e-7 * bulk.density.max())
    np.testing.assert_allclose(bulk.denoised[0], bulk.x[0] - 2 * noise * g.real, atol=1e-7 * bulk.denoised.max())
    np.testing.assert_allclose(bulk.denoised[0], spectrum.shrink(bulk.x[0], noise, rho), rtol=1e-9, atol=1e-12)


def test_sixty_four_nodes_give_mass_one():
    noise = np.geomspace(1e-6, 1e6, 49)
    for rho in np.geomspace(1e-2, 1e2, 17):
        bulk = bulk_quadrature(noise, rho, 64)
        # rounding of the ends of a narrow bulk; none of these points lies at a merging of two bulks
        np.testing.assert_allclose(bulk.integrate(bulk.density), 1, atol=1e-9)


@pytest.mark.parametrize("noise", [0.02, 0.6, 1.0, 5.0, 300.0])
@pytest.mark.parametrize("rho", [0.1, 0.5, 1.0, 3.0])
def test_both_forms_of_the_denoising_error_agree(noise, rho):
    bulk = bulk_quadrature(np.array([noise]), rho, 1024)
    cubed = noise - 4 * np.pi**2 / 3 * noise**2 * bulk.integrate(bulk.density**3)[0]
    explained = bulk.integrate((bulk.denoised - np.sqrt(rho)) ** 2 * bulk.density)[0]
    # the first form cancels terms of size noise
    assert cubed == pytest.approx(1 - explained, abs=1e-12 * max(1, noise))
    assert spectrum.denoising_mmse(noise, rho) == pytest.approx(cubed, abs=1e-10 * max(1, noise))


def test_batch_mixes_spectra_with_one_and_two_bulks():
    noise = np.array([0.03, 30.0])
    together = bulk_quadrature(noise, 0.1, 64)
    for row, delta in enumerate(noise):
        alone = bulk_quadrature(noise[row : row + 1], 0.1, 64)
        assert alone.x.shape[1] == 32 * len(turning_points(delta, 0.1))
        np.testing.assert_allclose(together.integrate(together.density**3)[row], alone.integrate(alone.density**3)[0])


@pytest.mark.parametrize(("noise", "rho"), SETTINGS)
def test_ends_are_where_x_turns(noise, rho):
    theta = rho**-0.5
    for m in turning_points(noise, rho):
        assert 1 / (m - theta) ** 2 + noise / m**2 == pytest.approx(1, abs=1e-12)
