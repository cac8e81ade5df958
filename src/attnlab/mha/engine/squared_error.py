r"""Squared error of a layer relative to the labels' second moment, and its slope in Theta and W, one after the other.

On two tokens a pattern is one logistic function: with the query q and the difference :math:`\delta` of the other token,

.. math:: \hat y = q \sum_i W_i + \sum_i p_i\, \delta W_i, \qquad
          p_i = \sigma(\langle \Theta_i, q \otimes \delta \rangle)

so that all heavy work is products over rows, several times faster on a CPU than the compiled error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import expit

from attnlab.mha.engine.damped import Budget
from attnlab.mha.engine.place import padded

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]
# Rows of a block: its arrays of m d numbers a row stay in the cache.
_ROWS = 512


def layer_of(flat: Any, m: int, d: int) -> tuple[Any, Any]:
    """Theta and W of a vector that holds both."""
    size = m * d * d
    return flat[:size].reshape(m, d, d), flat[size:].reshape(m, d, -1)


def squared_error(
    flat: Float[Array, " p"], X: Float[Array, "n k d"], y: Float[Array, "n k o"], m: int
) -> Float[Array, ""]:
    """The error by JAX."""
    theta, w = layer_of(flat, m, X.shape[-1])
    looked_for = jnp.einsum("nap,mpq->nmaq", X, theta)
    patterns = jax.nn.softmax(jnp.einsum("nmaq,nbq->nmab", looked_for, X), axis=-1)
    outputs = jnp.einsum("nmab,nbd,mdo->nao", patterns, X, w, optimize=True)
    return jnp.sum((y - outputs) ** 2) / jnp.sum(y**2)


error_and_slope = jax.jit(jax.value_and_grad(squared_error), static_argnums=3)


def compiled(X: np.ndarray, y: np.ndarray, m: int, at: np.ndarray, budget: Budget) -> Objective:
    """The error and its slope by JAX, on its device; compiling does not count."""
    tokens, labels = (jnp.asarray(part) for part in padded(X, y))
    with budget.paused():
        error_and_slope.lower(at, tokens, labels, m).compile()

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = error_and_slope(flat, tokens, labels, m)
        return float(value), np.asarray(slope)

    return objective


def two_tokens(X: np.ndarray, y: np.ndarray, m: int) -> Objective:
    """The error and its slope on two tokens, by BLAS; rows are the last axis of every array."""
    d, outputs, size = X.shape[-1], y.shape[-1], float(np.sum(y**2))
    # An example is two rows: each token is the query once, with the other token beside it.
    own, other = (tokens.transpose(2, 1, 0).reshape(d, -1) for tokens in (X, X[:, ::-1]))
    parts = (own, other - own, y.transpose(2, 1, 0).reshape(outputs, -1))
    starts = range(0, own.shape[1], _ROWS)
    blocks = [tuple(np.ascontiguousarray(part[:, at : at + _ROWS]) for part in parts) for at in starts]
    # Written again for each block: fresh pages would cost as much as the products.
    buffers = [np.empty((heads, d, min(_ROWS, own.shape[1]))) for heads in (d, m + 1, m)]

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        theta, w = flat[: m * d * d].reshape(m, d * d), flat[m * d * d :].reshape(m, d, outputs)
        # The query itself meets the sum of all W, the difference the W of each head.
        values = np.concatenate([w.sum(axis=0, keepdims=True), w]).reshape(-1, outputs).T.copy()
        by_theta, by_values, error = np.zeros_like(theta), np.zeros_like(values), 0.0
        for query, delta, labels in blocks:
            outer, Z, seen = (buffer[..., : query.shape[1]] for buffer in buffers)
            np.multiply(query[:, None], delta, out=outer)
            pairs = outer.reshape(d * d, -1)
            p = expit(theta @ pairs)
            Z[0] = query
            np.multiply(p[:, None], delta, out=Z[1:])
            means = Z.reshape((m + 1) * d, -1)
            missed = labels - values @ means
            error += float(np.vdot(missed, missed))
            by_values += missed @ means.T
            np.multiply((w.reshape(m * d, outputs) @ missed).reshape(seen.shape), delta, out=seen)
            # The slope in p_i is delta W_i times what is missed; its factor -2 comes at the end.
            by_theta += (p * (1 - p) * seen.sum(axis=1)) @ pairs.T
        by_w = by_values.T.reshape(m + 1, d, outputs)
        # W_i is a part of the sum, too.
        slope = np.concatenate([by_theta.ravel(), (by_w[1:] + by_w[0]).ravel()])
        return error / size, slope * (-2 / size)

    return objective
