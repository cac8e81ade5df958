"""The output function of hardmax far from where the outcome is likely."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr

from attnlab.aim.channels import Hardmax
from attnlab.aim.channels.log_concave import hazard_means, log_hazard
from attnlab.aim.indices import Layout

COMPILED = jax.jit(Hardmax().g, static_argnames="layout")


def log_integrand(x, k):
    """Two tied tokens, both logit differences k standard deviations on the wrong side."""
    return -(x**2) / 2 + 2 * log_ndtr(np.sqrt(1.5) * k + x / np.sqrt(2))


def slope_by_quadrature(k):
    """d log Phi_2(k, k; 1/3) / dk_1, the integrand centred at its maximum."""
    grid = np.linspace(0, -2 * k + 10, 20_001)
    centre = grid[np.argmax(log_integrand(grid, k))]
    top = log_integrand(centre, k)
    weight = lambda x: np.exp(log_integrand(x, k) - top)  # noqa: E731
    inner = lambda x: np.sqrt(1.5) * k + x / np.sqrt(2)  # noqa: E731
    rate = lambda x: np.exp(-(inner(x) ** 2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(inner(x)))  # noqa: E731
    ends = centre - 12, centre + 12
    return np.sqrt(1.5) * quad(lambda x: weight(x) * rate(x), *ends)[0] / quad(weight, *ends)[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [-40.0, -15.0, 0.0, 5.0, 40.0])
def test_two_tied_tokens(k, dtype):
    V = 0.7
    h = k * np.sqrt(3 * V)
    omega = np.array([[h / np.sqrt(2), 0.0, h / np.sqrt(2)]])
    with jax.enable_x64(dtype == "float64"):
        data = (jnp.asarray(values, dtype) for values in ([[0.0, 1.0]], omega, V))
        g = COMPILED(*data, layout=Layout(2, 2))
    assert g.dtype == dtype
    slope = float(g[0, 0]) / np.sqrt(2) * np.sqrt(3 * V)
    # single precision has no numbers below 1e-38
    assert slope == pytest.approx(slope_by_quadrature(k), rel=1e-6, abs=1e-37)


def test_the_reference_value():
    # k = (-15, -15): g_11 = sqrt(2/3) d log Phi_2/dk_1 at V = 1, where nodes at the prior gave 1e5
    assert np.sqrt(2 / 3) * slope_by_quadrature(-15.0) == pytest.approx(9.24, abs=0.005)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_hazard_in_both_precisions(dtype):
    u = np.array([-60.0, -40.0, -10.0, -4.1, -3.9, 0.0, 3.0])
    expected = np.exp(-(u**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(u))
    with jax.enable_x64(True):
        found = np.exp(log_hazard(jnp.asarray(u, dtype), jax.scipy.special.log_ndtr(jnp.asarray(u, dtype))))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == jnp.float32 else 1e-10)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("k", [(-40, -40), (-15, -15), (-40, 10), (-6, 3), (-1, -40), (0, 0), (5, 5)])
def test_both_precisions_against_extended_precision(k, sign):
    # k = (-40, 10) with equal signs has a second mean of 1e-134, below float32: its distance is absolute
    a, b = np.sqrt(1.5) * np.array(k), np.array([-1, -sign]) / np.sqrt(2)
    rate = lambda u: mpmath.npdf(u) / mpmath.ncdf(u)  # noqa: E731
    lines = [lambda x, p=p, q=q: p + q * x for p, q in zip(a, b, strict=True)]
    log_p = lambda x: -(x**2) / 2 + sum(mpmath.log(mpmath.ncdf(line(x))) for line in lines)  # noqa: E731
    slope = lambda x: -x + sum(q * rate(line(x)) for q, line in zip(b, lines, strict=True))  # noqa: E731
    with mpmath.workdps(40):
        first = -(np.minimum(a, 0) @ b) / (1 + b[a < 0] @ b[a < 0])
        top = mpmath.findroot(slope, first)
        ends = [top + x for x in (-14, -5, 0, 5, 14)]
        weight = lambda x: mpmath.exp(log_p(x) - log_p(top))  # noqa: E731
        mass = mpmath.quad(weight, ends)
        exact = [float(mpmath.quad(lambda x, f=f: weight(x) * rate(f(x)), ends) / mass) for f in lines]
    for dtype in ("float32", "float64"):
        with jax.enable_x64(dtype == "float64"):
            found = jax.jit(hazard_means)(jnp.asarray(a, dtype), jnp.asarray(b, dtype))[1]
        assert found.dtype == dtype
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("lead", [-40.0, -8.0, 0.0, 6.0])
def test_untied_rows(lead):
    with jax.enable_x64(True):
        a = jnp.array([[lead, lead / 2]])
        log_z, means = jax.jit(hazard_means)(a, jnp.ones_like(a))
    x = np.linspace(-60, 60, 240_001)
    log_p = -(x**2) / 2 + log_ndtr(lead + x) + log_ndtr(lead / 2 + x)
    p = np.exp(log_p - log_p.max())
    rate = np.exp(-((lead + x) ** 2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(lead + x))
    assert float(means[0, 0]) == pytest.approx((p * rate).sum() / p.sum(), rel=1e-6)
    expected = log_p.max() + np.log(p.sum() * (x[1] - x[0]) / np.sqrt(2 * np.pi))
    assert float(log_z[0]) == pytest.approx(expected, abs=1e-6)
