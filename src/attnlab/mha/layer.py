r"""The layer :math:`F(X) = \sum_i \mathrm{softmax}(X \Theta_i X^\top) X W_i` and its data, seen row by row.

A *row* is one query with its keys and its output: an example of k tokens gives k rows. On a small cube the same row is
drawn again and again; duplicates carry no new evidence and are dropped before rows are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attnlab.common.arrays import ArrayLike
from attnlab.common.tokens import check_tokens
from attnlab.common.validation import finite_array

# Numbers in the largest array of a block of examples: it stays in the cache. NumPy and not JAX, which would compile
# anew for each number of heads, tokens and coordinates, longer than most layers take to compute.
_BLOCK = 2**18
_FEW_TOKENS = 8
# Beyond this many sign bits per row duplicates are too rare to look for (n^2 / 2^40).
_CUBE_BITS = 40


def softmax(logits: np.ndarray) -> np.ndarray:
    """Weights over the last axis, computed in place."""
    logits -= over_tokens(np.maximum, logits)[..., None]
    np.exp(logits, out=logits)
    logits /= over_tokens(np.add, logits)[..., None]
    return logits


def over_tokens(join: np.ufunc, array: np.ndarray) -> np.ndarray:
    """Sum or maximum over a last axis of few tokens, token by token: NumPy's own loop starts anew for each row."""
    if array.shape[-1] > _FEW_TOKENS:
        return np.asarray(join.reduce(array, axis=-1))
    total = array[..., 0].copy()
    for token in range(1, array.shape[-1]):
        join(total, array[..., token], out=total)
    return total


def _patterns(X: np.ndarray, theta: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Patterns ``p[n, a, i, b]``: one small product for each example, all queries and heads together."""
    n, k, d = X.shape
    # Of a stack of matrices NumPy multiplies one by one: what can be one product is written as one.
    looked_for = (X.reshape(-1, d) @ theta.transpose(1, 0, 2).reshape(d, -1)).reshape(n, k, len(theta), d) + bias
    return softmax(looked_for.reshape(n, -1, d) @ X.transpose(0, 2, 1)).reshape(n, k, len(theta), k)


def _attention(X: np.ndarray, theta: np.ndarray, bias: np.ndarray, w: np.ndarray, c0: np.ndarray) -> np.ndarray:
    n, k, _ = X.shape
    means = _patterns(X, theta, bias).reshape(n, -1, k) @ X
    outputs: np.ndarray = means.reshape(n * k, -1) @ w.reshape(-1, w.shape[-1]) + c0
    return outputs.reshape(n, k, -1)


def check_layer(Theta: ArrayLike, W: ArrayLike, d: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return ``Theta (m, d, d)`` and ``W (m, d, d_out)`` as finite float64 arrays of matching shapes."""
    theta = finite_array("Theta", Theta, shape=(None, d, d)).astype(np.float64)
    if theta.shape[1] != theta.shape[2]:
        raise ValueError(f"Theta must have shape (m, d, d), got {theta.shape}")
    w = finite_array("W", W, shape=(len(theta), theta.shape[1], None)).astype(np.float64)
    return theta, w


def attention(
    X: ArrayLike, Theta: ArrayLike, W: ArrayLike, key_bias: ArrayLike | None = None, constant: ArrayLike | None = None
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
    return _blocks(_attention, tokens, theta, bias, w, c0)


def patterns(X: ArrayLike, Theta: ArrayLike, key_bias: ArrayLike | None = None) -> Float[np.ndarray, "n m k k"]:
    """The attention patterns ``p[n, i, a, b]`` of every head."""
    tokens = check_tokens(X)
    theta = finite_array("Theta", Theta, shape=(None, tokens.shape[-1], tokens.shape[-1])).astype(np.float64)
    bias, _ = check_biases(key_bias, None, (*theta.shape[:2], 1))
    return _blocks(_patterns, tokens, theta, bias).transpose(0, 2, 1, 3)


def check_biases(
    key_bias: ArrayLike | None, constant: ArrayLike | None, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """``key_bias (m, d)`` and ``constant (o,)`` of a layer whose W has this shape; zeros where None."""
    m, d, outputs = shape
    bias = np.zeros((m, d)) if key_bias is None else finite_array("key_bias", key_bias, shape=(m, d)).astype(float)
    c0 = np.zeros(outputs) if constant is None else finite_array("constant", constant, shape=(outputs,)).astype(float)
    return bias, c0


def _blocks(function: Callable[..., np.ndarray], X: np.ndarray, *layer: np.ndarray) -> np.ndarray:
    """Apply a function of tokens and a layer (Theta first) block by block."""
    (k, d), tokens = X.shape[1:], X.astype(np.float64)
    size = max(1, _BLOCK // (k * len(layer[0]) * max(k, d)))
    return np.concatenate([function(tokens[i : i + size], *layer) for i in range(0, len(X), size)])


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
    # A row's number: the bits of its query, then those of its keys in rising order; at most 60 bits for 40 of tokens.
    words = (X > 0) @ (2 ** np.arange(d, dtype=np.int64))
    keys = np.sort(words, axis=1) @ (2 ** (d * np.arange(k, dtype=np.int64)))
    numbers = (words * 2 ** (k * d) + keys[:, None]).reshape(-1)
    order = np.argsort(numbers, kind="stable")
    begins = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    labels = np.add.reduceat(rows.Y[order], begins) / np.diff(begins, append=n * k)[:, None]
    first = order[begins]  # the sort is stable: of equal rows the first drawn stands first
    drawn = np.argsort(first)
    return Rows(rows.Q[first[drawn]], rows.K[first[drawn]], labels[drawn])
