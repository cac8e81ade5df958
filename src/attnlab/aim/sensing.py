r"""The linear map from S to the whitened indices of all sequences, and its adjoint, as one matrix product each.

==========  ==============================================================================================
symbol      meaning
==========  ==============================================================================================
A           S -> z, z_ab = Tr(X_ab S), X_ab = (sym(x_a x_b^T) - delta_ab I) / sqrt(d (1 + delta_ab)), a <= b
A^T         g -> sum over sequences and pairs of g_ab X_ab
E           tokens in a frame (:mod:`attnlab.aim.frame`), (m, T, d); the probes among them meet S
==========  ==============================================================================================

Neither ever builds an n x d x d array: the cost is 2 n d^2 operations for each probe (T of them, T - 1 for softmax and
hardmax), the memory one copy of the tokens. Products run in the precision of the tokens; sums over chunks and
everything of size n p are float64. Here for JAX devices; :mod:`attnlab.aim.host` is the same through BLAS.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from attnlab.aim.channels import Channel
from attnlab.aim.frame import Frame

PRECISIONS: dict[str, Any] = {
    "highest": lax.Precision.HIGHEST,
    "default": lax.Precision.DEFAULT,
    "tf32": lax.DotAlgorithmPreset.TF32_TF32_F32,
    "tf32x3": lax.DotAlgorithmPreset.TF32_TF32_F32_X3,
    "bf16x3": lax.DotAlgorithmPreset.BF16_BF16_F32_X3,
}


def forward(E: jax.Array, S: jax.Array, frame: Frame, precision: str = "highest") -> jax.Array:
    """A(S) for a chunk of sequences: whitened indices (m, p), float64, as far as the frame knows them."""
    m, _, d = E.shape
    probes = E[:, : frame.probes]
    projected = jnp.matmul(probes.reshape(-1, d), S.astype(E.dtype), precision=PRECISIONS[precision])
    projected = projected.reshape(m, frame.probes, d)
    D = jnp.stack([(projected[:, a] * E[:, b]).sum(axis=-1) for a, b in frame.pairs], axis=-1)
    z: jax.Array = frame.indices(D.astype(jnp.float64), jnp.trace(S).astype(jnp.float64), d)
    return z


def adjoint(E: jax.Array, g: jax.Array, frame: Frame, precision: str = "highest") -> jax.Array:
    """A^T(g) for a chunk of sequences: (d, d), float64; g must be orthogonal to what the frame does not know."""
    _, _, d = E.shape
    weights = frame.weights(g, d).astype(E.dtype)
    terms: list[list[jax.Array]] = [[] for _ in range(frame.probes)]
    for j, (a, b) in enumerate(frame.pairs):
        terms[a].append(weights[:, j, None] * E[:, b])
    weighted = jnp.stack([sum(row[1:], row[0]) for row in terms], axis=1)
    flat = E[:, : frame.probes].reshape(-1, d), weighted.reshape(-1, d)
    total = lax.dot_general(*flat, (((0,), (0,)), ((), ())), precision=PRECISIONS[precision]).astype(jnp.float64)
    symmetric: jax.Array = (total + total.T) / 2 - frame.trace_weight(g, d) * jnp.eye(d)
    return symmetric


@functools.partial(jax.jit, static_argnames=("channel", "frame", "precision"), donate_argnames=("omega", "g", "total"))
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
    frame: Frame,
    precision: str,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """The data part of an AMP iteration on one chunk: new omega and g, A^T g added to ``total``, and sum |g|^2.

    ``weight`` is 1 for a sequence and 0 for the padding that makes all chunks of one shape.
    """
    fresh = forward(E, S, frame, precision) - onsager * g
    omega = (1 - damping) * fresh + damping * omega
    g = channel.g(summary, omega, V) * weight[:, None]
    return omega, g, total + adjoint(E, g, frame, precision), (g**2).sum()


@functools.partial(jax.jit, static_argnames=("frame", "precision"))
def measure(X: jax.Array, S: jax.Array, *, frame: Frame, precision: str = "highest") -> jax.Array:
    """``forward`` of tokens as they are, compiled."""
    return forward(frame.view(X), S, frame, precision)


@functools.partial(jax.jit, static_argnames=("frame", "precision"))
def measure_adjoint(X: jax.Array, g: jax.Array, *, frame: Frame, precision: str = "highest") -> jax.Array:
    """``adjoint`` of tokens as they are, compiled."""
    return adjoint(frame.view(X), g, frame, precision)
