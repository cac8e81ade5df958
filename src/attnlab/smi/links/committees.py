"""One token, several directions: committees and products."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from attnlab.common.gaussian import gauss_legendre
from attnlab.common.validation import integer, one_of, positive
from attnlab.smi.link import Link
from attnlab.smi.links.named import shipped
from attnlab.smi.links.single import TINY, log_normal, values


def scaled_erf(x: Any) -> Any:
    """erf(x / sqrt 2), the usual activation of soft committees."""
    return jax.scipy.special.erf(x / np.sqrt(2))


# z_1 z_2 keeps its sign only if both change theirs.
OF_PRODUCTS = tuple(sign * np.eye(2)[list(order)] for sign in (1, -1) for order in ((0, 1), (1, 0)))
ACTIVATIONS = {"erf": scaled_erf, "tanh": jnp.tanh, "relu": jax.nn.relu}


@shipped
def committee(rank: int = 2, activation: str = "erf", noise: float = 0.1) -> Link:
    r"""y = r^(-1/2) sum_a act(z_a) + sqrt(noise) e; ``noise`` is the variance (arXiv:1806.05451).

    ``activation`` is ``erf``, meaning erf(z / sqrt 2), ``tanh`` or ``relu``.
    """
    integer("rank", rank, low=1)
    delta, act = positive("noise", noise), ACTIVATIONS[one_of("activation", activation, ACTIVATIONS)]

    def mean(z: Any) -> Any:
        return act(z).sum() / np.sqrt(rank)

    # erf and tanh are odd, but y keeps its sign: only permutations leave the law unchanged.
    return Link(
        1,
        rank,
        noise=1,
        sample=lambda z, e: mean(z) + np.sqrt(delta) * e[0],
        log_density=lambda y, z: log_normal(y - mean(z), delta),
        mean=mean,
        symmetry="permutation",
    )


def quadrant(h: Any, k: Any, r: Any, nodes: int = 24) -> Any:
    r"""Pr[X < h, Y < k] for unit variances and correlation r.

    .. math:: \Phi(h)\Phi(k) + \frac1{2\pi}\int_0^{\arcsin r} e^{-(h^2 + k^2 - 2hk\sin t)/2\cos^2 t}\,dt

    Source: Z. Drezner and G. O. Wesolowsky, J. Stat. Comput. Simul. 35 (1990) 101.  Status: exact.
    """
    x, w = (jnp.asarray(a) for a in gauss_legendre(nodes))
    # At |r| = 1 the integrand's exponent is 0/0.
    angle = jnp.arcsin(jnp.clip(r, -1 + 1e-12, 1 - 1e-12))
    sine = jnp.sin(angle * x)
    inner = jnp.exp(-(h**2 + k**2 - 2 * h * k * sine) / (2 * (1 - sine**2)))
    return ndtr(h) * ndtr(k) + angle / (2 * jnp.pi) * (w @ inner)


def _quadrants(first: Any, second: Any, omega: Any, V: Any) -> Any:
    """Probability that the indices have the given signs."""
    scale = jnp.sqrt(jnp.diagonal(V))
    h, k = omega[0] / scale
    return quadrant(first * h, second * k, first * second * V[0, 1] / (scale[0] * scale[1]))


@shipped
def sign_product() -> Link:
    """y = sign(z_1 z_2)."""

    def log_partition(y: Any, omega: Any, V: Any) -> Any:
        second = jnp.where(y > 0, 1.0, -1.0)
        return jnp.log(jnp.maximum(sum(_quadrants(a, a * second, omega, V) for a in (1.0, -1.0)), TINY))

    return Link(
        1,
        2,
        sample=lambda z, e: jnp.where(z[0, 0] * z[0, 1] > 0, 1.0, -1.0),
        log_partition=log_partition,
        symmetry=OF_PRODUCTS,
        read_outputs=values(-1, 1),
    )


@shipped
def sign_committee() -> Link:
    """y = +1, -1 or 0 as z_1 and z_2 are both positive, both negative, or neither (arXiv:1806.05451)."""

    def log_partition(y: Any, omega: Any, V: Any) -> Any:
        # One quadrant if the signs are equal, two if not.
        first = jnp.where(y < 0, -1.0, 1.0)
        one, other = _quadrants(first, jnp.where(y == 0, -1.0, first), omega, V), _quadrants(-1.0, 1.0, omega, V)
        return jnp.log(jnp.maximum(one + jnp.where(y == 0, other, 0.0), TINY))

    return Link(
        1,
        2,
        sample=lambda z, e: 0.5 * (jnp.sign(z[0, 0]) + jnp.sign(z[0, 1])),
        log_partition=log_partition,
        symmetry="permutation",
        read_outputs=values(-1, 0, 1),
    )


@shipped
def product() -> Link:
    """y = z_1 z_2, by its level set over t = log abs(z_1); the Jacobians of t and of z_2 = y / z_1 cancel."""

    def solve(y: Any, s: Any) -> tuple[Any, Any]:
        first = jnp.exp(s[0])
        z = jnp.stack([first, y / first])[None]
        return jnp.stack([z, -z]), jnp.zeros(2)

    return Link(
        1,
        2,
        sample=lambda z, e: z[0, 0] * z[0, 1],
        solve=solve,
        free=((-20.0, 3.0),),  # beyond, |z_1| has a probability of 2e-9
        symmetry=OF_PRODUCTS,
    )
