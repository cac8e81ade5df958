r"""Any channel by importance sampling: posterior means of the indices, and E|g|^2 with an error bar.

==========  ======================================================================================
symbol      meaning
==========  ======================================================================================
x           (z - omega)/sqrt(V + noise), standard normal before y is seen
m, L        centre and Cholesky factor of the points x = m + L xi, moved to where the posterior is
==========  ======================================================================================

A sharp likelihood leaves few of the prior's points alive, so the points are moved to the posterior's mean and
covariance three times before they count. E|g|^2 is the mean product of two estimates of g with independent points: the
square of one would add its variance.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import BarycentricInterpolator

from attnlab.aim.channels.channel import Integral
from attnlab.aim.indices import Layout
from attnlab.aim.quasi_random import normal_points
from attnlab.common.seeds import stream

if TYPE_CHECKING:
    from attnlab.aim.channels.channel import Channel

FLOORS = (0.5, 0.2, 0.07)  # smallest width of the points at each move, in prior standard deviations
WIDENED = 1.5  # of the posterior covariance: tails must be covered
POINTS = 128
SEQUENCES = 1024
NODES = 9
LOWEST = 1e-4  # smallest V/total that is integrated; below, a power law whose error is stated as 100 %
BATCHES = 4  # at least
ACCURACY = 0.01  # relative standard error of E|g|^2 at which no further batch is drawn
PATIENCE = 45.0  # seconds after which none is drawn either
SILENCE = 2.0


def output_function(channel: Channel, summary: Any, omega: Any, V: Any, layout: Layout, seed: int = 0) -> jax.Array:
    """g = E[x]/sqrt(V + noise), (n, p)."""
    xi = jnp.asarray(normal_points(layout.p, POINTS, seed))
    return posterior_mean(channel, summary, omega, V, layout, xi) / jnp.sqrt(V + channel.noise)


def posterior_mean(channel: Channel, summary: Any, omega: Any, V: Any, layout: Layout, xi: Any) -> jax.Array:
    """E[x | y, omega], (n, p)."""
    n, p = omega.shape
    y = summary.reshape(n, 1, *layout.shape)
    spread = jnp.sqrt(V + channel.noise)
    mean, factor = jnp.zeros((n, p)), jnp.broadcast_to(jnp.eye(p), (n, p, p))
    for floor in (*FLOORS, None):
        x = mean[:, None] + jnp.einsum("nij,kj->nki", factor, xi)
        log_w = channel.log_density(y, layout.unwhiten(omega[:, None] + spread * x))
        if log_w.shape != x.shape[:2]:
            raise ValueError(
                f"log_density of channel {channel.name!r} must take (..., queries, keys) to (...), here "
                f"{x.shape[:2]}, got {log_w.shape}"
            )
        # Prior over proposal; the determinant of the factor is common to all points and leaves no trace in the weights.
        log_w = log_w - (x**2).sum(axis=-1) / 2 + (xi**2).sum(axis=-1) / 2
        weights = jax.nn.softmax(log_w, axis=1)
        mean = jnp.einsum("nk,nki->ni", weights, x)
        if floor is not None:
            gap = x - mean[:, None]
            # Wider than the sample's: points that are too narrow have weights without a second moment, too wide ones
            # only fewer.
            covariance = WIDENED * jnp.einsum("nk,nki,nkj->nij", weights, gap, gap)
            factor = jnp.linalg.cholesky(covariance + floor**2 * jnp.eye(p))
    return mean


@functools.partial(jax.jit, static_argnames=("channel", "layout"))
def _squares(channel: Channel, layout: Layout, summary: Any, omega: Any, V: Any, first: Any, second: Any) -> jax.Array:
    """|g|^2 of every sequence, without bias from the points."""
    one, two = (posterior_mean(channel, summary, omega, V, layout, xi) for xi in (first, second))
    squares: jax.Array = (one * two).sum(axis=1) / (V + channel.noise)
    return squares


def sampled_strength(channel: Channel, V: float, total: float, layout: Layout, seed: int) -> float:
    """One estimate of E|g|^2; seeds are independent, and equal seeds vary smoothly with V."""
    normals = normal_points(2 * layout.p, SEQUENCES, 3 * seed)
    omega = np.sqrt(max(total - V, 0.0)) * normals[:, : layout.p]
    z = omega + np.sqrt(V + channel.noise) * normals[:, layout.p :]
    y = channel.output(layout.unwhiten(z), stream(seed, "theory", "aim", "output"), layout.visible)
    sets = [normal_points(layout.p, POINTS, 3 * seed + i) for i in (1, 2)]
    with jax.enable_x64(True):
        found = float(_squares(channel, layout, channel.summary(y, layout), omega, V, *sets).mean())
    if not np.isfinite(found):
        raise ValueError(f"log_density of channel {channel.name!r} must be a number at its own outputs, got NaN")
    return found


@functools.lru_cache(maxsize=32)
def _batches(channel: Channel, total: float, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """log V at Chebyshev nodes, and E|g|^2 there in every batch, (batches, nodes)."""
    x = np.cos((np.arange(NODES) + 0.5) * np.pi / NODES)
    log_V = np.log(total) + np.log(LOWEST) * (1 - x) / 2
    rows: list[list[float]] = []
    began, reported = time.perf_counter(), False
    while True:
        rows.append([])
        for value in log_V:
            rows[-1].append(sampled_strength(channel, float(np.exp(value)), total, layout, len(rows)))
            reported |= _progress(began, len(rows), reported)
        found = np.array(rows)
        if len(rows) < BATCHES:
            continue
        error = found.std(axis=0, ddof=1) / np.sqrt(len(rows)) / np.abs(found.mean(axis=0))
        if error.max() < ACCURACY or time.perf_counter() - began > PATIENCE:
            return log_V, found


def _progress(began: float, batch: int, reported: bool) -> bool:
    seconds = time.perf_counter() - began
    if seconds < SILENCE or reported:
        return False
    print(f"integrating the channel: batch {batch} after {seconds:.0f} s, at most {PATIENCE:.0f} s", file=sys.stderr)
    return True


def interpolated_strength(channel: Channel, V: Any, total: float, layout: Layout) -> Integral:
    """E|g|^2 at any V, from log E|g|^2 as a polynomial in log V, batch by batch; the error is over batches."""
    log_V, found = _batches(channel, float(total), layout)
    V = np.asarray(V, dtype=float)
    low = log_V.min()
    # the nodes end 7 % below V = total, where E|g|^2 still changes by 5 %: the polynomial goes on to the end
    inside = np.clip(np.log(np.maximum(V, 1e-300)), low, np.log(total))
    # In logarithms of both, where a power law is a straight line.
    curves = np.array([BarycentricInterpolator(log_V, np.log(np.maximum(row, 1e-12)), rng=0)(inside) for row in found])
    value = np.exp(curves.mean(axis=0))
    error = value * curves.std(axis=0, ddof=1) / np.sqrt(len(found))
    below = np.log(np.maximum(V, 1e-300)) < low - 1e-9
    # V^(-1/2), the law of hardmax, stands for the unknown one.
    beyond = value * np.exp(np.where(below, low - np.log(np.maximum(V, 1e-300)), 0.0)) ** 0.5
    return Integral(np.where(below, beyond, value), np.where(below, beyond, error))
