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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from attnlab.common.compute import jax_device
from attnlab.common.threads import thread_count
from attnlab.common.validation import integer, one_of
from attnlab.rfa.activations import ACTIVATIONS, Activation, Relu
from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import homogenise
from attnlab.rfa.series import relu_covariance
from attnlab.rfa.sets import Padded, pad

# Names of kernels that are not those of an activation: ReLU heads without and with a bias, and two kinds of units.
MODELS = ("rfa", "brfa", "rfmlp", "patch")
KINDS = (*MODELS, *(name for name, kind in ACTIVATIONS.items() if kind().has_kernel and name != "relu"))
NODES = 12
TILE = 256
# On a GPU: tiles large enough to fill it.
GPU_TILE = 8192


class Side(NamedTuple):
    """One tile of examples: directions, and per key its mean score, deviation, weight and length."""

    query: Any
    keys: Any
    mean: Any
    deviation: Any
    weight: Any
    length: Any


# XLA prefers half of AVX-512's width; the whole of it is faster here (by a fifth; with a bias, by half).
@functools.partial(
    jax.jit,
    static_argnames=("activation", "centred", "nodes", "pooled", "by_class", "batched"),
    compiler_options={"xla_cpu_prefer_vector_width": 512},
)
def _tile(
    left: Side,
    right: Side,
    activation: Activation,
    centred: bool,
    nodes: int,
    pooled: bool,
    by_class: bool = False,
    batched: bool = False,
) -> Array:
    """Kernel of a tile. Keys are token-major, (N, tile, D), so that the inner loop runs over contiguous examples.

    ``centred``: a homogeneous activation without a bias, whose factor s s' is carried by the weights.
    ``pooled``: units on [x_0; x_i; 1] instead of heads; the query's part adds to the key's and values are scalar.
    ``by_class``: the part of the constant coordinate of the keys and the whole, stacked.
    ``batched``: for cheap closed forms on a GPU. One product for a key against all keys of the other side, and one
    pass over it: each number goes to memory and back once, and few calls are made.
    """
    exact = lax.Precision.HIGHEST
    U = jnp.matmul(left.query, right.query.T, precision=exact)
    n_right, columns, width = right.keys.shape
    zeros = jnp.zeros((2, *U.shape) if by_class else U.shape, U.dtype)

    def value(i: Array, j: Any, V: Array) -> Array:
        m, s, s2 = left.mean[i][:, None], left.deviation[i][:, None], right.deviation[j]
        if pooled:
            return jnp.asarray(s * s2 * Relu().centred_pairs((U + V) / (s * s2)) * right.weight[j])
        if centred:
            pair = activation.centred_pairs(U * V) * right.weight[j]
        else:
            pair = activation.pairs(m, s, right.mean[j], s2, U * V, nodes) * right.weight[j]
        if by_class and not centred:
            # A branch that is always taken: fused into both parts a long closed form would be computed twice.
            pair = lax.cond(j < n_right, jnp.asarray, jnp.zeros_like, pair)
        return jnp.stack([pair / (left.length[i][:, None] * right.length[j]), V * pair]) if by_class else V * pair

    def key_by_key(i: Array) -> Array:
        def add_pair(j: Array, row: Array) -> Array:
            return row + value(i, j, jnp.matmul(left.keys[i], right.keys[j].T, precision=exact))

        return jnp.asarray(lax.fori_loop(0, n_right, add_pair, zeros))

    # Three products of TF32 parts leave the kernel as exact as float32 (1e-7) and take two thirds of the time.
    on_gpu = jax.default_backend() == "gpu" and U.dtype == jnp.float32
    split = lax.DotAlgorithmPreset.TF32_TF32_F32_X3 if on_gpu else exact

    def all_keys(i: Array) -> Array:
        products = jnp.matmul(left.keys[i], right.keys.reshape(-1, width).T, precision=split)
        # The barrier keeps the product whole: fused into the pass below it would be formed again by every thread.
        V = lax.optimization_barrier(products)  # type: ignore[no-untyped-call]
        return sum((value(i, j, V[:, j * columns : (j + 1) * columns]) for j in range(n_right)), zeros)

    row_of = all_keys if batched else key_by_key

    def add_key(i: Array, total: Array) -> Array:
        return jnp.asarray(total + left.weight[i][:, None] * row_of(i))

    return jnp.asarray(lax.fori_loop(0, len(left.keys), add_key, zeros))


def _side(batch: Padded, W0: np.ndarray, tau: float, pooled: bool, dtype: Any) -> Side:
    """Directions and score statistics of a batch; padded keys get weight zero."""
    # A padded key is zeros: homogenised its length is one, so that no quotient below is 0/0.
    mask = np.arange(batch.keys.shape[1])[None] < batch.counts[:, None]
    if pooled:
        # The units' weights have variance 1/3.
        query, keys = homogenise(np, batch.query) / np.sqrt(3), batch.keys / np.sqrt(3)
        deviation = np.sqrt(np.sum(query**2, -1)[:, None] + np.sum(keys**2, -1))
        mean, weight = np.zeros_like(deviation), mask / batch.counts[:, None]
        lengths = np.ones_like(deviation)
    else:
        query, keys = homogenise(np, batch.query), homogenise(np, batch.keys)
        lengths, length = np.linalg.norm(keys, axis=-1), np.linalg.norm(query, axis=-1)
        mean = np.einsum("na,ab,nib->ni", query, W0, keys)
        deviation = tau * length[:, None] * lengths
        # The value's inner product <xt_i, xt_j'> is the cosine that the tile forms times both lengths.
        weight = mask * lengths / batch.counts[:, None]
        query, keys = query / length[:, None], keys / lengths[..., None]
    columns = (query, keys.transpose(1, 0, 2), mean.T, deviation.T, weight.T, lengths.T)
    return Side(*(np.ascontiguousarray(c, dtype=dtype) for c in columns))


def _padded_tile(side: Side, start: int, tile: int) -> Side:
    """Examples start..start+tile, the last one repeated to a full tile so that one compiled shape serves all."""
    rows = np.minimum(np.arange(start, start + tile), len(side.query) - 1)
    return Side(side.query[rows], *(np.ascontiguousarray(c[:, rows]) for c in side[1:]))


def _concatenated(batch: Padded, other: Padded) -> np.ndarray:
    left, right = (
        homogenise(np, np.concatenate([b.query[:, None], b.keys], 1).reshape(len(b), -1)) for b in (batch, other)
    )
    if left.shape[1] != right.shape[1] or len({*batch.counts, *other.counts}) > 1:
        raise ValueError("kind='rfmlp' concatenates the tokens: every example must have the same number of keys")
    lengths, others = np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1)
    product = np.outer(lengths, others)
    # The weights have variance 1/(N + 2), and the ReLU takes the lengths out: |x| |x'| k0(cos) / (N + 2).
    return np.asarray(product / (batch.keys.shape[1] + 2) * relu_covariance(left @ right.T / product))


def kernel(
    X: np.ndarray | Sequence[np.ndarray],
    X2: np.ndarray | Sequence[np.ndarray] | None = None,
    *,
    kind: str | Activation = "rfa",
    bias: str | np.ndarray | None = None,
    bias_scale: float = 1.0,
    nodes: int = NODES,
    dtype: str = "float64",
    device: str = "auto",
    by_class: bool = False,
) -> np.ndarray:
    r"""Exact Gram matrix ``K(X, X2)`` of infinitely many random heads.

    Parameters
    ----------
    X, X2 : tokens ``(n, N + 1, d)``, query first; or lists of ``(N_i + 1, d)``. X2 defaults to X.
    kind : ``rfa`` (ReLU), ``brfa`` (ReLU with the mean of W shifted to the identity), ``exp``, ``identity``,
        ``square``, ``erf`` (activations of that name), an :class:`~attnlab.rfa.activations.base.Activation`, ``rfmlp``
        (units on concatenated tokens), ``patch`` (units on pairs).
    bias, bias_scale : mean of W as in :class:`RandomFeatureAttention`; ``brfa`` means ``bias="identity"``.
    nodes : quadrature points of the biased ReLU and erf (12 give 5e-7 for mean scores up to one deviation).
    dtype : ``float64``, or ``float32`` for speed.
    device : ``cpu``, ``gpu``, or ``auto``: the GPU where JAX sees one.
    by_class : the parts of the two classes of features of a head, ``(2, n, m)``: that of the constant coordinate of
        the keys and that of the others; their sum is the kernel. Units (``rfmlp``, ``patch``) have one class.

    Source: arXiv:2307.11353 for the model; closed forms derived here.  Status: exact (up to ``nodes`` and ``dtype``).

    >>> x = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    >>> round(float(kernel(x)[0, 0]), 10)  # 2 k0(1)
    1.0
    """
    activation = _activation(kind)
    one_of("dtype", dtype, ("float32", "float64"))
    nodes = integer("nodes", nodes, low=1)
    batch, other = pad(X), pad(X if X2 is None else X2)
    d = batch.query.shape[1]
    if other.query.shape[1] != d:
        raise ValueError(f"X and X2 must have tokens of one width, got {d} and {other.query.shape[1]}")
    if kind == "rfmlp":
        K = _concatenated(batch, other).astype(dtype)
        return K[None] if by_class else K
    W0 = mean_matrix("identity" if kind == "brfa" and bias is None else bias, d, bias_scale)
    centred = activation.homogeneous and not W0.any()
    pooled = kind == "patch"
    sides = [_side(b, W0, activation.tau, pooled, dtype) for b in (batch, other)]
    if centred and not pooled:
        # A homogeneous activation takes s and s' out of the expectation; k0 of the correlation is left.
        sides = [side._replace(weight=side.weight * side.deviation) for side in sides]
    form = {"activation": activation, "centred": centred, "nodes": nodes, "pooled": pooled}
    K = _assemble(sides[0], sides[1], X2 is None, {**form, "by_class": by_class and not pooled}, jax_device(device))
    if pooled:
        return K[None] if by_class else K
    return np.stack([K[0], K[1] - K[0]]) if by_class else K


def _activation(kind: str | Activation) -> Activation:
    if isinstance(kind, Activation):
        if not kind.has_kernel:
            raise ValueError(f"activation {kind!r} has no closed-form kernel")
        return kind
    return Relu() if one_of("kind", kind, KINDS) in MODELS else ACTIVATIONS[kind]()


def _assemble(left: Side, right: Side, symmetric: bool, form: dict[str, Any], device: jax.Device) -> np.ndarray:
    """All tiles; of a symmetric matrix only the lower ones, mirrored."""
    n, m = len(left.query), len(right.query)
    on_gpu = device.platform == "gpu"
    batched = on_gpu and (form["centred"] or not form["activation"].quadrature)
    # Powers of two for small problems: few shapes are compiled.
    tile = min(GPU_TILE if on_gpu else TILE, 1 << (max(n, m) - 1).bit_length())
    starts, columns = range(0, n, tile), range(0, m, tile)
    lefts = [_padded_tile(left, s, tile) for s in starts]
    rights = lefts if symmetric else [_padded_tile(right, s, tile) for s in columns]
    K = np.empty((2, n, m) if form["by_class"] else (n, m), dtype=left.query.dtype)

    def compute(where: tuple[int, int]) -> np.ndarray:
        # Precision and device of JAX are settings of each thread.
        with jax.enable_x64(K.dtype == np.float64), jax.default_device(device):
            i, j = where
            return np.asarray(_tile(lefts[i], rights[j], **form, batched=batched))

    wanted = [(i, j) for i in range(len(lefts)) for j in range(len(rights)) if not symmetric or j <= i]
    with ThreadPoolExecutor(thread_count()) as pool:
        for (i, j), part in zip(wanted, pool.map(compute, wanted), strict=True):
            rows, cols = slice(i * tile, (i + 1) * tile), slice(j * tile, (j + 1) * tile)
            part = part[..., : n - i * tile, : m - j * tile]
            mirrored = np.swapaxes(part, -1, -2)
            # On the diagonal the two halves of a tile differ by rounding; the lower one counts, so that K is symmetric.
            K[..., rows, cols] = np.tril(part) + np.triu(mirrored, 1) if symmetric and i == j else part
            if symmetric and j < i:
                K[..., cols, rows] = mirrored
    return K
