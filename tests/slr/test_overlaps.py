import numpy as np
import pytest
from scipy import integrate, special

from attnlab.slr import theory
from attnlab.slr.namespace import NUMPY, jax_namespace
from attnlab.slr.theory.overlaps import Setting, transverse_rates, zeta

SETTINGS = [(10, 2, 0.3, 0.7), (60, 5, 0.1, 1.2), (400, 10, 0.9, 2**-0.5), (25, 8, 2.0, 0.5)]


def overlaps_of_random_vectors(rng, d):
    """Five overlaps that four unit vectors with k*.v* = 0 can have."""
    k_star, v_star = np.eye(2, d)
    k, v = rng.standard_normal((2, d))
    k, v = k + 2 * rng.standard_normal() * k_star, v + 2 * rng.standard_normal() * v_star
    k, v = k / np.linalg.norm(k), v / np.linalg.norm(v)
    return np.array([k @ k_star, v @ v_star, v @ k_star, k @ v_star, k @ v]), (k, v)


def test_zeta_against_adaptive_quadrature():
    rng = np.random.default_rng(0)
    for t, s in zip(rng.uniform(-6, 6, 200), rng.uniform(0, 3, 200), strict=True):

        def integrand(g, t=t, s=s):
            return special.erf(t + s * g) ** 2 * np.exp(-0.5 * g * g) / np.sqrt(2 * np.pi)

        # the kink of width 1/s at g = -t/s is where an adaptive rule needs help
        breaks = [max(-11.9, min(11.9, -t / s))]
        exact = integrate.quad(integrand, -12, 12, epsabs=1e-13, epsrel=1e-13, limit=400, points=breaks)[0]
        assert zeta(t, s) == pytest.approx(exact, abs=1e-11)


def test_owens_t_of_both_array_libraries_agree():
    import jax

    h, r = np.meshgrid(np.linspace(-8, 8, 41), np.linspace(0.05, 1, 11))
    with jax.enable_x64(True):
        quadrature = np.asarray(jax_namespace().owens_t(h, r))
    assert np.allclose(quadrature, NUMPY.owens_t(h, r), rtol=0, atol=1e-13)


def monte_carlo_z_score(d, L, lam, gamma, rng):
    """Distance of the exact risk from the mean of 10^6 simulated losses, in standard errors."""
    o, (k, v) = overlaps_of_random_vectors(rng, d)
    k_star, v_star = np.eye(2, d)
    # the projections of a token on k, v, k*, v* are all that matters: draw these four
    basis = np.linalg.qr(np.stack([k_star, v_star, k, v]).T)[0].T
    K, V, S, W = (basis @ x for x in (k, v, k_star, v_star))
    losses = []
    for _ in range(10):
        X = rng.standard_normal((100_000, L, 4))
        X[:, 0] = np.sqrt(d / 2) * S + gamma * X[:, 0]
        prediction = np.sum(special.erf(lam * X @ K) * (X @ V), axis=1)
        losses.append((X[:, 0] @ W + 0.3 * rng.standard_normal(len(X)) - prediction) ** 2)
    losses = np.concatenate(losses)
    exact = theory.risk(*o, d=d, L=L, lam=lam, gamma=gamma, noise_std=0.3)
    return (losses.mean() - exact) / (losses.std() / np.sqrt(len(losses)))


@pytest.mark.parametrize(("d", "L", "lam", "gamma"), SETTINGS)
def test_risk_against_monte_carlo(d, L, lam, gamma):
    assert abs(monte_carlo_z_score(d, L, lam, gamma, np.random.default_rng(d))) < 4


@pytest.mark.slow
def test_risk_against_monte_carlo_on_twenty_random_settings():
    rng = np.random.default_rng(7)
    z = [
        monte_carlo_z_score(
            int(rng.integers(4, 500)), int(rng.integers(2, 12)), rng.uniform(0.05, 2), rng.uniform(0.3, 1.5), rng
        )
        for _ in range(20)
    ]
    # twenty standard normal scores: the root mean square is 1 +- .16, all are below 4
    assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.4
    assert np.max(np.abs(z)) < 4


@pytest.mark.parametrize(("d", "L", "lam", "gamma"), SETTINGS)
def test_gradient_against_central_differences(d, L, lam, gamma):
    o, _ = overlaps_of_random_vectors(np.random.default_rng(1), d)
    o *= 0.9
    setting = {"d": d, "L": L, "lam": lam, "gamma": gamma}
    h = 1e-5
    shifts = h * np.eye(5)
    numeric = [(theory.risk(*(o + e), **setting) - theory.risk(*(o - e), **setting)) / (2 * h) for e in shifts]
    exact = theory.risk_gradient(*o, **setting)
    # truncation h^2 and cancellation 1e-16/h are both below 1e-9 of the largest derivative
    assert np.allclose(exact, numeric, rtol=1e-6, atol=1e-8 * np.max(np.abs(exact)))


def test_gradient_against_autodiff():
    import jax

    from attnlab.slr.theory import overlaps as formula

    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        automatic = jax.jit(jax.grad(lambda x, law, lam: formula.risk(x, law, lam, xp=jax_namespace())))
        for d, L, lam, gamma in SETTINGS:
            o, _ = overlaps_of_random_vectors(rng, d)
            found = automatic(o, Setting(float(np.sqrt(d / 2)), float(gamma), float(L), 1.0), float(lam))
            assert np.allclose(found, theory.risk_gradient(*o, d=d, L=L, lam=lam, gamma=gamma), rtol=1e-9)


def test_risk_broadcasts_and_matches_the_manifold_form():
    kappa, nu = np.linspace(-1, 1, 7)[:, None], np.linspace(-1, 1, 5)
    values = theory.risk(kappa, nu, 0, 0, 0, d=50, L=4, lam=0.2)
    c = 0.2 * 5 / np.sqrt(1 + 2 * 0.04 * 0.5)
    direct = 0.5 * (1 - 2 * nu * special.erf(c * kappa) + zeta(0.2 * 5 * kappa, 0.2 * 2**-0.5)) + 3 * zeta(0.0, 0.2)
    assert values.shape == (7, 5)
    assert np.allclose(values, direct, rtol=1e-13)


@pytest.mark.parametrize("lam", [0.1, 0.5, 0.9])
def test_transverse_rates_against_the_numerical_jacobian_of_the_flow(lam):
    oracle, h = np.array([1.0, 1, 0, 0, 0]), 1e-6
    setting = {"d": 400, "L": 10, "lam": lam, "gamma": 2**-0.5}
    columns = [
        (theory.velocity(oracle + e, **setting) - theory.velocity(oracle - e, **setting)) / (2 * h)
        for e in h * np.eye(5)
    ]
    block = np.array(columns).T[2:, 2:]
    assert np.allclose(
        np.sort(np.linalg.eigvals(block).real),
        transverse_rates(Setting(200**0.5, 2**-0.5, 10, 1), lam),
        rtol=1e-5,
        atol=1e-5,
    )
