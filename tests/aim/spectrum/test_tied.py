import numpy as np
import pytest

from attnlab.aim import spectrum


@pytest.mark.parametrize(
    ("noise", "rho", "expected"),
    [
        (0.6, 0.5, 0.28390214),
        (3, 0.5, 0.67941054),
        (0.2, 1, 0.14439139),
        (1, 1, 0.44386874),
        (1, 2, 0.47049641),
        (0.03, 0.1, 0.00568899),
        (1e-3, 0.5, 7.49248e-4),
        (5, 0.1, 0.60658915),
    ],
)
def test_denoising_error_has_its_reference_value(noise, rho, expected):
    # eight digits from an independent implementation (batched companion eigenvalues)
    assert spectrum.denoising_mmse(noise, rho) == pytest.approx(expected, abs=1e-8)


def test_edges_of_one_and_two_bulks():
    np.testing.assert_allclose(spectrum.edges(0.6, 0.5), [-1.290275, 4.367177], atol=1e-6)
    np.testing.assert_allclose(spectrum.edges(0.03, 0.1), [-0.329624, 0.327507, 1.492390, 5.485712], atol=1e-6)


@pytest.mark.parametrize("rho", [0.05, 0.5, 1.0, 2.0, np.inf])
@pytest.mark.parametrize("noise", [1e-4, 0.6, 1e3])
def test_density_has_mass_one(noise, rho):
    bulk = spectrum.quadrature(noise, rho, 3200)
    # spectral accuracy, except next to a merging of two bulks, where these points do not lie
    assert bulk.integrate(bulk.density)[0] == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize(("noise", "rho"), [(0.6, 0.5), (0.03, 0.1), (1.0, 2.0)])
def test_transform_outside_the_bulk_is_the_integral(noise, rho):
    ends = spectrum.edges(noise, rho)
    x = np.array([ends[0] - 1, ends[-1] + 0.5, ends[-1] + 30])
    if len(ends) == 4:
        x = np.append(x, (ends[1] + ends[2]) / 2)
    bulk = spectrum.quadrature(noise, rho, 3200)
    integral = [bulk.integrate(bulk.density / (point - bulk.x))[0] for point in x]
    np.testing.assert_allclose(spectrum.stieltjes(x, noise, rho), integral, atol=1e-9)


def test_rie_of_numbers():
    assert float(spectrum.rie(1.0, 0.6, 0.5)) == pytest.approx(0.518085, abs=1e-6)
    assert float(spectrum.rie(1.0, 0.03, 0.1)) == pytest.approx(0.948113, abs=1e-6)


def loss_of_rie(d, noise, rho, seed):
    """Squared error per dimension on one matrix of the model."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((d, round(rho * d)))
    S = W @ W.T / np.sqrt(W.size)
    G = rng.standard_normal((d, d))
    R = S + np.sqrt(noise) * (G + G.T) / np.sqrt(2 * d)
    return ((spectrum.rie(R, noise, rho) - S) ** 2).sum() / d


@pytest.mark.parametrize(("noise", "rho"), [(0.6, 0.5), (0.2, 2.0)])
def test_rie_reaches_the_denoising_error(noise, rho, seed):
    error = loss_of_rie(500, noise, rho, seed)
    # the loss of a d = 500 matrix fluctuates by 2/d relative; 1.5 % is four of these
    assert error == pytest.approx(spectrum.denoising_mmse(noise, rho), rel=0.015)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "rho"), [(0.6, 0.5), (0.2, 2.0), (1.0, 1.0)])
def test_rie_at_d_800_is_within_one_percent_of_the_denoising_error(noise, rho, seed):
    error = loss_of_rie(800, noise, rho, seed)
    # the loss of a d = 800 matrix fluctuates by 2/d = 0.25 % relative
    assert error == pytest.approx(spectrum.denoising_mmse(noise, rho), rel=0.01)


def test_clipping_moves_outliers_to_the_edge():
    top = spectrum.edges(0.6, 0.5)[-1]
    far = spectrum.rie(np.array([top, top + 5.0]), 0.6, 0.5, clip="edges")
    assert far[0] == pytest.approx(far[1])
    assert spectrum.rie(np.array([top + 5.0]), 0.6, 0.5)[0] > far[1] + 1


def test_limits_of_the_denoising_error():
    assert spectrum.denoising_mmse(0.0, 0.5) == 0
    assert spectrum.denoising_mmse(np.inf, 0.5) == 1
    assert spectrum.denoising_mmse(3.0, np.inf) == 0.75
    assert spectrum.denoising_mmse(1e8, 0.5) == pytest.approx(1 - 1e-8, abs=1e-12)
    for rho in (0.3, 2.0):
        assert spectrum.denoising_mmse(1e-6, rho) / 1e-6 == pytest.approx(spectrum.small_noise_slope(rho), abs=1e-4)
    # rho = 1 approaches its slope as Delta^(1/3)
    assert spectrum.denoising_mmse(1e-6, 1.0) / 1e-6 == pytest.approx(1, abs=1e-3)
    # the width limit is approached as a power of rho, slowest at the transition t = 1
    t = np.array([0.3, 0.7, 3.0])
    np.testing.assert_allclose(spectrum.denoising_mmse(t / 1e-4, 1e-4), spectrum.small_width_mmse(t), atol=2e-3)


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.99, 1.0, 2.0])
@pytest.mark.parametrize("noise", [2e-12, 1e-13, 1e-30, 1e-100, 1e-300])
def test_hardly_any_noise(noise, rho):
    # the slope is reached as noise^(2/3) at rho = 1, where it is slowest
    assert spectrum.denoising_mmse(noise, rho) / noise == pytest.approx(spectrum.small_noise_slope(rho), rel=1e-7)
    low, *_, high = spectrum.edges(noise, rho)
    x = np.linspace(max(low, 0.01), high, 50)
    # eigenvalues of S outside the delta at zero are left as they are; the map moves them by 2 noise |g|
    np.testing.assert_allclose(spectrum.shrink(x, noise, rho), x, atol=2e-8)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="rho must be"):
        spectrum.denoising_mmse(1.0, -0.5)
    with pytest.raises(ValueError, match="noise must be"):
        spectrum.denoising_mmse(-1.0, 0.5)
    with pytest.raises(ValueError, match="square matrix"):
        spectrum.rie(np.zeros((2, 3)), 1.0, 0.5)
