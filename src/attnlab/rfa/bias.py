r"""The mean of the random query-key matrices: none, the identity, any matrix, or one read off the data.

========  ============================================================================================
symbol    meaning
========  ============================================================================================
W_0       mean of W_m: c [[S, 0], [0, 0]], (d+1, d+1)
T         third moment E[y x_0 (x) sum_i (x_i x_i^T - C)], (d, d, d); C the mean of x_i x_i^T
b         leading direction of T along a key slot
========  ============================================================================================
"""

from __future__ import annotations

import numpy as np

from attnlab.common.validation import finite_array, one_of, real

NAMES = ("identity", "moment")


def mean_matrix(bias: str | np.ndarray | None, d: int, scale: float = 1.0) -> np.ndarray:
    """W_0 = scale [[S, 0], [0, 0]] with S from ``bias``: None (zero), ``"identity"`` or an array (d, d)."""
    scale = real("bias_scale", scale)
    W0 = np.zeros((d + 1, d + 1))
    if bias is None:
        return W0
    if isinstance(bias, str):
        one_of("bias", bias, ("identity",))
        S = np.eye(d)
    else:
        S = finite_array("bias", bias, shape=(d, d))
    W0[:d, :d] = scale * S
    return W0


def moment_bias(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    r"""Estimate S in :math:`f_* \approx \tfrac1N\sum_i \langle x_0, S x_i\rangle\langle b, x_i\rangle`.

    S is scaled to the identity's norm, :math:`\|S\|_F = \sqrt d`.

    The centred moment :math:`T_{abc} = \mathbb{E}[y\, x_{0a} \sum_i (x_{ib} x_{ic} - C_{bc})]` is proportional to
    :math:`S_{ab} b_c + S_{ac} b_b`: b is the top eigenvector of :math:`\sum_{ab} T_{abc} T_{abc'}` and
    :math:`S \propto (T b)(I - \tfrac12 b b^T)`. T v is also the gradient of the squared loss in W at W = 0 for heads
    with value v, so this is one gradient step shared by all heads. The part of y linear in x_0 is projected out first.

    Source: derived here.  Status: heuristic. The top eigenvector is that of
    :math:`\|S\|_F^2\, b b^T + S^T S + S^T S\, b b^T + b b^T S^T S` (up to the trace, of relative order 1/d), which is
    b only where b is an eigenvector of :math:`S^T S`. So S is consistent, up to order 1/d, for multiples of a
    rotation, as in ``mixed_rotation`` at gamma 0 and 1. For S of rank one the cosine to the truth in the population is
    1, 0.92, 0.87 at 0, 45, 60 degrees between b and its key direction.
    """
    query, keys = X[:, 0], X[:, 1:] if X.shape[1] > 1 else X
    linear, *_ = np.linalg.lstsq(query, y, rcond=None)
    residual = y - query @ linear
    second = np.einsum("nib,nic->nbc", keys, keys)
    second -= second.mean(axis=0)
    T = np.einsum("n,na,nbc->abc", residual, query, second, optimize=True) / len(y)
    _, vectors = np.linalg.eigh(np.einsum("abc,abd->cd", T, T))
    # The sign of b is arbitrary, and with it that of S: the target is the same with both reversed.
    b = vectors[:, -1]
    S = T @ b
    # T b = S (I + b b^T), and I - b b^T / 2 is the inverse of the last factor.
    S = S - 0.5 * np.outer(S @ b, b)
    norm = np.linalg.norm(S)
    return np.asarray(S * np.sqrt(S.shape[0]) / norm) if norm > 0 else np.zeros_like(S)
