r"""A spectral start: the leading eigenvector of message passing linearised at W = 0 (arXiv:2502.02545).

.. math:: (\mathcal{T} W)_a = \sum_{\mu t s b} F_{\mu t}\, G^{ab}_{ts}(y_\mu)\, F_{\mu s}\cdot W_b,
          \qquad G_{ts} = E[z_t z_s^\top | y] - \delta_{ts} I
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from attnlab.smi.link import Link
from attnlab.smi.posterior.moments import first_rule, posterior
from attnlab.smi.theory.gains import batch

SIZE = 0.05  # self-overlap of the start


@functools.partial(jax.jit, static_argnames=("link", "size"))
def _couplings(link: Link, size: int, y: jax.Array) -> jax.Array:
    """G (n, T r, T r) at omega = 0, V = I."""
    moments, zero, eye = posterior(link, size, "all"), jnp.zeros((link.tokens, link.rank)), jnp.eye(link.rank)

    def one(sequence: tuple[jax.Array, jax.Array]) -> jax.Array:
        output, label = sequence
        found = moments(output, zero, eye, label)
        return 0.5 * (found.second + found.second_again) - jnp.eye(link.dimension)

    found: jax.Array = jax.lax.map(one, (y, jnp.arange(len(y))), batch_size=batch(link, size))
    return found


def spectral_start(link: Link, X: np.ndarray, y: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """W (r, d) along the leading eigenvector, plus the random start."""
    n, T, d = X.shape
    r = link.rank
    G = np.asarray(_couplings(link, first_rule(link).size, jnp.asarray(y, dtype=float))).reshape(n, T, r, T, r)
    F = X.reshape(n * T, d) / np.sqrt(d)

    def product(w: np.ndarray) -> np.ndarray:
        z = (F @ w.reshape(r, d).T).reshape(n, T, r)
        return np.asarray((np.einsum("ntasb,nsb->nta", G, z).reshape(n * T, r).T @ F).ravel())

    operator = LinearOperator((r * d, r * d), matvec=product, dtype=float)
    _, vector = eigsh(operator, k=1, which="LA", v0=noise.ravel())
    # The vector may span one direction of W only; the others start from the noise.
    return np.asarray(np.sqrt(SIZE * d) * vector[:, 0].reshape(r, d) + noise)
