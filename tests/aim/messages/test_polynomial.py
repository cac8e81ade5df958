"""Functions of a matrix by products against its eigenvectors, and message passing that denoises with them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import aim
from attnlab.aim.messages import denoise as denoising
from attnlab.aim.messages import polynomial
from attnlab.aim.spectrum import singular, tied
from attnlab.common.compute import Compute


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


def symmetric(d, seed=0):
    G = np.random.default_rng(seed).standard_normal((d, d))
    return (G + G.T) / np.sqrt(2 * d)


def through_eigenvectors(M, f):
    x, V = np.linalg.eigh(M)
    return (V * f(x)) @ V.T


@pytest.mark.parametrize("terms", polynomial.TERMS)
def test_blocks_are_the_same_polynomial(terms):
    block, count = terms
    c = np.random.default_rng(0).standard_normal(block * count)
    a, x = polynomial.blocks(c, block), np.linspace(-1, 1, 50)
    chebyshev = np.polynomial.chebyshev.chebval
    inner = np.stack([chebyshev(x, row) for row in a])
    y = chebyshev(x, np.eye(block + 1)[block])
    np.testing.assert_allclose((inner * np.stack([chebyshev(y, e) for e in np.eye(count)])).sum(0), chebyshev(x, c))


@pytest.mark.parametrize("f", [np.exp, np.tanh, lambda x: 1 / (3 + x), lambda x: np.abs(x) ** 3])
def test_smooth_functions_meet_their_error(f):
    M = symmetric(80)
    found = np.asarray(polynomial.function(jnp.asarray(M), f, 1e-10, (-2.0, 2.0)))
    assert np.mean((found - through_eigenvectors(M, f)) ** 2) * len(M) < 3e-10


def test_a_step_is_refused():
    assert polynomial.function(jnp.asarray(symmetric(40)), np.sign, 1e-8, (-2.0, 2.0)) is None


@pytest.mark.parametrize("spikes", [(), (3.0,), (-2.5, 8.0)])
@pytest.mark.parametrize("seed", range(3))
def test_the_interval_holds_the_spectrum(spikes, seed):
    M = symmetric(200, seed)
    M[np.arange(len(spikes)), np.arange(len(spikes))] += spikes
    low, high = polynomial.interval(jnp.asarray(M))
    x = np.linalg.eigvalsh(M)
    assert low < x[0]
    assert x[-1] < high < x[-1] + 0.1 * (x[-1] - x[0])


@pytest.mark.parametrize("M", [np.eye(7), np.zeros((5, 5)), np.diag([1.0, 1.0, 4.0, 4.0])])
def test_few_different_eigenvalues(M):
    found = polynomial.function(jnp.asarray(M), np.cos, 1e-12, (0.0, 4.0))
    np.testing.assert_allclose(found, through_eigenvectors(M, np.cos), atol=1e-5)


@pytest.mark.parametrize("noise", [3.0, 0.6, 0.15])
@pytest.mark.parametrize("rho", [0.5, 2.0, np.inf])
@pytest.mark.parametrize("spectrum", [tied, singular])
def test_denoising_by_products_adds_no_error(monkeypatch, spectrum, rho, noise, seed):
    d, is_tied = 120, spectrum is tied
    G = symmetric(d, seed) if is_tied else np.random.default_rng(seed).standard_normal((d, d)) / np.sqrt(d)
    R = spectrum.planted(d, rho, seed) + np.sqrt(noise) * G
    expected = denoising.denoise(R, noise, rho, symmetric=is_tied)
    monkeypatch.setattr(denoising, "_multiplies", lambda M: True)
    monkeypatch.setattr(denoising, "_eigh", None)  # products must suffice
    found = np.asarray(denoising.denoise(jnp.asarray(R), noise, rho, symmetric=is_tied))
    allowed = denoising.SHARE * spectrum.denoising_mmse(noise, rho)
    assert ((found - expected) ** 2).sum() / d < 10 * allowed


def test_small_noise_takes_the_eigenvectors(monkeypatch):
    """Where the map is steep in the expected bulk already, nothing else is computed first."""
    monkeypatch.setattr(polynomial, "interval", None)
    R = aim.Task(60, rho=0.5).S + 0.05 * symmetric(60)
    monkeypatch.setattr(denoising, "_multiplies", lambda M: True)
    found = denoising.denoise(jnp.asarray(R), 0.0025, 0.5)
    np.testing.assert_allclose(found, denoising.denoise(R, 0.0025, 0.5), atol=1e-11)


@pytest.mark.parametrize("is_tied", [True, False])
def test_message_passing_ends_at_the_same_error(monkeypatch, is_tied):
    task = aim.Task(60, rho=0.5, tied=is_tied, seed=2)
    X, y = task.sample(task.n_samples(0.3))
    errors = []
    for products in (False, True):
        monkeypatch.setattr(denoising, "_multiplies", lambda M, products=products: products)
        model = aim.AMP(0.5, tied=is_tied, compute=Compute(devices=1), max_iter=300).fit(X, y)
        assert model.converged_
        errors.append(((model.S_ - task.S) ** 2).sum() / task.d)
    assert errors[1] == pytest.approx(errors[0], rel=1e-3)
