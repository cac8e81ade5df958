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
# Second moments: the matrices E[s_b s_b^T] of these blocks b of indices are added up.
Blocks = Sequence[Sequence[int]]


def weighted(branches: Branches, blocks: Blocks) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Mean (D,), second moments (k, k), log of the total weight and effective sample size of the nodes.

    Each log weight and index of a branch is a vector over the nodes; branches of a node count once in the sample size.
    """
    peak = functools.reduce(jnp.maximum, [jnp.max(log_weight) for log_weight, _ in branches])
    peak = jax.lax.stop_gradient(jnp.where(jnp.isfinite(peak), peak, 0.0))
    weights = [jnp.exp(log_weight - peak) for log_weight, _ in branches]

    nodes = functools.reduce(jnp.add, weights)
    norm, k = nodes.sum(), len(blocks[0]) if blocks else 0

    def mean(values: Sequence[jax.Array]) -> jax.Array:
        """Average of a function of the indices, given on each branch."""
        return functools.reduce(jnp.add, [w * x for w, x in zip(weights, values, strict=True)]).sum() / norm

    indices = [s for _, s in branches]

    def product(i: int, j: int) -> jax.Array:
        return mean([functools.reduce(jnp.add, [s[b[i]] * s[b[j]] for b in blocks]) for s in indices])

    upper = {(i, j): product(i, j) for i in range(k) for j in range(i, k)}
    entries = [upper[min(i, j), max(i, j)] for i in range(k) for j in range(k)]
    second = jnp.stack(entries).reshape(k, k) if k else jnp.zeros((0, 0))
    first = jnp.stack([mean(values) for values in zip(*indices, strict=True)])
    return first, second, jnp.log(norm) + peak, norm**2 / (nodes @ nodes)
