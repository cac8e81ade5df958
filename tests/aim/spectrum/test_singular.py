import mpmath
import numpy as np
import pytest

from attnlab.aim.spectrum import singular
from attnlab.aim.spectrum.singular_bulk import ends

WIDTHS = (0.001, 0.1, 0.5, 0.999, 1, 1.001, 2, 50)
# where the gap beside the bulk at zero closes, by an independent minimisation
CLOSING = {0.1: 2.444711, 0.2: 0.708728, 0.5: 0.066447, 0.8: 0.004878}


@pytest.mark.parametrize(
    ("noise", "rho", "expected"),
    [
        (0.6, 0.5, 0.31536700),
        (3, 0.5, 0.72271865),
        (0.2, 1, 0.15678373),
        (1, 1, 0.47924635),
        (1, 2, 0.49375255),
        (0.03, 0.1, 0.00569051),
        (0.05, 0.5, 0.03658486),
        (0.01, 2, 0.00988347),
        (5, 0.1, 0.64867643),
        (1e-3, 0.5, 7.496557e-4),
    ],
)
def test_denoising_error_has_its_reference_value(noise, rho, expected):
    # eight digits from an independent implementation (roots of the quartic)
    assert singular.denoising_mmse(noise, rho) == pytest.approx(expected, abs=1e-8)


def test_edges_and_shrinkage_have_their_reference_values():
    np.testing.assert_allclose(singular.edges(0.6, 0.5), [3.247199], atol=1e-6)
    np.testing.assert_allclose(singular.edges(1, 2), [2.998353], atol=1e-6)
    np.testing.assert_allclose(singular.edges(0.03, 0.1), [0.328572, 1.849369, 4.655325], atol=1e-6)
    np.testing.assert_allclose(singular.edges(0.05, 0.5), [0.306407, 0.317589, 2.992950], atol=1e-6)
    settings = [(0.6, 0.5), (1, 2), (0.05, 0.5), (0.03, 0.1)]
    found = [(float(singular.rie(1.0, *s)), float(singular.density(1.0, *s))) for s in settings]
    expected = [(0.294841, 0.214379), (0.411942, 0.212032), (0.933034, 0.132073), (0.945327, 0.0)]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def moments(noise, rho):
    """Mass and second moment, with nodes added as the library does."""
    for nodes in (64, 256, 1024, 4096):
        bulk = singular.quadrature(noise, rho, nodes)
        mass = bulk.integrate(bulk.density)[0]
        if abs(mass - 1) < 1e-10:
            break
    return mass, bulk.integrate(bulk.x**2 * bulk.density)[0] / (1 + noise)


@pytest.mark.parametrize("rho", WIDTHS)
def test_mass_and_second_moment(rho):
    for noise in np.logspace(-12, 3, 31):
        mass, second = moments(float(noise), rho)
        assert mass == pytest.approx(1, abs=1e-10 if noise <= 100 else 1e-9)
        assert second == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("rho", CLOSING)
def test_next_to_the_closing_of_the_gap(rho):
    assert ends(CLOSING[rho] * (1 - 1e-4), rho).gap
    assert not ends(CLOSING[rho] * (1 + 1e-3), rho).gap
    for factor in (1 - 1e-4, 1 + 1e-4, 1 - 1e-6, 1 + 1e-6):
        mass, second = moments(CLOSING[rho] * factor, rho)
        assert mass == pytest.approx(1, abs=1e-10)
        assert second == pytest.approx(1, abs=1e-9)


def transform_in_30_digits(x, noise, rho):
    """G(x - i0) from the root of the quartic with the least imaginary part."""
    with mpmath.workdps(30):
        c = 1 / mpmath.mpf(rho)
        start = min(np.roots([1, -x, noise + 1 - 1 / rho, x / rho, -noise / rho]), key=lambda root: root.imag)
        m = mpmath.findroot(lambda m: m**4 - x * m**3 + (noise + 1 - c) * m**2 + c * x * m - c * noise, start)
        return complex(1 / m)


@pytest.mark.parametrize(("noise", "rho"), [(0.6, 0.5), (0.03, 0.1), (1.0, 2.0), (0.05, 0.5)])
def test_closed_form_on_the_nodes_is_the_root_of_the_quartic(noise, rho):
    bulk = singular.quadrature(noise, rho, 64)
    x = bulk.x[0]
    G = singular.stieltjes(x, noise, rho)
    # next to an edge two roots merge and lose half their digits in double precision
    np.testing.assert_allclose(bulk.density[0], G.imag / np.pi, atol=1e-7 * bulk.density.max())
    np.testing.assert_allclose(bulk.denoised[0], x - 2 * noise * G.real, atol=1e-7 * bulk.denoised.max())
    some = slice(None, None, 5)
    precise = np.array([transform_in_30_digits(float(at), noise, rho) for at in x[some]])
    np.testing.assert_allclose(bulk.density[0, some], precise.imag / np.pi, atol=1e-9)
    np.testing.assert_allclose(bulk.denoised[0, some], x[some] - 2 * noise * precise.real, atol=1e-9)


@pytest.mark.parametrize("rho", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("noise", [1e-3, 0.1, 1.0, 10.0])
def test_both_forms_of_the_error_agree(noise, rho):
    bulk = singular.quadrature(noise, rho, 1024)
    cubed = noise - 4 * np.pi**2 / 3 * noise**2 * bulk.integrate(bulk.density**3)[0]
    assert cubed == pytest.approx(1 - bulk.integrate(bulk.denoised**2 * bulk.density)[0], abs=1e-9)


@pytest.mark.parametrize(("noise", "rho"), [(0.6, 0.5), (0.03, 0.1), (1.0, 2.0), (0.05, 0.5)])
def test_rie_reaches_the_denoising_error(noise, rho, seed):
    d, rng = 400, np.random.default_rng(seed)
    Q, K = rng.standard_normal((2, d, round(rho * d)))
    Theta = Q @ K.T / np.sqrt(Q.size)
    R = Theta + np.sqrt(noise / d) * rng.standard_normal((d, d))
    error = ((singular.rie(R, noise, rho) - Theta) ** 2).sum() / d
    # the loss of a d = 400 matrix fluctuates by about 1/d relative
    assert error == pytest.approx(singular.denoising_mmse(noise, rho), rel=0.015)


def test_limits_and_bad_input():
    assert singular.denoising_mmse(3.0, np.inf) == 0.75
    assert singular.denoising_mmse([0.0, np.inf], 0.5).tolist() == [0.0, 1.0]
    assert singular.denoising_mmse(1e-6, 0.5) / 1e-6 == pytest.approx(0.749999656, abs=1e-8)
    with pytest.raises(ValueError, match="R must be"):
        singular.rie(np.eye(3) * 1j, 1.0, 0.5)
    with pytest.raises(ValueError, match="R must be"):
        singular.rie(np.zeros((2, 3)), 1.0, 0.5)
    with pytest.raises(ValueError, match="noise must"):
        singular.shrink(1.0, -1.0, 0.5)


def test_turning_points_and_the_cubed_density_have_their_reference_values():
    np.testing.assert_allclose([ends(0.6, 0.5).p0, ends(0.03, 0.1).p0], [0.91355287, 0.03332104], atol=1e-8)
    assert ends(0.6, 0.5).p[-1] == pytest.approx(4.78532941, abs=1e-7)
    np.testing.assert_allclose(ends(0.03, 0.1).p, [0.03337066, 5.99106692, 15.00556242], atol=1e-7)
    for noise, rho, expected in ((0.6, 0.5, 0.06008198), (1, 2, 0.03847019), (0.03, 0.1, 2.052555)):
        bulk = singular.quadrature(noise, rho, 256)
        assert bulk.integrate(bulk.density**3)[0] == pytest.approx(expected, abs=1e-6)
    x = np.linspace(0.0, 6.0, 400)
    for setting in ((0.6, 0.5), (0.03, 0.1), (1.0, 2.0), (0.05, 0.5)):
        assert (np.diff(singular.rie(x, *setting)) > 0).all()
