r"""The linear map from S to the whitened indices of all sequences, and its adjoint, as one matrix product each.

==========  ==============================================================================================
symbol      meaning
==========  ==============================================================================================
A           S -> z, z_ab = Tr(X_ab^T S), X_ab = (x_a x_b^T - delta_ab I) / sqrt(d); tied: its symmetric part, whitened
A^T         g -> sum over sequences and pairs of g_ab X_ab
E           vectors of the sequences (:mod:`attnlab.aim.messages.probes`), (m, vectors, d); the probes meet S
==========  ==============================================================================================

Neither ever builds an n x d x d array: the cost is 2 n d^2 operations for each probe (T of them, T - 1 for softmax and
hardmax), the memory one copy of the tokens. Products run in the precision of the tokens; sums over chunks and
everything of size n p are float64. Here for JAX devices; :mod:`attnlab.aim.messages.blas` is the same through BLAS.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from attnlab.aim.channels.channel import Channel
from attnlab.aim.messages.probes import Probes

PRECISIONS: dict[str, Any] = {
    "highest": lax.Precision.HIGHEST,
    "tf32": lax.DotAlgorithmPreset.TF32_TF32_F32,
    "bf16x3": lax.DotAlgorithmPreset.BF16_BF16_F32_X3,
}


def forward(E: jax.Array, S: jax.Array, probes: Probes, precision: str = "highest") -> jax.Array:
    """A(S) for a chunk of sequences: whitened indices (m, p), float64, as far as the probes know them."""
    m, _, d = E.shape
    met = E[:, : probes.count].reshape(-1, d)
    projected = jnp.matmul(met, S.T.astype(E.dtype), precision=PRECISIONS[precision]).reshape(m, probes.count, d)
    D = jnp.stack([(projected[:, a] * E[:, b]).sum(axis=-1) for a, b in probes.pairs], axis=-1)
    z: jax.Array = probes.indices(D.astype(jnp.float64), jnp.trace(S).astype(jnp.float64), d)
    return z


def adjoint(E: jax.Array, g: jax.Array, probes: Probes, precision: str = "highest") -> jax.Array:
    """A^T(g) for a chunk of sequences: (d, d), float64; g must be orthogonal to what the probes do not know."""
    _, _, d = E.shape
    weights = probes.weights(g, d).astype(E.dtype)
    terms: list[list[jax.Array]] = [[] for _ in range(probes.count)]
    for j, (a, b) in enumerate(probes.pairs):
        terms[a].append(weights[:, j, None] * E[:, b])
    weighted = jnp.stack([sum(row[1:], row[0]) for row in terms], axis=1)
    flat = E[:, : probes.count].reshape(-1, d), weighted.reshape(-1, d)
    # Contracted over the rows of both: no transposed copy of the tokens.
    total = lax.dot_general(*flat, (((0,), (0,)), ((), ())), precision=PRECISIONS[precision]).astype(jnp.float64)
    result: jax.Array = probes.oriented(total) - probes.trace_weight(g, d) * jnp.eye(d)
    return result


# omega, g and total are replaced: the new ones take their memory.
@functools.partial(jax.jit, static_argnames=("channel", "probes", "precision"), donate_argnames=("omega", "g", "total"))
def sweep(
    E: jax.Array,
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
    probes: Probes,
    precision: str,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """The data part of an AMP iteration on one chunk: new omega and g, A^T g added to ``total``, and sum |g|^2.

    ``weight`` is 1 for a sequence and 0 for the padding that makes all chunks of one shape.
    """
    fresh = forward(E, S, probes, precision) - onsager * g
    omega = (1 - damping) * fresh + damping * omega
    # The g of padding need not vanish, and would count in A^T g and in the sum of |g|^2.
    g = channel.g(summary, omega, V, probes.layout) * weight[:, None]
    return omega, g, total + adjoint(E, g, probes, precision), (g**2).sum()


@functools.partial(jax.jit, static_argnames=("probes", "precision"))
def measure(X: jax.Array, S: jax.Array, *, probes: Probes, precision: str = "highest") -> jax.Array:
    """``forward`` of tokens as they are, compiled."""
    return forward(probes.view(X), S, probes, precision)
