"""One token, one direction: linear, phase retrieval, sign, door; and their closed partition functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, ndtr

from attnlab.common.validation import nonnegative, positive
from attnlab.smi.link import Link
from attnlab.smi.links.named import shipped

TINY = 1e-300  # below it a probability has no logarithm


def log_normal(x: Any, variance: Any) -> Any:
    """Log density of N(0, variance)."""
    return -0.5 * (x**2 / variance + jnp.log(2 * jnp.pi * variance))


def values(*allowed: float) -> Callable[[np.ndarray], np.ndarray]:
    """A check that outputs take these values only."""

    def check(y: np.ndarray) -> np.ndarray:
        if not (known := np.isin(y, allowed)).all():
            raise ValueError(f"y must be one of {', '.join(f'{x:g}' for x in allowed)}, got {y[~known][0]:g}")
        return y

    return check


def not_negative(y: np.ndarray) -> np.ndarray:
    """A check that outputs are absolute values."""
    if (y < 0).any():
        raise ValueError(f"y must be an absolute value, not negative, got {y.min():g}; noise > 0 allows negative ones")
    return y


@shipped
def linear(noise: float = 0.1, tokens: int = 1, rank: int = 1) -> Link:
    r"""y = z + sqrt(noise) e, a matrix (T, r); ``noise`` is the variance Delta. Z = N(y; omega, V + Delta I)."""
    delta = positive("noise", noise)

    def log_partition(y: Any, omega: Any, V: Any) -> Any:
        C = V + delta * jnp.eye(rank)
        gap = y - omega
        quadratic = jnp.einsum("ta,ab,tb->", gap, jnp.linalg.inv(C), gap)
        return -0.5 * (quadratic + tokens * jnp.linalg.slogdet(2 * jnp.pi * C)[1])

    return Link(
        tokens,
        rank,
        noise=tokens * rank,
        sample=lambda z, e: z + np.sqrt(delta) * e.reshape(tokens, rank),
        log_partition=log_partition,
        log_density=lambda y, z: log_normal(y - z, delta).sum(),
        mean=lambda z: z,
    )


@shipped
def phase_retrieval(noise: float = 0.0) -> Link:
    r"""y = \|z\| + sqrt(noise) e; ``noise`` is the variance Delta (arXiv:2006.05228).

    Without noise E[z\|y] = y tanh(y omega / V); with it Z is a sum over the two signs of z.
    """
    delta = nonnegative("noise", noise)

    def noiseless(y: Any, omega: Any, V: Any) -> Any:
        v, w = V[0, 0], omega[0, 0]
        return jnp.logaddexp(log_normal(y - w, v), log_normal(y + w, v))

    def noisy(y: Any, omega: Any, V: Any) -> Any:
        v, w = V[0, 0], jnp.array([1.0, -1.0]) * omega[0, 0]
        # log Phi(mu / sd) keeps the part z > 0 of each of the two Gaussians.
        side = log_ndtr((y * v + w * delta) / jnp.sqrt(v * delta * (v + delta)))
        return jnp.logaddexp(*(log_normal(y - w, v + delta) + side))

    return Link(
        1,
        1,
        noise=1 if delta else 0,
        sample=lambda z, e: jnp.abs(z[0, 0]) + (np.sqrt(delta) * e[0] if delta else 0.0),
        log_partition=noisy if delta else noiseless,
        log_density=(lambda y, z: log_normal(y - jnp.abs(z[0, 0]), delta)) if delta else None,
        mean=lambda z: jnp.abs(z[0, 0]),
        symmetry="sign",
        read_outputs=None if delta else not_negative,
    )


@shipped
def sign(noise: float = 0.0) -> Link:
    r"""y = sign(z + sqrt(noise) e); Z = Phi(y omega / sqrt(V + noise))."""
    delta = nonnegative("noise", noise)
    return Link(
        1,
        1,
        noise=1 if delta else 0,
        sample=lambda z, e: jnp.where(z[0, 0] + (np.sqrt(delta) * e[0] if delta else 0.0) > 0, 1.0, -1.0),
        log_partition=lambda y, omega, V: log_ndtr(y * omega[0, 0] / jnp.sqrt(V[0, 0] + delta)),
        mean=lambda z: 2 * ndtr(z[0, 0] / np.sqrt(delta)) - 1 if delta else jnp.sign(z[0, 0]),  # E over the noise
        read_outputs=values(-1, 1),
    )


@shipped
def door(kappa: float = 0.67449) -> Link:
    r"""y = sign(\|z\| - kappa). Z(+) = Phi((omega - kappa)/sqrt V) + Phi((-omega - kappa)/sqrt V)."""
    kappa = positive("kappa", kappa)

    def log_partition(y: Any, omega: Any, V: Any) -> Any:
        w, root = omega[0, 0], jnp.sqrt(V[0, 0])
        left, right = ndtr((-kappa - w) / root), ndtr((w - kappa) / root)
        # Where y is very unlikely the sum or the difference of both Phi rounds to 0.
        return jnp.log(jnp.maximum(jnp.where(y > 0, left + right, ndtr((kappa - w) / root) - left), TINY))

    return Link(
        1,
        1,
        sample=lambda z, e: jnp.where(jnp.abs(z[0, 0]) > kappa, 1.0, -1.0),
        log_partition=log_partition,
        symmetry="sign",
        read_outputs=values(-1, 1),
    )
