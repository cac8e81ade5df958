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


def over_nodes(at: Target) -> Target:
    """The same for many points (k, n): log weights (B, n) and indices (B, T, r, n).

    The nodes are the last axis everywhere, so that the inner loops run over them and not over a few indices.
    """
    return jax.vmap(at, in_axes=-1, out_axes=-1)


def times(x: jax.Array, M: jax.Array) -> jax.Array:
    """x M for a small matrix, written out: a product of matrices would move the nodes away from the last axis."""
    r = len(M)
    columns = [sum((x[..., a] * M[a, b] for a in range(1, r)), x[..., 0] * M[0, b]) for b in range(r)]
    return jnp.stack(columns, axis=-1)


def coordinates(link: Link) -> int:
    """How many coordinates c has."""
    return len(link.free) if link.solve is not None else link.dimension


def _density_target(link: Link, y: jax.Array, omega: jax.Array, L: jax.Array) -> Target:
    log_density = link.log_density
    assert log_density is not None

    def at(c: jax.Array) -> tuple[jax.Array, jax.Array]:
        s = c.reshape(omega.shape)
        # Never expand (z - omega)^2: the whitened form keeps all digits at small V.
        value = -0.5 * (c @ c) + log_density(y, omega + times(s, L))
        return jnp.reshape(value, (1,)), s[None]

    return at


def _level_target(link: Link, y: jax.Array, omega: jax.Array, L: jax.Array) -> Target:
    solve = link.solve
    assert solve is not None
    inverse = jnp.linalg.inv(L)
    place, root = None, None
    # The density N(z; omega, V) of all indices; the rules supply one factor (2 pi)^(-1/2) for each whitened coordinate.
    constant = -link.tokens * jnp.linalg.slogdet(L)[1]
    if link.has_ranges:
        constant -= 0.5 * link.dimension * np.log(2 * np.pi)
    else:
        place = tuple(np.array(link.free).T)
        root = jnp.linalg.cholesky(_free_covariance(link, L @ L))
        constant += jnp.log(jnp.diagonal(root)).sum() - 0.5 * (link.dimension - len(link.free)) * np.log(2 * np.pi)

    def at(c: jax.Array) -> tuple[jax.Array, jax.Array]:
        z, log_weight = solve(y, c if root is None or place is None else omega[place] + times(c, root.T))
        s = times(z - omega, inverse)
        return log_weight + constant - 0.5 * (s**2).sum(axis=(1, 2)), s

    return at


def _free_covariance(link: Link, V: jax.Array) -> jax.Array:
    """Covariance of the free entries of z: V within a token, 0 between tokens."""
    t, a = np.array(link.free).T
    return jnp.where(jnp.asarray(t[:, None] == t[None, :]), V[a[:, None], a[None, :]], 0.0)
