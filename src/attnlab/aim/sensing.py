r"""The linear map from S to the whitened indices of all sequences, and its adjoint, as two matrix products each way.

==========  ==============================================================================================
symbol      meaning
==========  ==============================================================================================
A           S -> z, z_ab = Tr(X_ab S), X_ab = (sym(x_a x_b^T) - delta_ab I) / sqrt(d (1 + delta_ab)), a <= b
A^T         g -> sum over sequences and pairs of g_ab X_ab
G           g as symmetric T x T weights: G_aa = g_aa / sqrt 2, G_ab = g_ab / 2
==========  ==============================================================================================

Neither ever builds an n x d x d array: the cost is 2 n T d^2 operations each, the memory one copy of the tokens.
Products run in the precision of the tokens; sums over chunks and everything of size n p are float64.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from attnlab.aim.channels import Channel
from attnlab.aim.indices import pair_of, pair_scale, pairs

PRECISIONS: dict[str, Any] = {
    "highest": lax.Precision.HIGHEST,
    "default": lax.Precision.DEFAULT,
    "tf32": lax.DotAlgorithmPreset.TF32_TF32_F32,
    "tf32x3": lax.DotAlgorithmPreset.TF32_TF32_F32_X3,
    "bf16x3": lax.DotAlgorithmPreset.BF16_BF16_F32_X3,
}


def forward(X: jax.Array, S: jax.Array, precision: str = "highest") -> jax.Array:
    """A(S) for a chunk of sequences (m, T, d): whitened indices (m, p), float64."""
    m, tokens, d = X.shape
    projected = jnp.matmul(X.reshape(m * tokens, d), S.astype(X.dtype), precision=PRECISIONS[precision])
    projected = projected.reshape(X.shape)
    a, b = pairs(tokens)
    h = jnp.stack([(projected[:, i] * X[:, j]).sum(axis=-1) for i, j in zip(a, b, strict=True)], axis=-1)
    h = h.astype(jnp.float64) - jnp.trace(S).astype(jnp.float64) * (a == b)
    z: jax.Array = h / (np.sqrt(d) * pair_scale(tokens))
    return z


def adjoint(X: jax.Array, g: jax.Array, precision: str = "highest") -> jax.Array:
    """A^T(g) for a chunk of sequences: (d, d), float64."""
    m, tokens, d = X.shape
    a, b = pairs(tokens)
    G = (g * np.where(a == b, 1 / np.sqrt(2.0), 0.5))[:, pair_of(tokens)]
    weighted = sum(G[:, :, j, None].astype(X.dtype) * X[:, j, None, :] for j in range(tokens))
    flat = X.reshape(m * tokens, d), jnp.asarray(weighted).reshape(m * tokens, d)
    total = lax.dot_general(*flat, (((0,), (0,)), ((), ())), precision=PRECISIONS[precision])
    total = total.astype(jnp.float64) - jnp.trace(G.sum(axis=0)) * jnp.eye(d)
    # Exact for symmetric weights; rounding is symmetrised away.
    symmetric: jax.Array = (total + total.T) / (2 * np.sqrt(d))
    return symmetric


@functools.partial(jax.jit, static_argnames=("channel", "precision"), donate_argnames=("omega", "g", "total"))
def sweep(
    X: jax.Array,
    weight: jax.Array,
    summary: jax.Array,
    omega: jax.Array,
    g: jax.Array,
    total: jax.Array,
    S: jax.Array,
    onsager: jax.Array,
    V: jax.Array,
    damping: jax.Array,
    *,
    channel: Channel,
    precision: str,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """The data part of an AMP iteration on one chunk: new omega and g, A^T g added to ``total``, and sum |g|^2.

    ``weight`` is 1 for a sequence and 0 for the padding that makes all chunks of one shape.
    """
    fresh = forward(X, S, precision) - onsager * g
    omega = (1 - damping) * fresh + damping * omega
    g = channel.g(summary, omega, V) * weight[:, None]
    return omega, g, total + adjoint(X, g, precision), (g**2).sum()


@functools.partial(jax.jit, static_argnames=("precision",))
def measure(X: jax.Array, S: jax.Array, *, precision: str = "highest") -> jax.Array:
    """``forward``, compiled."""
    return forward(X, S, precision)


@functools.partial(jax.jit, static_argnames=("precision",))
def measure_adjoint(X: jax.Array, g: jax.Array, *, precision: str = "highest") -> jax.Array:
    """``adjoint``, compiled."""
    return adjoint(X, g, precision)
