"""The output function of hardmax, where it is a one-dimensional integral: two tied tokens, or untied rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.aim.channels.log_concave import hazard_means
from attnlab.aim.indices import Layout

NEVER = 1e3  # a factor Phi(1000) = 1 for the winner itself


def pair(winners: jax.Array, omega: jax.Array, V: jax.Array) -> jax.Array:
    r"""g of two tied tokens: Phi_2 as an average over the noise x of h_12, :math:`E\prod_i\Phi(s_i(D_i/\sqrt V -
    x)/\sqrt 2)`.
    """
    # Components (11, 12, 22): h_aa = sqrt(2) z_aa.
    s, D = _signs(winners), jnp.sqrt(2.0) * omega[:, 0::2] - omega[:, 1:2]
    _, means = hazard_means(s * D / jnp.sqrt(2 * V), -s / np.sqrt(2.0))
    return _from_slopes(s * means / jnp.sqrt(2 * V))


def rows(winners: jax.Array, omega: jax.Array, V: jax.Array, layout: Layout) -> jax.Array:
    """g of untied attention, row by row: x is the noise of the winner."""
    h = omega.reshape(-1, *layout.shape)
    won = jax.nn.one_hot(winners.astype(int), layout.keys, dtype=omega.dtype)
    lead = ((h * won).sum(axis=-1, keepdims=True) - h) / jnp.sqrt(V)
    _, means = hazard_means(jnp.where(won > 0, NEVER, lead), jnp.where(won > 0, 0.0, 1.0))
    beaten = jnp.where(won > 0, 0.0, means)
    # A row of g sums to zero: one constant added to all its entries changes no winner.
    g = (won * beaten.sum(axis=-1, keepdims=True) - beaten) / jnp.sqrt(V)
    return g.reshape(omega.shape)


def published_pair(winners: jax.Array, omega: jax.Array, V: jax.Array) -> jax.Array:
    """The public formula of 2506.01582 for two tokens: the bivariate density where the derivative of Phi_2 belongs."""
    s, D = _signs(winners), jnp.sqrt(2.0) * omega[:, 0::2] - omega[:, 1:2]
    log_z, _ = hazard_means(s * D / jnp.sqrt(2 * V), -s / np.sqrt(2.0))
    k, r = s * D / jnp.sqrt(3 * V), (s[:, 0] * s[:, 1] / 3)[:, None]
    # k_1^2 + gap_1^2 is the quadratic form of the bivariate density, and so is k_2^2 + gap_2^2: two equal columns.
    gap = (k[:, ::-1] - r * k) / jnp.sqrt(1 - r**2)
    log_density = -(k**2 + gap**2) / 2 - jnp.log(2 * np.pi * jnp.sqrt(1 - r**2))
    return _from_slopes(s * jnp.exp(log_density - log_z[:, None]) / jnp.sqrt(3 * V))


def _signs(winners: jax.Array) -> jax.Array:
    """s_1 = 1 where h_11 wins the first row, s_2 = 1 where h_22 wins the second."""
    return jnp.stack([1 - 2 * winners[:, 0], 2 * winners[:, 1] - 1], axis=-1)


def _from_slopes(G: jax.Array) -> jax.Array:
    """Whitened g from the slopes in h_11 and h_22; adding a constant to h changes nothing."""
    return jnp.stack([np.sqrt(2.0) * G[:, 0], -G.sum(axis=1), np.sqrt(2.0) * G[:, 1]], axis=-1)
