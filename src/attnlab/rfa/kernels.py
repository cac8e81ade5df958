r"""Exact kernels of infinitely many heads, for tokens of any length and examples with different numbers of keys.

.. math:: K(x, x') = \frac1{N N'} \sum_{i,j} \langle \tilde x_i, \tilde x'_j\rangle\;
          \mathbb{E}\big[\sigma(z_i)\,\sigma(z'_j)\big], \qquad z_i = \tilde x_0^T W \tilde x_i

========  ==========================================================================================
symbol    meaning
========  ==========================================================================================
xt        homogenised token [x; 1]
W         N(W_0, tau^2) entrywise
m, s      mean <W_0, xt_0 xt_i^T> and standard deviation tau |xt_0| |xt_i| of the score z_i
rho       correlation of z_i and z'_j: cos(xt_0, xt_0') cos(xt_i, xt_j')
k0        E[relu(g) relu(g')] at correlation rho
========  ==========================================================================================

A tile of examples against a tile of examples is one compiled loop over pairs of keys: the scores' correlations and the
closed form are evaluated in cache, nothing of size (all pairs of keys) is stored.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from attnlab.common.gaussian import gauss_legendre
from attnlab.common.threads import thread_count
from attnlab.common.validation import integer, one_of, positive
from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import homogenise
from attnlab.rfa.series import relu_covariance
from attnlab.rfa.sets import Padded, pad

KINDS = ("rfa", "brfa", "exp", "identity", "square", "erf", "mlp", "patch")
NODES = 12
TILE = 256
# On a GPU: tiles large enough to fill it.
GPU_TILE = 8192


class Side(NamedTuple):
    """One tile of examples: directions, and per key its mean score, deviation and weight."""

    query: Any
    keys: Any
    mean: Any
    deviation: Any
    weight: Any


@functools.cache
def _remainder_coefficients(degree: int) -> tuple[float, ...]:
    """Polynomial q with k0(rho) = relu(rho)/2 + (1-|rho|)^{3/2} q(|rho|): the singularity at one is factored out."""
    r = (1 + np.cos(np.pi * (np.arange(64) + 0.5) / 64)) / 2
    # sqrt(1-r^2) - r arccos(r) in terms of the angle, free of cancellation near r = 1.
    angle = 2 * np.arcsin(np.sqrt((1 - r) / 2))
    small = angle < 0.02
    value = np.where(small, angle**3 / 3 - angle**5 / 30 + angle**7 / 840, np.sin(angle) - r * angle)
    fit = np.polynomial.Chebyshev.fit(r, value / (2 * np.pi * (1 - r) ** 1.5), degree, domain=[0, 1])
    return tuple(float(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef)


def relu_pairs(rho: Array) -> Array:
    """k0(rho): one square root and a polynomial, accurate to the working precision."""
    size = jnp.abs(rho)
    gap = jnp.maximum(1 - size, 0)
    polynomial = jnp.zeros_like(rho)
    for c in reversed(_remainder_coefficients(5 if rho.dtype == jnp.float32 else 15)):
        polynomial = polynomial * size + c
    return 0.5 * jnp.maximum(rho, 0) + gap * jnp.sqrt(gap) * polynomial


def _plackett(a: Array, b: Array, rho: Array, nodes: int, power: int) -> Array:
    r"""(1/2pi) int_0^rho (rho - u)^power exp(-(a^2 - 2abu + b^2)/(2(1-u^2))) (1-u^2)^{-1/2} du.

    The substitution u = rho (1 - x^2) removes the square-root singularity at u = rho = 1 and needs no trigonometry;
    Gauss-Legendre in x. With power 1 and \|a\|, \|b\| <= 1 the error is 5e-6, 5e-7, 1e-8 at 8, 12, 24 nodes.
    """
    squares, cross = -0.5 * (a * a + b * b), a * b
    total = jnp.zeros_like(rho)
    for x, w in zip(*gauss_legendre(nodes), strict=True):
        u = rho * float(1 - x * x)
        # Not lax.rsqrt: on a CPU its refinement takes longer than the instructions for root and quotient.
        root = 1 / jnp.sqrt(jnp.maximum(1 - u * u, np.finfo(np.float32).tiny))
        total += float(2 * w * x ** (2 * power + 1)) * root * jnp.exp((squares + cross * u) * root * root)
    return rho ** (power + 1) * total / (2 * np.pi)


def biased_relu_pairs(a: Array, b: Array, rho: Array, nodes: int = NODES) -> Array:
    r"""E[relu(a + g) relu(b + g')], stable up to rho = 1.

    .. math:: \mu_0(a)\mu_0(b) + \rho\,\Phi(a)\Phi(b)
              + \tfrac1{2\pi}\int_0^{\rho} (\rho - u)\, e^{-(a^2 - 2abu + b^2)/(2(1-u^2))}\,\frac{du}{\sqrt{1-u^2}}
    """
    cdf_a, cdf_b = jax.scipy.stats.norm.cdf(a), jax.scipy.stats.norm.cdf(b)
    mean_a, mean_b = a * cdf_a + jax.scipy.stats.norm.pdf(a), b * cdf_b + jax.scipy.stats.norm.pdf(b)
    return mean_a * mean_b + rho * cdf_a * cdf_b + _plackett(a, b, rho, nodes, 1)


def _erf_pairs(m: Array, s: Array, m2: Array, s2: Array, rho: Array, nodes: int) -> Array:
    """E[erf(z) erf(z')]: erf(z) = E sign(z + g/sqrt 2), so this is a bivariate orthant probability."""
    root, root2 = jnp.sqrt(1 + 2 * s * s), jnp.sqrt(1 + 2 * s2 * s2)
    h, k = np.sqrt(2.0) * m / root, np.sqrt(2.0) * m2 / root2
    product = jax.scipy.special.erf(h / np.sqrt(2.0)) * jax.scipy.special.erf(k / np.sqrt(2.0))
    return product + 4 * _plackett(h, k, 2 * rho * s * s2 / (root * root2), nodes, 0)


PairKernel = Callable[[Array, Array, Array, Array, Array, int], Array]
# E[sigma(z) sigma(z')] for z ~ N(m, s^2), z' ~ N(m', s'^2) of correlation rho. "centred" is the ReLU without bias; its
# factor s s' is carried by the weights.
PAIRS: Mapping[str, PairKernel] = MappingProxyType(
    {
        "centred": lambda m, s, m2, s2, rho, nodes: relu_pairs(rho),
        "relu": lambda m, s, m2, s2, rho, nodes: s * s2 * biased_relu_pairs(m / s, m2 / s2, rho, nodes),
        "exp": lambda m, s, m2, s2, rho, nodes: jnp.exp(m + s * s / 2 + m2 + s2 * s2 / 2 + rho * s * s2),
        "identity": lambda m, s, m2, s2, rho, nodes: m * m2 + rho * s * s2,
        "square": lambda m, s, m2, s2, rho, nodes: (
            (m * m + s * s) * (m2 * m2 + s2 * s2) + 4 * rho * s * s2 * m * m2 + 2 * (rho * s * s2) ** 2
        ),
        "erf": _erf_pairs,
    }
)
# Those that integrate numerically: arithmetic, not memory, is what they wait for.
QUADRATURE = ("relu", "erf")


# XLA prefers half of AVX-512's width; the whole of it is faster here (by a fifth; with a bias, by half).
@functools.partial(
    jax.jit,
    static_argnames=("pair", "nodes", "pooled", "batched"),
    compiler_options={"xla_cpu_prefer_vector_width": 512},
)
def _tile(left: Side, right: Side, pair: str, nodes: int, pooled: bool, batched: bool = False) -> Array:
    """Kernel of a tile. Keys are token-major, (N, tile, D), so that the inner loop runs over contiguous examples.

    ``pooled``: units on [x_0; x_i; 1] instead of heads; the query's part adds to the key's and values are scalar.
    ``batched``: for cheap closed forms on a GPU. One product for a key against all keys of the other side, and one
    pass over it: each number goes to memory and back once, and few calls are made.
    """
    exact = lax.Precision.HIGHEST
    U = jnp.matmul(left.query, right.query.T, precision=exact)
    n_right, columns, width = right.keys.shape

    def value(i: Array, j: Any, V: Array) -> Array:
        m, s, s2 = left.mean[i][:, None], left.deviation[i][:, None], right.deviation[j]
        if pooled:
            return jnp.asarray(s * s2 * relu_pairs((U + V) / (s * s2)) * right.weight[j])
        return jnp.asarray(V * PAIRS[pair](m, s, right.mean[j], s2, U * V, nodes) * right.weight[j])

    def key_by_key(i: Array) -> Array:
        def add_pair(j: Array, row: Array) -> Array:
            return row + value(i, j, jnp.matmul(left.keys[i], right.keys[j].T, precision=exact))

        row: Array = lax.fori_loop(0, n_right, add_pair, jnp.zeros_like(U))
        return row

    # Three products of TF32 parts leave the kernel as exact as float32 (1e-7) and take two thirds of the time.
    on_gpu = jax.default_backend() == "gpu" and U.dtype == jnp.float32
    split = lax.DotAlgorithmPreset.TF32_TF32_F32_X3 if on_gpu else exact

    def all_keys(i: Array) -> Array:
        products = jnp.matmul(left.keys[i], right.keys.reshape(-1, width).T, precision=split)
        # The barrier keeps the product whole: fused into the pass below it would be formed again by every thread.
        V = lax.optimization_barrier(products)  # type: ignore[no-untyped-call]
        return sum((value(i, j, V[:, j * columns : (j + 1) * columns]) for j in range(n_right)), jnp.zeros_like(U))

    row_of = all_keys if batched else key_by_key

    def add_key(i: Array, total: Array) -> Array:
        return jnp.asarray(total + left.weight[i][:, None] * row_of(i))

    total: Array = lax.fori_loop(0, len(left.keys), add_key, jnp.zeros_like(U))
    return total


def _side(batch: Padded, W0: np.ndarray, tau: float, kind: str, dtype: Any) -> Side:
    """Directions and score statistics of a batch; padded keys get weight zero."""
    mask = np.arange(batch.keys.shape[1])[None] < batch.counts[:, None]
    if kind == "patch":
        query, keys = homogenise(np, batch.query) / np.sqrt(3), batch.keys / np.sqrt(3)
        deviation = np.sqrt(np.sum(query**2, -1)[:, None] + np.sum(keys**2, -1))
        mean, weight = np.zeros_like(deviation), mask / batch.counts[:, None]
    else:
        query, keys = homogenise(np, batch.query), homogenise(np, batch.keys)
        lengths, length = np.linalg.norm(keys, axis=-1), np.linalg.norm(query, axis=-1)
        mean = np.einsum("na,ab,nib->ni", query, W0, keys)
        deviation = tau * length[:, None] * lengths
        # The value's inner product <xt_i, xt_j'> is the cosine that the tile forms times both lengths.
        weight = mask * lengths / batch.counts[:, None]
        query, keys = query / length[:, None], keys / lengths[..., None]
    columns = (query, keys.transpose(1, 0, 2), mean.T, deviation.T, weight.T)
    return Side(*(np.ascontiguousarray(c, dtype=dtype) for c in columns))


def _padded_tile(side: Side, start: int, tile: int) -> Side:
    """Examples start..start+tile, the last one repeated to a full tile so that one compiled shape serves all."""
    rows = np.minimum(np.arange(start, start + tile), len(side.query) - 1)
    return Side(side.query[rows], *(np.ascontiguousarray(c[:, rows]) for c in side[1:]))


def _mlp(batch: Padded, other: Padded) -> np.ndarray:
    left, right = (
        homogenise(np, np.concatenate([b.query[:, None], b.keys], 1).reshape(len(b), -1)) for b in (batch, other)
    )
    if left.shape[1] != right.shape[1] or len({*batch.counts, *other.counts}) > 1:
        raise ValueError("kind='mlp' concatenates the tokens: every example must have the same number of keys")
    lengths, others = np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1)
    product = np.outer(lengths, others)
    return np.asarray(product / (batch.keys.shape[1] + 2) * relu_covariance(left @ right.T / product))


def kernel(
    X: np.ndarray | Sequence[np.ndarray],
    X2: np.ndarray | Sequence[np.ndarray] | None = None,
    *,
    kind: str = "rfa",
    bias: str | np.ndarray | None = None,
    bias_scale: float = 1.0,
    tau: float = 0.5,
    nodes: int = NODES,
    dtype: str = "float64",
) -> np.ndarray:
    r"""Exact Gram matrix ``K(X, X2)`` of infinitely many random heads.

    Parameters
    ----------
    X, X2 : tokens ``(n, N + 1, d)``, query first; or lists of ``(N_i + 1, d)``. X2 defaults to X.
    kind : ``rfa`` (ReLU), ``brfa`` (ReLU with the mean of W shifted to the identity), ``exp``, ``identity``,
        ``square``, ``erf`` (scores of that name), ``mlp`` (units on concatenated tokens), ``patch`` (units on pairs).
    bias, bias_scale, tau : law of W as in :class:`RandomFeatureAttention`; ``brfa`` means ``bias="identity"``.
    nodes : quadrature points of the biased ReLU and erf (12 give 5e-7 for mean scores up to one deviation).
    dtype : ``float64``, or ``float32`` for speed.

    Source: arXiv:2307.11353 for the model; closed forms derived here.  Status: exact (up to ``nodes`` and ``dtype``).

    >>> x = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    >>> round(float(kernel(x)[0, 0]), 10)  # 2 k0(1)
    1.0
    """
    one_of("kind", kind, KINDS)
    one_of("dtype", dtype, ("float32", "float64"))
    nodes = integer("nodes", nodes, low=1)
    batch, other = pad(X), pad(X if X2 is None else X2)
    d = batch.query.shape[1]
    if other.query.shape[1] != d:
        raise ValueError(f"X and X2 must have tokens of one width, got {d} and {other.query.shape[1]}")
    if kind == "mlp":
        return _mlp(batch, other).astype(dtype)
    W0 = mean_matrix("identity" if kind == "brfa" and bias is None else bias, d, bias_scale)
    pair = {"rfa": "relu", "brfa": "relu"}.get(kind, kind)
    if pair == "relu" and not W0.any():
        pair = "centred"
    sides = [_side(b, W0, positive("tau", tau), kind, dtype) for b in (batch, other)]
    if pair == "centred":
        sides = [side._replace(weight=side.weight * side.deviation) for side in sides]
    return _assemble(sides[0], sides[1], X2 is None, pair, nodes, kind == "patch")


def _assemble(left: Side, right: Side, symmetric: bool, pair: str, nodes: int, pooled: bool) -> np.ndarray:
    """All tiles; of a symmetric matrix only the lower ones, mirrored."""
    n, m = len(left.query), len(right.query)
    on_gpu = jax.default_backend() == "gpu"
    batched = on_gpu and pair not in QUADRATURE
    tile = min(GPU_TILE if on_gpu else TILE, 1 << (max(n, m) - 1).bit_length())
    starts, columns = range(0, n, tile), range(0, m, tile)
    lefts = [_padded_tile(left, s, tile) for s in starts]
    rights = lefts if symmetric else [_padded_tile(right, s, tile) for s in columns]
    K = np.empty((n, m), dtype=left.query.dtype)

    def compute(where: tuple[int, int]) -> np.ndarray:
        # The precision of JAX is a setting of each thread.
        with jax.enable_x64(K.dtype == np.float64):
            i, j = where
            return np.asarray(_tile(lefts[i], rights[j], pair, nodes, pooled, batched))

    wanted = [(i, j) for i in range(len(lefts)) for j in range(len(rights)) if not symmetric or j <= i]
    with ThreadPoolExecutor(thread_count()) as pool:
        for (i, j), part in zip(wanted, pool.map(compute, wanted), strict=True):
            rows, cols = slice(i * tile, (i + 1) * tile), slice(j * tile, (j + 1) * tile)
            part = part[: n - i * tile, : m - j * tile]
            K[rows, cols] = np.tril(part) + np.tril(part, -1).T if symmetric and i == j else part
            if symmetric and j < i:
                K[cols, rows] = part.T
    return K
