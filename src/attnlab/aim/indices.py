r"""Attention indices, which tokens and which matrix they are made of, and their whitened form.

==========  ==========================================================================================
symbol      meaning
==========  ==========================================================================================
h           indices (queries, keys): h_ab = (x_a^T S x_b - delta_ab Tr S) / sqrt(d); cross: x_a^T S x'_b / sqrt(d)
z           whitened indices, p independent components of one variance
p           T (T + 1)/2 pairs a <= b (tied: h is symmetric, z_aa = h_aa / sqrt 2), or queries times keys (untied: z = h)
N_a         visible columns of row a: all (full), b <= a (causal)
==========  ==========================================================================================

For a fixed tied S and Gaussian tokens the z are independent N(0, Tr S^2 / d) as d grows: the diagonal of h has twice
the variance of the rest. For an untied S, whose Tr S^2 is small beside Tr S S^T, all entries of h have one variance.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.common.validation import integer, one_of

MASKS = ("full", "causal")
Mask = str | tuple[tuple[bool, ...], ...]


@dataclass(frozen=True)
class Layout:
    """Which queries meet which keys, and through which kind of matrix; immutable, so that compiled programs can hold
    it.

    Parameters
    ----------
    queries, keys : rows and columns of h.
    tied : S symmetric, one matrix for query and key; otherwise S = Q K^T / sqrt(r d).
    cross : queries and keys are different tokens, queries first in X.
    mask : ``full``, ``causal``, or the visible entries as a table of booleans.
    """

    queries: int
    keys: int
    tied: bool = True
    cross: bool = False
    mask: Mask = "full"

    @classmethod
    def of(
        cls, tokens: int | tuple[int, int] = 2, tied: bool = True, attention: str = "self", mask: Any = "full"
    ) -> Layout:
        """Check the parameters of a task, as a user gives them."""
        cross = one_of("attention", attention, ("self", "cross")) == "cross"
        if cross and tied:
            raise ValueError("attention='cross' needs tied=False: queries and keys are different tokens")
        queries, keys = _sizes(tokens, cross)
        if isinstance(mask, str):
            one_of("mask", mask, MASKS)
            if mask == "causal" and cross:
                raise ValueError("mask='causal' needs attention='self': cross-attention has no order of keys")
            if mask == "causal" and queries == 1:
                raise ValueError("mask='causal' needs at least 2 tokens, got tokens=1")
            return cls(queries, keys, bool(tied), cross, mask)
        table = np.asarray(mask)
        if table.dtype != bool or table.shape != (queries, keys):
            raise ValueError(f"mask must be 'full', 'causal' or booleans of shape {(queries, keys)}, got {mask!r}")
        # Nested tuples can be hashed: a layout is a key of caches and a static argument of compiled programs.
        return cls(queries, keys, bool(tied), cross, tuple(map(tuple, table.tolist())))

    @property
    def tokens(self) -> int:
        """Tokens of a sequence X."""
        return self.queries + self.keys if self.cross else self.queries

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of h and y."""
        return self.queries, self.keys

    @property
    def rate(self) -> int:
        """Independent entries of a d x d matrix are d^2 / rate: 2 for symmetric ones."""
        return 2 if self.tied else 1

    @property
    def two_variances(self) -> bool:
        """Whether symmetric and antisymmetric parts of S are seen differently: untied self-attention."""
        return not self.tied and not self.cross

    @functools.cached_property
    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each whitened component."""
        if self.tied:
            return pairs(self.queries)
        rows, columns = np.indices(self.shape)
        return rows.ravel(), columns.ravel()

    @property
    def p(self) -> int:
        """Number of whitened components."""
        return len(self.entries[0])

    @functools.cached_property
    def component(self) -> np.ndarray:
        """The position of h_ab among the components, (queries, keys)."""
        if self.tied:
            return pair_of(self.queries)
        return np.arange(self.p).reshape(self.shape)

    @functools.cached_property
    def scale(self) -> np.ndarray:
        """h = scale * z, for each component."""
        return pair_scale(self.queries) if self.tied else np.ones(self.p)

    @functools.cached_property
    def visible(self) -> np.ndarray:
        """Which entries of h the output depends on, (queries, keys)."""
        if isinstance(self.mask, str):
            full = np.ones(self.shape, dtype=bool)
            return full if self.mask == "full" else np.tril(full)
        return np.array(self.mask)

    @functools.cached_property
    def symmetric(self) -> np.ndarray:
        """The projection (p, p) of untied self-attention on what the symmetric part of S makes."""
        swapped = self.component.T.ravel()
        # Exchanging queries and keys transposes S: h_ab + h_ba sees its symmetric part only, h_ab - h_ba the other.
        return np.asarray((np.eye(self.p) + np.eye(self.p)[swapped]) / 2)

    def unwhiten(self, z: Any) -> Any:
        """z (..., p) to h (..., queries, keys); NumPy or JAX arrays."""
        return (z * self.scale)[..., self.component]

    def whiten(self, h: Any) -> Any:
        """h (..., queries, keys) to z (..., p); NumPy or JAX arrays."""
        return h[(..., *self.entries)] / self.scale

    def spread(self, slope: Any) -> Any:
        """Derivative in z (..., p) to the derivative in h; of a tied pair the entry a <= b carries it."""
        # In the dtype of the slope, which a float64 table would promote.
        own = np.zeros(self.shape, dtype=slope.dtype)
        own[self.entries] = 1
        return (slope / self.scale.astype(slope.dtype))[..., self.component] * own

    def indices(self, X: np.ndarray, S: np.ndarray) -> np.ndarray:
        """h of every sequence, (n, queries, keys); two products, never an n x d x d array."""
        d = X.shape[2]
        left, right = (X[:, : self.queries], X[:, self.queries :]) if self.cross else (X, X)
        # Rows x_b^T S^T are (S x_b)^T: h_ab = x_a . (S x_b) also where S is not symmetric.
        projected = (right.reshape(-1, d) @ S.T).reshape(right.shape)
        h = np.einsum("nad,nbd->nab", left, projected)
        if not self.cross:
            # x_a^T S x_a has the mean Tr S, of order d where S is positive: uncentred, the diagonal of h grows as
            # sqrt(d).
            h[:, range(self.queries), range(self.queries)] -= np.trace(S)
        return np.asarray(h / np.sqrt(d))


def _sizes(tokens: Any, cross: bool) -> tuple[int, int]:
    if isinstance(tokens, Iterable):
        both = tuple(integer("tokens", t, low=1) for t in tokens)
        if not cross or len(both) != 2:
            raise ValueError(f"tokens must be one number, or (queries, keys) with attention='cross', got {tokens!r}")
        return both
    return (integer("tokens", tokens, low=1),) * 2


def pairs(tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the p pairs a <= b, in the order of the whitened components."""
    return np.triu_indices(tokens)


def n_pairs(tokens: int) -> int:
    """p = T (T + 1) / 2."""
    return tokens * (tokens + 1) // 2


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
    """z (..., p) to h (..., T, T) of tied self-attention."""
    return Layout(tokens, tokens).unwhiten(z)


def whiten(h: Any) -> Any:
    """h (..., T, T) to z (..., p) of tied self-attention."""
    return Layout(h.shape[-1], h.shape[-1]).whiten(h)


def indices(X: np.ndarray, S: np.ndarray) -> np.ndarray:
    """h (n, T, T) of tied self-attention, for tokens (n, T, d) and S (d, d)."""
    return Layout(X.shape[1], X.shape[1]).indices(X, S)
