"""The mean output of a link, given its indices or a Gaussian law of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.precision import float64
from attnlab.smi.draws import sobol_normals
from attnlab.smi.link import Link

NOISE_POINTS = 64
SPREAD_POINTS = 128


def mean_function(link: Link) -> Callable[[Any], Any]:
    """``z -> E[y | z]`` of one sequence: the link's own, or the average of ``sample`` over fixed noise points."""
    if link.mean is not None:
        return link.mean
    if not link.noise:
        return lambda z: link.sample(z, jnp.zeros(0))
    e = sobol_normals(link.noise, NOISE_POINTS, ("mean",))
    return lambda z: jax.vmap(lambda one: link.sample(z, one))(jnp.asarray(e)).mean(axis=0)


@functools.partial(jax.jit, static_argnames=("link",))
def _spread(link: Link, z: jax.Array, L: jax.Array, points: jax.Array) -> jax.Array:
    mean = mean_function(link)

    def one(at: jax.Array) -> jax.Array:
        return jnp.mean(jax.vmap(lambda x: mean(at + x @ L))(points), axis=0)

    found: jax.Array = jax.lax.map(one, z, batch_size=64)
    return found


@float64
def spread_mean(link: Link, z: np.ndarray, V: np.ndarray, which: int = 0) -> np.ndarray:
    """E mean(z') for rows z' ~ N(z, V), sequence by sequence; ``which`` selects independent points."""
    v, basis = np.linalg.eigh(V)
    L = (basis * np.sqrt(np.clip(v, 0, None))) @ basis.T
    half = sobol_normals(link.dimension, SPREAD_POINTS // 2, ("spread", which))
    # With the negatives, odd parts of the mean output cancel exactly.
    points = np.concatenate([half, -half]).reshape(-1, link.tokens, link.rank)
    return np.asarray(_spread(link, jnp.asarray(z), jnp.asarray(L), jnp.asarray(points)))
