"""Moments of the whitened indices, and their weighted sum over nodes or points."""

from __future__ import annotations

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


def weighted(log_weight: jax.Array, s: jax.Array, order: int) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Mean (T, r), second moments (D, D), log of the total weight, effective sample size; leading axis: nodes."""
    peak = jax.lax.stop_gradient(jnp.max(log_weight))
    weight = jnp.exp(log_weight - jnp.where(jnp.isfinite(peak), peak, 0.0))
    total = weight.sum()
    share = weight / total
    flat = s.reshape(len(s), -1)
    mean = share @ flat
    second = (flat * share[:, None]).T @ flat if order == 2 else jnp.zeros((0, 0))
    return mean.reshape(s.shape[1:]), second, jnp.log(total) + peak, 1 / (share @ share)
