"""Moments of the whitened indices, and their weighted sum over nodes or points."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from attnlab.smi.posterior.target import Branches


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


def weighted(branches: Branches, order: int) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Mean (D,), second moments (D, D), log of the total weight and effective sample size of the nodes.

    Each log weight and index of a branch is a vector over the nodes; branches of a node count once in the sample size.
    """
    peak = functools.reduce(jnp.maximum, [jnp.max(log_weight) for log_weight, _ in branches])
    peak = jax.lax.stop_gradient(jnp.where(jnp.isfinite(peak), peak, 0.0))
    weights = [jnp.exp(log_weight - peak) for log_weight, _ in branches]

    def total(*factors: Sequence[jax.Array]) -> jax.Array:
        """Sum over branches and nodes of the weight times the factors."""
        terms = [functools.reduce(jnp.multiply, each) for each in zip(weights, *factors, strict=True)]
        return jnp.asarray(functools.reduce(jnp.add, terms).sum())

    nodes, norm = functools.reduce(jnp.add, weights), total()
    s = list(zip(*(indices for _, indices in branches), strict=True))
    second = jnp.zeros((0, 0))
    if order == 2:
        upper = {(i, j): total(s[i], s[j]) for i in range(len(s)) for j in range(i, len(s))}
        second = jnp.stack([upper[min(i, j), max(i, j)] for i in range(len(s)) for j in range(len(s))])
        second = second.reshape(len(s), -1) / norm
    return jnp.stack([total(x) for x in s]) / norm, second, jnp.log(norm) + peak, norm**2 / (nodes @ nodes)
