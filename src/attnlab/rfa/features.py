r"""Random feature maps: attention heads, units on the concatenated tokens, units on (query, key) pairs.

==========  ==========================================================================================
symbol      meaning
==========  ==========================================================================================
xt          homogenised token [x; 1] of dimension D = d + 1
W_m         frozen query-key matrix of head m, entries N(W_0, tau^2)
phi(x)      features, scaled by M^{-1/2} so that <phi(x), phi(x')> tends to the exact kernel
block       BLOCK consecutive heads; block b is drawn from its own counter, so the first M heads are the
            first M of any larger number and can be drawn again at any time
==========  ==========================================================================================

A map is a small frozen dataclass. ``block(b)`` draws the weights of one block on the host, ``apply(xp, tokens,
weights)`` turns tokens into the features of that block with NumPy or with JAX (traceable: one formula serves CPU and
GPU). Maps that differ in their random weights only compare equal: they share compiled code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from attnlab.rfa.scores import attend

BLOCK = 128


@runtime_checkable
class FeatureMap(Protocol):
    """What solvers need to know of a random feature map."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of features in each block."""

    def block(self, index: int) -> np.ndarray:
        """Weights of one block, float32, drawn from (seed, index) alone."""

    def apply(self, xp: Any, tokens: Any, weights: Any) -> Any:
        """Features ``(n, size)`` of one block for tokens ``(n, N + 1, d)``."""


def _normals(seed: int, index: int, shape: tuple[int, ...]) -> np.ndarray:
    """Standard normals that depend on (seed, index) only."""
    sequence = np.random.SeedSequence(seed, spawn_key=(index,))
    return np.random.Generator(np.random.Philox(sequence)).standard_normal(shape, dtype=np.float32)


def _split(total: int, block: int) -> tuple[int, ...]:
    return tuple(min(block, total - start) for start in range(0, total, block))


def homogenise(xp: Any, x: Any) -> Any:
    """[x; 1]: append the constant coordinate."""
    return xp.concatenate([x, xp.ones((*x.shape[:-1], 1), dtype=x.dtype)], axis=-1)


def query_and_keys(tokens: Any) -> tuple[Any, Any]:
    """Token 0 and the others; a sequence of one token attends to itself."""
    return tokens[:, 0], tokens[:, 1:] if tokens.shape[1] > 1 else tokens


def each_token_as_query(X: np.ndarray) -> np.ndarray:
    """Self-attention as a batch of queries: (n, tokens, d) -> (n * tokens, tokens + 1, d), keys are all tokens."""
    n, tokens, d = X.shape
    keys = np.broadcast_to(X[:, None], (n, tokens, tokens, d))
    return np.concatenate([X[:, :, None], keys], axis=2).reshape(n * tokens, tokens + 1, d)


@dataclass(frozen=True)
class AttentionFeatures:
    r""":math:`\phi(x) = M^{-1/2} \big[\tfrac1N \sum_i \sigma(\tilde x_0^T W_m \tilde x_i)\, \tilde x_i\big]_{m \le M}`.

    Products with the query, with the keys and back: 2 n M D (D + 2N) FLOP; the outer product of query and key
    is never formed. The features of a block are ordered (coordinate, head), heads innermost, where BLAS is fastest.
    """

    n_heads: int
    d: int
    seed: int = field(compare=False)
    mean: np.ndarray = field(compare=False)
    tau: float = 0.5
    score: str = "relu"
    normalize: str = "mean"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Features per block."""
        return tuple(h * (self.d + 1) for h in _split(self.n_heads, BLOCK))

    def heads(self, index: int) -> np.ndarray:
        """Query-key matrices W_m of a block, ``(heads, D, D)``: rows act on the query, columns on the key."""
        D = self.d + 1
        W = _normals(self.seed, index, (BLOCK, D, D))[: _split(self.n_heads, BLOCK)[index]]
        return np.asarray(np.float32(self.tau) * W + self.mean.astype(np.float32))

    def block(self, index: int) -> np.ndarray:
        """Weights as ``(D, D, heads)``: key's coordinate, query's coordinate, head."""
        return np.ascontiguousarray(self.heads(index).transpose(2, 1, 0))

    def apply(self, xp: Any, tokens: Any, weights: Any) -> Any:
        """Features ``(n, D * heads)`` of one block."""
        query, keys = query_and_keys(homogenise(xp, tokens))
        (n, N, D), h = keys.shape, weights.shape[2]
        # One product per coordinate of the key: small enough that BLAS does not start threads for it.
        Q = xp.swapaxes(xp.matmul(query, weights), 0, 1)
        A = attend(xp, keys @ Q, self.score, self.normalize)
        scale = self.n_heads**-0.5 / (N if self.normalize == "mean" else 1)
        phi = (xp.swapaxes(keys, 1, 2) * weights.dtype.type(scale)) @ A
        return phi.reshape(n, D * h)

    def by_head(self, values: np.ndarray) -> np.ndarray:
        """Value vectors ``(M, D, k)`` from coefficients in feature order ``(M D, k)``."""
        D, start, parts = self.d + 1, 0, []
        for size in self.sizes:
            part = values[start : start + size].reshape(D, size // D, -1)
            parts.append(part.transpose(1, 0, 2))
            start += size
        return np.concatenate(parts)


@dataclass(frozen=True)
class MLPFeatures:
    r""":math:`\phi_m(x) = M^{-1/2}\,\mathrm{relu}(\langle w_m, [x_0; \dots; x_N; 1]\rangle)`, w ~ N(0, I/(N+2))."""

    width: int
    d: int
    n_tokens: int
    seed: int = field(compare=False)
    units: ClassVar[int] = 2048

    @property
    def sizes(self) -> tuple[int, ...]:
        """Features per block."""
        return _split(self.width, self.units)

    def block(self, index: int) -> np.ndarray:
        """Weights ``(tokens * d + 1, units)``."""
        fan_in = self.n_tokens * self.d + 1
        W = _normals(self.seed, index, (self.units, fan_in))[: self.sizes[index]]
        return np.asarray(np.float32((self.n_tokens + 1) ** -0.5) * W.T)

    def apply(self, xp: Any, tokens: Any, weights: Any) -> Any:
        """Features ``(n, units)`` of one block."""
        flat = homogenise(xp, tokens.reshape(len(tokens), -1))
        return xp.maximum(flat @ weights, 0) * weights.dtype.type(self.width**-0.5)


@dataclass(frozen=True)
class PatchFeatures:
    r""":math:`\phi_m(x) = M^{-1/2}\,\tfrac1N \sum_i \mathrm{relu}(\langle w_m, [x_0; x_i; 1]\rangle)`, w ~ N(0, I/3).

    Permutation invariant like attention, but without heads.
    """

    width: int
    d: int
    seed: int = field(compare=False)
    units: ClassVar[int] = 256

    @property
    def sizes(self) -> tuple[int, ...]:
        """Features per block."""
        return _split(self.width, self.units)

    def block(self, index: int) -> np.ndarray:
        """Weights ``(2 d + 1, units)``."""
        W = _normals(self.seed, index, (self.units, 2 * self.d + 1))[: self.sizes[index]]
        return np.asarray(np.float32(3**-0.5) * W.T)

    def apply(self, xp: Any, tokens: Any, weights: Any) -> Any:
        """Features ``(n, units)``: the query's share of the pre-activation is computed once, not once per key."""
        query, keys = query_and_keys(tokens)
        of_query = homogenise(xp, query) @ xp.concatenate([weights[: self.d], weights[-1:]])
        S = keys @ weights[self.d : 2 * self.d] + of_query[:, None]
        return xp.maximum(S, 0).mean(axis=1) * weights.dtype.type(self.width**-0.5)
