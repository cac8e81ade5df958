r"""Variable projection: for fixed attention matrices W is a linear regression, so only Theta is sought.

===============  =====================================================================================
symbol           meaning
===============  =====================================================================================
q_a, K_a, y_a    query, keys and output of row a
p, z             pattern and mean key of a head, :math:`z_a = \sum_b p_{ab} x_b`
C_a              covariance of the keys under the pattern, :math:`\sum_b p_{ab} (x_b - z_a)^\top (x_b - z_a)`
M_a              :math:`C_a W`, so that :math:`\mathrm{d}y_a = \sum_i q_a\, \mathrm{d}\Theta_i\, M^{(i)}_a`
H, g             Gauss-Newton matrix and gradient of the projected problem (Kaufman's form)
===============  =====================================================================================

The Jacobian column (i, p, q) is the outer product :math:`q_{ap} M^{(i)}_a[q, :]`, so it is never written down:

.. math::
    (J^\top J)_{ipq,\,jp'q'} = \sum_a q_{ap} q_{ap'}\, (M^{(i)}_a M^{(j)\top}_a)_{qq'} , \qquad
    (Z^\top J_s)_{jr,\,ipq} = \sum_{q'} \Big[\sum_a z^{(j)}_{ar} q_{ap}\, C^{(i)}_a[q, q']\Big] W_i[q', s]

Both sums over rows are matrix products of two tall matrices, with symmetric pairs (p, p') and (q, q') kept once: about
:math:`\tfrac32 m^2 d^4` flops a row, 2 d_out / 3 times fewer than forming :math:`J^\top J` from J.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import linalg

from attnlab.mha.layer import Rows

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
        return float(np.sum(self.residual**2) / np.sum(Y**2))


class NormalEquations(NamedTuple):
    """Gauss-Newton matrix and descent direction's right-hand side of the projected problem."""

    H: np.ndarray
    g: np.ndarray


def row_patterns(rows: Rows, theta: np.ndarray) -> np.ndarray:
    """Attention patterns ``(r, m, k)`` of all heads on all rows."""
    m, d, _ = theta.shape
    looked_for = (rows.Q @ theta.transpose(1, 0, 2).reshape(d, m * d)).reshape(-1, m, d)
    logits = looked_for @ rows.K.transpose(0, 2, 1)
    logits -= logits.max(axis=-1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=-1, keepdims=True)
    patterns: np.ndarray = logits
    return patterns


def mean_keys(rows: Rows, theta: np.ndarray) -> np.ndarray:
    """Mean keys of all heads side by side, ``Z (r, m d)``."""
    means: np.ndarray = (row_patterns(rows, theta) @ rows.K).reshape(len(rows), -1)
    return means


def regress(rows: Rows, theta: np.ndarray, ridge: float = RIDGE) -> Regression:
    """Least squares for W given Theta: one Cholesky factor, and one step of refinement against its rounding."""
    m, d, _ = theta.shape
    Z = mean_keys(rows, theta)
    gram = Z.T @ Z
    gram[np.diag_indices_from(gram)] += ridge * np.trace(gram) / len(gram) + np.finfo(float).tiny
    factor = linalg.cholesky(gram, lower=True)
    w = linalg.cho_solve((factor, True), Z.T @ rows.Y)
    w += linalg.cho_solve((factor, True), Z.T @ (rows.Y - Z @ w))
    return Regression(w.reshape(m, d, -1), rows.Y - Z @ w, Z, factor)


def residual(rows: Rows, theta: np.ndarray, w: np.ndarray) -> np.ndarray:
    """``Y - F(X)`` on the rows, for given parameters."""
    left: np.ndarray = rows.Y - mean_keys(rows, theta) @ w.reshape(-1, w.shape[-1])
    return left


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
    responses: np.ndarray = (C.reshape(m, r * d, d) @ W).reshape(m, r, d, -1)
    return responses


def normal_equations(rows: Rows, theta: np.ndarray, fit: Regression) -> NormalEquations:
    """Kaufman's Gauss-Newton equations in all entries of Theta, assembled as matrix products over row chunks."""
    m, d, _ = theta.shape
    pairs = _pairs(d)
    t = len(pairs.first)
    self_products = np.zeros((m, m, t, d * d))
    cross = np.zeros((m * d * d, m * t))
    g = np.zeros((m, d, d))
    for part in chunks(len(rows), 2 * m * d * d):
        some, Z = rows.take(part), fit.Z[part]
        Q, r = some.Q, len(some)
        C = key_covariances(some, theta, Z)
        M = key_responses(C, fit.W)
        g += Q.T @ (M @ fit.residual[part, :, None])[..., 0]
        query_pairs = (np.take(Q, pairs.first, axis=1) * np.take(Q, pairs.second, axis=1)).T
        for i in range(m):
            for j in range(i, m):
                self_products[i, j] += query_pairs @ (M[i] @ M[j].transpose(0, 2, 1)).reshape(r, d * d)
        attended = (Z[:, :, None] * Q[:, None, :]).reshape(r, m * d * d)
        packed = [np.take(C[i].reshape(r, d * d), pairs.flat, axis=1) for i in range(m)]
        cross += attended.T @ np.concatenate(packed, axis=1)
    H = _unpack_self_products(self_products, pairs)
    U = _projected_columns(cross, fit, pairs)
    H -= U.T @ U
    return NormalEquations(H, g.reshape(-1))


def normal_equations_in(rows: Rows, theta: np.ndarray, fit: Regression, basis: np.ndarray) -> NormalEquations:
    """The same equations when every Theta_i moves in the span of ``basis (l, d, d)``: m l unknowns."""
    m, d, _ = theta.shape
    unknowns, outputs = m * len(basis), fit.W.shape[-1]
    H, g = np.zeros((unknowns, unknowns)), np.zeros(unknowns)
    cross = np.zeros((m * d, outputs * unknowns))
    for part in chunks(len(rows), 2 * m * d * d):
        some, Z = rows.take(part), fit.Z[part]
        M = key_responses(key_covariances(some, theta, Z), fit.W)
        moved = (some.Q @ basis).transpose(1, 0, 2)
        J = np.concatenate([moved @ M[i] for i in range(m)], axis=1).transpose(0, 2, 1)
        flat = np.ascontiguousarray(J).reshape(-1, unknowns)
        H += flat.T @ flat
        g += flat.T @ fit.residual[part].reshape(-1)
        cross += Z.T @ J.reshape(len(some), -1)
    U = linalg.solve_triangular(fit.factor, cross, lower=True).reshape(-1, unknowns)
    return NormalEquations(H - U.T @ U, g)


class _Pairs(NamedTuple):
    """The pairs (p <= p') of d coordinates, their place in a flat d x d matrix, and the number of every pair."""

    first: np.ndarray
    second: np.ndarray
    flat: np.ndarray
    number: np.ndarray


@lru_cache(maxsize=32)
def _pairs(d: int) -> _Pairs:
    first, second = np.triu_indices(d)
    number = np.zeros((d, d), dtype=int)
    number[first, second] = number[second, first] = np.arange(len(first))
    return _Pairs(first, second, first * d + second, number)


def _unpack_self_products(packed: np.ndarray, pairs: _Pairs) -> np.ndarray:
    """From sums over (i <= j, p <= p', q, q') to the symmetric matrix over (i, p, q)."""
    m, d = len(packed), len(pairs.number)
    H = np.empty((m, d, d, m, d, d))
    for i in range(m):
        for j in range(i, m):
            block = packed[i, j][pairs.number].reshape(d, d, d, d).transpose(0, 2, 1, 3)
            H[i, :, :, j] = block
            H[j, :, :, i] = block.transpose(2, 3, 0, 1)
    return H.reshape(m * d * d, m * d * d)


def _projected_columns(cross: np.ndarray, fit: Regression, pairs: _Pairs) -> np.ndarray:
    """``L^{-1} Z^T J`` for every output, stacked: rows (head, coordinate, output), columns (i, p, q)."""
    m, d, outputs = fit.W.shape
    packed = linalg.solve_triangular(fit.factor, cross.reshape(m * d, -1), lower=True)
    by_head = packed.reshape(m * d, d, m, -1)
    columns = np.empty((m * d, outputs, m, d, d))
    for i in range(m):
        whole = by_head[:, :, i][:, :, pairs.number].reshape(-1, d)
        columns[:, :, i] = (whole @ fit.W[i]).reshape(m * d, d, d, outputs).transpose(0, 3, 1, 2)
    return columns.reshape(m * d * outputs, m * d * d)
