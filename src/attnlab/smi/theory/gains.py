r"""What one sequence adds to the knowledge of the directions: the matrix S of state evolution.

.. math:: S = \mathbb{E} \sum_t m_t m_t^\top = \mathbb{E} \sum_t m_t s_t^\top \qquad\text{(Nishimori identity)}

with :math:`z \sim N(0, I)`, :math:`\omega = zQ + \zeta (QV)^{1/2}`, s the drawn whitened indices and
:math:`m = E[s | y, \omega]`. The right side is linear in the computed m. Both are computed: a wrong posterior breaks
the identity.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.precision import float64
from attnlab.smi.draws import replicate_normals
from attnlab.smi.link import Link
from attnlab.smi.posterior.moments import Rule, first_rule, posterior
from attnlab.smi.posterior.target import coordinates

# Nodes held in memory at once; larger batches leave the processor's cache.
BATCH_NODES = 2**16


class Draw(NamedTuple):
    """One sequence: its output, the estimate of its indices and the drawn indices, plain and whitened."""

    y: jax.Array
    omega: jax.Array
    z: jax.Array
    s: jax.Array


class Gain(NamedTuple):
    """S by the product of two posterior means and by the Nishimori identity, for each replicate, (R, r, r)."""

    product: np.ndarray
    cross: np.ndarray
    resolved: bool
    ess: float
    rule: Rule

    @property
    def gap(self) -> tuple[float, float]:
        """Trace of the difference of the two, and its standard error."""
        difference = np.trace(self.product - self.cross, axis1=1, axis2=2)
        return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def roots(V: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Q, the symmetric root L of V, and (Q V)^(1/2); all three commute."""
    v, basis = jnp.linalg.eigh(V)
    v = jnp.clip(v, 1e-300, 1.0)
    turned = [(basis * scale) @ basis.T for scale in (1 - v, jnp.sqrt(v), jnp.sqrt((1 - v) * v))]
    return turned[0], turned[1], turned[2]


def normals_of(link: Link, draws: int, replicates: int, *tags: str | int) -> np.ndarray:
    """The numbers of all sequences: indices, estimate, noise, (R, draws, 2 T r + noise)."""
    return replicate_normals(2 * link.dimension + link.noise, draws, replicates, *tags)


def draw(link: Link, x: jax.Array, V: jax.Array, stretch: float = 1.0) -> Draw:
    """A sequence from its normal numbers; ``stretch`` inflates the Gaussian indices."""
    shape, D = (link.tokens, link.rank), link.dimension
    z, zeta, e = stretch * x[:D].reshape(shape), x[D : 2 * D].reshape(shape), x[2 * D :]
    if link.indices is not None:
        z = link.indices(z, e)
    Q, L, mixed = roots(V)
    omega = z @ Q + zeta @ mixed
    # z - omega = z V - zeta (Q V)^(1/2), divided by L without a subtraction of nearly equal numbers.
    v, basis = jnp.linalg.eigh(V)
    noise_root = (basis * jnp.sqrt(jnp.clip(1 - v, 0.0, 1.0))) @ basis.T
    return Draw(jnp.asarray(link.sample(z, e)), omega, z, z @ L - zeta @ noise_root)


def batch(link: Link, size: int) -> int:
    """Sequences whose posteriors are computed at once."""
    dimension = coordinates(link) if link.route == "grid" else 1
    return max(1, BATCH_NODES // (size**dimension if link.route != "closed" else 128))


@functools.partial(jax.jit, static_argnames=("link", "size"))
def _sums(link: Link, size: int, normals: jax.Array, V: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    moments = posterior(link, size, order=1)

    def one(pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        x, covariance = pair
        drawn = draw(link, x, covariance)
        found = moments(drawn.y, drawn.omega, roots(covariance)[1])
        product = found.mean.T @ found.mean_again
        return 0.5 * (product + product.T), found.mean.T @ drawn.s, found.ess

    R, n, width = normals.shape
    covariances = jnp.repeat(V, n, axis=0)
    product, cross, ess = jax.lax.map(one, (normals.reshape(-1, width), covariances), batch_size=batch(link, size))
    r = link.rank
    return product.reshape(R, n, r, r).mean(1), cross.reshape(R, n, r, r).mean(1), ess


@float64
def gain(link: Link, V: np.ndarray, normals: np.ndarray, rule: Rule | None = None) -> Gain:
    """S at V (R, r, r), with a rule that is refined until it resolves the posterior."""
    rule = rule or first_rule(link)
    while True:
        product, cross, ess = _sums(link, rule.size, jnp.asarray(normals), jnp.asarray(V))
        resolved = rule.resolves(ess)
        if resolved or rule.at_end:
            break
        rule = rule.finer()
    cross = np.asarray(cross)
    symmetric = 0.5 * (cross + cross.swapaxes(1, 2))
    return Gain(np.asarray(product), symmetric, resolved, float(jnp.quantile(ess, 0.01)), rule)
