r"""The posterior of z in coordinates c: what the grid and the points integrate.

``log_density``: c is the whitened s itself. Level set with free positions: c is the whitened free part of z,
z_free = omega_free + R c. Level set with ranges: c are the user's coordinates.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.smi.link import Link

# (y, omega, L) -> (c -> (log weights (B,), whitened indices s (B, T, r)))
Target = Callable[[jax.Array], tuple[jax.Array, jax.Array]]


def target(link: Link, y: jax.Array, omega: jax.Array, L: jax.Array) -> Target:
    """Branches over the point c: their log weights and whitened indices."""
    if link.solve is None:
        return _density_target(link, y, omega, L)
    return _level_target(link, y, omega, L)


def coordinates(link: Link) -> int:
    """How many coordinates c has."""
    return len(link.free) if link.solve is not None else link.dimension


def _density_target(link: Link, y: jax.Array, omega: jax.Array, L: jax.Array) -> Target:
    log_density = link.log_density
    assert log_density is not None

    def at(c: jax.Array) -> tuple[jax.Array, jax.Array]:
        s = c.reshape(omega.shape)
        # Never expand (z - omega)^2: the whitened form keeps all digits at small V.
        value = -0.5 * (c @ c) + log_density(y, omega + s @ L)
        return jnp.reshape(value, (1,)), s[None]

    return at


def _level_target(link: Link, y: jax.Array, omega: jax.Array, L: jax.Array) -> Target:
    solve = link.solve
    assert solve is not None
    inverse = jnp.linalg.inv(L)
    place, root = None, None
    if not link.has_ranges:
        place = tuple(np.array(link.free).T)
        root = jnp.linalg.cholesky(_free_covariance(link, L @ L))

    def at(c: jax.Array) -> tuple[jax.Array, jax.Array]:
        z, log_weight = solve(y, c if root is None or place is None else omega[place] + root @ c)
        s = (z - omega) @ inverse
        return log_weight - 0.5 * (s**2).sum(axis=(1, 2)), s

    return at


def _free_covariance(link: Link, V: jax.Array) -> jax.Array:
    """Covariance of the free entries of z: V within a token, 0 between tokens."""
    t, a = np.array(link.free).T
    return jnp.where(jnp.asarray(t[:, None] == t[None, :]), V[a[:, None], a[None, :]], 0.0)
