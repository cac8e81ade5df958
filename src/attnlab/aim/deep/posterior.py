r"""What an output of L attention layers says about the indices of each: an integral over all layers but the last.

==========  ===============================================================================================
symbol      meaning
==========  ===============================================================================================
z_l         whitened indices of layer l, N(omega_l, V_l I); T(T+1)/2 components, of which the one along the constant
            matrix does not matter: a softmax row does not see it, and the tokens' map keeps constant vectors
x           (z_l - omega_l)/sqrt(V_l) across that component, layers 1 .. L-1: D = (L-1)(T(T+1)/2 - 1) numbers
B(x)        the map of the tokens through layers 1 .. L-1, B_l = (c I + softmax(beta B h_l B^T)) B
H           what y says: B h_L B^T up to a constant
r(x)        (B^{-1} H B^{-T} - omega_L)/sqrt(V_L), whitened and across the constant
==========  ===============================================================================================

.. math:: p(x\,|\,y) \propto e^{-|x|^2/2 - |r(x)|^2/2}\,|\det B(x)|^{-(T+1)}, \qquad
          g_l = E[x_l]/\sqrt{V_l}, \quad g_L = E[r]/\sqrt{V_L}

since h -> B h B^T has the determinant (det B)^(T+1) on symmetric matrices. Importance sampling: the points come from a
mixture of the prior and of Gaussians at the modes that Gauss-Newton finds from several starts, so that no weight is
large where a mode was missed.  Source: derived here from the deep model of arXiv:2506.01582.  Status: Monte Carlo.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.aim.indices import Layout
from attnlab.aim.quasi_random import normal_points

MODES = 3  # starts of Gauss-Newton: the prior mean, then quasi-random ones
STEPS = 10
LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03)  # of a step, the best is taken
WIDENED = 1.3  # of the covariance at a mode: tails must be covered
AT_ONCE = {"cpu": 2**15}  # points of all sequences that are worked on together: a cache holds them
ACCELERATED = 2**19  # on an accelerator, which few points do not fill


def dimensions(layers: int, tokens: int) -> int:
    """D, the dimension of the integral."""
    return (layers - 1) * (tokens * (tokens + 1) // 2 - 1)


@functools.cache
def across(tokens: int) -> np.ndarray:
    """Orthonormal whitened components (p, p - 1) across the constant matrix."""
    layout = Layout(tokens, tokens)
    return np.asarray(np.linalg.svd(layout.whiten(np.ones((1, tokens, tokens))))[2][1:].T)


def through(h: Any, skip: float, beta: float) -> Any:
    """B of the layers h (layers, T, T)."""
    B = one = jnp.eye(h.shape[-1])
    for layer in h:
        B = (skip * one + jax.nn.softmax(beta * B @ layer @ B.T, axis=-1)) @ B
    return B


def posterior_means(H: Any, omega: Any, V: Any, xi: Any, skip: float, beta: float) -> jax.Array:
    """g of one sequence, (layers, p), from H (T, T), means omega (layers, p) and points xi (MODES + 1, m, D)."""
    tokens, (layers, _) = H.shape[-1], omega.shape
    layout, basis = Layout(tokens, tokens), across(tokens)

    def residual(x: Any) -> tuple[Any, Any]:
        shift = jnp.sqrt(V[:-1])[:, None] * (x.reshape(layers - 1, -1) @ basis.T)
        B = through(layout.unwhiten(omega[:-1] + shift), skip, beta)
        inverse, determinant = _inverse(B)
        gap = layout.whiten(inverse @ H @ inverse.T) - omega[-1]
        return gap @ basis / jnp.sqrt(V[-1]), -(tokens + 1) * jnp.log(jnp.abs(determinant))

    def log_posterior(x: Any) -> Any:
        r, log_volume = residual(x)
        found = log_volume - (r @ r) / 2 - (x @ x) / 2
        # Of weight zero, and a number: NaN would win the search for the best step.
        return jnp.where(jnp.isfinite(found), found, -1e30)

    starts = jnp.asarray(normal_points(xi.shape[-1], MODES)).at[0].set(0.0)
    means, roots, inverses = jax.vmap(lambda x: _mode(x, residual, log_posterior))(starts)
    means, roots, inverses = (
        jnp.concatenate([found, prior[None]])
        for found, prior in (
            (means, 0 * starts[0]),
            (roots, jnp.eye(len(starts[0]))),
            (inverses, jnp.eye(len(starts[0]))),
        )
    )
    x = (means[:, None] + jnp.einsum("jba,jkb->jka", inverses, xi)).reshape(-1, xi.shape[-1])
    weights = jax.nn.softmax(jax.vmap(log_posterior)(x) - _log_mixture(x, means, roots))
    r = jax.vmap(lambda point: residual(point)[0])(x)
    # A singular map has the weight 0 and an infinite r, whose product is NaN.
    r = jnp.where(weights[:, None] > 0, r, 0.0)
    found = jnp.concatenate([(weights @ x).reshape(layers - 1, -1), (weights @ r)[None]])
    return found @ basis.T / jnp.sqrt(V)[:, None]


def _mode(x: Any, residual: Any, log_posterior: Any) -> tuple[Any, Any, Any]:
    """A maximum of the posterior, and the Cholesky factor of the precision there, reduced, with its inverse."""

    def precision(x: Any) -> Any:
        J = jax.jacfwd(lambda x: residual(x)[0])(x)
        found = jnp.eye(len(x)) + J.T @ J
        return jnp.where(jnp.isfinite(found).all(), found, jnp.eye(len(x)))

    def step(_: Any, x: Any) -> Any:
        slope = jnp.nan_to_num(jax.grad(log_posterior)(x))
        inverse = _cholesky(precision(x))[1]
        tried = x + jnp.asarray((0.0, *LENGTHS))[:, None] * (inverse.T @ (inverse @ slope))
        return tried[jnp.argmax(jax.vmap(log_posterior)(tried))]

    x = jax.lax.fori_loop(0, STEPS, step, x)
    return x, *_cholesky(precision(x) / WIDENED)


def _log_mixture(x: Any, means: Any, roots: Any) -> Any:
    """Log density of the points' law at x, up to a constant."""

    def one(mean: Any, root: Any) -> Any:
        return -(((x - mean) @ root) ** 2).sum(axis=1) / 2 + jnp.log(jnp.diagonal(root)).sum()

    return jax.nn.logsumexp(jax.vmap(one)(means, roots), axis=0)


# LAPACK is not called: thousands of small matrices in a compiled loop are slower with it and have blocked the threads.


def _inverse(A: Any) -> tuple[Any, Any]:
    """A^-1 and det A by Faddeev and LeVerrier, for the few rows of a token map."""
    size, one = len(A), jnp.eye(len(A))
    M, c = one, -jnp.trace(A)
    for k in range(2, size + 1):
        M = A @ M + c * one
        c = -jnp.trace(A @ M) / k
    return -M / c, (-1) ** size * c


def _cholesky(A: Any) -> tuple[Any, Any]:
    """Lower factor of A, and its inverse."""
    columns, inverse = [], jnp.zeros_like(A)
    for j in range(len(A)):
        columns.append(jnp.where(np.arange(len(A)) >= j, A[:, j] / jnp.sqrt(A[j, j]), 0.0))
        A = A - jnp.outer(columns[-1], columns[-1])
    root = jnp.stack(columns, axis=1)
    for j in range(len(A)):
        inverse = inverse.at[j].set((jnp.eye(len(A))[j] - root[j] @ inverse) / root[j, j])
    return root, inverse


@functools.partial(jax.jit, static_argnames=("skip", "beta"))
def output_functions(H: Any, omega: Any, V: Any, xi: Any, *, skip: float, beta: float) -> jax.Array:
    """g of every sequence, (layers, n, p), for H (n, T, T) and omega (layers, n, p)."""

    def one(data: Any) -> Any:
        return posterior_means(data[0], data[1], V, xi, skip, beta)

    size = max(AT_ONCE.get(jax.default_backend(), ACCELERATED) // (xi.shape[0] * xi.shape[1]), 1)
    g: jax.Array = jax.lax.map(one, (H, omega.swapaxes(0, 1)), batch_size=size)
    return g.swapaxes(0, 1)


def points(layers: int, tokens: int, count: int, seed: int = 0) -> np.ndarray:
    """xi for about ``count`` points in all, (MODES + 1, m, D): a block of the sequence for each part of the mixture."""
    dimension = dimensions(layers, tokens)
    found = normal_points(dimension, (MODES + 1) * (count // (MODES + 1)), seed)
    return found.reshape(MODES + 1, -1, dimension)
