r"""Attention indices and their whitened form.

==========  ================================================================================
symbol      meaning
==========  ================================================================================
h           indices, symmetric T x T: h_ab = (x_a^T S x_b - delta_ab Tr S) / sqrt(d)
z           whitened indices, z_ab = h_ab / sqrt(1 + delta_ab), a <= b: p independent components
p           T (T + 1) / 2
==========  ================================================================================

For a fixed S and Gaussian tokens the z are independent N(0, Tr S^2 / d) as d grows: the diagonal of h has twice the
variance of the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def pairs(tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the p pairs a <= b, in the order of the whitened components."""
    return np.triu_indices(tokens)


def n_pairs(tokens: int) -> int:
    """p = T (T + 1) / 2."""
    return tokens * (tokens + 1) // 2


def tokens_of(p: int) -> int:
    """T from p."""
    return int(round((8 * p + 1) ** 0.5 - 1) // 2)


def pair_scale(tokens: int) -> np.ndarray:
    """sqrt(1 + delta_ab) for each pair: h = scale * z."""
    a, b = pairs(tokens)
    return np.where(a == b, np.sqrt(2.0), 1.0)


def pair_of(tokens: int) -> np.ndarray:
    """The position of the pair {a, b} among the p components, as a symmetric (T, T) table."""
    a, b = pairs(tokens)
    table = np.zeros((tokens, tokens), dtype=int)
    table[a, b] = table[b, a] = np.arange(len(a))
    return table


def unwhiten(z: Any, tokens: int) -> Any:
    """z of shape (..., p) to h of shape (..., T, T); NumPy or JAX arrays."""
    return (z * pair_scale(tokens))[..., pair_of(tokens)]


def whiten(h: Any) -> Any:
    """h of shape (..., T, T) to z of shape (..., p); NumPy or JAX arrays."""
    tokens = h.shape[-1]
    return h[(..., *pairs(tokens))] / pair_scale(tokens)


def indices(X: np.ndarray, S: np.ndarray) -> np.ndarray:
    r"""h of every sequence, (n, T, T), for tokens (n, T, d) and S (d, d); two products, never an n x d x d array."""
    n, tokens, d = X.shape
    projected = (X.reshape(n * tokens, d) @ S).reshape(X.shape)
    h = np.einsum("nad,nbd->nab", projected, X)
    h[:, range(tokens), range(tokens)] -= np.trace(S)
    return np.asarray(h / np.sqrt(d))
