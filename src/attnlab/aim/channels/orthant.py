r"""Posterior mean of the indices given which entry of each row is the largest (hardmax, any number of tokens).

The winners y order pairs of indices. Given the off-diagonal ones the diagonal ones are independent, each with one
bound, and are integrated exactly. The off-diagonal ones are drawn in turn from the Gaussian cut to the bounds set by
those before them, which the transitive closure of the order keeps consistent; the weight of a draw is the product of
the masses of its intervals (A. Genz, J. Comput. Graph. Statist. 1 (1992) 141). Unlikely winners leave few of these
draws alive, so that each is drawn from a Gaussian whose mean is shifted by the bounds that it sets for later ones, and
the weight is corrected (as Z. Botev, J. R. Stat. Soc. B 79 (2017) 125, with the shift at the most likely point).
Status: quasi-Monte Carlo.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri

from attnlab.aim.indices import pair_of, pair_scale
from attnlab.aim.quasi_random import uniform_points

MAX_TOKENS = 6
SWEEPS = 10
POINTS = 512  # 128 leave AMP a floor of 2e-6 in the change of S (512: 1e-7) and 1 % of error


@functools.lru_cache(maxsize=8)
def orders(tokens: int) -> np.ndarray:
    """For every pattern of winners (T^T, the first row's winner the slowest digit), less[i, j]: pair i below pair j."""
    table = pair_of(tokens)
    patterns = np.array(list(itertools.product(range(tokens), repeat=tokens)))
    p = table.max() + 1
    less = np.zeros((len(patterns), p, p), dtype=bool)
    for row in range(tokens):
        top = table[row, patterns[:, row]]
        for column in range(tokens):
            beaten = patterns[:, row] != column
            less[np.flatnonzero(beaten), table[row, column], top[beaten]] = True
    for through in range(p):
        # Warshall's closure: i below ``through`` and ``through`` below j.
        less |= less[:, :, through, None] & less[:, None, through, :]
    less.flags.writeable = False
    return less


def codes(winners: jax.Array) -> jax.Array:
    """The position of each pattern of winners (n, T) in :func:`orders`."""
    tokens = winners.shape[-1]
    return (winners.astype(jnp.int32) * tokens ** np.arange(tokens - 1, -1, -1)).sum(axis=-1)


def posterior_mean(winners: jax.Array, omega: jax.Array, V: jax.Array, tokens: int, points: int = POINTS) -> jax.Array:
    """E[z | winners] for z ~ N(omega, V I), (n, p)."""
    U = uniform_points(tokens * (tokens - 1) // 2, points)
    return weighted_mean(winners, omega, V, jnp.asarray(U), tokens)[1]


def weighted_mean(winners: Any, omega: Any, V: Any, U: Any, tokens: int) -> tuple[jax.Array, jax.Array]:
    """log Pr[winners] and E[z | winners], with the points U of the unit cube (points, T (T - 1)/2)."""
    scale = pair_scale(tokens)
    less = jnp.asarray(orders(tokens))[codes(winners)]
    centre, spread = omega * scale, jnp.sqrt(V) * scale
    order = np.argsort(scale, kind="stable")  # off-diagonal pairs first
    shift = _shifts(winners, centre, spread, tokens)
    drawn: dict[int, jax.Array] = {}
    means: dict[int, jax.Array] = {}
    log_weight = jnp.zeros((omega.shape[0], len(U)))
    for position, j in enumerate(int(j) for j in order):
        low, high = _bounds(less, drawn, j, log_weight)
        low, high = (low - centre[:, j, None]) / spread[j], (high - centre[:, j, None]) / spread[j]
        if position < U.shape[1]:
            mu = shift[:, j, None]
            x, mass = _cut_normal(low - mu, high - mu, U[:, position])
            x = x + mu
            # N(0, 1) over N(mu, 1) at x.
            log_weight = log_weight + mu**2 / 2 - mu * x
            drawn[j] = centre[:, j, None] + spread[j] * x
        else:
            x, mass = _cut_mean(low, high)
        means[j] = centre[:, j, None] + spread[j] * x
        # Products of masses underflow after a few pairs; their logarithms do not.
        log_weight = log_weight + jnp.log(jnp.maximum(mass, 1e-300))
    total = jax.scipy.special.logsumexp(log_weight, axis=1)
    weights = jnp.exp(log_weight - total[:, None])
    mean = jnp.stack([(weights * means[j]).sum(axis=1) for j in range(len(scale))], axis=-1) / scale
    return total - np.log(len(U)), mean


def _shifts(winners: Any, centre: Any, spread: Any, tokens: int) -> jax.Array:
    """By how many deviations the bounds on later pairs move each pair (n, p) at the most likely point.

    That point minimises sum (h - centre)^2/spread^2 where every winner is the largest of its row: coordinate ascent on
    the multipliers of these T^2 bounds. Any shift is correct; ``SWEEPS`` bring it near the best.
    """
    table = pair_of(tokens)
    p, rank = table.max() + 1, np.argsort(np.argsort(pair_scale(tokens), kind="stable"))
    top = jnp.asarray(table)[np.arange(tokens), winners.astype(int)][:, :, None] == np.arange(p)  # (n, T, p)
    own = table[:, :, None] == np.arange(p)  # (T, T, p)
    normal = (top[:, :, None].astype(centre.dtype) - own).reshape(-1, tokens**2, p)
    size = jnp.maximum((normal**2 * spread**2).sum(axis=-1), 1e-300)

    def step(i: Any, carry: Any) -> Any:
        h, pull = carry
        k = i % tokens**2
        moved = jnp.maximum(-(normal[:, k] * h).sum(axis=-1) / size[:, k], -pull[:, k])
        return h + moved[:, None] * normal[:, k] * spread**2, pull.at[:, k].add(moved)

    start = centre, jnp.zeros(size.shape, centre.dtype)
    pull = jax.lax.fori_loop(0, SWEEPS * tokens**2, step, start)[1]
    # The later pair of a bound is cut by it; the shift is of the earlier one.
    later = jnp.where(normal != 0, rank, -1).max(axis=-1, keepdims=True)
    shift: jax.Array = (jnp.where(rank < later, normal, 0.0) * pull[..., None]).sum(axis=1) * spread
    return shift


def _bounds(less: jax.Array, drawn: dict[int, jax.Array], j: int, like: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The interval left to pair j by the pairs already drawn."""
    low, high = jnp.full_like(like, -jnp.inf), jnp.full_like(like, jnp.inf)
    for i, value in drawn.items():
        low = jnp.where(less[:, i, j, None], jnp.maximum(low, value), low)
        high = jnp.where(less[:, j, i, None], jnp.minimum(high, value), high)
    return low, high


def _lower_tail(low: jax.Array, high: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Reflect intervals of the upper half line, where Phi would lose its digits; the sign says which were."""
    flip = low > -high
    return jnp.where(flip, -high, low), jnp.where(flip, -low, high), jnp.where(flip, -1.0, 1.0)


def _cut_normal(low: jax.Array, high: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The u-quantile of N(0, 1) cut to [low, high], and the interval's mass."""
    low, high, sign = _lower_tail(low, high)
    below, above = ndtr(low), ndtr(high)
    # Rounding may reach 0 or 1, where the inverse is infinite.
    x = ndtri(jnp.clip(below + (above - below) * u, 1e-300, 1 - 1e-16))
    return sign * jnp.clip(x, low, high), above - below


def _cut_mean(low: jax.Array, high: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The mean of N(0, 1) cut to [low, high], and the interval's mass."""
    low, high, sign = _lower_tail(low, high)
    mass = jnp.maximum(ndtr(high) - ndtr(low), 1e-300)
    slope = (jnp.exp(-(low**2) / 2) - jnp.exp(-(high**2) / 2)) / np.sqrt(2 * np.pi)
    # Of a floored mass the quotient is no mean; the interval bounds it.
    return sign * jnp.clip(slope / mass, low, high), mass
