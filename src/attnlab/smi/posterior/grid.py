r"""The grid route: a tensor trapezoid rule in whitened coordinates, or in ranges with a zoom.

The trapezoid rule and not Gauss-Hermite: its spacing is the same everywhere, so that a posterior of width w is summed
with the error 2 exp(-2 pi^2 (w/h)^2), whatever its place.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.smi.link import Link
from attnlab.smi.posterior.result import Blocks, Moments, Posterior, weighted
from attnlab.smi.posterior.target import Target, coordinates, over_nodes, target

REACH = 6.3  # standard deviations; nodes beyond carry less than exp(-20) of the peak of the prior
ZOOM = 7.0  # posterior standard deviations kept by a zoom
ZOOMS = 2  # the first finds the peak, the second its width


@functools.cache
def whitened_nodes(size: int, dimension: int) -> np.ndarray:
    """Nodes of the tensor grid within the ball of radius REACH, (dimension, nodes)."""
    side = np.linspace(-REACH, REACH, size)
    nodes = np.stack(np.meshgrid(*[side] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    return np.ascontiguousarray(nodes[(nodes**2).sum(axis=1) <= REACH**2 + 1e-9].T)


@functools.cache
def unit_nodes(size: int, dimension: int) -> np.ndarray:
    """Nodes of the tensor grid in [0, 1]^dimension, (dimension, nodes)."""
    side = np.linspace(0.0, 1.0, size)
    return np.stack(np.meshgrid(*[side] * dimension, indexing="ij")).reshape(dimension, -1)


def grid_moments(link: Link, size: int, blocks: Blocks) -> Posterior:
    """Sums over the nodes and branches of one sequence."""
    dimension = coordinates(link)

    def moments(y: jax.Array, omega: jax.Array, L: jax.Array, label: jax.Array) -> Moments:
        at = over_nodes(target(link, y, omega, L))
        if link.has_ranges:
            nodes, log_volume = _zoomed(link, at, size, dimension)
        else:
            nodes = jnp.asarray(whitened_nodes(size, dimension))
            log_volume = jnp.asarray(dimension * np.log(2 * REACH / (size - 1) / np.sqrt(2 * np.pi)))
        mean, second, log_z, ess = weighted(at(nodes), blocks)
        mean = mean.reshape(omega.shape)
        return Moments(mean, second, mean, second, log_z + log_volume, ess)

    return moments


def _zoomed(link: Link, at: Target, size: int, dimension: int) -> tuple[jax.Array, jax.Array]:
    """Nodes in the part of the ranges that holds the posterior."""
    low, high = (jnp.asarray(side) for side in np.array(link.free, dtype=float).T)
    unit = jnp.asarray(unit_nodes(size, dimension))
    start, width = low, high - low
    for _ in range(ZOOMS):
        nodes = start[:, None] + unit * width[:, None]
        # Branches of one node share its coordinates.
        mean, second, _, _ = weighted([(log_weight, list(nodes)) for log_weight, _ in at(nodes)], [range(dimension)])
        spread = jnp.sqrt(jnp.maximum(jnp.diagonal(second) - mean**2, 0.0))
        # A peak between two nodes has no spread: one spacing is kept on each side.
        half = ZOOM * jnp.maximum(spread, width / (size - 1))
        start = jnp.maximum(mean - half, low)
        width = jnp.minimum(mean + half, high) - start
    return start[:, None] + unit * width[:, None], jnp.log(jnp.prod(width / (size - 1)))
