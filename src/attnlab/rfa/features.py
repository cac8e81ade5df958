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

A map is a small frozen dataclass. ``inputs(xp, tokens)`` is what all blocks share, ``block(b)`` draws the weights of a
block on the host, ``apply(xp, inputs, weights)`` gives the features of the block with NumPy or with JAX (traceable: one
formula serves CPU and GPU), ``write(out, inputs, weights)`` is the same for NumPy, in place and in tiles that stay in
cache. ``program`` is the map without its random weights: maps with the same one share compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from attnlab.common.seeds import stream
from attnlab.rfa.activations import Activation, Relu

BLOCK = 128
# Examples per tile: the scores of a block, 0.5 MB at 16 keys, stay in a core's cache, and the products with the query
# are small enough that BLAS does not start threads for them.
TILE = 64


@runtime_checkable
class FeatureMap(Protocol):
    """What solvers need to know of a random feature map."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of features in each block."""

    @property
    def program(self) -> FeatureMap:
        """The same map without what its random weights depend on: what compiled code depends on."""

    def block(self, index: int) -> np.ndarray:
        """Weights of one block, float32, drawn from (seed, index) alone."""

    def inputs(self, xp: Any, tokens: Any) -> tuple[Any, ...]:
        """What every block needs of tokens ``(n, N + 1, d)``: arrays of n rows."""

    def apply(self, xp: Any, inputs: tuple[Any, ...], weights: Any) -> Any:
        """Features ``(n, size)`` of one block."""

    def write(self, out: np.ndarray, inputs: tuple[np.ndarray, ...], weights: np.ndarray) -> None:
        """The same into ``out`` ``(n, size)``, tile by tile."""


def _normals(seed: int, index: int, shape: tuple[int, ...]) -> np.ndarray:
    """Standard normals that depend on (seed, index) only; fewer rows are the first of more."""
    return stream(seed, "learner", "rfa", "weights", index).standard_normal(shape, dtype=np.float32)


def _split(total: int, block: int) -> tuple[int, ...]:
    return tuple(min(block, total - start) for start in range(0, total, block))


def homogenise(xp: Any, x: Any) -> Any:
    """[x; 1]: append the constant coordinate."""
    return xp.concatenate([x, xp.ones((*x.shape[:-1], 1), dtype=x.dtype)], axis=-1)


def tiles(n: int, tile: int = TILE) -> Iterator[slice]:
    """Ranges of ``tile`` examples."""
    for start in range(0, n, tile):
        yield slice(start, min(start + tile, n))


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
    seed: int
    mean: np.ndarray = field(compare=False)
    activation: Activation = field(default_factory=Relu)
    # The mean as a value that can be compared and hashed.
    mean_bytes: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean_bytes", np.asarray(self.mean, dtype=np.float64).tobytes())

    @property
    def program(self) -> AttentionFeatures:
        """The map with no weights."""
        return replace(self, seed=0, mean=np.zeros(0))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Features per block."""
        return tuple(h * (self.d + 1) for h in _split(self.n_heads, BLOCK))

    def heads(self, index: int) -> np.ndarray:
        """Query-key matrices W_m of a block, ``(heads, D, D)``: rows act on the query, columns on the key."""
        D = self.d + 1
        W = _normals(self.seed, index, (_split(self.n_heads, BLOCK)[index], D, D))
        return np.asarray(np.float32(self.activation.tau) * W + self.mean.astype(np.float32))

    def block(self, index: int) -> np.ndarray:
        """Weights as ``(D, D, heads)``: key's coordinate, query's coordinate, head."""
        return np.ascontiguousarray(self.heads(index).transpose(2, 1, 0))

    def inputs(self, xp: Any, tokens: Any) -> tuple[Any, ...]:
        """Homogenised query, keys, and keys as values (transposed, carrying the scale)."""
        query, keys = query_and_keys(homogenise(xp, tokens))
        # On the values the scale costs N D products an example, on the features it would cost M D.
        scale = self.n_heads**-0.5 / (keys.shape[1] if self.activation.averaged else 1)
        # In the type of the tokens: a NumPy float64 would turn everything after it into float64.
        return query, keys, xp.swapaxes(keys, 1, 2) * tokens.dtype.type(scale)

    def apply(self, xp: Any, inputs: tuple[Any, ...], weights: Any) -> Any:
        """Features ``(n, D * heads)`` of one block."""
        # (n, D, N) @ (n, N, heads): for each coordinate of the value a row of heads.
        return (inputs[2] @ self.attention(xp, inputs, weights)).reshape(len(inputs[0]), -1)

    def attention(self, xp: Any, inputs: tuple[Any, ...], weights: Any) -> Any:
        """Attention weights ``(n, N, heads)`` of one block."""
        query, keys, _ = inputs
        # (n, D) @ (D, D, heads): one product for each coordinate of the key, (D, n, heads) before the swap.
        Q = xp.swapaxes(xp.matmul(query, weights), 0, 1)
        return self.activation.weights(xp, keys @ Q)

    def write(self, out: np.ndarray, inputs: tuple[np.ndarray, ...], weights: np.ndarray) -> None:
        """The same in place: the queries' products and the scores of a tile are written over those of the last."""
        (n, N, D), h = inputs[1].shape, weights.shape[2]
        tile = min(TILE, n)
        products, scores = np.empty((tile, D, h), out.dtype), np.empty((tile, N, h), out.dtype)
        zeros = np.zeros_like(scores)
        for rows in tiles(n):
            query, keys, values = (x[rows] for x in inputs)
            Q, S = products[: len(query)], scores[: len(query)]
            np.matmul(query, weights, out=Q.swapaxes(0, 1))
            np.matmul(keys, Q, out=S)
            A = self.activation.weights_in_place(S, zeros[: len(S)])
            # Rows of a contiguous block: the reshaped array is a view, so the product is written into ``out``.
            np.matmul(values, A, out=out[rows].reshape(len(query), D, h))

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
    seed: int
    units: ClassVar[int] = 2048

    @property
    def program(self) -> MLPFeatures:
        """The map with no weights."""
        return replace(self, seed=0)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Features per block."""
        return _split(self.width, self.units)

    def block(self, index: int) -> np.ndarray:
        """Weights ``(tokens * d + 1, units)``."""
        fan_in = self.n_tokens * self.d + 1
        # A row for each unit, transposed below: fewer units are the first of more.
        W = _normals(self.seed, index, (self.sizes[index], fan_in))
        # n_tokens counts the query: |[x_0; ...; x_N; 1]|^2 = N + 2 for unit tokens: pre-activations of variance 1.
        return np.asarray(np.float32((self.n_tokens + 1) ** -0.5) * W.T)

    def inputs(self, xp: Any, tokens: Any) -> tuple[Any, ...]:
        """The concatenated tokens, homogenised; they carry the scale."""
        # ReLU is homogeneous: a scale of its argument is a scale of the features.
        flat = homogenise(xp, tokens.reshape(len(tokens), -1))
        return (flat * tokens.dtype.type(self.width**-0.5),)

    def apply(self, xp: Any, inputs: tuple[Any, ...], weights: Any) -> Any:
        """Features ``(n, units)`` of one block."""
        return xp.maximum(inputs[0] @ weights, 0)

    def write(self, out: np.ndarray, inputs: tuple[np.ndarray, ...], weights: np.ndarray) -> None:
        """The same in place. The one product has no scores to keep in cache, and is faster in larger pieces."""
        zeros = np.zeros((1, out.shape[1]), out.dtype)
        for rows in tiles(len(out), 8 * TILE):
            np.matmul(inputs[0][rows], weights, out=out[rows])
            np.maximum(out[rows], zeros, out=out[rows])


@dataclass(frozen=True)
class PatchFeatures:
    r""":math:`\phi_m(x) = M^{-1/2}\,\tfrac1N \sum_i \mathrm{relu}(\langle w_m, [x_0; x_i; 1]\rangle)`, w ~ N(0, I/3).

    Permutation invariant like attention, but without heads.
    """

    width: int
    d: int
    seed: int
    units: ClassVar[int] = 256

    @property
    def program(self) -> PatchFeatures:
        """The map with no weights."""
        return replace(self, seed=0)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Features per block."""
        return _split(self.width, self.units)

    def block(self, index: int) -> np.ndarray:
        """Weights ``(2 d + 1, units)``."""
        W = _normals(self.seed, index, (self.sizes[index], 2 * self.d + 1))
        # |[x_0; x_i; 1]|^2 = 3 for unit tokens: pre-activations have variance 1.
        return np.asarray(np.float32(3**-0.5) * W.T)

    def inputs(self, xp: Any, tokens: Any) -> tuple[Any, ...]:
        """Homogenised query, and keys."""
        query, keys = query_and_keys(tokens)
        return homogenise(xp, query), keys

    def apply(self, xp: Any, inputs: tuple[Any, ...], weights: Any) -> Any:
        """Features ``(n, units)``: the query's share of the pre-activation is computed once, not once per key."""
        query, keys = inputs
        # Rows of the weights: query, key, constant. The constant is counted with the query.
        of_query = query @ xp.concatenate([weights[: self.d], weights[-1:]])
        S = keys @ weights[self.d : 2 * self.d] + of_query[:, None]
        return xp.maximum(S, 0).mean(axis=1) * weights.dtype.type(self.width**-0.5)

    def write(self, out: np.ndarray, inputs: tuple[np.ndarray, ...], weights: np.ndarray) -> None:
        """The same in place, with relu(s + q) = max(s, -q) + q: one pass less, and q is added once for all keys."""
        (n, N, _), h = inputs[1].shape, weights.shape[1]
        of_query = inputs[0] @ np.concatenate([weights[: self.d], weights[-1:]])
        scores, ones = np.empty((min(TILE, n), N, h), out.dtype), np.ones((1, N), out.dtype)
        of_keys, below = np.ascontiguousarray(weights[self.d : 2 * self.d]), -of_query[:, None]
        for rows in tiles(n):
            S = scores[: len(out[rows])]
            np.matmul(inputs[1][rows], of_keys, out=S)
            np.maximum(S, below[rows], out=S)
            np.matmul(ones, S, out=out[rows, None])
        # Each of the N keys in the sum still lacks its q.
        of_query *= N
        out += of_query
        out *= out.dtype.type(self.width**-0.5 / N)
