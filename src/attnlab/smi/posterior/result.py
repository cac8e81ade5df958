"""Moments of the whitened indices, and their weighted sum over nodes or points."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp


class Moments(NamedTuple):
    """Moments of s given (y, omega); ``again`` holds those of a second, independent set of points.

    A deterministic rule returns the same arrays twice. A product of two means takes one from each set: with one set it
    would be too large by the variance of the points.
    """

    mean: jax.Array
    second: jax.Array
    mean_again: jax.Array
    second_again: jax.Array
    log_z: jax.Array
    ess: jax.Array


Posterior = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], Moments]


def weighted(log_weight: jax.Array, s: jax.Array, order: int) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Mean (T, r), second moments (D, D), log of the total weight and effective sample size of the nodes.

    ``log_weight`` is (B, n) and ``s`` (B, T, r, n); the B branches of a node count once in the sample size.
    """
    peak = jax.lax.stop_gradient(jnp.max(log_weight))
    weight = jnp.exp(log_weight - jnp.where(jnp.isfinite(peak), peak, 0.0))
    total = weight.sum()
    mean = (weight[:, None, None] * s).sum(axis=(0, -1)) / total
    second = jnp.zeros((0, 0))
    if order == 2:
        flat = s.reshape(len(s), -1, s.shape[-1])
        second = jnp.einsum("bin,bjn->ij", weight[:, None] * flat, flat) / total
    nodes = weight.sum(axis=0)
    return mean, second, jnp.log(total) + peak, total**2 / (nodes @ nodes)
