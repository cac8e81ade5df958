r"""One-dimensional integrals of products of normal distribution functions, safe in the tails.

.. math:: Z = \int \varphi(x)\prod_i\Phi(a_i + b_i x)\,dx, \qquad E[\lambda_i],\ \lambda = \varphi/\Phi \text{ at } a_i
+ b_i x

The integrand is log-concave. Gauss-Hermite nodes are centred at its maximum and scaled by its curvature, and everything
is kept as a logarithm: nodes at the prior would miss an integrand that lives twenty deviations away.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp

from attnlab.common.gaussian import gauss_hermite

NODES = 32
NEWTON_STEPS = 12
# Below the first number hazard is a continued fraction of the second's depth: the ratio of two tiny numbers loses its
# digits there. In float64 that is far out, where three terms are exact to rounding.
TAIL = {"float32": (-4.0, 24), "float64": (-40.0, 3)}
HALF_LOG = float(np.log(2 * np.pi) / 2)  # a Python number keeps float32 arrays float32


def log_hazard(u: jax.Array, log_phi: jax.Array) -> jax.Array:
    r"""log of phi(u) / Phi(u) from log Phi(u): for u = -t far in the tail of t + 1/(t + 2/(t + 3/(t + ...)))."""
    tail, most = TAIL[str(u.dtype)]
    t = jnp.maximum(-u, -tail)
    fraction = t
    for depth in range(most, 0, -1):
        fraction = t + depth / fraction
    return jnp.where(u >= tail, -(u**2) / 2 - HALF_LOG - log_phi, jnp.log(fraction))


def hazard_means(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """log Z (...,) and the posterior means of lambda_i (..., m), for a and b of shape (..., m)."""

    def newton(_: Any, x: jax.Array) -> jax.Array:
        slope, curvature = _slope_and_curvature(a, b, x)
        return x + slope / curvature

    x = jax.lax.fori_loop(0, NEWTON_STEPS, newton, jnp.zeros(a.shape[:-1], a.dtype))
    _, curvature = _slope_and_curvature(a, b, x)
    xi, weights = (jnp.asarray(values, a.dtype) for values in gauss_hermite(NODES))
    spread = 1 / jnp.sqrt(curvature)
    nodes = x[..., None] + spread[..., None] * xi
    u = a[..., None, :] + b[..., None, :] * nodes[..., None]
    log_phi = log_ndtr(u)
    log_rate = log_hazard(u, log_phi)
    # log Phi = -u^2/2 - log sqrt(2 pi) - log lambda: in the tails these squares and x^2 are large and nearly cancel, so
    # that float32 would keep four digits of the integrand. Their sum is one square about its centre.
    tail = a + b * x[..., None] < 0
    far, slope = jnp.where(tail, a, 0.0), jnp.where(tail, b, 0.0)
    narrow = 1 + (slope**2).sum(axis=-1, keepdims=True)
    centre = -(far * slope).sum(axis=-1, keepdims=True) / narrow
    smooth = jnp.where(tail[..., None, :], -log_rate, log_phi).sum(axis=-1)
    # Gauss-Hermite weights hold exp(-xi^2/2), which is taken out again: the integrand is given as a whole.
    log_p = jnp.log(weights) + xi**2 / 2 - narrow * (nodes - centre) ** 2 / 2 + smooth
    log_z = logsumexp(log_p, axis=-1, keepdims=True)
    means = jnp.einsum("...j,...ji->...i", jnp.exp(log_p - log_z), jnp.exp(log_rate))
    squares = (far**2).sum(axis=-1) - (narrow * centre**2)[..., 0]
    return log_z[..., 0] + jnp.log(spread) - squares / 2 - HALF_LOG * tail.sum(axis=-1), means


def _slope_and_curvature(a: jax.Array, b: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """First derivative of the logarithm of the integrand, and minus the second, which lies between 1 and 1 + sum b^2:
    Newton's method cannot run away.
    """
    u = a + b * x[..., None]
    rate = jnp.exp(log_hazard(u, log_ndtr(u)))
    return -x + (b * rate).sum(axis=-1), 1 + (b**2 * jnp.clip(rate * (u + rate), 0.0, 1.0)).sum(axis=-1)
