r"""The layer :math:`F(X) = \sum_i \mathrm{softmax}(X \Theta_i X^\top) X W_i` and its data, seen row by row.

A *row* is one query with its keys and its output: an example of k tokens gives k rows. On a small cube the same row is
drawn again and again; duplicates carry no new evidence and are dropped before rows are counted.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnlab.common.arrays import ArrayLike
from attnlab.common.precision import float64
from attnlab.common.tokens import check_tokens
from attnlab.common.validation import finite_array

# Examples are computed in padded blocks of few sizes: one compilation serves many n. A small layer takes the largest
# block always; for a wide one a few sentences padded to it would cost more than another compilation.
_BLOCKS = (16, 128, 1024)
_SMALL_WORK = 1e9
# Beyond this many sign bits per row duplicates are too rare to look for (n^2 / 2^40).
_CUBE_BITS = 40


@jax.jit
def _patterns(
    X: Float[Array, "n k d"], Theta: Float[Array, "m d d"], key_bias: Float[Array, "m d"]
) -> Float[Array, "n m k k"]:
    looked_for = jnp.einsum("nap,mpq->nmaq", X, Theta) + key_bias[:, None]
    return jax.nn.softmax(jnp.einsum("nmaq,nbq->nmab", looked_for, X), axis=-1)


@jax.jit
def _attention(
    X: Float[Array, "n k d"],
    Theta: Float[Array, "m d d"],
    W: Float[Array, "m d o"],
    key_bias: Float[Array, "m d"],
    constant: Float[Array, " o"],
) -> Float[Array, "n k o"]:
    return jnp.einsum("nmab,nbd,mdo->nao", _patterns(X, Theta, key_bias), X, W, optimize=True) + constant


def check_layer(Theta: ArrayLike, W: ArrayLike, d: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return ``Theta (m, d, d)`` and ``W (m, d, d_out)`` as finite float64 arrays of matching shapes."""
    theta = finite_array("Theta", Theta, shape=(None, d, d)).astype(np.float64)
    if theta.shape[1] != theta.shape[2]:
        raise ValueError(f"Theta must have shape (m, d, d), got {theta.shape}")
    w = finite_array("W", W, shape=(len(theta), theta.shape[1], None)).astype(np.float64)
    return theta, w


@float64
def attention(
    X: ArrayLike,
    Theta: ArrayLike,
    W: ArrayLike,
    key_bias: ArrayLike | None = None,
    constant: ArrayLike | None = None,
) -> Float[np.ndarray, "n k o"]:
    r"""The outputs of the layer in float64.

    .. math:: F(X)_a = c_0 + \sum_i \sum_b p^{(i)}_{ab}\, x_b W_i, \qquad
              p^{(i)}_{ab} \propto \exp\big((x_a \Theta_i + c_i)\, x_b^\top\big), \quad \sum_b p^{(i)}_{ab} = 1

    Parameters
    ----------
    X : tokens, ``(n, k, d)``.
    Theta : attention matrices, ``(m, d, d)``.
    W : projections, ``(m, d, d_out)``.
    key_bias : the vectors c_i, ``(m, d)``; zero when None. They are what a module's query biases come to.
    constant : the vector c_0, ``(d_out,)``; zero when None.

    >>> X = np.ones((1, 2, 3))
    >>> attention(X, np.zeros((1, 3, 3)), np.eye(3)[None])[0, 0]
    array([1., 1., 1.])
    """
    tokens = check_tokens(X)
    theta, w = check_layer(Theta, W, tokens.shape[-1])
    bias, c0 = check_biases(key_bias, constant, w.shape)
    return _blocks(_attention, tokens, theta, w, bias, c0)


@float64
def patterns(X: ArrayLike, Theta: ArrayLike, key_bias: ArrayLike | None = None) -> Float[np.ndarray, "n m k k"]:
    """The attention patterns ``p[n, i, a, b]`` of every head."""
    tokens = check_tokens(X)
    theta = finite_array("Theta", Theta, shape=(None, tokens.shape[-1], tokens.shape[-1])).astype(np.float64)
    return _blocks(_patterns, tokens, theta, check_biases(key_bias, None, (*theta.shape[:2], 1))[0])


def check_biases(
    key_bias: ArrayLike | None, constant: ArrayLike | None, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """``key_bias (m, d)`` and ``constant (o,)`` of a layer whose W has this shape; zeros where None."""
    m, d, outputs = shape
    bias = np.zeros((m, d)) if key_bias is None else finite_array("key_bias", key_bias, shape=(m, d)).astype(float)
    c0 = np.zeros(outputs) if constant is None else finite_array("constant", constant, shape=(outputs,)).astype(float)
    return bias, c0


def _blocks(function: jax.stages.Wrapped, X: np.ndarray, *layer: np.ndarray) -> np.ndarray:
    """Apply a compiled function of tokens and a layer (Theta first) block by block, the last one padded."""
    parts = []
    large = X.shape[1] * layer[0].size * _BLOCKS[-1] > _SMALL_WORK
    size = next((b for b in _BLOCKS if b >= len(X)), _BLOCKS[-1]) if large else _BLOCKS[-1]
    for start in range(0, len(X), size):
        block = X[start : start + size].astype(np.float64)
        padded = np.concatenate([block, np.zeros((size - len(block), *X.shape[1:]))])
        parts.append(np.asarray(function(padded, *layer))[: len(block)])
    return np.concatenate(parts)


class Rows(NamedTuple):
    """Queries ``Q (r, d)``, the keys they look at ``K (r, k, d)`` and the outputs ``Y (r, d_out)``."""

    Q: np.ndarray
    K: np.ndarray
    Y: np.ndarray

    def __len__(self) -> int:
        return len(self.Q)

    def take(self, index: np.ndarray | slice) -> Rows:
        """The chosen rows."""
        return Rows(self.Q[index], self.K[index], self.Y[index])


def rows_of(X: np.ndarray, y: np.ndarray) -> Rows:
    """All rows of a set of examples; copies of a row on a small cube become one, with the mean of their labels.

    The order of the keys does not matter to the output, so two rows are the same when their query and their *set* of
    keys are.
    """
    n, k, d = X.shape
    rows = Rows(X.reshape(n * k, d), np.repeat(X, k, axis=0), y.reshape(n * k, -1))
    if k * d > _CUBE_BITS or not np.isin(X, (-1.0, 1.0)).all():
        return rows
    words = (X > 0) @ (2 ** np.arange(d, dtype=np.int64))
    codes = np.column_stack([words.reshape(-1), np.repeat(np.sort(words, axis=1), k, axis=0)])
    _, first, copy_of, copies = np.unique(codes, axis=0, return_index=True, return_inverse=True, return_counts=True)
    labels = np.zeros((len(first), rows.Y.shape[1]))
    np.add.at(labels, copy_of.reshape(-1), rows.Y)
    order = np.argsort(first)
    return Rows(rows.Q[first[order]], rows.K[first[order]], (labels / copies[:, None])[order])
