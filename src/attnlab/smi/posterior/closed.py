r"""The closed route: derivatives of log Z.

.. math:: E[s] = \nabla_{\omega}\log Z\,L,\qquad \mathrm{Cov}(s) = I + L\,(\nabla^2_\omega \log Z)\,L
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.smi.link import Link
from attnlab.smi.posterior.result import Blocks, Moments, Posterior


def closed_moments(link: Link, size: int, blocks: Blocks) -> Posterior:
    """By automatic differentiation of ``link.log_partition``; exact."""
    log_partition = link.log_partition
    assert log_partition is not None

    def moments(y: jax.Array, omega: jax.Array, L: jax.Array, label: jax.Array) -> Moments:
        V = L @ L

        # In whitened coordinates: omega moves by t L, so that derivatives are those of s and stay of order one.
        def log_z(t: jax.Array) -> jax.Array:
            return jnp.asarray(log_partition(y, omega + t.reshape(omega.shape) @ L, V))

        zero = jnp.zeros(omega.size)
        value, slope = jax.value_and_grad(log_z)(zero)
        second = jnp.zeros((0, 0))
        if len(blocks):
            full = jnp.eye(omega.size) + jax.hessian(log_z)(zero) + jnp.outer(slope, slope)
            second = functools.reduce(jnp.add, [full[np.ix_(b, b)] for b in blocks])
        mean = slope.reshape(omega.shape)
        # Exact: it meets every least sample size.
        return Moments(mean, second, mean, second, value, jnp.asarray(jnp.inf))

    return moments
