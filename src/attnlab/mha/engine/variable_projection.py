r"""Variable projection: for fixed attention matrices W is a linear regression, so only Theta is sought.

===============  =====================================================================================
symbol           meaning
===============  =====================================================================================
q_a, K_a, y_a    query, keys and output of row a
p, z             pattern and mean key of a head, :math:`z_a = \sum_b p_{ab} x_b`
C_a              covariance of the keys under the pattern, :math:`\sum_b p_{ab} (x_b - z_a)^\top (x_b - z_a)`
M_a              :math:`C_a W`, so that :math:`\mathrm{d}y_a = \sum_i q_a\, \mathrm{d}\Theta_i\, M^{(i)}_a`
===============  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import linalg

from attnlab.mha.layer import Rows, over_tokens, softmax

# Heads with equal patterns have equal mean keys, and Z^T Z is then singular: a ridge that the refinement takes back.
RIDGE = 1e-10
# Bytes of one row chunk's largest array; a few of them stay in the last-level cache.
_CHUNK_BYTES = 6_000_000


class Regression(NamedTuple):
    """Projections for fixed attention matrices: ``W (m, d, d_out)``, the residual, and the factor of Z^T Z."""

    W: np.ndarray
    residual: np.ndarray
    Z: np.ndarray
    factor: np.ndarray

    def nmse(self, Y: np.ndarray) -> float:
        """Squared error relative to the labels' second moment."""
        return float(np.sum(self.residual**2) / max(np.sum(Y**2), np.finfo(float).tiny))


def row_patterns(rows: Rows, theta: np.ndarray) -> np.ndarray:
    """Attention patterns ``(r, m, k)`` of all heads on all rows."""
    m, d, _ = theta.shape
    looked_for = (rows.Q @ theta.transpose(1, 0, 2).reshape(d, m * d)).reshape(-1, m, d)
    return softmax(looked_for @ rows.K.transpose(0, 2, 1))


def mean_keys(rows: Rows, theta: np.ndarray) -> np.ndarray:
    """Mean keys of all heads side by side, ``Z (r, m d)``."""
    return (row_patterns(rows, theta) @ rows.K).reshape(len(rows), -1)


def regress(rows: Rows, theta: np.ndarray, ridge: float = RIDGE) -> Regression:
    """Least squares for W given Theta: one Cholesky factor, and one step of refinement against its rounding."""
    m, d, _ = theta.shape
    Z = mean_keys(rows, theta)
    gram = Z.T @ Z
    # tiny keeps the factor definite where all mean keys are zero.
    gram[np.diag_indices_from(gram)] += ridge * np.trace(gram) / len(gram) + np.finfo(float).tiny
    factor = linalg.cholesky(gram, lower=True)
    w = linalg.cho_solve((factor, True), Z.T @ rows.Y)
    w += linalg.cho_solve((factor, True), Z.T @ (rows.Y - Z @ w))
    return Regression(w.reshape(m, d, -1), rows.Y - Z @ w, Z, factor)


def through_patterns(vectors: np.ndarray, patterns: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Every head's vector of every row ``(r, m d)`` times the covariance C of its keys, which is not written."""
    logits = vectors.reshape(*patterns.shape[:2], -1) @ keys.transpose(0, 2, 1)
    # C = K^T (diag p - p p^T) K, applied from the right: k numbers a head in place of d^2.
    logits -= over_tokens(np.add, patterns * logits)[..., None]
    logits *= patterns
    return (logits @ keys).reshape(len(vectors), -1)


def residual(rows: Rows, theta: np.ndarray, w: np.ndarray) -> np.ndarray:
    """``Y - F(X)`` on the rows, for given parameters."""
    return rows.Y - mean_keys(rows, theta) @ w.reshape(-1, w.shape[-1])


def chunk_rows(width: int) -> int:
    """Rows of a chunk in which an array of ``width`` numbers a row stays within the chunk budget."""
    return max(64, _CHUNK_BYTES // (8 * width))


def chunks(r: int, width: int) -> Iterator[slice]:
    """Slices of rows, chunk by chunk."""
    step = chunk_rows(width)
    return (slice(start, min(start + step, r)) for start in range(0, r, step))


def key_covariances(rows: Rows, theta: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Covariance of the keys under each head's pattern, ``C (m, r, d, d)``."""
    p = row_patterns(rows, theta)
    z = Z.reshape(len(rows), len(theta), -1)
    C = np.empty((len(theta), len(rows), *theta.shape[1:]))
    for i in range(len(theta)):
        centred = rows.K - z[:, i, None, :]
        np.matmul((p[:, i, :, None] * centred).transpose(0, 2, 1), centred, out=C[i])
    return C


def key_responses(C: np.ndarray, W: np.ndarray) -> np.ndarray:
    """``M = C W`` of each head, ``(m, r, d, d_out)``, as one product for each head."""
    m, r, d, _ = C.shape
    return (C.reshape(m, r * d, d) @ W).reshape(m, r, d, -1)
