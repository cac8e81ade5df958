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

# c -> the log weight and the T r whitened indices s of each branch. They are single numbers, so that over many nodes
# each is one long vector; stacked, the few indices would be the innermost loop, at half the speed.
Branches = list[tuple[jax.Array, list[jax.Array]]]
Target = Callable[[jax.Array], Branches]


def target(link: Link, y: jax.Array, omega: jax.Array, L: jax.Array) -> Target:
    """Branches over the point c: their log weights and whitened indices."""
    if link.solve is None:
        return _density_target(link, y, omega, L)
    return _level_target(link, y, omega, L)


def over_nodes(at: Target) -> Target:
    """The same for many points (k, n)."""
    return jax.vmap(at, in_axes=-1)


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

    def at(c: jax.Array) -> Branches:
        s = c.reshape(omega.shape)
        # Never expand (z - omega)^2: the whitened form keeps all digits at small V.
        value = -0.5 * (c @ c) + log_density(y, omega + times(s, L))
        return [(jnp.reshape(value, ()), list(c))]

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

    def at(c: jax.Array) -> Branches:
        z, log_weight = solve(y, c if root is None or place is None else omega[place] + times(c, root.T))
        found = []
        for i in range(len(z)):
            rows = [[z[i, t, a] - omega[t, a] for a in range(link.rank)] for t in range(link.tokens)]
            s = [sum(row[a] * inverse[a, b] for a in range(link.rank)) for row in rows for b in range(link.rank)]
            found.append((log_weight[i] + constant - 0.5 * sum(x**2 for x in s), s))
        return found

    return at


def _free_covariance(link: Link, V: jax.Array) -> jax.Array:
    """Covariance of the free entries of z: V within a token, 0 between tokens."""
    t, a = np.array(link.free).T
    return jnp.where(jnp.asarray(t[:, None] == t[None, :]), V[a[:, None], a[None, :]], 0.0)
